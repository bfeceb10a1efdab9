package credits

import "github.com/rdmadump/rdmadump/dissect/record"

// Usage measures for how long a side had Calls in flight, and for how long as many as it had credits. It says nothing about what
// the side would have sent with more credits: only that its next Call came right after a Reply had freed a credit.
type Usage struct {
	open, full record.Time // sums of times
	times      int64       // that all credits came into use
	longest    record.Time // of these times
	followed   int64       // Calls that followed a freed credit

	openSince, fullSince, freed record.Time // 0 if no Call is in flight, if a credit is free, and if none was freed since the last Call
}

// Follows is the time within which a Call has to follow the Reply that frees a credit to be counted.
const Follows = record.Time(1e6)

// Sent notes a Call. Calls is the number of Calls in flight, with this one; limit is the number of granted credits, 0 if it is
// not known.
func (u *Usage) Sent(at record.Time, calls, limit int) {
	if u.openSince == 0 {
		u.openSince = at
	}
	if u.freed != 0 && at-u.freed < Follows {
		u.followed++
	}
	if u.freed = 0; limit > 0 && calls >= limit && u.fullSince == 0 {
		u.fullSince = at
		u.times++
	}
}

// Answered notes a Reply, after which a number of Calls is in flight.
func (u *Usage) Answered(at record.Time, calls int) {
	if u.fullSince != 0 {
		u.endFull(at)
		u.freed = at
	}
	if calls == 0 && u.openSince != 0 {
		u.open += max(0, at-u.openSince)
		u.openSince = 0
	}
}

// endFull ends a time in which all credits were in use.
func (u *Usage) endFull(at record.Time) {
	took := max(0, at-u.fullSince)
	u.full, u.longest, u.fullSince = u.full+took, max(u.longest, took), 0
}

// Join adds the usage of another connection that turned out to be the same.
func (u *Usage) Join(o *Usage) {
	u.open, u.full, u.times, u.longest, u.followed = u.open+o.open, u.full+o.full, u.times+o.times, max(u.longest, o.longest), u.followed+o.followed
	u.openSince, u.fullSince, u.freed = max(u.openSince, o.openSince), max(u.fullSince, o.fullSince), max(u.freed, o.freed)
}

// At returns the usage until a time. Calls that have no Reply are in flight until then.
func (u *Usage) At(end record.Time) record.CreditUsage {
	last := *u
	if last.fullSince != 0 {
		last.endFull(end)
	}
	if last.openSince != 0 {
		last.open += max(0, end-last.openSince)
	}
	return record.CreditUsage{
		InFlightNS: int64(last.open), AllInUse: last.times, AllInUseNS: int64(last.full), LongestNS: int64(last.longest), Followed: last.followed,
	}
}
