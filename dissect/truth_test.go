package dissect_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// The files *.truth.json contain the kernels' own account of a run: the output of their
// tracepoints while the capture was recorded. No capture was read to make them.
type truth struct {
	Connections []struct {
		Client         string
		ClientToServer int `json:"client_to_server_inline"`
		ServerToClient int `json:"server_to_client_inline"`
	}
	Transactions []truthTransaction
}

type truthSegment struct {
	Handle, Offset string
	Length         uint32
	Position       uint32
}

type truthTransaction struct {
	XID             string
	Direction       record.Direction
	Requested       *uint32
	Granted         *uint32
	RDMAProc        *string        `json:"rdma_proc"`
	Read            []truthSegment `json:"client_read_segments"`
	Write           []truthSegment `json:"client_write_segments"`
	Reply           []truthSegment `json:"client_reply_segments"`
	Returned        []truthSegment `json:"returned_lengths"`
	InvalidateRKey  *string        `json:"invalidate_rkey"`
	Locally         []string       `json:"locally_invalidated"`
	Marshalled      *int
	CallPayload     int64   `json:"call_payload_len"`
	CallHeader      int     `json:"call_header_len"`
	Procedure       *string // name in Linux
	ServerProcedure *string `json:"server_procedure"`
	Program         *string
	CallForm        *string  `json:"call_form"`
	ReplyForm       *string  `json:"reply_form"`
	RemotelyInvalid []string `json:"remotely_invalidated"`
}

// kept holds the fields of a transaction record that are compared, as text.
type kept struct {
	rdmaProc, read, write, reply, returned, invalidated, procedure string
	status                                                         record.Status
	callForm, replyForm                                            record.Form
	left                                                           []string
	requested, granted                                             uint32
	payload                                                        int64
	header                                                         int
	gss                                                            bool
}

func keep(r *record.Transaction) kept {
	k := kept{status: r.Status, invalidated: "0x00000000"}
	if r.Call != nil {
		k.requested, k.rdmaProc, k.callForm = r.Call.Credits.Or(0), r.Call.RDMAProc.Or(""), r.Call.Form
		k.payload, k.header = r.Call.PayloadBytes.Or(0), r.Call.HeaderBytes.Or(0)
	}
	if r.Reply != nil {
		k.granted, k.replyForm = r.Reply.Credits.Or(0), r.Reply.Form
	}
	k.gss = r.Credential == record.Some("RPCSEC_GSS")
	k.procedure = r.ProcedureName.Or("")
	for _, c := range r.ReadChunks {
		for _, s := range c.Segments {
			k.read += fmt.Sprintf("%v+%d@%v:%d ", s.Handle, s.Length, s.Offset, c.Position)
		}
	}
	segments := func(c record.WriteChunk, to *string) {
		for _, s := range c.Segments {
			*to += fmt.Sprintf("%v+%d@%v ", s.Handle, s.Length, s.Offset)
			if n, known := s.ReturnedLength.Get(); known {
				k.returned += fmt.Sprint(n, " ")
			}
		}
	}
	for _, c := range r.WriteChunks {
		segments(c, &k.write)
	}
	if r.ReplyChunk != nil {
		segments(*r.ReplyChunk, &k.reply)
	}
	if i, known := r.Invalidation.Get(); known {
		k.invalidated = i.Handle.String()
	}
	for _, h := range r.NotInvalidated {
		k.left = append(k.left, h.String())
	}
	slices.Sort(k.left)
	return k
}

func wantSegments(list []truthSegment, position bool) (s string) {
	for _, g := range list {
		s += fmt.Sprintf("%s+%d@%s", g.Handle, g.Length, g.Offset)
		if position {
			s += fmt.Sprintf(":%d", g.Position)
		}
		s += " "
	}
	return s
}

// TestTruth compares every transaction with the account of two kernels.
func TestTruth(t *testing.T) {
	for _, name := range testkit.Glob(t, captures+"*.truth.json") {
		base := strings.TrimSuffix(name, ".truth.json")
		t.Run(base, func(t *testing.T) {
			holdAgainst(t, name, testkit.Glob(t, captures+base+".pcap*.zst")[0])
		})
	}
}

func holdAgainst(t *testing.T, truthFile, captureFile string) {
	raw, err := os.ReadFile(captures + truthFile)
	if err != nil {
		t.Fatal(err)
	}
	var want truth
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	got := map[string][]kept{}
	thresholds := map[string]record.InlineThresholds{}
	read(t, captureFile, dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			key := string(r.Direction) + r.XID.String()
			got[key] = append(got[key], keep(r))

			return nil
		},
		Connection: func(c *record.Connection) error {
			if port, known := c.Client.Port.Get(); known && c.UpperLayer == "rpcrdma" {
				address := c.Client.Address.Or("")
				if strings.Contains(address, ":") {
					address = "[" + address + "]"
				}
				thresholds[fmt.Sprintf("%s:%d", address, port)] = c.InlineThreshold.Or(record.InlineThresholds{})
			}

			return nil
		},
	}, dissect.Options{})
	checked := 0
	for _, w := range want.Transactions {
		w.Direction = cmp.Or(w.Direction, record.Forward)
		if w.Granted == nil || w.Marshalled == nil && w.Direction == record.Forward {
			continue // The kernels did not trace enough of this RPC.
		}
		checked++
		var done []kept
		for _, r := range got[string(w.Direction)+w.XID] {
			if r.status == record.Complete {
				done = append(done, r)
			}
		}
		if len(done) == 0 {
			t.Errorf("%s: no complete transaction, %d records", w.XID, len(got[string(w.Direction)+w.XID]))
			continue
		}
		compare(t, &w, done[len(done)-1])
	}
	if checked == 0 {
		t.Error("the truth file has no transaction to compare")
	}
	for _, c := range want.Connections {
		if got, known := thresholds[c.Client]; !known || got.ClientToServer != c.ClientToServer || got.ServerToClient != c.ServerToClient {
			t.Errorf("connection of %s: inline thresholds %v (known: %t), want %d and %d", c.Client, got, known, c.ClientToServer, c.ServerToClient)
		}
	}
}

// forms maps the names of the client for its transfers to the forms in records.
var forms = map[string]record.Form{
	"inline": record.Short, "pullup": record.Short, "mapped": record.Short, "read list": record.Chunked, "*read list": record.Long,
	"read chunk": record.Chunked, "write list": record.Chunked, "reply chunk": record.Long,
}

func compare(t *testing.T, w *truthTransaction, r kept) {
	t.Helper()
	check := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s is %v, the kernels say %v", w.XID, what, got, want)
		}
	}
	if w.Requested != nil {
		check("requested credits", r.requested, *w.Requested)
	}
	check("granted credits", r.granted, *w.Granted)
	if w.Direction == record.Backward {
		return
	}
	if w.RDMAProc != nil {
		check("rdma_proc", r.rdmaProc, *w.RDMAProc)
	}
	check("read segments", r.read, wantSegments(w.Read, true))
	check("write segments", r.write, wantSegments(w.Write, false))
	check("reply segments", r.reply, wantSegments(w.Reply, false))
	if len(w.Returned) > 0 {
		returned := ""
		for _, g := range w.Returned {
			returned += fmt.Sprint(g.Length, " ")
		}
		check("returned lengths", r.returned, returned)
	}
	if w.InvalidateRKey != nil {
		check("invalidated handle", r.invalidated, *w.InvalidateRKey)
	}
	if *w.Marshalled == 1 {
		slices.Sort(w.Locally)
		check("handles left to the client", strings.Join(r.left, " "), strings.Join(w.Locally, " "))
	}
	check("payload bytes", r.payload, w.CallPayload)
	check("header bytes", r.header, w.CallHeader)
	if w.CallForm != nil {
		check("form of the Call", r.callForm, forms[*w.CallForm])
	}
	if w.ReplyForm != nil && *w.ReplyForm == "reply chunk" {
		check("form of the Reply", r.replyForm, record.Long)
	}
	// For the NULL Calls that set up an RPCSEC_GSS context, the server traces the procedure that
	// its thread served before.
	if w.ServerProcedure != nil && !r.gss {
		check("procedure", r.procedure, *w.ServerProcedure)
	}
}
