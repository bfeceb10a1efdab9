package field_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/field"
)

func TestUint(t *testing.T) {
	data := []byte{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x11}
	for _, c := range []struct {
		bit, bits int
		want      uint64
	}{
		{0, 8, 0x12}, {0, 16, 0x1234}, {8, 24, 0x345678}, {0, 64, 0x123456789abcdef0}, {8, 64, 0x3456789abcdef011}, {4, 4, 2}, {3, 1, 1}, {0, 3, 0}, {4, 12, 0x234}, {12, 20, 0x45678}, {2, 5, 9},
	} {
		f := field.Field{Bit: c.bit, Bits: c.bits}
		if got := f.Uint(data); got != c.want {
			t.Errorf("%d bits at %d are 0x%x, want 0x%x", c.bits, c.bit, got, c.want)
		}
	}
}
