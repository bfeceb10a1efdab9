// Package budget bounds what a dissector keeps, all of it together: whoever keeps
// anything that grows with the input charges it here.
//
// At the limit, the connection that was longest unused gives first; none holds
// more than a quarter; and inside of one the cheapest goes first. All of it is a
// function of the input alone.
package budget

// Kind is what can be given up, the cheapest to lose first.
type Kind uint8

// The kinds.
const (
	ChunkData   Kind = iota // what moved through chunks, kept to read headers from it
	HeldPackets             // packets that wait for earlier ones
	SendData                // parts of Sends
	Operations              // of the RDMA layer
	Calls                   // transactions
	Connections

	Spans  // ranges of a reordered transfer, beyond what is remembered
	Events // steps of a timeline, beyond what is remembered

	Kinds // how many there are
)

var names = [Kinds]string{"chunk_data", "held_packets", "send_data", "operations", "calls", "connections", "ranges", "events"}

// String is the kind's stable id in the summary.
func (k Kind) String() string { return names[k] }

// Owner is what holds a Share.
type Owner interface {
	// GiveUp lets go of the oldest of the cheapest Kind that there is, and says
	// which that was; false when nothing is left. It charges what it lets go,
	// negatively. After Connections the share is closed.
	GiveUp() (Kind, bool)
}

// Share is what one connection holds. The zero value is ready for [Budget.Open].
type Share struct {
	owner      Owner
	bytes      int64
	prev, next *Share // by last use
	budget     *Budget
}

// Bytes is how much it holds.
func (s *Share) Bytes() int64 { return s.bytes }

// Charge adds bytes, or gives them back. The limit is looked at in
// [Budget.Enforce]: nothing vanishes under the hands of who charges.
func (s *Share) Charge(bytes int64) {
	s.bytes += bytes
	s.budget.used += bytes
	if s.bytes > s.budget.Limit/4 && !s.budget.hasOver {
		s.budget.over, s.budget.hasOver = s, true
	}
}

// Budget is what all connections share.
type Budget struct {
	Limit int64        // bytes
	Lost  [Kinds]int64 // how many of each kind were given up
	Told  func(Kind)   // is called for the first of each kind, when not nil
	used  int64
	head  Share // of the ring: next is newest, prev longest unused

	over    *Share // one that may hold more than a quarter
	hasOver bool
}

// New is a budget of so many bytes.
func New(limit int64) *Budget {
	b := &Budget{Limit: limit}
	b.head.prev, b.head.next = &b.head, &b.head
	return b
}

// Used is how many bytes are charged.
func (b *Budget) Used() int64 { return b.used }

// Open puts a share in the list, as the newest.
func (b *Budget) Open(s *Share, o Owner) {
	s.owner, s.budget = o, b
	b.link(s)
}

// Close takes a share out, with all that it holds.
func (b *Budget) Close(s *Share) {
	if s.next == nil {
		return
	}
	s.prev.next, s.next.prev = s.next, s.prev
	s.prev, s.next = nil, nil
	b.used -= s.bytes
	s.bytes = 0
	if b.over == s {
		b.over, b.hasOver = nil, false
	}
}

// Touch says that a share was used.
func (b *Budget) Touch(s *Share) {
	if b.head.next == s || s.next == nil {
		return
	}
	s.prev.next, s.next.prev = s.next, s.prev
	b.link(s)
}

func (b *Budget) link(s *Share) {
	s.prev, s.next = &b.head, b.head.next
	s.next.prev = s
	b.head.next = s
}

// Note counts something of a kind as given up.
func (b *Budget) Note(k Kind) {
	if b.Lost[k]++; b.Lost[k] == 1 && b.Told != nil {
		b.Told(k)
	}
}

// Enforce makes shares give up until the limit holds. It is called between
// frames.
func (b *Budget) Enforce() {
	if b.hasOver {
		s := b.over
		for s.bytes > b.Limit/4 && s.next != nil && b.give(s) {
		}
		b.over, b.hasOver = nil, false
	}
	for b.used > b.Limit && b.head.prev != &b.head {
		if s := b.head.prev; !b.give(s) {
			b.Close(s) // it holds nothing that it could give
		}
	}
}

func (b *Budget) give(s *Share) bool {
	k, ok := s.owner.GiveUp()
	if ok {
		b.Note(k)
	}
	return ok
}
