package order

import "github.com/rdmadump/rdmadump/dissect/record"

// Bytes is the order of the bytes of one direction of a TCP connection. T is what its owner keeps of a segment that waits
// for earlier ones. A segment is a Request: its PSN is the sequence number of its first byte, and Size the number of its
// bytes. What the methods return is as that of [Order].
type Bytes[T any] struct {
	progress progress // idle, announced or exact
	acks     acks     // nothing or upTo
	ended    bool     // a FIN was captured
	next     uint32   // the first byte that was not taken; see progress
	acked    uint32   // see acks
	end      uint32   // the sequence number of the FIN

	list[T]
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

// Take takes a segment. If only a part of it came before, that part is a fact, and the rest is accepted.
func (b *Bytes[T]) Take(r Request) []Fact[T] {
	b.begin()
	run, before := r.octets(), b.progress
	if before < exact {
		b.after(first)
	}
	if before == idle {
		b.next = r.PSN
		b.gaps.Begin(b.next)
		b.add(Fact[T]{Kind: Begun, Run: run})
	}
	b.gaps.Forget(Octets, b.next)
	switch delta := Octets.Delta(r.PSN, b.next); {
	case delta > 0:
		b.taking = r
		b.add(Fact[T]{Kind: Waits, Run: run})
		return b.facts
	case delta < 0:
		known := run
		if Octets.Delta(run.To, b.next) > 0 {
			known.To = b.next
		}
		if late, counted := b.gaps.Late(Octets, known, b.IsAcked(r.PSN), false); late {
			b.add(Fact[T]{Kind: Late, Run: known, Known: counted})
		} else {
			b.add(Fact[T]{Kind: Again, Run: known})
		}
		if known == run {
			return b.facts
		}
		b.accept(r, nil)
	default:
		if b.IsAcked(r.PSN) { // the acknowledgement came first
			b.add(Fact[T]{Kind: Unordered})
		}
		if b.accept(r, nil); !b.window.Empty() {
			b.add(Fact[T]{Kind: Filled, Run: run})
		}
	}
	b.drain(waits)
	return b.facts
}

// Insist takes a segment that is accepted although bytes before it may be missing.
func (b *Bytes[T]) Insist(r Request) []Fact[T] {
	b.begin()
	b.skipTo(r.PSN, r.At)
	b.accept(r, nil)
	b.drain(waits)
	return b.facts
}

// Hold keeps an item of a number of bytes for the segment of which Take said that it waits, if the window has no copy. Waited has to follow.
func (b *Bytes[T]) Hold(bytes int, item T) {
	b.window = b.window.With(Octets, b.taking, bytes, item)
}

// Lengthen notes that the segment of which Take said that it waits is a longer copy of the one that the window has, and takes a
// number of bytes more. Waited has to follow.
func (b *Bytes[T]) Lengthen(bytes int) {
	b.window.lengthen(Octets, b.taking, bytes)
}

// Waited returns what follows for the segments that wait, of which one or its copy came.
func (b *Bytes[T]) Waited() []Fact[T] {
	b.begin()
	b.drain(ifShown)
	return b.facts
}

// Acknowledge notes that the other side has received all bytes before a sequence number.
func (b *Bytes[T]) Acknowledge(seq uint32) []Fact[T] {
	b.begin()
	switch ahead := Octets.Delta(seq, b.acked); {
	case b.acks != upTo || ahead > 0:
		b.acks, b.acked = upTo, seq
		b.add(Fact[T]{Kind: AckedTo, Run: Run{To: seq}})
		b.add(Fact[T]{Kind: Covered, Run: Run{To: seq}})
		if b.shown() {
			b.drain(skips)
		}
	case ahead == 0:
		b.add(Fact[T]{Kind: AckedAgain, Run: Run{To: seq}})
	}
	return b.facts
}

// SkipGap counts the bytes before the earliest segment that waits as not captured.
func (b *Bytes[T]) SkipGap() []Fact[T] {
	b.begin()
	b.drain(skips)
	return b.facts
}

// octets returns the sequence numbers of a segment.
func (r *Request) octets() Run { return Run{r.PSN, r.PSN + r.Size} }

// accept accepts the bytes of a segment that are next, if there are any.
func (b *Bytes[T]) accept(r Request, item *T) {
	if to := r.octets().To; Octets.Delta(to, b.next) > 0 {
		b.add(Fact[T]{Kind: Accepted, Run: Run{b.next, to}, Item: item})
		b.next = to
	}
}

// skipTo moves the next byte forward over bytes that were not captured.
func (b *Bytes[T]) skipTo(seq uint32, at record.Stamp) {
	if n := Octets.Delta(seq, b.next); n > 0 {
		missing := Run{b.next, seq}
		b.add(Fact[T]{Kind: Missing, Run: missing, N: uint32(n), At: at})
		b.gaps.Missing(missing)
		b.next = seq
	}
}

// shown reports whether the other side has received a byte of the earliest segment that waits, and so all bytes before it.
func (b *Bytes[T]) shown() bool {
	return !b.window.Empty() && b.IsAcked(b.window.Seq(0))
}

// drain accepts the segments that wait and are next.
func (b *Bytes[T]) drain(how skipping) {
	for !b.window.Empty() {
		p := b.window.order[0]
		if Octets.Delta(p.PSN, b.next) > 0 {
			switch {
			case how == skips:
				how = waits
			case how != ifShown || !b.window.Full() && !b.shown():
				return
			}
			b.skipTo(p.PSN, p.At)
		}
		item := b.window.takeFirst()
		b.accept(p.Request, item)
		b.add(Fact[T]{Kind: Released, Run: p.octets(), Item: item})
	}
}
