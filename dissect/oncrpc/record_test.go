package oncrpc

import (
	"strings"
	"testing"
)

// hexWords returns bytes of words in hex.
func hexWords(s string) (b []byte) {
	for _, word := range strings.Fields(s) {
		var v uint32
		for _, c := range word {
			v = v<<4 | uint32(strings.IndexRune("0123456789abcdef", c))
		}
		b = be.AppendUint32(b, v)
	}
	return b
}

func TestRecordMark(t *testing.T) {
	for _, c := range []struct {
		mark   RecordMark
		length int
		last   bool
	}{{0x80000028, 40, true}, {0x00000400, 1024, false}, {0xffffffff, 1<<31 - 1, true}} {
		if c.mark.Length() != c.length || c.mark.Last() != c.last || NewRecordMark(c.length, c.last) != c.mark {
			t.Errorf("%08x: %d bytes, last %t", uint32(c.mark), c.mark.Length(), c.mark.Last())
		}
	}
}

func TestPlausibleRecord(t *testing.T) {
	const call, reply = "7 0 2 186a3 3 1 0 0 0 0", "7 1 0 0 0 0"
	for _, c := range []struct {
		name, words string
		kind        MessageType
		ok          bool
	}{
		{"a Call", "80000028 " + call, Call, true},
		{"a Reply", "80000018 " + reply, Reply, true},
		{"a Reply that was denied", "80000014 7 1 1 1 5", Reply, true},
		{"the first fragment of a Call", "00000028 " + call, Call, true},
		{"a first fragment without the whole header", "00000010 7 0 2 186a3", Call, false}, // what frames of other protocols look like
		{"a Call of which 16 bytes were captured", "80000028 7 0 2", Call, true},
		{"too few bytes", "80000028 7 0", 0, false},
		{"another RPC version", "80000028 7 0 3 186a3 3 1 0 0 0 0", Call, false},
		{"another message type", "80000028 7 2 2 186a3 3 1 0 0 0 0", 2, false},
		{"a Call that is too short", "80000020 7 0 2 186a3 3 1 0 0", Call, false},
		{"a length that is no multiple of 4", "80000029 " + call, Call, false},
		{"a record that is too long", "fc000000 " + call, 0, false},
		{"an empty fragment", "80000000 " + call, 0, false},
		{"zeros", "0 0 0 0 0 0 0 0", 0, false},
		{"a credential that is too long", "80000028 7 0 2 186a3 3 1 1 191 0 0", Call, false},
		{"a verifier that is too long", "80000028 7 0 2 186a3 3 1 0 0 0 191", Call, false},
		{"program 0", "80000028 7 0 2 0 3 1 0 0 0 0", Call, false},
		{"a reply state that does not exist", "80000018 7 1 2 0 0 0", Reply, false},
		{"an accept state that does not exist", "80000018 7 1 0 0 0 6", Reply, false},
		{"a reject state that does not exist", "80000014 7 1 1 2 5", Reply, false},
	} {
		if kind, ok := PlausibleRecord(hexWords(c.words)); kind != c.kind || ok != c.ok {
			t.Errorf("%s: the record begins like a %v, plausible %t; want %v, %t", c.name, kind, ok, c.kind, c.ok)
		}
	}
}

// FuzzPlausible: every message whose header is decoded and whose length is possible is
// plausible, unless a word of it is one that no server has.
func FuzzPlausible(f *testing.F) {
	f.Add(hexWords("80000028 7 0 2 186a3 3 1 0 0 0 0"))
	f.Add(hexWords("80000018 7 1 0 0 0 0"))
	f.Add(hexWords("80000018 7 1 0 6 18c 0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		PlausibleRecord(data)
		kind, ok := Plausible(data, len(data), false)
		var h Header
		err := h.Decode(data)
		if ok && err == nil && h.Type != kind {
			t.Errorf("%v is taken for %v", h.Type, kind)
		}
		if err == nil && !ok && len(data)&3 == 0 && h.Type == Reply && h.ReplyState == 0 && h.AcceptState < 6 {
			t.Errorf("%x is not plausible", data)
		}
	})
}
