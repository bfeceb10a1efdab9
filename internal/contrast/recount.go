package contrast

import (
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
)

// Recount counts the facts of sets on all RPCs, with the filters that the report prints. It is needed if not all RPCs were kept.
type Recount struct {
	collector *Collector
	sets      []*recounted
	fields    query.Fields
	all       int64
}

// recounted has the filters of one set, and what they selected.
type recounted struct {
	*Set
	bad, within, against *query.Filter // nil for all
	facts                []recountedFact
	apart                []recountedFact // of OfCalls and of Hints, each of which is about all RPCs of the set
	rules                []recountedFact
	nBad, nOthers        int64
	least, most          record.Opt[int64] // latency of the set, and of the others
}

// recountedFact has the filter of a fact, and those of its relatives.
type recountedFact struct {
	holds        *query.Filter
	hits, spared int64
	left, others int64 // of the RPCs that no earlier fact has
	same, nearly []recountedFact
}

// NewRecount returns a recount of sets that the collector returned.
func (c *Collector) NewRecount(sets []*Set) (*Recount, error) {
	n := &Recount{collector: c, fields: c.fields}
	for _, set := range sets {
		one := &recounted{Set: set, against: c.options.Against.Filter}
		var err error
		if one.bad, err = query.Compile(set.Filter, n.fields); err != nil {
			return nil, err
		}
		if set.scope != "" {
			if one.within, err = query.Compile(set.scope, n.fields); err != nil {
				return nil, err
			}
		}
		for i := range set.Facts {
			f, err := n.factOf(&set.Facts[i])
			if err != nil {
				return nil, err
			}
			one.facts = append(one.facts, f)
		}
		if one.rules, err = n.factsOf(set.Rules); err != nil {
			return nil, err
		}
		for _, f := range set.apart() {
			f, err := n.factOf(f)
			if err != nil {
				return nil, err
			}
			one.apart = append(one.apart, f)
		}
		n.sets = append(n.sets, one)
	}
	return n, nil
}

// apart returns the facts that are about all RPCs of the set, whatever the other facts are about.
func (s *Set) apart() (list []*Fact) {
	for _, facts := range [][]Fact{s.OfCalls, s.Hints} {
		for i := range facts {
			list = append(list, &facts[i])
		}
	}
	return list
}

// factOf compiles the filters of a fact and of its relatives.
func (n *Recount) factOf(f *Fact) (r recountedFact, err error) {
	if r.holds, err = query.Compile(f.plain, n.fields); err != nil {
		return r, err
	}
	if r.same, err = n.factsOf(f.Same); err != nil {
		return r, err
	}
	r.nearly, err = n.factsOf(f.Nearly)
	return r, err
}

// factsOf compiles the filters of relatives.
func (n *Recount) factsOf(list []Relative) (facts []recountedFact, err error) {
	for i := range list {
		holds, err := query.Compile(list[i].plain, n.fields)
		if err != nil {
			return nil, err
		}
		facts = append(facts, recountedFact{holds: holds})
	}
	return facts, nil
}

// matches reports whether a filter selects an RPC; no filter selects all.
func matches(f *query.Filter, r any) (bool, error) {
	if f == nil {
		return true, nil
	}
	return f.Match(r)
}

// Add counts an RPC, and AddConnection a connection.
func (n *Recount) Add(r *record.Transaction) error {
	if r.Call == nil {
		n.all++
		return nil
	}
	return n.add(r)
}

func (n *Recount) AddConnection(r *record.Connection) error { return n.add(r) }

// add counts a record.
func (n *Recount) add(r any) error {
	n.all++
	for _, set := range n.sets {
		if err := set.add(r); err != nil {
			return err
		}
	}
	return nil
}

// add counts an RPC for one set.
func (s *recounted) add(r any) error {
	bad, err := s.bad.Match(r)
	if err != nil {
		return err
	}
	if !bad {
		for _, f := range []*query.Filter{s.within, s.against} {
			if in, err := matches(f, r); !in {
				return err
			}
		}
		s.nOthers++
	} else {
		s.nBad++
	}
	if t, is := r.(*record.Transaction); is && s.Slow.Known() {
		s.latency(t.LatencyNS, bad)
	}
	for _, list := range [][]recountedFact{s.apart, s.rules} {
		for i := range list {
			if _, err := list[i].count(r, bad); err != nil {
				return err
			}
		}
	}
	for i := range s.facts {
		hit, err := s.facts[i].count(r, bad)
		if hit || err != nil {
			return err
		}
	}
	return nil
}

// latency takes the latency of an RPC.
func (s *recounted) latency(of record.Opt[int64], bad bool) {
	switch ns, known := of.Get(); {
	case !known:
	case bad:
		s.least = record.Some(min(ns, s.least.Or(ns)))
	default:
		s.most = record.Some(max(ns, s.most.Or(ns)))
	}
}

// count counts an RPC for a fact and its relatives.
func (f *recountedFact) count(r any, bad bool) (hit bool, err error) {
	if hit, err = f.holds.Match(r); err != nil {
		return false, err
	}
	switch {
	case bad && hit:
		f.hits++
	case hit:
		f.spared++
	}
	if bad {
		f.left++
	} else {
		f.others++
	}
	for _, list := range [][]recountedFact{f.same, f.nearly} {
		for i := range list {
			if _, err := list[i].count(r, bad); err != nil {
				return false, err
			}
		}
	}
	return hit, nil
}

// Finish writes the numbers into the sets.
func (n *Recount) Finish() {
	for _, s := range n.sets {
		set := s.Set
		set.Bad, set.Others, set.exact = s.nBad, s.nOthers, true
		n.collector.notAsked(set, n.all-s.nBad-s.nOthers)
		if slow, known := set.Slow.Get(); known {
			slow.LeastNS, slow.OthersMostNS = s.least, s.most
			set.Slow = record.Some(slow)
		}
		for i, f := range set.apart() {
			s.apart[i].finish(f)
		}
		rules := []Relative{}
		for i, one := range set.Rules {
			if one.Bad = s.rules[i].hits; one.Bad == set.Bad && s.rules[i].spared == 0 { // otherwise it is true of the sample only
				rules = append(rules, one)
			}
		}
		set.Rules = rules
		set.Unexplained = set.Bad
		for i := range s.facts {
			s.facts[i].finish(&set.Facts[i])
			set.Unexplained -= s.facts[i].hits
		}
	}
}

// finish writes the numbers into a fact and its relatives.
func (f *recountedFact) finish(to *Fact) {
	to.Bad, to.Others, to.OfBad, to.OfOthers = f.hits, f.spared, f.left, f.others
	for i := range f.nearly {
		to.Nearly[i].Bad, to.Nearly[i].Others = f.nearly[i].hits, f.nearly[i].spared
	}
	same := []Relative{}
	for i, one := range to.Same {
		one.Bad, one.Others = f.same[i].hits, f.same[i].spared
		if one.Bad == to.Bad && one.Others == to.Others {
			same = append(same, one)
		} else { // Both are true of the same RPCs only in the sample.
			to.Nearly = append(to.Nearly, one)
		}
	}
	to.Same = same
}
