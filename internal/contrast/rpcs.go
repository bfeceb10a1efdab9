package contrast

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
)

// topic says what a field is a part of, or follows from.
type topic int

const (
	ofNothing topic = iota
	ofReply         // what the Reply has, and what moved
	ofLatency
	ofFindings
	ofStatus
	ofFile // the Reply may show it, so its presence follows from the outcome
	ofStalls
)

// about RPCs: the constructors of the usual questions.

// rpc returns a question about a field of an RPC.
func rpc(path string, a about, each func(r *record.Transaction, out *answers)) question {
	return question{path: path, about: a, each: func(r any, out *answers) { each(r.(*record.Transaction), out) }}
}

// place returns a question about the place of an RPC among the others of its connection.
func place(path string, of func(c *record.Context) int64) question {
	return rpc(path, ofTime, func(r *record.Transaction, out *answers) {
		if c, known := r.Context.Get(); known {
			out.add(numberValue(of(&c)))
		}
	})
}

// named returns the question with a phrase for its values, in a format with one %s. Among facts about the same subjects, its
// facts have this rank.
func (q question) named(format string, rank int, forms asks) question {
	q.rank, q.asks = rank, forms
	q.is = func(v value) string { return fmt.Sprintf(format, v.shown()) }
	return q
}

// sized returns the question with phrases for thresholds, each in a format with one %s.
func (q question) sized(more, atMost string, show func(value) string) question {
	q.asks |= asksMore
	q.more = func(v value) string { return singularAfterOne(fmt.Sprintf(more, show(v))) }
	q.atMost = func(v value) string { return singularAfterOne(fmt.Sprintf(atMost, show(v))) }
	return q
}

// afterOne matches the number 1, followed by a noun in the plural, with or without an adjective.
var afterOne = regexp.MustCompile(`\b1 ((?:other |Read |Write |retransmitted |damaged |RNR )?[A-Za-z]+)s\b`)

// singularAfterOne returns a phrase with nouns in the singular after the number 1.
func singularAfterOne(phrase string) string { return afterOne.ReplaceAllString(phrase, "1 $1") }

// whether returns a question that is answered with yes or no: the phrases for both, and the filter for yes.
func (q question) whether(has, lacks, filter string, rank int) question {
	q.has, q.lacks, q.presence, q.rank, q.asks = has, lacks, filter, rank, asksPresence
	return q
}

// counting returns the question with phrases for the thresholds above 0 and at most 0.
func (q question) counting(some, none string) question {
	q.some, q.none = some, none
	return q
}

// from returns the question with what its field follows from.
func (q question) from(t topic) question {
	q.topic = t
	return q
}

// expression returns the question with what filters compare.
func (q question) expression(field string) question {
	q.field = field
	return q
}

// positive returns a question of whether without the negations of its facts.
func (q question) positive() question {
	q.asks = asksValue
	q.is = func(value) string { return q.has }
	q.equal = func(value) string { return q.presence }
	return q
}

func plainNumber(v value) string { return v.shown() }

// duration returns a number of nanoseconds with its unit, and with all of its digits, as filters accept it.
func duration(v value) string { return strings.Replace(time.Duration(v.number).String(), "µ", "u", 1) }

// optional reports a value if it is known. It is absent otherwise.
func optional[T ~int | ~int32 | ~int64 | ~uint16 | ~uint32](o record.Opt[T], out *answers) {
	if v, known := o.Get(); known {
		out.add(numberValue(v))
	}
}

func optionalText(o record.Opt[string], out *answers) {
	if v, known := o.Get(); known {
		out.text(v)
	}
}

// ofMessage reports a value of a Call, which is unknown if it is not in the message.
func sizeOf(m *record.Message, out *answers) {
	if m == nil {
		return
	}
	if size, known := m.PayloadBytes.Get(); known {
		out.add(numberValue(size))
	} else {
		out.unknown()
	}
}

// maxFolders is the maximum number of directories of a path that are asked about.
const maxFolders = 16

// extremes reports the smallest and the largest length of segments. Thresholds depend on no others.
func extremes(lengths []uint32, out *answers) {
	if len(lengths) > 0 {
		out.add(numberValue(slices.Min(lengths)))
		if low, high := slices.Min(lengths), slices.Max(lengths); high > low {
			out.add(numberValue(high))
		}
	}
}

// lengthsOf returns the lengths of the segments of a chunk list.
func lengthsOf(r *record.Transaction, list record.Chunk) (lengths []uint32) {
	for of, s := range r.Segments() {
		if of == list {
			lengths = append(lengths, s.Length)
		}
	}
	return lengths
}

// pageBytes is the size of a page of memory, and unaligned matches an address that is not at the beginning of one.
const (
	pageBytes = 4096
	unaligned = `([1-9a-f]..|.[1-9a-f].|..[1-9a-f])$`
)

// chunkFields are the fields of the three chunk lists.
var chunkFields = [...]string{"read_chunks.segments", "write_chunks.segments", "reply_chunk.segments"}

// anySegment returns a filter for RPCs with a segment of which a field matches a regular expression.
func anySegment(field, pattern string) string {
	var parts []string
	for _, list := range chunkFields {
		parts = append(parts, fmt.Sprintf("%s.%s matches %q", list, field, pattern))
	}
	return strings.Join(parts, " or ")
}

// rpcQuestions returns the questions about RPCs, except for those about arguments and the bytes of file handles.
func rpcQuestions() []question {
	list := callQuestions()
	list = append(list, detailQuestions()...)
	list = append(list, handlingQuestions()...)
	for _, p := range periods {
		list = append(list, rpc("id", ofTime, func(r *record.Transaction, out *answers) { out.add(numberValue(r.ID % p)) }).
			expression(fmt.Sprintf("id %% %d", p)).named("are every "+ordinal(p)+" RPC of the capture%.0s", 40, asksValue))
		list = append(list, place("context.number_on_connection", func(c *record.Context) int64 { return c.NumberOnConnection % p }).
			expression(fmt.Sprintf("context.number_on_connection %% %d", p)).named("are every "+ordinal(p)+" RPC of their connection%.0s", 41, asksValue))
	}
	return list
}

// periods are the distances that are asked about: trouble that comes at a regular distance meets the same operations again and
// again if the workload has a rhythm, too.
var periods = []int64{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20, 24, 32}

// callQuestions returns the questions about what a Call asked, in fields that people know.
func callQuestions() []question {
	context := func(path string, get func(c *record.Context, out *answers)) question {
		return rpc("context."+path, ofCall, func(r *record.Transaction, out *answers) {
			if c, known := r.Context.Get(); known {
				get(&c, out)
			} else {
				out.unknown()
			}
		})
	}
	program := rpc("program", ofCall, func(r *record.Transaction, out *answers) {
		if p, known := r.Program.Get(); known {
			out.add(value{number: int64(uint64(p)<<32 | uint64(r.Version.Or(0))), kind: numeric})
		}
	}).named("", 12, asksValue|asksNot)
	program.equal = func(v value) string {
		return fmt.Sprintf("(program == %d and version == %d)", uint32(v.number>>32), uint32(v.number))
	}
	program.is = func(v value) string {
		p, version := uint32(v.number>>32), uint32(v.number)
		if name := nfs.ProgramName(p); name != "" {
			return fmt.Sprintf("are of %s%d", name, version)
		}
		return fmt.Sprintf("are of program %d version %d", p, version)
	}
	folder := rpc("file", ofCall, func(r *record.Transaction, out *answers) {
		path := r.File.Or("")
		for i := 1; i < len(path) && len(out.values) < maxFolders; i++ {
			if path[i] == '/' && i < maxText {
				out.text(path[:i+1])
			}
		}
	}).named("act on a file below %s", 22, asksValue).from(ofFile)
	folder.equal = func(v value) string { return "file startsWith " + v.literal() }
	return []question{
		rpc("operation", ofCall, func(r *record.Transaction, out *answers) { optionalText(r.Operation, out) }).
			named("are %s", 0, asksValue|asksNot|asksSet),
		rpc("transport", ofCall, func(r *record.Transaction, out *answers) { out.text(r.Transport) }).named("use %s", 1, asksValue),
		rpc("read_chunks", ofCall, func(r *record.Transaction, out *answers) { out.flag(len(r.ReadChunks) > 0) }).
			whether("offer a Read chunk", "offer no Read chunk", "len(read_chunks) > 0", 2),
		rpc("write_chunks", ofCall, func(r *record.Transaction, out *answers) { out.flag(len(r.WriteChunks) > 0) }).
			whether("offer a Write chunk", "offer no Write chunk", "len(write_chunks) > 0", 3),
		rpc("reply_chunk", ofCall, func(r *record.Transaction, out *answers) { out.flag(r.ReplyChunk != nil) }).
			whether("offer a Reply chunk", "offer no Reply chunk", "reply_chunk != null", 4),
		rpc("read_chunks.segments.length", ofCall, func(r *record.Transaction, out *answers) { extremes(lengthsOf(r, record.ReadList), out) }).
			named("", 5, 0).sized("offer a Read segment of more than %s bytes", "offer a Read segment of at most %s bytes", plainNumber),
		rpc("write_chunks.segments.length", ofCall, func(r *record.Transaction, out *answers) { extremes(lengthsOf(r, record.WriteList), out) }).
			named("", 6, 0).sized("offer a Write segment of more than %s bytes", "offer a Write segment of at most %s bytes", plainNumber),
		rpc("reply_chunk.segments.length", ofCall, func(r *record.Transaction, out *answers) { extremes(lengthsOf(r, record.ReplyList), out) }).
			named("", 7, 0).sized("offer a Reply segment of more than %s bytes", "offer a Reply segment of at most %s bytes", plainNumber),
		rpc("read_chunks.segments", ofCall, func(r *record.Transaction, out *answers) { out.add(numberValue(len(lengthsOf(r, record.ReadList)))) }).
			expression("len(read_chunks.segments.length)").named("", 8, 0).sized("offer more than %s Read segments", "offer at most %s Read segments", plainNumber).
			counting("offer Read segments", "offer no Read segment"),
		rpc("write_chunks.segments", ofCall, func(r *record.Transaction, out *answers) { out.add(numberValue(len(lengthsOf(r, record.WriteList)))) }).
			expression("len(write_chunks.segments.length)").named("", 8, 0).sized("offer more than %s Write segments", "offer at most %s Write segments", plainNumber).
			counting("offer Write segments", "offer no Write segment"),
		rpc("call.form", ofCall, func(r *record.Transaction, out *answers) { out.text(string(r.Call.Form)) }).
			named("have a %s Call", 9, asksValue|asksNot),
		rpc("call.payload_bytes", ofCall, func(r *record.Transaction, out *answers) { sizeOf(r.Call, out) }).
			named("have a Call of %s bytes", 13, asksValue).sized("have a Call of more than %s bytes", "have a Call of at most %s bytes", plainNumber),
		program,
		rpc("file", ofCall, func(r *record.Transaction, out *answers) { optionalText(r.File, out) }).
			named("act on %s", 21, asksValue|asksNot).from(ofFile),
		folder,
		rpc("client", ofCall, func(r *record.Transaction, out *answers) { optionalText(r.Client, out) }).named("come from %s", 23, asksValue|asksNot),
		rpc("server", ofCall, func(r *record.Transaction, out *answers) { optionalText(r.Server, out) }).named("go to %s", 24, asksValue|asksNot),
		rpc("uid", ofCall, func(r *record.Transaction, out *answers) { optional(r.UID, out) }).named("come from the user %s", 25, asksValue|asksNot),
		rpc("connection", ofCall, func(r *record.Transaction, out *answers) { out.add(numberValue(r.Connection)) }).
			named("are on connection %s", 26, asksValue|asksNot),
		rpc("direction", ofCall, func(r *record.Transaction, out *answers) { out.flag(r.Direction == record.Backward) }).
			whether("are Calls of the server", "are Calls of the client", "direction == backward", 26),
		rpc("credential", ofCall, func(r *record.Transaction, out *answers) { optionalText(r.Credential, out) }).
			named("use the credential %s", 27, asksValue|asksNot),
		context("first", func(c *record.Context, out *answers) { out.flag(c.NumberOnConnection == 1) }).
			whether("are the first on their connection", "are not the first on their connection", "context.number_on_connection == 1", 30),
		rpc("retransmit_of", ofCall, func(r *record.Transaction, out *answers) { out.flag(r.RetransmitOf.Known()) }).
			whether("repeat an earlier RPC", "do not repeat an earlier RPC", "retransmit_of != null", 28),
		context("in_flight", func(c *record.Context, out *answers) { out.add(numberValue(c.InFlight)) }).
			named("", 30, 0).sized("had more than %s other Calls in flight", "had at most %s other Calls in flight", plainNumber).
			counting("had other Calls in flight", "had no other Call in flight"),
		context("credits_left", func(c *record.Context, out *answers) { optional(c.CreditsLeft, out) }).
			named("", 31, 0).sized("had more than %s credits left", "had at most %s credits left", plainNumber).
			counting("had credits left", "had no credits left"),
		context("idle_ns", func(c *record.Context, out *answers) { optional(c.IdleNS, out) }).
			named("", 32, 0).sized("came more than %s after the message before", "came at most %s after the message before", duration),
	}
}

// low returns the low byte of a handle as its last two hex digits.
func low(h record.Hex32) string { return fmt.Sprintf("%02x", uint8(h)) }

// detailQuestions returns the questions about other fields of a Call.
func detailQuestions() []question {
	suffix := rpc("file", ofDetail, func(r *record.Transaction, out *answers) {
		path := r.File.Or("")
		if dot := strings.LastIndexByte(path, '.'); dot > strings.LastIndexByte(path, '/')+1 && dot < len(path)-1 {
			out.text(path[dot:])
		}
	}).named("act on a file that ends in %s", 50, asksValue).from(ofFile)
	suffix.equal = func(v value) string { return "file endsWith " + v.literal() }
	lowByte := rpc("handle", ofDetail, func(r *record.Transaction, out *answers) {
		for _, s := range r.Segments() {
			if text := low(s.Handle); !slices.ContainsFunc(out.values, func(v value) bool { return v.text == text }) {
				out.text(text)
			}
		}
	}).named("offer a handle that ends in %s", 51, asksValue)
	lowByte.equal = func(v value) string { return anySegment("handle", v.text+"$") }
	handle := rpc("file_handle", ofDetail, func(r *record.Transaction, out *answers) { optionalText(r.FileHandle, out) }).named("", 49, asksValue).from(ofFile)
	handle.is = func(v value) string { return "act on the file handle " + record.ShortHex(v.text) }
	return []question{
		rpc("gid", ofDetail, func(r *record.Transaction, out *answers) { optional(r.GID, out) }).named("come from the group %s", 48, asksValue),
		rpc("machine", ofDetail, func(r *record.Transaction, out *answers) { optionalText(r.Machine, out) }).named("come from the machine %s", 48, asksValue),
		handle,
		suffix,
		lowByte,
		rpc("offset", ofDetail, func(r *record.Transaction, out *answers) {
			for _, s := range r.Segments() {
				if uint64(s.Offset)%pageBytes != 0 {
					out.flag(true)
					return
				}
			}
		}).whether("offer memory that does not begin at a page", "offer no memory that does not begin at a page", "("+anySegment("offset", unaligned)+")", 52).positive(),
		rpc("call.header_bytes", ofDetail, func(r *record.Transaction, out *answers) { optional(r.Call.HeaderBytes, out) }).
			named("", 53, 0).sized("have a Call whose RPC-over-RDMA header has more than %s bytes", "have a Call whose RPC-over-RDMA header has at most %s bytes", plainNumber),
		rpc("call.credits", ofDetail, func(r *record.Transaction, out *answers) { optional(r.Call.Credits, out) }).
			named("request %s credits", 54, asksValue).sized("request more than %s credits", "request at most %s credits", plainNumber),
		place("context.number_on_connection", func(c *record.Context) int64 { return c.NumberOnConnection }).
			named("", 101, 0).sized("came after the %s RPC of their connection", "are not after the %s RPC of their connection", func(v value) string { return ordinal(v.number) }),
		place("context.connection_age_ns", func(c *record.Context) int64 { return c.ConnectionAgeNS }).
			named("", 102, 0).sized("were sent when their connection was older than %s", "were sent when their connection was at most %s old", duration),
	}
}

// handlingQuestions returns the questions about how the transport and the responder handled an RPC, and how it ended.
func handlingQuestions() []question {
	moved := func(path string, of func(r *record.Transaction) int64) question {
		return rpc(path, ofHandling, func(r *record.Transaction, out *answers) { out.add(numberValue(of(r))) }).named("", 16, 0).from(ofReply)
	}
	return []question{
		rpc("reply.form", ofHandling, func(r *record.Transaction, out *answers) {
			if r.Reply != nil {
				out.text(string(r.Reply.Form))
			}
		}).named("have a %s Reply", 10, asksValue).from(ofReply),
		rpc("reply.payload_bytes", ofHandling, func(r *record.Transaction, out *answers) { sizeOf(r.Reply, out) }).
			named("", 14, 0).sized("have a Reply of more than %s bytes", "have a Reply of at most %s bytes", plainNumber).from(ofReply),
		rpc("reply.credits", ofHandling, func(r *record.Transaction, out *answers) {
			if r.Reply != nil {
				optional(r.Reply.Credits, out)
			}
		}).named("", 15, 0).sized("have a Reply that grants more than %s credits", "have a Reply that grants at most %s credits", plainNumber).from(ofReply),
		rpc("invalidation", ofHandling, func(r *record.Transaction, out *answers) { out.flag(r.Invalidation.Known()) }).
			whether("have a Reply that invalidated a handle", "", "invalidation.handle != null", 15).from(ofReply).positive(),
		moved("read", func(r *record.Transaction) int64 { n, _ := query.Moved(r); return n }).sized("moved more than %s bytes by RDMA Read", "moved at most %s bytes by RDMA Read", plainNumber).counting("moved bytes by RDMA Read", "moved no bytes by RDMA Read"),
		moved("write", func(r *record.Transaction) int64 { _, n := query.Moved(r); return n }).sized("moved more than %s bytes by RDMA Write", "moved at most %s bytes by RDMA Write", plainNumber).counting("moved bytes by RDMA Write", "moved no bytes by RDMA Write"),
		rpc("waits.reason", ofHandling, func(r *record.Transaction, out *answers) {
			for i := range r.Waits {
				if word := string(r.Waits[i].Reason); !slices.ContainsFunc(out.values, func(v value) bool { return v.text == word }) {
					out.text(word)
				}
			}
		}).named("waited: %s", 33, asksValue).from(ofStalls),
		rpc("waits", ofHandling, func(r *record.Transaction, out *answers) { out.flag(len(r.Waits) > 0) }).
			whether("had a stall", "", "len(waits) > 0", 34).from(ofStalls).positive(),
		rpc("held_back_by", ofHandling, func(r *record.Transaction, out *answers) { out.flag(r.HeldBackBy.Known()) }).
			whether("were held back by another RPC", "", "held_back_by != null", 35).from(ofStalls).positive(),
		rpc("retransmitted", ofHandling, func(r *record.Transaction, out *answers) { out.flag(r.Retransmitted > 0) }).
			whether("had retransmitted packets", "", "retransmitted > 0", 36).from(ofStalls).positive(),
		rpc("status", ofOutcome, func(r *record.Transaction, out *answers) { out.text(query.Outcome(r)) }).named("ended with the status %s", 60, asksValue).from(ofStatus),
		rpc("findings", ofOutcome, func(r *record.Transaction, out *answers) {
			for _, id := range r.Findings {
				out.text(id)
			}
		}).named(findingPhrase+"%s", 61, asksValue).from(ofFindings),
		rpc("latency_ns", ofOutcome, func(r *record.Transaction, out *answers) { optional(r.LatencyNS, out) }).
			named("", 62, 0).sized("took more than %s", "took at most %s", duration).from(ofLatency),
	}
}

// findingPhrase is what a fact says about a finding, before the rule.
const findingPhrase = "have a finding of "

// maxHandleBytes is the number of bytes of a file handle that are asked about, each as a field of its own.
const maxHandleBytes = 64

// handleByte returns the question about one byte of file handles.
func handleByte(i int) question {
	q := rpc("file_handle", ofDetail, func(r *record.Transaction, out *answers) {
		if hex := r.FileHandle.Or(""); len(hex) >= 2*i+2 {
			out.text(hex[2*i : 2*i+2])
		}
	}).named("", 70, asksValue).from(ofFile)
	q.is = func(v value) string { return fmt.Sprintf("act on a file handle whose byte %d is 0x%s", i, v.text) }
	q.equal = func(v value) string { return fmt.Sprintf("file_handle matches \"^.{%d}%s\"", 2*i, v.text) }
	return q
}

// argument returns the question about the arguments with a name.
func argument(name string) question {
	rank, forms, a := 45, asksValue|asksMore|asksPresence, ofDetail
	switch name {
	case "offset", "count", "slotid", "stable", "name":
		rank, a = 38, ofCall
	}
	q := question{path: "nfs." + name, about: a, rank: rank, asks: forms}
	q.is = func(v value) string { return fmt.Sprintf("have the argument %s %s", name, v.shown()) }
	q.more = func(v value) string { return fmt.Sprintf("have an argument %s of more than %s", name, v.shown()) }
	q.atMost = func(v value) string { return fmt.Sprintf("have an argument %s of at most %s", name, v.shown()) }
	q.has, q.lacks = "have an argument "+name, "have no argument "+name
	return q
}

// argumentsOf reports the scalar values of a decoded message by name.
func argumentsOf(c record.Content, found func(name string, v value)) {
	m, ok := c.(*nfs.Message)
	if !ok {
		return
	}
	for i := range m.Values {
		switch v := &m.Values[i]; v.Kind {
		case nfs.Uint:
			found(v.Name, numberValue(v.Uint))
		case nfs.Enum:
			if v.Text != "" {
				found(v.Name, textValue(v.Text))
			} else {
				found(v.Name, numberValue(v.Uint))
			}
		case nfs.String:
			if len(v.Bytes) > maxText {
				found(v.Name, value{kind: unknown})
			} else {
				found(v.Name, textValue(string(v.Bytes)))
			}
		}
	}
}

// timeText returns a time as filters have it.
func timeText(t record.Time) string { return t.String() }

// seconds returns a time relative to the start of the capture.
func seconds(t, start record.Time, digits int) string {
	return strconv.FormatFloat(float64(t.Sub(start))/1e9, 'f', digits, 64) + "s"
}
