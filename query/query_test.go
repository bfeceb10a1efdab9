package query_test

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
)

// count counts the records of a capture that match, by kind.
func count(t *testing.T, name, source string, fields query.Fields) int {
	t.Helper()
	filter, err := query.Compile(source, fields)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	match := func(r any) {
		hit, err := filter.Match(r)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if hit {
			n++
		}
	}
	var h dissect.Handler
	switch fields {
	case query.Transactions:
		h.Transaction = func(r *record.Transaction) { match(r) }
	case query.Connections:
		h.Connection = func(r *record.Connection) { match(r) }
	case query.Packets:
		h.Packet = func(r *record.Packet) { match(r) }
	case query.Findings:
		h.Finding = func(r *record.Finding) { match(r) }
	}
	f, err := capture.Open("../testdata/captures/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := dissect.New(h, dissect.Options{})
	if err := d.Run(f); err != nil {
		t.Fatal(err)
	}
	d.Finish()
	return n
}

func TestFilter(t *testing.T) {
	const callback, errors = "rocev2-callback41.pcap.zst", "rocev2-errors.pcap.zst"
	for _, c := range []struct {
		capture, source string
		fields          query.Fields
		want            int
	}{
		{callback, `xid == 0x3da94e54`, query.Transactions, 1},
		{callback, `xid == "0x3da94e54"`, query.Transactions, 1},
		{callback, `rpcordma.xid == 0x3da94e54`, query.Transactions, 1},
		{callback, `direction == "backward"`, query.Transactions, 3},
		{callback, `direction != "backward"`, query.Transactions, 61},
		{callback, `"CB_RECALL" in operations`, query.Transactions, 3},
		{callback, `operations matches "^CB_"`, query.Transactions, 3},
		{callback, `operations == "READ" and write_chunks.segments.moved_bytes > 0`, query.Transactions, 4},
		{callback, `reply_chunk`, query.Transactions, 11},
		{callback, `not reply_chunk`, query.Transactions, 53},
		{callback, `reply.credits in [16, 17]`, query.Transactions, 3},
		{callback, `call.rdma_proc == "RDMA_MSG" and reply.rdma_proc == "RDMA_NOMSG"`, query.Transactions, 11},
		{callback, `latency_ns > 100ms`, query.Transactions, 2},
		{callback, `latency > 0.1s && latency < 1h`, query.Transactions, 2},
		{callback, `invalidation.handle == 0xcf4`, query.Transactions, 1},
		{callback, `any(timeline, .event == "invalidate")`, query.Transactions, 15},
		{callback, `len(timeline) > 6`, query.Transactions, 15},
		{callback, `call.time >= "2026-11-21T05:20:00Z"`, query.Transactions, 23},
		{errors, `reply.credits > 0`, query.Transactions, 14}, // a Reply that is null is neither more nor less
		{errors, `reply == null or rdma_error == "ERR_CHUNK"`, query.Transactions, 11},
		{errors, `"xid-mismatch" in findings`, query.Transactions, 1},
		{errors, `close_reason startsWith "nak"`, query.Connections, 3},
		{errors, `private_data.client.offset == 3`, query.Connections, 1},
		{errors, `client.qpn >= 0x20`, query.Connections, 4},
		{errors, `severity == "note"`, query.Findings, 2},
		{callback, `infiniband.bth.opcode == 17`, query.Packets, 143},
		{callback, `bth.opcode == 0x17 or bth.opcode_name contains "Invalidate"`, query.Packets, 15},
		{callback, `reth`, query.Packets, 15},
		{callback, `infiniband.reth.r_key == 0xcf4`, query.Packets, 1},
		{callback, `cm.message == "REQ" and ip_cm.source_port == 42771`, query.Packets, 1},
		{callback, `rpcrdma.xid == 0x3ea94e54`, query.Packets, 2},
		{callback, `rpc.operations == "EXCHANGE_ID"`, query.Packets, 4},
		{callback, `segment.handle == 0xcf4`, query.Packets, 2},
		{"derived-ib-callback41.pcap.zst", `src == "LID 2"`, query.Packets, 149},
		{callback, `eth.src == "52:54:00:77:00:01"`, query.Packets, 160},
		{callback, `cm.private_data contains "f6ab0e18"`, query.Packets, 4},
		{callback, `src == null`, query.Packets, 4},
		{callback, `transport == null`, query.Packets, 26},
		{callback, `ip.src == "192.168.77.1" and connection == 0`, query.Packets, 61},
	} {
		if got := count(t, c.capture, c.source, c.fields); got != c.want {
			t.Errorf("%s: %d of %s, want %d", c.source, got, c.capture, c.want)
		}
	}
}

// TestAliases: Wireshark's names and short ones stand for the fields that they
// always stood for, and each is listed with its field.
func TestAliases(t *testing.T) {
	for _, c := range []struct {
		fields query.Fields
		want   map[string]string
	}{
		{query.Transactions, map[string]string{
			"rpcordma.xid": "xid", "rpc.xid": "xid", "rpcordma.msg_type": "call.rdma_proc", "rpcordma.version": "call.rdma_vers",
			"rpcordma.flow_control": "call.credits", "rpcordma.position": "read_chunks.position", "rpc.program": "program",
			"rpc.programversion": "version", "rpc.procedure": "procedure", "nfs.opcode": "operations", "nfs.nfsstat4": "nfs_status",
			"frame.number": "call.packet", "frame.time": "call.time", "rpc.time": "latency_ns", "latency": "latency_ns",
			"infiniband.ieth": "invalidation.handle", "handle": "timeline.handle", "rpcordma.rdma_handle": "timeline.handle",
		}},
		{query.Connections, map[string]string{"ip.src": "client.address", "ip.dst": "server.address", "infiniband.cm.req.serviceid": "service_id", "conn": "id"}},
		{query.Findings, map[string]string{"frame.number": "packet", "rpcordma.xid": "xid", "rpc.xid": "xid"}},
		{query.Packets, map[string]string{
			"frame.number": "number", "frame.len": "length", "frame.cap_len": "captured", "frame.time": "time", "ip.src": "ipv4.src", "ip.dst": "ipv4.dst",
			"ipv6.src": "ipv6.src", "infiniband.invariant.crc": "icrc", "xid": "xid", "credits": "rpcrdma.credits", "rpc.programversion": "rpc.version",
			"rpc.msgtyp": "rpc.message_type", "infiniband.bth.psn": "bth.psn", "sll.etype": "sll2.ethertype",
		}},
	} {
		for alias, want := range c.want {
			if got, err := query.Resolve(alias, c.fields); err != nil || got != want {
				t.Errorf("%s is %s, want %s: %v", alias, got, want, err)
			}
		}
		for _, f := range c.fields.List() {
			if f.Type == "" || f.Doc == "" || !c.fields.Has(f.Path) {
				t.Errorf("%+v lacks a type or a meaning", f)
			}
		}
	}
}

// TestEveryField: each field of each record can be read, for filters and as it
// prints itself.
func TestEveryField(t *testing.T) {
	known := map[string]bool{} // fields that some record has a value of
	read := func(fields query.Fields, kind string, r any) {
		for _, name := range fields.Names() {
			plain, raw := fields.Get(r, name), fields.Raw(r, name)
			if (plain == nil) != (raw == nil) {
				t.Errorf("%s is %v to filters and %v in columns", name, plain, raw)
			}
			known[kind+name] = known[kind+name] || plain != nil
		}
	}
	for _, name := range []string{"rocev2-errors.pcap.zst", "rocev2-loss42.pcap.zst", "rocev2-nfs41.pcap.zst", "rocev2-callback41.pcap.zst", "lab-retries42.pcap.zst"} {
		f, err := capture.Open("../testdata/captures/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		d := dissect.New(dissect.Handler{
			Transaction: func(r *record.Transaction) { read(query.Transactions, "transaction ", r) },
			Connection:  func(r *record.Connection) { read(query.Connections, "connection ", r) },
			Finding:     func(r *record.Finding) { read(query.Findings, "finding ", r) },
		}, dissect.Options{})
		if err := d.Run(f); err != nil {
			t.Fatal(err)
		}
		d.Finish()
	}
	for name, some := range known {
		if !some {
			t.Errorf("no %s in any record", name)
		}
	}
	read(query.Transactions, "", &record.Transaction{})
	read(query.Connections, "", &record.Connection{})
	read(query.Findings, "", &record.Finding{})
	read(query.Packets, "", &record.Packet{})
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		source, want string
		fields       query.Fields
	}{
		{`latncy_ns > 5`, "there is no field latncy_ns here; near it: latency_ns", query.Transactions},
		{`reply.credit > 5`, "there is no field reply.credit here; near it: reply.credits", query.Transactions},
		{`bth.psnn == 5`, "there is no field bth.psnn here; near it: bth.psn", query.Packets},
		{`psn == 5`, "bth.psn", query.Packets},
		{`xid ==`, "unexpected token", query.Transactions},
		{`xid == 1 nonsense`, "unexpected token", query.Transactions},
	} {
		_, err := query.Compile(c.source, c.fields)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.source, err, c.want)
		}
	}
	f, err := query.Compile(`xid == "no number"`, query.Transactions)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Match(&record.Transaction{}); err == nil || !strings.Contains(err.Error(), "cannot be compared") {
		t.Errorf("comparing a number with a word: %v", err)
	}
}

// FuzzCompile: no expression breaks the compiler.
func FuzzCompile(f *testing.F) {
	f.Add(`xid == 0x3da94e54 and any(timeline, .event == "nak") or latency > 5ms`)
	f.Fuzz(func(t *testing.T, source string) {
		if filter, err := query.Compile(source, query.Transactions); err == nil {
			filter.Match(&record.Transaction{})
		}
	})
}
