package parquet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// key returns a key of 16 hexadecimal digits: a hash of values.
func key(values ...any) string {
	h := sha256.New()
	for _, v := range values {
		fmt.Fprintln(h, v)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// maxSpans limits the memory for the XIDs of one direction of a connection. Clients count their XIDs, so that the XIDs of a
// connection are a few spans.
const maxSpans = 4096

// span is a number of consecutive XIDs.
type span struct{ first, last uint32 }

// xids are the used XIDs of one direction of a connection.
type xids struct {
	spans []span
	again map[uint32]int // how often an XID was used before, for those that were
	full  bool           // there were too many spans
}

// use takes the next use of an XID, and returns how often it was used before. It returns false if that is not known.
func (x *xids) use(xid uint32) (before int, known bool) {
	if x.full {
		return 0, false
	}
	at, inside := slices.BinarySearchFunc(x.spans, xid, func(s span, xid uint32) int {
		switch {
		case s.last < xid:
			return -1
		case s.first > xid:
			return 1
		}
		return 0
	})
	if inside {
		if x.again == nil {
			x.again = map[uint32]int{}
		}
		if x.again[xid]++; len(x.again) > maxSpans {
			*x = xids{full: true}
			return 0, false
		}
		return x.again[xid], true
	}
	follows := at > 0 && x.spans[at-1].last+1 == xid
	precedes := at < len(x.spans) && xid+1 == x.spans[at].first
	switch {
	case follows && precedes:
		x.spans[at-1].last = x.spans[at].last
		x.spans = slices.Delete(x.spans, at, at+1)
	case follows:
		x.spans[at-1].last = xid
	case precedes:
		x.spans[at].first = xid
	case len(x.spans) == maxSpans:
		*x = xids{full: true}
		return 0, false
	default:
		x.spans = slices.Insert(x.spans, at, span{xid, xid})
	}
	return 0, true
}

// user is one direction of a connection.
type user struct {
	connection int
	direction  record.Direction
}

// connectionKey returns the key of a connection. It is certain if every capture of the connection gives the same one. Otherwise it is
// made of the number of the connection and the key of the capture, so that nothing is joined by mistake.
func (w *Writer) connectionKey(id int, known record.Opt[record.Hex64]) (text string, certain bool) {
	if k, certain := known.Get(); certain {
		return fmt.Sprintf("%016x", uint64(k)), true
	}
	return key("connection", w.row.capture, id), false
}

// rpcKey returns the key of an RPC of the connection with the key of the current row. It is unknown if the XIDs of the connection are
// too scattered to say how often it used this XID.
func (w *Writer) rpcKey(r *record.Transaction) (text record.Opt[string]) {
	by := user{r.Connection, r.Direction}
	used := w.used[by]
	if used == nil {
		used = new(xids)
		w.used[by] = used
	}
	before, known := used.use(uint32(r.XID))
	return record.SomeIf(key("rpc", w.row.connection.Or(""), r.Direction, uint32(r.XID), before), known)
}
