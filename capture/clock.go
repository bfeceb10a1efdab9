package capture

import (
	"math"
	"math/bits"
)

// clock turns the ticks of a pcapng interface into nanoseconds since 1970: a
// tick is 10^-digits seconds, or 2^-digits (if_tsresol), counted from offset
// seconds (if_tsoffset). See draft-ietf-opsawg-pcapng, section 4.2.
type clock struct {
	binary bool
	digits uint8 // 0 to 127
	offset int64
}

// nanoseconds are exact, rounded down to a whole one. Times that 64 bits cannot
// tell, before the year 1678 and after 2262, are the first or the last that they
// can.
func (c clock) nanoseconds(ticks uint64) int64 {
	// All in 128 bits with a sign, in which nothing here comes near the limits:
	// 2^64 ticks and 2^63 seconds are below 2^94 nanoseconds.
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
		// The product of a negative factor as if it had no sign is 2^64 times
		// the other factor too large.
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

// power10 are the powers of ten that fit in 64 bits.
var power10 = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()
