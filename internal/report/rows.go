package report

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// row is what the table of RPCs shows of a transaction.
type row struct {
	id, start    int64 // start is in nanoseconds since 1970
	latency      int64 // -1 if it is unknown
	call, reply  int64 // bytes of the Payload streams; -1 if they are unknown
	packet       int64 // the first
	conn         int32
	xid          uint32
	name, status uint16 // indexes of names
	rules        uint16
	backward     bool
	bound        bool // latency is an upper bound
}

// rowList has the rows of a capture, and the words in them.
type rowList struct {
	list     []row
	order    []int32 // indexes of list, the most interesting row first; nil until it is needed
	most     int     // length of list
	leftOut  int64
	names    words // operations
	statuses words
	rules    words // rules of a transaction's findings, with spaces between them
}

// words numbers the words of a column.
type words struct {
	list  []string
	index map[string]uint16
}

// others stands for all words beyond the limit.
const others = "(others)"

// number returns the number of a word.
func (w *words) number(s string) uint16 {
	if n, known := w.index[s]; known {
		return n
	}
	if len(w.list) >= maxNames && s != others {
		return w.number(others)
	}
	if w.index == nil {
		w.index = map[string]uint16{}
	}
	n := uint16(len(w.list))
	w.list, w.index[s] = append(w.list, s), n
	return n
}

// payload returns the length of a message's Payload stream, or -1.
func payload(m *record.Message) int64 {
	if m == nil {
		return -1
	}
	return m.PayloadBytes.Or(-1)
}

// rowOf returns the row of a transaction.
func (l *rowList) rowOf(r *record.Transaction) row {
	x := row{
		id: r.ID, start: int64(r.Start()), latency: r.LatencyNS.Or(-1), call: payload(r.Call), reply: payload(r.Reply), conn: int32(r.Connection), xid: uint32(r.XID),
		name: l.names.number(operation(r)), status: l.statuses.number(query.Outcome(r)), rules: l.rules.number(strings.Join(r.Findings, " ")),
		backward: r.Direction == record.Backward, bound: r.LatencyMinNS.Known(),
	}
	if r.Call != nil {
		x.packet = r.Call.Packet
	} else {
		x.packet = r.Reply.Packet
	}
	return x
}

// operation returns the name of a transaction's operation, as in the table of operations.
func operation(r *record.Transaction) string { return render.Clean(opName(r)) }

// add adds a transaction.
func (l *rowList) add(r *record.Transaction) {
	if len(l.list) >= l.most {
		l.leftOut++
		return
	}
	l.list = append(l.list, l.rowOf(r))
}

// failed reports whether a row has a finding or an outcome other than ok.
func (l *rowList) failed(x *row) bool {
	return l.rules.list[x.rules] != "" || l.statuses.list[x.status] != "ok"
}

// choose returns the n most interesting rows: those with findings or failures, then the slowest.
func (l *rowList) choose(n int) []row {
	if l.order == nil {
		l.order = l.byInterest()
	}
	chosen := make([]row, 0, min(n, len(l.order)))
	for _, i := range l.order[:min(n, len(l.order))] {
		chosen = append(chosen, l.list[i])
	}
	return chosen
}

// byInterest returns the indexes of all rows, the most interesting first.
func (l *rowList) byInterest() []int32 {
	type key struct {
		latency, id int64
		at          int32
		failed      bool
	}
	keys := make([]key, len(l.list))
	for i := range keys {
		x := &l.list[i]
		keys[i] = key{x.latency, x.id, int32(i), l.failed(x)}
	}
	slices.SortStableFunc(keys, func(a, b key) int {
		switch {
		case a.failed != b.failed && a.failed:
			return -1
		case a.failed != b.failed:
			return 1
		case a.latency != b.latency:
			return cmp.Compare(b.latency, a.latency)
		}
		return cmp.Compare(a.id, b.id)
	})
	order := make([]int32, len(keys))
	for i := range keys {
		order[i] = keys[i].at
	}
	return order
}

// pack returns rows as text for the script: a JSON object with the words would have to be escaped,
// so the text is only base64. It contains, compressed with Deflate, the number of rows, the lists of
// words, and then each column as variable-length integers.
func (l *rowList) pack(rows []row, start record.Time) (string, error) {
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	b := binary.AppendUvarint(nil, uint64(len(rows)))
	for _, list := range [][]string{l.names.list, l.statuses.list, l.rules.list} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, word := range list {
			b = binary.AppendUvarint(b, uint64(len(word)))
			b = append(b, word...)
		}
	}
	before := row{start: int64(start)}
	columns := []func(x *row) int64{
		func(x *row) int64 { return x.id - before.id },
		func(x *row) int64 { return x.start - before.start },
		func(x *row) int64 { return int64(x.conn) },
		func(x *row) int64 { return int64(x.xid) - int64(before.xid) },
		func(x *row) int64 { return int64(x.name) },
		func(x *row) int64 { return int64(x.status) },
		func(x *row) int64 { return int64(x.rules) },
		func(x *row) int64 { return x.latency },
		func(x *row) int64 { return x.call },
		func(x *row) int64 { return x.reply },
		func(x *row) int64 { return x.packet - before.packet },
		func(x *row) int64 {
			if x.backward {
				return 1
			}
			return 0
		},
		func(x *row) int64 {
			if x.bound {
				return 1
			}
			return 0
		},
	}
	for _, value := range columns {
		before = row{start: int64(start)}
		for i := range rows {
			b = binary.AppendVarint(b, value(&rows[i]))
			before = rows[i]
		}
	}
	var out bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &out)
	packed, err := flate.NewWriter(text, flate.DefaultCompression)
	if err != nil {
		return "", err
	}
	if _, err := packed.Write(b); err != nil {
		return "", err
	}
	if err := packed.Close(); err != nil {
		return "", err
	}
	err = text.Close() // writes the last bytes
	return out.String(), err
}

// cells returns the cells of a row.
func (v *page) cells(x *row) []cell {
	l := &v.rows
	direction := "fwd"
	if x.backward {
		direction = "back"
	}
	size := func(n int64) cell {
		if n < 0 {
			return cell{Text: unknown}
		}
		return number(n, render.Bytes(n))
	}
	latency := cell{Text: unknown}
	if x.latency >= 0 {
		latency = number(x.latency, render.Duration(x.latency))
		if x.bound {
			latency.Text = render.AtMost + latency.Text
		}
	}
	name := cell{Text: fmt.Sprintf("0x%08x", x.xid), Head: true}
	if v.ladders[x.id] {
		name.Link = rpcAnchor(x.id)
	}
	conn := number(int64(x.conn), fmt.Sprint(x.conn))
	if v.known[int(x.conn)] {
		conn.Link = connAnchor(int(x.conn))
	}
	status := cell{Text: render.Clean(l.statuses.list[x.status])}
	if status.Text != "ok" {
		status.Class = "bad"
	}
	return []cell{
		number(x.id, fmt.Sprint(x.id)), number(x.start, render.Seconds(record.Time(x.start).Sub(v.start), 6)), conn,
		name,
		{Text: direction},
		{Text: l.names.list[x.name]},
		size(x.call), size(x.reply), latency, status,
		{Text: l.rules.list[x.rules]},
	}
}
