package synth

import "slices"

// XDR builds arguments and results. Each method returns a longer XDR and does not change
// its receiver, so that several values can share a beginning:
//
//	synth.XDR{}.Opaque(handle).Hyper(offset).Word(count)
//
// DDP-eligible data items are kept separately from the bytes around them, so that chunks can
// carry them.
type XDR struct {
	Bytes []byte // everything except the items
	Items []Item
}

// Item is the bytes of a DDP-eligible data item. Its count word is in Bytes.
type Item struct {
	At      int // offset in Bytes
	Data    []byte
	Reduced bool // a chunk carries it
	KeepPad bool // its XDR pad remains in the Payload stream although it is reduced, which is wrong
}

// bytes returns x with b appended to a copy of its Bytes.
func (x XDR) bytes(b ...byte) XDR {
	x.Bytes = append(slices.Clip(x.Bytes), b...)
	return x
}

// Word appends 32-bit words.
func (x XDR) Word(v ...uint32) XDR {
	x.Bytes = slices.Clip(x.Bytes)
	for _, v := range v {
		x.Bytes = be.AppendUint32(x.Bytes, v)
	}
	return x
}

// Hyper appends 64-bit words.
func (x XDR) Hyper(v ...uint64) XDR {
	x.Bytes = slices.Clip(x.Bytes)
	for _, v := range v {
		x.Bytes = be.AppendUint64(x.Bytes, v)
	}
	return x
}

// Bool appends a boolean.
func (x XDR) Bool(v bool) XDR {
	if v {
		return x.Word(1)
	}
	return x.Word(0)
}

// Fixed appends an opaque of fixed length, and its pad.
func (x XDR) Fixed(b []byte) XDR { return x.bytes(b...).bytes([]byte(pad(len(b)))...) }

// Opaque appends a count, bytes and their pad.
func (x XDR) Opaque(b []byte) XDR { return x.Word(uint32(len(b))).Fixed(b) }

// String appends a count, characters and their pad.
func (x XDR) String(s string) XDR { return x.Opaque([]byte(s)) }

// Data appends a count, and a DDP-eligible data item.
func (x XDR) Data(b []byte) XDR {
	x = x.Word(uint32(len(b)))
	x.Items = append(slices.Clip(x.Items), Item{At: len(x.Bytes), Data: b})
	return x
}

// Append appends other XDRs.
func (x XDR) Append(others ...XDR) XDR {
	for _, o := range others {
		at := len(x.Bytes)
		x = x.bytes(o.Bytes...)
		x.Items = slices.Clip(x.Items)
		for _, item := range o.Items {
			item.At += at
			x.Items = append(x.Items, item)
		}
	}
	return x
}

// Position returns the offset of item i in the unreduced Payload stream that begins with x.
func (x XDR) Position(i int) uint32 {
	at := x.Items[i].At
	for _, item := range x.Items[:i] {
		at += roundUp(len(item.Data))
	}
	return uint32(at)
}

// Inline returns the bytes without the items that are reduced.
func (x XDR) Inline() []byte { return x.join(true) }

// Whole returns all bytes, as if no item were reduced.
func (x XDR) Whole() []byte { return x.join(false) }

func (x XDR) join(reduce bool) []byte {
	size := len(x.Bytes)
	for _, item := range x.Items {
		size += roundUp(len(item.Data))
	}
	b := make([]byte, 0, size)
	from := 0
	for _, item := range x.Items {
		b = append(b, x.Bytes[from:item.At]...)
		from = item.At
		if !reduce || !item.Reduced {
			b = append(b, item.Data...)
		}
		if !reduce || !item.Reduced || item.KeepPad {
			b = append(b, pad(len(item.Data))...)
		}
	}
	return append(b, x.Bytes[from:]...)
}

// reduce marks the first n items as reduced.
func (x XDR) reduce(n int) XDR {
	x.Items = slices.Clone(x.Items)
	for i := range min(n, len(x.Items)) {
		x.Items[i].Reduced = true
	}
	return x
}

func roundUp(n int) int { return (n + 3) &^ 3 }

// pad returns the zeros after n bytes.
func pad(n int) string { return "\x00\x00\x00"[:-n&3] }
