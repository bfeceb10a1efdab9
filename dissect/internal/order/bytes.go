package order

import "github.com/rdmadump/rdmadump/dissect/record"

// Bytes is the order of the bytes of one direction of a TCP connection. T is what its owner keeps of a segment that waits
// for earlier ones. A segment is a Request: its PSN is the sequence number of its first byte, and Size the number of its
// bytes. As with [Order], a method only notes what it takes, and [Bytes.Next] returns what follows.
type Bytes[T any] struct {
	progress progress // idle, announced or exact
	acks     acks     // nothing or upTo
	ended    bool     // a FIN was captured
	next     uint32   // the first byte that was not taken; see progress
	acked    uint32   // see acks
	end      uint32   // the sequence number of the FIN
	gaps     Gaps
	window   *Window[T] // the segments that wait

	fact Fact[T] // the latest one

	// What Next reports next.
	step     step
	taking   Request
	accepted bool // it has reported that the new bytes of the earliest item of the window were accepted
	released bool // and that the item was released
	skips    skipping
}

// skipping is what happens to the bytes that the earliest item of the window waits for.
type skipping uint8

const (
	waits   skipping = iota // they may still come
	skips                   // they are counted as not captured, once
	ifShown                 // they are, too, if they were acknowledged, or the window is full
)

// Known reports whether the sequence number of the next byte is known.
func (b *Bytes[T]) Known() bool { return b.progress != idle }

// Expected returns the sequence number of the next byte.
func (b *Bytes[T]) Expected() uint32 { return b.next }

// IsNew reports whether no segment that begins with a byte, or after it, was taken before.
func (b *Bytes[T]) IsNew(seq uint32) bool { return !b.Known() || Octets.Delta(seq, b.next) >= 0 }

// Acknowledged reports whether an acknowledgement was captured, and IsAcked whether the other side has received a byte.
func (b *Bytes[T]) Acknowledged() bool { return b.acks == upTo }

// IsAcked reports whether the other side has shown that it received a byte.
func (b *Bytes[T]) IsAcked(seq uint32) bool { return b.acks == upTo && Octets.Delta(b.acked, seq) > 0 }

// AckedFrom returns how many bytes from a sequence number on the other side has acknowledged.
func (b *Bytes[T]) AckedFrom(seq uint32) int32 {
	if b.acks != upTo {
		return 0
	}
	to := b.acked
	if b.ended && Octets.Delta(to, b.end) > 0 { // the FIN takes a sequence number
		to = b.end
	}
	return max(0, Octets.Delta(to, seq))
}

// Ended reports whether the sender ended the stream with a FIN.
func (b *Bytes[T]) Ended() bool { return b.ended }

// EndIsAcked reports whether the other side has received the FIN.
func (b *Bytes[T]) EndIsAcked() bool { return b.ended && b.IsAcked(b.end) }

// Window returns the segments that wait. It may be nil.
func (b *Bytes[T]) Window() *Window[T] { return b.window }

// Size returns the memory of the gaps.
func (b *Bytes[T]) Size() int64 { return b.gaps.Bytes() }

// Announce notes the sequence number of the first byte in the handshake.
func (b *Bytes[T]) Announce(first uint32) {
	if b.progress < exact {
		b.next = first
		b.gaps.Begin(first)
		b.after(announce)
	}
}

// End notes a FIN, and its sequence number.
func (b *Bytes[T]) End(seq uint32) { b.ended, b.end = true, seq }

// after changes the progress after an event.
func (b *Bytes[T]) after(e event) { b.progress = transitions[b.progress][e] }

// Take takes a segment.
func (b *Bytes[T]) Take(r Request) { b.taking, b.step = r, start }

// Insist takes a segment that is accepted although bytes before it may be missing.
func (b *Bytes[T]) Insist(r Request) { b.taking, b.step = r, skip }

// Hold keeps an item of a number of bytes for the segment that Waits reported, of which the window has no copy.
func (b *Bytes[T]) Hold(bytes int, item T) {
	b.window = b.window.With(Octets, b.taking, bytes, item)
}

// Lengthen notes that the segment that Waits reported is a longer copy of the one that the window has, and takes a number
// of bytes more.
func (b *Bytes[T]) Lengthen(bytes int) {
	b.window.lengthen(Octets, b.taking, bytes)
}

// Acknowledge notes that the other side has received all bytes before a sequence number.
func (b *Bytes[T]) Acknowledge(seq uint32) {
	switch ahead := Octets.Delta(seq, b.acked); {
	case b.acks != upTo || ahead > 0:
		b.acks, b.acked, b.step = upTo, seq, ack
	case ahead == 0:
		b.step = repeat
	}
}

// SkipGap counts the bytes before the earliest segment that waits as not captured.
func (b *Bytes[T]) SkipGap() {
	if !b.window.Empty() {
		b.step, b.skips = drain, skips
	}
}

// Next returns the next fact that follows from what was noted, nil if there is none. It is valid until the next call.
func (b *Bytes[T]) Next() *Fact[T] {
	for {
		switch b.step {
		case start:
			if b.step = find; b.begin() {
				return &b.fact
			}
		case find:
			if b.place() {
				return &b.fact
			}
		case take:
			if b.step = drain; b.taking.PSN == b.next {
				b.step = fill
			}
			b.accept(b.taking, nil)
			return &b.fact
		case fill:
			if b.step = drain; !b.window.Empty() {
				b.fact = Fact[T]{Kind: Filled, Run: b.taking.octets()}
				return &b.fact
			}
		case hold:
			b.step, b.skips = drain, ifShown
		case skip:
			if b.step = insist; b.skipTo(b.taking.PSN, b.taking.At) {
				return &b.fact
			}
		case insist:
			if b.step = drain; b.accept(b.taking, nil) {
				return &b.fact
			}
		case repeat:
			b.step = rest
			b.fact = Fact[T]{Kind: AckedAgain, Run: Run{To: b.acked}}
			return &b.fact
		case ack:
			b.step = finish
			b.fact = Fact[T]{Kind: AckedTo, Run: Run{To: b.acked}}
			return &b.fact
		case finish:
			b.step = drain
			if b.shown() {
				b.skips = skips
			}
			b.fact = Fact[T]{Kind: Covered, Run: Run{To: b.acked}}
			return &b.fact
		case drain:
			if b.drain() {
				return &b.fact
			}
			b.step, b.skips = rest, waits
		default:
			return nil
		}
	}
}

// octets returns the sequence numbers of a segment.
func (r *Request) octets() Run { return Run{r.PSN, r.PSN + r.Size} }

// begin takes the first segment, and reports it if no handshake announced its sequence number.
func (b *Bytes[T]) begin() bool {
	before := b.progress
	if before < exact {
		b.after(first)
	}
	if before != idle {
		return false
	}
	b.next = b.taking.PSN
	b.gaps.Begin(b.next)
	b.fact = Fact[T]{Kind: Begun, Run: b.taking.octets()}
	return true
}

// place reports the place of the segment that is being taken, unless it is simply the next one. If only a part of it
// came before, that part is reported, and the rest is accepted.
func (b *Bytes[T]) place() bool {
	b.gaps.Forget(Octets, b.next)
	r := b.taking.octets()
	switch delta := Octets.Delta(r.From, b.next); {
	case delta > 0:
		b.step = hold
		b.fact = Fact[T]{Kind: Waits, Run: r}
		return true
	case delta == 0:
		b.step = take
		b.fact = Fact[T]{Kind: Unordered}
		return b.IsAcked(r.From) // the acknowledgement came first
	}
	b.step = rest
	if Octets.Delta(r.To, b.next) > 0 {
		r, b.step = Run{r.From, b.next}, take
	}
	b.fact = Fact[T]{Kind: Again, Run: r}
	if late, counted := b.gaps.Late(Octets, r, b.IsAcked(r.From), false); late {
		b.fact = Fact[T]{Kind: Late, Run: r, Known: counted}
	}
	return true
}

// accept accepts the bytes of a segment that are next, and returns false if there are none.
func (b *Bytes[T]) accept(r Request, item *T) bool {
	to := r.octets().To
	if Octets.Delta(to, b.next) <= 0 {
		return false
	}
	b.fact = Fact[T]{Kind: Accepted, Run: Run{b.next, to}, Item: item}
	b.next = to
	return true
}

// skipTo moves the next byte forward over bytes that were not captured.
func (b *Bytes[T]) skipTo(seq uint32, at record.Stamp) bool {
	n := Octets.Delta(seq, b.next)
	if n <= 0 {
		return false
	}
	b.fact = Fact[T]{Kind: Missing, Run: Run{b.next, seq}, N: uint32(n), At: at}
	b.gaps.Missing(b.fact.Run)
	b.next = seq
	return true
}

// shown reports whether the other side has received a byte of the earliest segment that waits, and so all bytes before it.
func (b *Bytes[T]) shown() bool {
	return !b.window.Empty() && b.IsAcked(b.window.Seq(0))
}

// drain reports what follows for the earliest segment that waits, and returns false if it has to wait on.
func (b *Bytes[T]) drain() bool {
	if b.released {
		b.released = false
		b.window.Remove(1)
	}
	if b.window.Empty() {
		return false
	}
	p := &b.window.order[0]
	if !b.accepted {
		if Octets.Delta(p.PSN, b.next) > 0 {
			return b.skipsGap() && b.skipTo(p.PSN, p.At)
		}
		b.accepted = true
		if b.accept(p.Request, b.window.At(0)) {
			return true
		}
	}
	b.accepted, b.released = false, true
	b.fact = Fact[T]{Kind: Released, Run: p.octets(), Item: b.window.At(0)}
	return true
}

// skipsGap reports whether the bytes before the earliest segment that waits are counted as not captured.
func (b *Bytes[T]) skipsGap() bool {
	switch b.skips {
	case skips:
		b.skips = waits
		return true
	case ifShown:
		return b.window.Full() || b.shown()
	}
	return false
}
