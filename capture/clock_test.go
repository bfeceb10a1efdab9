package capture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
)

// timeOf returns the time of the only frame of a capture.
func timeOf(t testing.TB, raw []byte) int64 {
	t.Helper()
	f, err := capture.NewFile("x", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b capture.Batch
	if err := f.ReadBatch(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Frames[0].Time
}

// oneFrame returns a pcapng file with one frame.
func oneFrame(resolution byte, offset int64, ticks uint64) []byte {
	le := binary.LittleEndian
	return bytes.Join([][]byte{
		section(le), iface(le, 1, 0, option(le, 9, []byte{resolution}), option(le, 14, le.AppendUint64(nil, uint64(offset)))),
		enhanced(le, 0, ticks, "x", 1),
	}, nil)
}

// TestOddClocks checks that times of any resolution and offset are exact, and that times that do
// not fit in 64 bits become the earliest or the latest time that fits.
func TestOddClocks(t *testing.T) {
	const first, last = math.MinInt64, math.MaxInt64
	for _, c := range []struct {
		name       string
		resolution byte
		offset     int64
		ticks      uint64
		want       int64
	}{
		{"seconds", 0, 0, 1e9, 1e18},
		{"seconds, the last", 0, 0, 9223372036, 9223372036e9},
		{"seconds, too many", 0, 0, 9223372037, last},
		{"seconds, all bits", 0, 0, math.MaxUint64, last},
		{"seconds, all bits, far back", 0, math.MinInt64, math.MaxUint64, last},
		{"seconds, half of all bits, far back", 0, math.MinInt64, 1<<63 + 5, 5e9},
		{"microseconds, all bits", 6, 0, math.MaxUint64, last},
		{"microseconds before 1970", 6, -10, 1, -9999999000},
		{"nanoseconds, all bits", 9, 0, math.MaxUint64, last},
		{"nanoseconds, brought back by the offset", 9, -9223372037, 1 << 63, -145224192},
		{"nanoseconds, the last", 9, 0, math.MaxInt64, last},
		{"nanoseconds, the first", 9, -9223372037, 145224192, first},
		{"nanoseconds, one before the first", 9, -9223372037, 145224191, first},
		{"the largest offset", 6, math.MaxInt64, 0, last},
		{"the smallest offset", 6, math.MinInt64, 0, first},
		{"picoseconds, all bits", 12, 0, math.MaxUint64, 18446744073709551},
		{"10^-28 seconds", 28, 0, math.MaxUint64, 1},
		{"10^-29 seconds", 29, 0, math.MaxUint64, 0},
		{"10^-127 seconds", 127, 7, math.MaxUint64, 7e9},
		{"halves", 0x81, 0, 3, 15e8},
		{"2^0 seconds", 0x80, 0, 3, 3e9},
		{"2^0 seconds, all bits", 0x80, 0, math.MaxUint64, last},
		{"2^-10 seconds, all bits", 0x8a, 0, math.MaxUint64, last},
		{"2^-32 seconds, all bits", 0xa0, 0, math.MaxUint64, 4294967295999999999},
		{"2^-63 seconds, all bits", 0xbf, 0, math.MaxUint64, 1999999999},
		{"2^-64 seconds, all bits", 0xc0, 0, math.MaxUint64, 999999999},
		{"2^-65 seconds, all bits", 0xc1, 0, math.MaxUint64, 499999999},
		{"2^-94 seconds, all bits", 0xde, 0, math.MaxUint64, 0},
		{"2^-127 seconds, all bits", 0xff, -1, math.MaxUint64, -1e9},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := timeOf(t, oneFrame(c.resolution, c.offset, c.ticks)); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
	le := binary.LittleEndian
	for _, c := range []struct {
		name     string
		magic    uint32
		sec, sub uint32
		want     int64
	}{
		{"microseconds of more than a second", 0xa1b2c3d4, 1, 2500000, 35e8},
		{"all bits, microseconds", 0xa1b2c3d4, math.MaxUint32, math.MaxUint32, 4294967295e9 + 4294967295e3},
		{"nanoseconds of a second", 0xa1b23c4d, 1, 1e9, 2e9},
		{"all bits, nanoseconds", 0xa1b23c4d, math.MaxUint32, math.MaxUint32, 4294967295e9 + 4294967295},
		{"all bits, longer headers", 0xa1b2cd34, math.MaxUint32, math.MaxUint32, 4294967295e9 + 4294967295e3},
	} {
		t.Run("pcap, "+c.name, func(t *testing.T) {
			if got := timeOf(t, pcap(le, c.magic, 1, frame{c.sec, c.sub, "x", 1})); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// TestClocksExact compares a few thousand clocks with arithmetic of unlimited precision.
func TestClocksExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	billion := big.NewInt(1e9)
	for range 4000 {
		resolution, offset, ticks := byte(random.Uint32()), int64(random.Uint64())>>random.IntN(64), random.Uint64()>>random.IntN(64)
		base := big.NewInt(10)
		if resolution&0x80 != 0 {
			base.SetInt64(2)
		}
		want := new(big.Int).Mul(new(big.Int).SetUint64(ticks), billion)
		want.Div(want, base.Exp(base, big.NewInt(int64(resolution&0x7f)), nil))
		want.Add(want, new(big.Int).Mul(big.NewInt(offset), billion))
		limited := want.Int64()
		if !want.IsInt64() {
			limited = math.MaxInt64
			if want.Sign() < 0 {
				limited = math.MinInt64
			}
		}
		if got := timeOf(t, oneFrame(resolution, offset, ticks)); got != limited {
			t.Fatalf("resolution %#x, offset %d, %d ticks: %d, want %d", resolution, offset, ticks, got, limited)
		}
	}
}
