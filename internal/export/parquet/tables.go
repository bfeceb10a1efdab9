package parquet

import (
	"maps"
	"reflect"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

// row is what a row says in addition to its record.
type row struct {
	of          *Capture
	capture     string // key of the capture
	role        string
	connection  record.Opt[string] // key of the connection
	certain     bool
	rpc         record.Opt[string] // key of the RPC
	transaction record.Opt[int64]  // number of the RPC that a stall belongs to
	operation   record.Opt[int64]  // number of the RDMA operation that it belongs to
}

// of returns the columns that every table has.
func of[R any]() []column[R] {
	return slices.Concat(
		computed("capture_key", func(_ *R, about *row) string { return about.capture }),
		computed("point_role", func(_ *R, about *row) string { return about.role }),
	)
}

// ofConnection returns the columns that every table about connections has.
func ofConnection[R any]() []column[R] {
	return slices.Concat(of[R](),
		computed("connection_key", func(_ *R, about *row) record.Opt[string] { return about.connection }),
		computed("connection_key_certain", func(_ *R, about *row) record.Opt[bool] {
			return record.SomeIf(about.certain, about.connection.Known())
		}))
}

// rpcKey returns the column with the key of an RPC.
func rpcKey[R any]() []column[R] {
	return computed("rpc_key", func(_ *R, about *row) record.Opt[string] { return about.rpc })
}

// transactionColumns are the columns of the table transactions: one RPC is a about.
func transactionColumns() []column[record.Transaction] {
	return slices.Concat(ofConnection[record.Transaction](), rpcKey[record.Transaction](),
		computed("time", func(r *record.Transaction, _ *row) record.Time { return r.Start() }), // of the Call, or of a Reply without a Call
		computed("packet", firstPacket),
		fields[record.Transaction]("read_chunks write_chunks reply_chunk timeline waits rpc shares_proofs client_name server_name"),
		computed("name", func(r *record.Transaction, _ *row) string { return analyze.Name(r, analyze.ByOperation) }), // by which stats groups RPCs
		computed("failed", func(r *record.Transaction, _ *row) bool { return r.Failed() }),                           // stats counts the RPC as an error
		computed("read_segments", segments(record.ReadList)),
		computed("write_segments", segments(record.WriteList)),
		computed("reply_segments", segments(record.ReplyList)),
		computed("rdma_read_bytes", moved(true)),
		computed("rdma_write_bytes", moved(false)),
	)
}

// waitColumns are the columns of the table waits: one stall of an RPC, or of an RDMA operation that belongs to no RPC, is a about.
func waitColumns() []column[record.Wait] {
	return slices.Concat(ofConnection[record.Wait](), rpcKey[record.Wait](),
		computed("transaction", func(_ *record.Wait, about *row) record.Opt[int64] { return about.transaction }),
		computed("rdma_operation", func(_ *record.Wait, about *row) record.Opt[int64] { return about.operation }),
		computed("time", func(w *record.Wait, _ *row) record.Time { return w.From }),
		fields[record.Wait]("lost"),
		computed("lost_packets", func(w *record.Wait, _ *row) int64 { return int64(len(w.Lost)) }), // between the capture points
	)
}

// operationColumns are the columns of the table rdma_operations.
func operationColumns() []column[record.RDMAOperation] {
	return slices.Concat(ofConnection[record.RDMAOperation](),
		computed("time", func(r *record.RDMAOperation, _ *row) record.Time { return r.Sent }), fields[record.RDMAOperation]("waits client_name server_name"))
}

// taskColumns are the columns of the table tasks.
func taskColumns() []column[record.Task] {
	return slices.Concat(ofConnection[record.Task](),
		computed("time", func(r *record.Task, _ *row) record.Time { return r.From }), fields[record.Task]("client_name server_name"))
}

// connectionColumns are the columns of the table connections.
func connectionColumns() []column[record.Connection] {
	return slices.Concat(ofConnection[record.Connection](),
		computed("time", func(r *record.Connection, _ *row) record.Time { return r.First }), fields[record.Connection]("connection_key client_name server_name"))
}

// problemColumns are the columns of the table problems.
func problemColumns() []column[record.Problem] {
	return slices.Concat(of[record.Problem](),
		computed("time", func(p *record.Problem, _ *row) record.Opt[record.Time] { return p.From }), fields[record.Problem]("evidence"),
		computed("evidence_packets", func(p *record.Problem, _ *row) (list []int64) {
			for i := range p.Evidence {
				list = append(list, p.Evidence[i].Packet)
			}
			return list
		}),
		computed("evidence_facts", func(p *record.Problem, _ *row) (list []string) { // of each of these packets
			for i := range p.Evidence {
				list = append(list, p.Evidence[i].Fact)
			}
			return list
		}),
	)
}

// pointColumns are the columns of the table points, which has rows only for captures of several points.
func pointColumns() []column[record.Point] {
	return slices.Concat(of[record.Point](), fields[record.Point]("steps"),
		computed("clock_steps", func(p *record.Point, _ *row) int64 { return int64(len(p.Steps)) }))
}

// rateColumns are the columns of the table rates: the RPCs of ten seconds are a about.
func rateColumns() []column[analyze.Rate] {
	return slices.Concat(of[analyze.Rate](),
		computed("time", func(r *analyze.Rate, _ *row) record.Time { return r.Start }), fields[analyze.Rate]("group"))
}

// gap is something that a capture does not show.
type gap struct {
	Connection record.Opt[int]         `json:"connection"`
	From       record.Opt[record.Time] `json:"from"`
	To         record.Opt[record.Time] `json:"to"`
	Packets    record.Opt[int64]       `json:"packets"`
	Kind       string                  `json:"kind"`
	Address    record.Opt[string]      `json:"address"`
}

// The kinds of gaps.
const (
	gapPackets    = "not_captured"      // packets of a connection that their receiver acknowledged
	gapBeginning  = "no_beginning"      // the handshake of a connection
	gapEnd        = "no_end"            // the end of a connection
	gapDirection  = "one_direction"     // the packets of all hosts but these
	gapAbsence    = "missing_packets"   // packets of two hosts that passed while others were captured
	gapFiles      = "missing_files"     // files of a ring
	gapUnrecorded = "unrecorded"        // the time between two recordings
	gapSilence    = "silence"           // a host that sent nothing: it may have been silent
	gapDrops      = "capture_drops"     // packets that the capturing program dropped
	gapTruncated  = "truncated_packets" // the ends of packets
	gapBroken     = "input_error"       // everything after an error in the input
	gapRemembered = "evicted"           // what was forgotten because of the memory limit
	gapNotWritten = "not_written"       // everything, because files could not be written, such as on a full disk
)

// captureColumns are the columns of the table captures, which has one about.
func captureColumns() []column[record.Summary] {
	return slices.Concat(of[record.Summary](),
		computed("time", func(s *record.Summary, _ *row) record.Opt[record.Time] { return s.First }),
		computed("exported_on", func(_ *record.Summary, about *row) string { return about.of.Host }), // the computer that exported the capture
		computed("files", func(_ *record.Summary, about *row) []string { return about.of.Files }),
		computed("rdmadump", func(_ *record.Summary, about *row) string { return about.of.Program }),
		computed("options", func(_ *record.Summary, about *row) []string { return about.of.Options }),
		fields[record.Summary]("transactions findings evicted not_judged silences unrecorded missing_packets missing_files other_protocols pause_ports position_refuted"), // the table connections has each position_refuted
		computed("pause_hosts", func(s *record.Summary, _ *row) (list []string) { // whose ports paused links; "" for those of no host
			for _, p := range s.PausePorts {
				list = append(list, p.Address.Or(""))
			}
			return list
		}),
		computed("pause_host_frames", func(s *record.Summary, _ *row) (list []int64) { // of each of these hosts
			for _, p := range s.PausePorts {
				list = append(list, p.Frames)
			}
			return list
		}),
		columnsOf("transactions_", record.Statuses[:], func(s *record.Summary) map[record.Status]int64 { return s.Transactions }),
		columnsOf("findings_", record.Severities[:], func(s *record.Summary) map[record.Severity]int64 { return s.Findings }),
		computed("other_protocols", func(s *record.Summary, _ *row) (list []string) {
			for _, p := range s.OtherProtocols {
				list = append(list, p.Protocol)
			}
			return list
		}),
		computed("not_judged", func(s *record.Summary, _ *row) (list []string) { // rules, and what is missing
			for _, n := range s.NotJudged {
				list = append(list, n.Rule+": "+n.Gap)
			}
			return list
		}),
	)
}

// columnsOf returns a column for each key of a map.
func columnsOf[R any, K ~string](prefix string, keys []K, of func(r *R) map[K]int64) (list []column[R]) {
	for _, k := range keys {
		list = append(list, computed(prefix+string(k), func(r *R, _ *row) int64 { return of(r)[k] })...)
	}
	return list
}

// written is the summary of a capture when its files were completed last. Its silences are only those that the files have.
type written struct{ record.Summary }

// largest are the numbers of a summary that are no sums.
var largest = []string{"time_backwards_ns"}

// take returns the summary of what came since the summaries that were taken before, so that sums of all parts of a capture are those
// of the capture. A part begins when the one before ended. If the capture goes on, a host that is silent is left for later.
func (before *written) take(s *record.Summary, live bool) *record.Summary {
	c := *s
	v, old := reflect.ValueOf(&c).Elem(), reflect.ValueOf(&before.Summary).Elem()
	for _, field := range record.FieldsOf(v.Type()) {
		switch f, b := v.Field(field.Index), old.Field(field.Index); {
		case slices.Contains(largest, field.Name):
		case f.Kind() == reflect.Uint64:
			f.SetUint(f.Uint() - b.Uint())
		case f.CanInt():
			f.SetInt(f.Int() - b.Int())
		}
	}
	if c.TimeBackwards == 0 {
		c.TimeBackwardsNS, c.TimeBackwardsPacket = 0, record.Opt[int64]{}
	}
	c.Transactions, c.Findings, c.Evicted = less(s.Transactions, before.Transactions), less(s.Findings, before.Findings), less(s.Evicted, before.Evicted)
	if before.Last.Known() {
		c.First = before.Last
	}
	if now, known := s.PausedNS.Get(); known {
		was := before.PausedNS.Or(record.Bounds{})
		c.PausedNS = record.SomeIf(record.Bounds{Min: now.Min - was.Min, Max: now.Max - was.Max}, c.PFCPauses > 0 || now != was)
	}
	c.PausePorts = nil
	for _, p := range s.PausePorts {
		if i := slices.IndexFunc(before.PausePorts, func(x record.PausePorts) bool { return x.Address == p.Address }); i >= 0 {
			p.Frames -= before.PausePorts[i].Frames
		}
		if p.Frames > 0 {
			c.PausePorts = append(c.PausePorts, p)
		}
	}
	c.MissingFiles = s.MissingFiles[min(len(before.MissingFiles), len(s.MissingFiles)):]
	c.Absences = nil
	for _, a := range s.Absences {
		if a, unknown := before.absent(a); unknown {
			c.Absences = append(c.Absences, a)
		}
	}
	was := func(h record.Silence) bool {
		return slices.ContainsFunc(before.Silences, func(x record.Silence) bool { return x.Address == h.Address && x.Peer == h.Peer && x.From == h.From })
	}
	lasts := func(h record.Silence) bool { return live && !h.To.Known() }
	c.Silences = slices.DeleteFunc(slices.Clone(s.Silences), func(h record.Silence) bool { return was(h) || lasts(h) })
	silences := slices.DeleteFunc(slices.Clone(s.Silences), func(h record.Silence) bool { return !was(h) && lasts(h) })

	before.Summary = *s
	before.Transactions, before.Findings, before.Evicted = maps.Clone(s.Transactions), maps.Clone(s.Findings), maps.Clone(s.Evicted)
	before.Absences, before.Silences = slices.Clone(s.Absences), silences
	return &c
}

// absent returns what was not known of an absence, which may have become longer. It returns false if all of it was known.
func (before *written) absent(a record.Absence) (record.Absence, bool) {
	packets, counted := a.Packets.Get()
	for _, x := range before.Absences {
		if x.Address != a.Address || x.Peer != a.Peer || x.To < a.From || x.From > a.To {
			continue
		}
		if x == a {
			return a, false
		}
		packets -= x.Packets.Or(0)
	}
	a.Packets = record.SomeIf(max(packets, 0), counted)
	return a, true
}

// less returns what is in a map more than in another one.
func less[K comparable](m, before map[K]int64) map[K]int64 {
	m = maps.Clone(m)
	for k, n := range before {
		m[k] -= n
	}
	return m
}

// firstPacket returns the number of the transaction's first packet.
func firstPacket(r *record.Transaction, _ *row) int64 {
	if r.Call != nil {
		return r.Call.Packet
	}
	return r.Reply.Packet
}

// segments returns a function that counts the segments of a chunk list.
func segments(of record.Chunk) func(r *record.Transaction, _ *row) int64 {
	return func(r *record.Transaction, _ *row) (n int64) {
		for list := range r.Segments() {
			if list == of {
				n++
			}
		}
		return n
	}
}

// moved returns a function that adds up the bytes that RDMA Read moved, or RDMA Write.
func moved(read bool) func(r *record.Transaction, _ *row) int64 {
	return func(r *record.Transaction, _ *row) (n int64) {
		for list, s := range r.Segments() {
			if (list == record.ReadList) == read {
				n += s.MovedBytes
			}
		}
		return n
	}
}
