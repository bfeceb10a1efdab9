package main

import (
	"github.com/rdmadump/rdmadump/analyze"
	"github.com/rdmadump/rdmadump/query"
)

// ratesHeadings lets --sort, -Y and -e use the headings of the table of intervals.
var ratesHeadings = []query.Heading[*analyze.Rate]{
	{Name: "time", Path: "start"},
	{Name: "err", Path: "errors"},
	{Name: "retr", Path: "retransmitted"},
	{Name: "to-server", Path: "bytes_to_server"},
	{Name: "to-client", Path: "bytes_to_client"},
	{Name: "p50", Path: "latency.p50_ns"},
	{Name: "p99", Path: "latency.p99_ns"},
	{Name: "worst", Path: "latency.max_ns"},
	{Name: "mean", Path: "in_flight.mean"},
	{Name: "peak", Path: "in_flight.peak"},
}

// filesHeadings lets --sort, -Y and -e use the headings of the table of files.
var filesHeadings = []query.Heading[*analyze.File]{
	{Name: "ops", Path: "operations"},
	{Name: "err", Path: "errors"},
	{Name: "read", Path: "bytes_read"},
	{Name: "written", Path: "bytes_written"},
	{Name: "p50", Path: "latency.p50_ns"},
	{Name: "p90", Path: "latency.p90_ns"},
	{Name: "p99", Path: "latency.p99_ns"},
	{Name: "worst", Path: "latency.max_ns"},
	{Name: "former-name", Path: "renamed.from"},
}

// statsHeadings lets --sort, -Y and -e use the headings of the stats table.
var statsHeadings = []query.Heading[*analyze.Stats]{
	{Name: "err", Path: "errors"},
	{Name: "retr", Path: "retransmitted"},
	{Name: "call-bytes", Path: "call_bytes", Value: func(s *analyze.Stats) any { return int(s.CallBytes.Total()) }},
	{Name: "reply-bytes", Path: "reply_bytes", Value: func(s *analyze.Stats) any { return int(s.ReplyBytes.Total()) }},
	{Name: "p50", Path: "latency.p50_ns"},
	{Name: "p90", Path: "latency.p90_ns"},
	{Name: "p99", Path: "latency.p99_ns"},
	{Name: "worst", Path: "latency.max_ns"},
	{Name: "read", Path: "phases.read_ns"},
	{Name: "write", Path: "phases.write_ns"},
	{Name: "wait", Path: "phases.wait_ns"},
	{Name: "stall", Path: "phases.wait_ns"},
	{Name: "with-chunks", Path: "explicit_rdma"},
	{Name: "fit-64k", Path: "fits_inline_at", Value: func(s *analyze.Stats) any { return s.FitsInlineAt["65536"] }},
}
