package capture

import (
	"math"
	"math/bits"
)

// clock converts the ticks of a pcapng interface into nanoseconds since 1970. A tick is 10^-digits
// or 2^-digits seconds (if_tsresol), and ticks are counted from offset seconds (if_tsoffset). See
// draft-ietf-opsawg-pcapng, section 4.2.
type clock struct {
	binary bool
	digits uint8 // 0 to 127
	offset int64
}

// nanoseconds returns the time of ticks, rounded down to a whole nanosecond. A time before the year
// 1678 or after 2262, which does not fit in 64 bits, becomes the earliest or the latest time that
// fits.
func (c clock) nanoseconds(ticks uint64) int64 {
	// The computation uses signed 128-bit numbers, which cannot overflow here: 2^64 ticks and 2^63
	// seconds are below 2^94 nanoseconds.
	var hi, lo uint64
	switch {
	case c.binary:
		hi, lo = bits.Mul64(ticks, 1e9)
		if c.digits >= 64 {
			hi, lo = 0, hi>>(c.digits-64)
		} else {
			hi, lo = hi>>c.digits, lo>>c.digits|hi<<(64-c.digits)
		}
	case c.digits <= 9:
		hi, lo = bits.Mul64(ticks, power10[9-c.digits])
	case int(c.digits-9) < len(power10):
		lo = ticks / power10[c.digits-9]
	}
	if c.offset != 0 {
		// bits.Mul64 treats the negative factor as unsigned, which makes the product 2^64 times the
		// other factor too large.
		high, low := bits.Mul64(uint64(c.offset), 1e9)
		if c.offset < 0 {
			high -= 1e9
		}
		var carry uint64
		lo, carry = bits.Add64(lo, low, 0)
		hi, _ = bits.Add64(hi, high, carry)
	}
	switch {
	case int64(hi) < -1 || int64(hi) == -1 && int64(lo) >= 0:
		return math.MinInt64
	case int64(hi) > 0 || hi == 0 && int64(lo) < 0:
		return math.MaxInt64
	}
	return int64(lo)
}

// power10 lists the powers of ten that fit in 64 bits.
var power10 = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()
