package field

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// How durations and numbers of bytes are written, in tables and sentences alike.

// Duration returns a duration, given in nanoseconds, with a unit that suits its size and more digits than tables have: 612.59 ms.
func Duration(ns int64) string { return string(AppendDuration(nil, ns)) }

// AppendDuration appends what Duration returns.
func AppendDuration(b []byte, ns int64) []byte {
	switch d := time.Duration(ns); {
	case ns < 0:
		return AppendDuration(append(b, '-'), -max(ns, -math.MaxInt64)) // the lowest number has no opposite
	case d < time.Microsecond:
		return append(strconv.AppendInt(b, ns, 10), " ns"...)
	case d < time.Millisecond:
		return append(strconv.AppendFloat(b, float64(ns)/1e3, 'f', 1, 64), " us"...)
	case d < time.Second:
		return append(strconv.AppendFloat(b, float64(ns)/1e6, 'f', 2, 64), " ms"...)
	case d >= 24*time.Hour:
		b = append(strconv.AppendInt(b, int64(d/(24*time.Hour)), 10), 'd')
		return append(b, (d % (24 * time.Hour)).Truncate(time.Second).String()...)
	case d >= 10000*time.Second:
		return append(b, d.Truncate(time.Second).String()...)
	}
	return append(strconv.AppendFloat(b, float64(ns)/1e9, 'f', 3, 64), " s"...)
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

// Brief returns a duration, given in nanoseconds, with two or three digits and one unit: 2.6 ms, 560 ms, 1.22 s.
func Brief(ns int64) string {
	if ns < 0 {
		return "-" + Brief(-max(ns, -math.MaxInt64))
	}
	for _, u := range [...]struct {
		ns, below, digits int64 // the unit, the first number that is too large for it, and the digits of numbers below 10
		name              string
	}{{1, 1e3, 0, "ns"}, {1e3, 1e3, 1, "us"}, {1e6, 1e3, 1, "ms"}, {1e9, 1e3, 2, "s"}, {60e9, 600, 1, "min"}, {3600e9, 100, 1, "h"}} {
		digits := u.digits
		switch n := float64(ns) / float64(u.ns); {
		case n >= 99.95 || u.ns < 1e9 && n >= 9.95:
			digits = 0
		case n >= 9.995:
			digits = 1
		}
		if text := strconv.FormatFloat(float64(ns)/float64(u.ns), 'f', int(digits), 64); ns < u.below*u.ns && text != strconv.FormatInt(u.below, 10) {
			return text + " " + u.name
		}
	}
	return strconv.FormatInt(ns/86400e9, 10) + " d"
}

// Size returns a number of bytes: exact below 10,000, and with two or three digits and one unit from there.
func Size(n int64) string {
	if n < 10000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	size := float64(n) / (1 << 10)
	for _, unit := range [...]string{"KiB", "MiB", "GiB", "TiB"} {
		digits := 0
		if size < 9.95 {
			digits = 1
		}
		if text := strconv.FormatFloat(size, 'f', digits, 64); size < 1000 || unit == "TiB" {
			return text + " " + unit
		}
		size /= 1 << 10
	}
	panic("unreachable")
}

// Count returns a number with a comma before each three digits.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
