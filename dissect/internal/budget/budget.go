// Package budget limits the memory of a dissector's analysis state. Every allocation
// that grows with the input is charged to a [Share] of the [Budget].
//
// At the limit, state is evicted from the least recently used connection first. A
// single connection may hold at most a quarter of the budget. Within a connection, the
// kind of state that is cheapest to lose is evicted first. What is evicted depends only
// on the input, not on time or scheduling.
package budget

// Kind is a kind of state that can be evicted, the cheapest to lose first.
type Kind uint8

// The kinds.
const (
	ChunkData   Kind = iota // data that chunks transferred, kept to decode headers from it
	HeldPackets             // packets that are held until earlier packets arrive
	SendData                // parts of Sends
	Operations              // RDMA operations
	Calls                   // transactions
	Connections

	Spans  // ranges of a reordered transfer, beyond the number that is stored
	Events // events of a timeline, beyond the number that is stored

	FileNames // names and handles of files; a file has its name again after its next LOOKUP or OPEN
	Tasks     // requests that were put off, and that a later one may repeat

	kinds // number of kinds
)

var names = [kinds]string{"chunk_data", "held_packets", "send_data", "operations", "calls", "connections", "ranges", "events", "file_names", "tasks"}

// String returns the name of the kind in the summary record. It is stable.
func (k Kind) String() string { return names[k] }

// Owner holds the state that is charged to a Share.
type Owner interface {
	// Evict evicts the oldest state of the cheapest Kind that the owner holds, and
	// returns that Kind, or false if nothing is left. It charges the freed bytes as a
	// negative number. After it has evicted Connections, the share is closed.
	Evict() (Kind, bool)
}

// Share is the memory of one connection. The zero value is ready for [Budget.Open].
type Share struct {
	owner      Owner
	bytes      int64
	prev, next *Share // in the order of last use
	budget     *Budget
}

// Bytes returns the number of bytes that are charged to the share.
func (s *Share) Bytes() int64 { return s.bytes }

// Charge adds bytes to the share; a negative number frees them. It does not evict
// anything: that happens in [Budget.Enforce], so that no state disappears while its owner
// is working with it.
func (s *Share) Charge(bytes int64) {
	s.bytes += bytes
	s.budget.used += bytes
	if s.bytes > s.budget.Limit/4 {
		s.budget.over = s
	}
}

// Budget is the memory limit that all connections share.
type Budget struct {
	Limit   int64        // bytes
	Evicted [kinds]int64 // number of evictions by kind
	OnFirst func(Kind)   // if not nil, called for the first eviction of each kind
	used    int64
	head    Share  // head of the ring: next is the most, prev the least recently used share
	over    *Share // a share that may hold more than a quarter, or nil
}

// New returns a budget with a limit in bytes.
func New(limit int64) *Budget {
	b := &Budget{Limit: limit}
	b.head.prev, b.head.next = &b.head, &b.head
	return b
}

// Open adds a share as the most recently used one.
func (b *Budget) Open(s *Share, o Owner) {
	s.owner, s.budget = o, b
	b.link(s)
}

// Close removes a share, and frees the bytes that are charged to it.
func (b *Budget) Close(s *Share) {
	if s.next == nil {
		return
	}
	s.prev.next, s.next.prev = s.next, s.prev
	s.prev, s.next = nil, nil
	b.used -= s.bytes
	s.bytes = 0
}

// Touch makes a share the most recently used one.
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

// Note counts one eviction of a kind.
func (b *Budget) Note(k Kind) {
	if b.Evicted[k]++; b.Evicted[k] == 1 && b.OnFirst != nil {
		b.OnFirst(k)
	}
}

// Enforce evicts state until no limit is exceeded. It is called between frames.
func (b *Budget) Enforce() {
	if s := b.over; s != nil {
		for s.bytes > b.Limit/4 && s.next != nil && b.evict(s) {
		}
		b.over = nil
	}
	for b.used > b.Limit && b.head.prev != &b.head {
		if s := b.head.prev; !b.evict(s) {
			b.Close(s) // its owner has nothing to evict
		}
	}
}

func (b *Budget) evict(s *Share) bool {
	k, ok := s.owner.Evict()
	if ok {
		b.Note(k)
	}
	return ok
}
