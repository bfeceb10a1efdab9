package field

import (
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
	}
	return append(strconv.AppendFloat(b, float64(ns)/1e9, 'f', 3, 64), 's')
}

// Amount returns a number of bytes: exact below 10,000, and in KiB or MiB from there.
func Amount(n int64) string {
	switch {
	case n < 10000:
		return strconv.FormatInt(n, 10)
	case n < 10<<20:
		return strconv.FormatFloat(float64(n)/1024, 'f', 1, 64) + "K"
	}
	return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + "M"
}

// Size returns a number of bytes with its unit, for sentences.
func Size(n int64) string {
	switch text := Amount(n); text[len(text)-1] {
	case 'K', 'M':
		return text[:len(text)-1] + " " + text[len(text)-1:] + "iB"
	default:
		return text + " B"
	}
}
