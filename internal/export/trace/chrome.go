package trace

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Chrome's format: a JSON array of events, which Perfetto, speedscope and other viewers read. A
// connection is a process, and a row one of its threads. Times are microseconds from the start of
// the trace, as decimals, because microseconds since 1970 with three decimals do not fit a float64.

// chrome writes Chrome's format.
type chrome struct {
	out   io.Writer
	first record.Time
	b     []byte
	begun bool
	err   error
	rows  map[int]int // number of rows so far, by connection
	tids  map[place]int
}

func newChrome(out io.Writer, first record.Time) *chrome {
	e := &chrome{out: out, first: first, rows: map[int]int{}, tids: map[place]int{}}
	e.b = append(e.b, `{"displayTimeUnit":"ns","otherData":{"start":`...)
	e.b = append(appendText(e.b, string(first.String())), `},"traceEvents":[`...)
	e.write()
	return e
}

// appendText appends s as a JSON string.
func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s)
	return append(b, text...)
}

// next begins an event.
func (e *chrome) next(phase string, p place, name string) {
	if e.begun {
		e.b = append(e.b, ',')
	}
	e.begun = true
	e.b = append(append(append(e.b, "\n{\"ph\":\""...), phase...), `","pid":`...)
	e.b = strconv.AppendInt(e.b, int64(p.connection+1), 10)
	e.b = append(e.b, `,"tid":`...)
	e.b = strconv.AppendInt(e.b, int64(e.tids[p]), 10)
	e.b = appendText(append(e.b, `,"name":`...), name)
}

// time adds a time to the event.
func (e *chrome) time(key string, ns int64) {
	e.b = append(append(append(e.b, `,"`...), key...), `":`...)
	if ns < 0 {
		e.b = append(e.b, '-')
		ns = -ns
	}
	e.b = strconv.AppendInt(e.b, ns/1000, 10)
	if rest := ns % 1000; rest != 0 {
		e.b = append(e.b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
}

// write closes the event, if any, and writes it.
func (e *chrome) write() {
	if e.err == nil {
		_, e.err = e.out.Write(e.b)
	}
	e.b = e.b[:0]
}

func (e *chrome) close() {
	e.b = append(e.b, '}')
	e.write()
}

// metadata writes an event that names or sorts a process or a row.
func (e *chrome) metadata(p place, name, key string, value any) {
	e.next("M", p, name)
	e.b = appendText(append(e.b, `,"args":{`...), key)
	text, _ := json.Marshal(value)
	e.b = append(append(append(e.b, ':'), text...), '}')
	e.close()
}

func (e *chrome) process(number int, c connection) {
	p := place{connection: number}
	e.metadata(p, "process_name", "name", c.name)
	e.metadata(p, "process_labels", "labels", c.description)
	e.metadata(p, "process_sort_index", "sort_index", number+1)
}

func (e *chrome) row(p place) {
	if tracks[p.track].unit != "" {
		return // a counter needs no row
	}
	e.rows[p.connection]++
	e.tids[p] = e.rows[p.connection]
	e.metadata(p, "thread_name", "name", tracks[p.track].name)
	e.metadata(p, "thread_sort_index", "sort_index", int(p.track)<<20|p.row)
}

// slice writes the begin and the end of a slice and of its parts. A single event with a duration would be shorter, but viewers
// add times and durations as floating-point numbers, so that parts would seem to end later than their slice.
func (e *chrome) slice(p place, s *item) {
	e.event("B", p, s)
	e.close()
	at := s.start
	for _, part := range s.parts {
		e.next("B", p, part.name)
		e.b = append(e.b, `,"cat":"phase"`...)
		e.time("ts", int64(at-e.first))
		e.close()
		e.end(p, part.name, part.end)
		at = part.end
	}
	e.end(p, s.name, s.end)
	for _, id := range s.flows {
		switch {
		case len(s.parts) > 1: // of an RPC
			e.flow("s", p, s.start, id)
			e.flow("f", p, s.parts[len(s.parts)-2].end, id)
		case s.track == calls || s.track == callbacks:
			e.flow("s", p, s.start, id)
		default:
			e.flow("t", p, s.start, id)
		}
	}
}

// end writes the end of a slice.
func (e *chrome) end(p place, name string, at record.Time) {
	e.next("E", p, name)
	e.time("ts", int64(at-e.first))
	e.close()
}

// flow writes a point of a flow, which belongs to the slice at that time.
func (e *chrome) flow(phase string, p place, at record.Time, id uint64) {
	e.next(phase, p, "memory")
	e.b = append(e.b, `,"cat":"flow","id":`...)
	e.b = strconv.AppendUint(e.b, id, 10)
	if phase == "f" {
		e.b = append(e.b, `,"bp":"e"`...)
	}
	e.time("ts", int64(at-e.first))
	e.close()
}

func (e *chrome) instant(p place, s *item) {
	e.event("i", p, s)
	e.b = append(e.b, `,"s":"t"`...)
	e.close()
}

// event begins the event of an item.
func (e *chrome) event(phase string, p place, s *item) {
	e.next(phase, p, s.name)
	e.b = appendText(append(e.b, `,"cat":`...), s.category)
	e.time("ts", int64(s.start-e.first))
	e.b = append(e.b, `,"args":{`...)
	for i, a := range s.args {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.b = append(appendText(e.b, a.key), ':')
		if a.text != "" {
			e.b = appendText(e.b, a.text)
		} else {
			e.b = strconv.AppendInt(e.b, a.n, 10)
		}
	}
	e.b = append(e.b, '}')
}

func (e *chrome) count(p place, at record.Time, value int64) {
	e.next("C", p, tracks[p.track].name)
	e.time("ts", int64(at-e.first))
	e.b = append(e.b, `,"args":{"value":`...)
	e.b = append(strconv.AppendInt(e.b, value, 10), '}')
	e.close()
}

func (e *chrome) finish() error {
	e.b = append(e.b, "\n]}\n"...)
	e.write()
	return e.err
}
