package field

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// How durations and numbers of bytes are written, in tables and sentences alike.

// Duration returns a duration, given in nanoseconds, with a unit that suits its size.
func Duration(ns int64) string { return string(AppendDuration(nil, ns)) }

// AppendDuration appends what Duration returns.
func AppendDuration(b []byte, ns int64) []byte {
	switch d := time.Duration(ns); {
	case ns < 0:
		return AppendDuration(append(b, '-'), -max(ns, -math.MaxInt64)) // the lowest number has no opposite
	case d < time.Microsecond:
		return append(strconv.AppendInt(b, ns, 10), "ns"...)
	case d < time.Millisecond:
		return append(strconv.AppendFloat(b, float64(ns)/1e3, 'f', 1, 64), "us"...)
	case d < time.Second:
		return append(strconv.AppendFloat(b, float64(ns)/1e6, 'f', 2, 64), "ms"...)
	case d >= 10000*time.Second:
		return append(b, d.Truncate(time.Second).String()...)
	}
	return append(strconv.AppendFloat(b, float64(ns)/1e9, 'f', 3, 64), 's')
}

// Amount returns a number of bytes: exact below 10,000, and in KiB, MiB or GiB from there.
func Amount(n int64) string {
	unit, digits, letter := int64(1<<10), 1, byte('K')
	switch {
	case n < 10000:
		return strconv.FormatInt(n, 10)
	case n >= 10<<30:
		unit, letter = 1<<30, 'G'
	case n >= 10<<20:
		unit, letter = 1<<20, 'M'
	case n >= 1<<20:
		unit, digits, letter = 1<<20, 2, 'M'
	}
	return string(append(strconv.AppendFloat(nil, float64(n)/float64(unit), 'f', digits, 64), letter))
}

// Size returns a number of bytes with its unit, for sentences.
func Size(n int64) string {
	switch text := Amount(n); text[len(text)-1] {
	case 'K', 'M', 'G':
		return text[:len(text)-1] + " " + text[len(text)-1:] + "iB"
	default:
		return text + " B"
	}
}

// Change returns a relative change: as a percentage, or as a factor if it is more than tenfold.
func Change(share float64) string {
	switch {
	case share >= 10:
		return "x" + strconv.FormatFloat(share+1, 'f', 0, 64)
	case share > -0.1 && share < 0.1:
		return fmt.Sprintf("%+.1f%%", share*100)
	}
	return fmt.Sprintf("%+.0f%%", share*100)
}
