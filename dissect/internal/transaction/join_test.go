package transaction

import (
	"reflect"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/credits"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/internal/shares"
	"github.com/rdmadump/rdmadump/dissect/internal/upper"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// oneOf returns two values by side, of which only that of one side is set.
func oneOf[T any](s rdma.Side, v T) (both [2]T) {
	both[s] = v
	return both
}

// otherThan returns two values by side, of which one side has a value of its own.
func otherThan[T any](usual T, s rdma.Side, v T) (both [2]T) {
	both[s], both[s.Other()] = v, usual
	return both
}

// waiting returns a finding that waits for the other side of the side at fault.
func waiting(s rdma.Side) []finding {
	v := violation{rule: rule.RDMAVersion, where: rdma.Where{AtFault: record.Some(s)}}
	return []finding{{violation: v, tag: 1, text: "text", send: 1, next: s.Other()}}
}

// remembers returns a connection state in which everything is set that a connection remembers of a
// side, or of both sides.
func remembers(s rdma.Side) *connState {
	at := record.Stamp{Time: 5, Packet: 6}
	some := record.Some[uint32](7)
	r := new(queue.Recent)
	r.Add(1)
	var calls credits.Peak
	calls.Count(3, true)
	var allowance credits.Allowance
	allowance.Request(7)
	allowance.Take(7, 1)
	allowance.Begin()
	st := &invalidationStats{next: 1}
	st.recent[0] = 0xa1
	st.figures.MixedDirectionCalls, st.figures.MixedRegistrationCalls = 1, 1
	var used credits.Usage
	used.Sent(at.Time, 1, 1)
	used.Answered(at.Time+1, 0)
	used.Sent(at.Time+2, 1, 2)
	return &connState{
		upper: recognizer(true), closing: true, nfs4: true,
		agreed:          negotiation{private: oneOf(s, new(record.PrivateData)), seen: oneOf(s, true), badICRC: oneOf(s, true), changed: oneOf(s, true), newer: oneOf(s, true), invalidationReported: true},
		doubts:          doubts{truncatedRetransmit: true, halfRead: oneOf(s, true), guessed: oneOf(s, true), retransmittedAt: oneOf(s, record.Time(1))},
		messages:        messages{2, 1, at, at},
		incompleteLists: oneOf[int32](s, 1), granting: oneOf(s, granting{some, some, calls}),
		wire: &wireActivity{
			busy:   otherThan(busy{txn: noTxn}, s, busy{at, at, 9, 10, 11, at}),
			credit: oneOf(s, credit{at, at, used}),
			served: oneOf(s, shares.Served{At: at.Time, Packet: at.Packet, XID: 12}),
			reads:  oneOf(s, answeredReads{latest: answeredRead{at, 13, 14}, other: answeredRead{at, 15, 16}}),
		},
		rareState: &rareState{
			lostCalls: 1, notAccepted: 1, lostXIDs: []record.Hex32{8},
			errors: oneOf(s, r), refused: oneOf[uint64](s, 4), unowed: oneOf(s, unowed{call: 4, reply: 4}),
			told: oneOf(s, versionsTold{4, 1, 1}), reusedXID: 8, reusedLeft: 1, refusedAt: oneOf(s, at),
			pendingBackwardCalls: []backwardCall{{where: rdma.Where{At: at, AtFault: record.Some(s)}}},
			short:                oneOf(s, &shortMessage{at: at}), repeated: oneOf(s, r), unmatched: oneOf(s, r),
		},
		checks: connChecks{
			credits:            oneOf(s, allowance),
			invalidatedHandles: oneOf(s, invalidated{handles: map[uint32]struct{}{0xa2: {}}}),
			backchannel:        backchannelGranted, asking: 1, persistentReported: true, usedVersion: record.Some[uint32](3), versionUse: oneOf(s, versionUse{2, &refusal{where: rdma.Where{At: at}}}), xidReused: true,
			answered: oneOf(s, record.Some(at.Time)), newestAnswered: oneOf[int64](s, 11), invalidation: st,
		},
		findings: waiting(s),
	}
}

// recognizer returns the recognizer of a connection, after a Send that showed nothing. RPC-over-RDMA is recognized if rpc is set.
func recognizer(rpc bool) upper.Recognizer {
	r := protocols.New()
	if rpc {
		r.Message(nil, 0)
		r.Service(false, 20049, record.Opt[record.Hex64]{})
	}
	return r
}

var protocols upper.Protocols

// tagged returns a connection with a tag.
func tagged(tag rdma.Tag) rdma.Link {
	c := new(rdma.Conn)
	c.SetTag(tag)
	return c
}

// unset returns the fields of a struct that are zero, except for some.
func unset(v reflect.Value, except ...string) (names []string) {
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsZero() && !slices.Contains(except, name) {
			names = append(names, v.Type().Name()+"."+name)
		}
	}
	return names
}

// TestJoin: a connection that takes over another one remembers everything that either of them
// remembered, of the right side. remembers sets every field, so that a new field is not forgotten.
func TestJoin(t *testing.T) {
	full := remembers(0)
	missing := unset(reflect.ValueOf(*full),
		"table", "link", "share", // of the connection itself
		"open", "calls", "finished", "exposed") // TestJoinCalls
	missing = append(missing, unset(reflect.ValueOf(full.agreed))...)
	missing = append(missing, unset(reflect.ValueOf(full.doubts), "unverifiedSend")...) // it is set while a Send is decoded
	missing = append(missing, unset(reflect.ValueOf(full.messages))...)
	missing = append(missing, unset(reflect.ValueOf(full.granting[0]))...)
	missing = append(missing, unset(reflect.ValueOf(*full.rareState), "txnsWithChunkData")...)
	missing = append(missing, unset(reflect.ValueOf(full.checks))...)
	missing = append(missing, unset(reflect.ValueOf(*full.wire))...)
	if len(missing) > 0 {
		t.Fatalf("remembers sets no %v", missing)
	}
	empty := func() *connState { return &connState{upper: recognizer(false)} }
	for _, test := range []struct {
		name      string
		into, old *connState
		from, to  rdma.Side
		want      *connState
	}{
		{name: "the same side", into: empty(), old: remembers(0), from: 0, to: 0, want: remembers(0)},
		{name: "the other side", into: empty(), old: remembers(0), from: 0, to: 1, want: remembers(1)},
		{name: "side 1", into: empty(), old: remembers(1), from: 1, to: 0, want: remembers(0)},
		{name: "nothing to take over", into: remembers(1), old: empty(), from: 0, to: 1, want: remembers(1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			old := tagged(2)
			table := &Table{conns: []*connState{test.into, test.old}}
			test.into.table, test.old.table = table, table
			test.into.link, test.into.share = tagged(1), new(budget.Share)
			test.into.Join(old, test.from, test.to)
			got := *test.into
			got.table, got.link, got.share = nil, nil, nil
			g, w := reflect.ValueOf(got), reflect.ValueOf(*test.want)
			for i := range g.NumField() {
				name := g.Type().Field(i).Name
				if !reflect.DeepEqual(fieldOf(g, i), fieldOf(w, i)) {
					t.Errorf("%s is %+v, want %+v", name, fieldOf(g, i), fieldOf(w, i))
				}
			}
		})
	}
}

// TestJoinBoth: of two connections that both remember something of each side, nothing is lost.
func TestJoinBoth(t *testing.T) {
	cs, o := remembers(0), remembers(0)
	table := &Table{conns: []*connState{cs, o}}
	cs.table, o.table, cs.link = table, table, tagged(1)
	o.checks.invalidatedHandles[0] = invalidated{handles: map[uint32]struct{}{0xa3: {}}}
	o.checks.invalidation.recent[0] = 0xa4
	cs.Join(tagged(2), 0, 0)
	if got := cs.checks.invalidatedHandles[0].handles; len(got) != 2 {
		t.Errorf("invalidated handles %v, want both", got)
	}
	st := cs.checks.invalidation
	if st.figures.MixedDirectionCalls != 2 || st.figures.MixedRegistrationCalls != 2 || !st.noteHandle(0xa1) || !st.noteHandle(0xa4) {
		t.Errorf("%+v lacks handles or Calls", st)
	}
	if cs.messages.transactions != 4 || cs.messages.again != 2 || cs.incompleteLists[0] != 2 || cs.checks.asking != 2 || cs.checks.credits[0].Dones() != 2 {
		t.Errorf("sums: %d transactions, %d incomplete, %d asking, %d dones", cs.messages.transactions, cs.incompleteLists[0], cs.checks.asking, cs.checks.credits[0].Dones())
	}
	if len(cs.findings) != 2 || len(cs.rareState.pendingBackwardCalls) != 2 || cs.rareState.lostCalls != 2 {
		t.Errorf("%d pending findings, %d Calls of the server, %d lost", len(cs.findings), len(cs.rareState.pendingBackwardCalls), cs.rareState.lostCalls)
	}
}

// TestJoinCalls: the Calls and the memory of the other connection are those of the right side.
func TestJoinCalls(t *testing.T) {
	for _, to := range []rdma.Side{0, 1} {
		cs, o := &connState{upper: recognizer(false)}, &connState{upper: recognizer(true)}
		table := &Table{conns: []*connState{cs, o}}
		cs.table, o.table, cs.link = table, table, tagged(1)
		open, ended := &txn{cs: o}, &txn{cs: o, side: 1}
		open.rec.XID = 5
		o.calls.add(open)
		o.finished.add(ended)
		o.open[0].add(open)
		o.exposed[0].Add(&segment{Target: target{Handle: 0xa1, Length: 10}, Owner: open})
		cs.Join(tagged(2), 0, to)
		if open.cs != cs || open.side != to || ended.cs != cs || ended.side != to.Other() || cs.calls.first != open || cs.finished.first != ended {
			t.Errorf("to side %d: the Calls are on sides %d and %d", to, open.side, ended.side)
		}
		if cs.open[to][5] != open || len(cs.open[to.Other()]) != 0 {
			t.Errorf("to side %d: open Calls %v", to, cs.open)
		}
		if s, _ := cs.exposed[to].Find(target{Handle: 0xa1, Length: 10}); s == nil || s.Owner != open {
			t.Errorf("to side %d: the memory is not exposed", to)
		}
	}
}

// fieldOf returns a field of a struct, exported or not.
func fieldOf(v reflect.Value, i int) any {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	f := c.Field(i)
	return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem().Interface()
}
