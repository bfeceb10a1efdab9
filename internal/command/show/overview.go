package show

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/render"
)

// overview summarizes a capture on one screen.
func overview(s *sink) (dissect.Handler, func()) {
	c := analyze.NewCollector()
	c.Only(s.Overlaps)
	if s.Selection() != "" {
		c.Partial()
	}
	s.redraw = func(w io.Writer, f *refresh) error {
		now := f.summarize()
		o := c.SoFar(now, func(visit func(*record.Connection)) {
			f.open(func(r *record.Connection) {
				if s.WantsConnection(r.ID) && s.Overlaps(r.First, r.Last) {
					visit(r)
				}
			})
		})
		o.Selected = s.Selection()
		return render.Overview(render.Screen{Out: w, Theme: s.theme, Width: s.width}, record.Named(o, s.Hosts), record.Named(now, s.Hosts), s.Typed)
	}
	var ends analyze.Ends
	names := map[analyze.HostName]bool{}
	h := dissect.Handler{
		Begin: c.Begin,
		Transaction: func(r *record.Transaction) error {
			if s.asked(r) && s.matches(r) {
				c.Transaction(r)
				ends.Add(r)
			} else {
				c.UnselectedRPC(r)
			}
			return s.status()
		},
		Connection: func(r *record.Connection) error {
			for _, end := range [...]record.Endpoint{r.Client, r.Server} {
				if end.Name != "" {
					names[analyze.HostName{Address: end.Address.Or(""), Name: end.Name}] = true
				}
			}
			if s.WantsConnection(r.ID) && s.Overlaps(r.First, r.Last) {
				c.Connection(r)
			} else {
				c.Unselected(r)
			}
			return nil
		},
		Operation: func(r *record.RDMAOperation) error {
			if s.WantsConnection(r.Connection) && s.Within(r.Sent) {
				c.Operation(r)
			}
			return nil
		},
		Finding: func(r *record.Finding) error {
			if s.WantsFinding(r) {
				c.Finding(r)
			}
			return nil
		},
	}
	return h, func() {
		c.Network(input.PointRecords(s.joined), input.NetworkRecords(s.joined))
		o := c.Finish(s.summary)
		o.Selected = s.Selection()
		o.Hosts = slices.SortedFunc(maps.Keys(names), func(a, b analyze.HostName) int { return cmp.Compare(a.Address, b.Address) })
		o.Ends = record.SomeIf(ends, ends.Transactions > 0)
		if o.RPCs.Total() == 0 && s.nothing() != nil {
			return
		}
		if s.Report == "markdown" {
			s.written++
			s.fail(render.OverviewMarkdown(s.w, record.Named(o, s.Hosts), record.Named(s.summary, s.Hosts), s.Typed))
			return
		}
		if s.Brief {
			s.written++
			s.fail(s.brief(o))
			return
		}
		s.emit(o, func(r any) error {
			return render.Overview(render.Screen{Out: s.w, Theme: s.theme, Width: s.width}, r.(*analyze.Overview), record.Named(s.summary, s.Hosts), s.Typed)
		})
	}
}

// brief writes an overview as JSON in which a transaction has only what names it, its status, its latency and its cause.
func (s *sink) brief(o *analyze.Overview) error {
	var whole map[string]any
	numbers := json.NewDecoder(bytes.NewReader(render.AppendJSON(nil, o)))
	numbers.UseNumber()
	if err := numbers.Decode(&whole); err != nil {
		return err
	}
	line, err := json.Marshal(shorter(whole))
	if err != nil {
		return err
	}
	_, err = s.w.Write(append(line, '\n'))
	return err
}

// kept are the members of a transaction in brief JSON.
var kept = []string{"type", "id", "connection", "xid", "direction", "operation", "procedure_name", "program_name", "version", "status", "nfs_status", "client", "server", "latency_ns", "latency_min_ns", "cause"}

// shorter returns a value of JSON with short transactions.
func shorter(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = shorter(v[i])
		}
	case map[string]any:
		for name, member := range v {
			if v["type"] == "transaction" && !slices.Contains(kept, name) {
				delete(v, name)
			} else {
				v[name] = shorter(member)
			}
		}
	}
	return v
}
