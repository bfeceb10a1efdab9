package points

import (
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
)

// finishUDP sets the UDP checksum of a frame.
func finishUDP(f *capture.Frame) {
	if f.Data[14+9] != 17 || be.Uint16(f.Data[14+22:]) != 4791 {
		return
	}
	ip := f.Data[14:]
	be.PutUint16(ip[26:], 0)
	sum := link.AddWords(17+uint64(len(ip)-20), ip[12:])
	if check := ^link.Fold(sum); check != 0 {
		be.PutUint16(ip[26:], check)
	} else {
		be.PutUint16(ip[26:], 0xffff)
	}
}

// unfinishUDP sets the UDP checksum that a host leaves to its adapter: it covers only the pseudo-header.
func unfinishUDP(f *capture.Frame) {
	if at, is := network(f); is {
		ip := f.Data[at:]
		be.PutUint16(ip[26:], link.Fold(link.AddWords(17+uint64(len(ip)-20), ip[12:20])))
	}
}

// sum sets the checksum of the IPv4 header.
func sum(ip []byte) {
	be.PutUint16(ip[10:], 0)
	be.PutUint16(ip[10:], ^link.Fold(link.AddWords(0, ip[:20])))
}

// headerDamage are changes of a frame after which its receiver drops it, although its ICRC may be right.
var headerDamage = []struct {
	name     string
	finished bool // the frames have UDP checksums
	badICRC  bool // the arrival stands for the packet, because its ICRC shows the damage
	damage   func(ip []byte)
}{
	{"hop limit", false, false, func(ip []byte) { ip[8] ^= 4 }},
	{"type of service", false, false, func(ip []byte) { ip[1] ^= 0x10 }},
	{"checksum of IPv4", false, false, func(ip []byte) { ip[11] ^= 1 }},
	{"total length, longer", false, true, func(ip []byte) { be.PutUint16(ip[2:], be.Uint16(ip[2:])+0x400) }},
	{"total length, shorter", false, true, func(ip []byte) { be.PutUint16(ip[2:], be.Uint16(ip[2:])-4) }},
	{"UDP length, longer", false, true, func(ip []byte) { be.PutUint16(ip[24:], be.Uint16(ip[24:])|0x1000) }},
	{"UDP length, shorter", false, true, func(ip []byte) { be.PutUint16(ip[24:], be.Uint16(ip[24:])-4) }},
	{"UDP length, very short", false, true, func(ip []byte) { be.PutUint16(ip[24:], 5) }},
	{"UDP checksum, where there was none", false, false, func(ip []byte) { ip[26] ^= 1 }},
	{"UDP checksum", true, false, func(ip []byte) { ip[27] ^= 0x20 }},
	{"UDP checksum that becomes unfinished", true, false, func(ip []byte) { ip[8] ^= 1 }},
}

// TestDamagedHeaders: a packet that arrives with a damaged header counts as corrupted, and its sender's copy stands for it.
func TestDamagedHeaders(t *testing.T) {
	client, server := load(t, stormClient), load(t, stormServer)
	base := run(t, stormClient, stormServer)
	offset := base.Points[1].Offset
	three := run(t, stormClient, write(t, "middle.pcap", skewed(server, 77e9, -50)), stormServer)
	for _, c := range headerDamage {
		t.Run(c.name, func(t *testing.T) {
			ends := [2][]capture.Frame{slices.Clone(client), slices.Clone(server)}
			if c.finished {
				for i := range ends {
					ends[i] = edited(ends[i], func(_ int, f *capture.Frame) { finishUDP(f) })
				}
			}
			type place struct {
				point  int
				number int64
			}
			lost := map[place]bool{}
			for _, f := range base.frames {
				if f.Seen.Fate != capture.FateLost {
					continue
				}
				copied := ends[f.Seen.SentPoint][f.Seen.SentNumber-1]
				copied.Data = slices.Clone(copied.Data)
				copied.Time = f.Seen.Sent + 1e6
				to := 1 - f.Seen.SentPoint
				if to == 1 {
					copied.Time += offset
				}
				c.damage(copied.Data[14:])
				ends[to] = append(ends[to], copied)
				lost[place{f.Seen.SentPoint, f.Seen.SentNumber}] = true
			}
			// The numbers of frames change, so those that were lost are found by their times.
			times := map[int64]bool{}
			for at := range lost {
				times[[2][]capture.Frame{client, server}[at.point][at.number-1].Time] = true
			}
			for i := range ends {
				slices.SortStableFunc(ends[i], func(a, b capture.Frame) int { return int(a.Time - b.Time) })
			}
			r := run(t, write(t, "client.pcap", ends[0]), write(t, "server.pcap", ends[1]))
			r.want(t, stormUnknown, 10+int64(len(lost)), 13)
			found, shown := 0, 0
			for _, f := range r.frames {
				if f.Seen.Fate != capture.FateUnknown || f.Seen.SentNumber != 0 || f.Seen.ArrivedNumber != 0 { // else the frame is no RoCE any more
					shown++
				}
				if n := f.Seen.SentNumber; n > 0 && times[ends[f.Seen.SentPoint][n-1].Time] {
					found++
					if f.Seen.Fate != capture.FateCorrupted || !c.badICRC && f.Seen.ArrivedNumber != 0 {
						t.Errorf("packet %d, of which a byte was changed, is %v and arrived as %d; want it corrupted", f.Seen.SentNumber, f.Seen.Fate, f.Seen.ArrivedNumber)
					}
				}
			}
			want := 0
			for _, f := range base.frames {
				if f.Seen.Fate != capture.FateUnknown || f.Seen.SentNumber != 0 || f.Seen.ArrivedNumber != 0 {
					want++
				}
			}
			if found != len(lost) || found != stormLost || shown != want {
				t.Errorf("%d of %d copies are found; %d frames of packets, want %d", found, len(lost), shown, want)
			}
			if c.badICRC {
				return
			}
			// With a point on the way, at which the packet is damaged already, and with little memory.
			middle := write(t, "middle.pcap", skewed(ends[1], 77e9, -50))
			r = run(t, write(t, "client.pcap", ends[0]), middle, write(t, "server.pcap", ends[1]))
			if r.want(t, stormUnknown, 10+int64(len(lost)), 13); len(r.Points) != 3 || len(r.frames) != len(three.frames) {
				t.Errorf("%d points and %d frames, want %d", len(r.Points), len(r.frames), len(three.frames))
			}
			r = runWith(t, Options{Memory: 1 << 10}, write(t, "client.pcap", ends[0]), write(t, "server.pcap", ends[1]))
			if n := r.counts(); n.lost > 0 || n.corrupted < 10 || len(r.frames) != len(base.frames) {
				t.Errorf("with little memory: %+v, %d frames, want %d", n, len(r.frames), len(base.frames))
			}
		})
	}
}

// TestAcceptedHeaders: checksums do not make a packet corrupted if its receiver shows that it had the packet, if its sender's copy
// is wrong, too, or if the sender's adapter has yet to compute them.
func TestAcceptedHeaders(t *testing.T) {
	client, server := load(t, stormClient), load(t, stormServer)
	isRequest := func(f *capture.Frame) bool {
		at, is := network(f)
		return is && f.Data[at+15] == 2 && f.Data[at+28] < 0x0d
	}
	nothing := func(int, *capture.Frame) {}
	finish := func(_ int, f *capture.Frame) { finishUDP(f) }
	atHost := func(own byte) func(int, *capture.Frame) {
		return func(_ int, f *capture.Frame) {
			if at, is := network(f); is && f.Data[at+15] == own {
				unfinishUDP(f)
			} else {
				finishUDP(f)
			}
		}
	}
	for _, c := range []struct {
		name               string
		atClient, atServer func(int, *capture.Frame)
	}{
		{"none at the client", nothing, finish},
		{"none at the server", finish, nothing},
		{"right ones", finish, finish},
		{"unfinished at the senders", atHost(2), atHost(1)},
		{"unfinished everywhere", func(_ int, f *capture.Frame) { unfinishUDP(f) }, func(_ int, f *capture.Frame) { unfinishUDP(f) }},
		{"junk", func(i int, f *capture.Frame) {
			if at, is := network(f); is {
				be.PutUint16(f.Data[at+26:], uint16(i)|1)
			}
		}, finish},
		{"other junk", finish, func(i int, f *capture.Frame) {
			if at, is := network(f); is {
				be.PutUint16(f.Data[at+26:], uint16(i)|1)
				be.PutUint16(f.Data[at+10:], uint16(i)|1)
			}
		}},
		{"acknowledged requests", nothing, func(i int, f *capture.Frame) {
			if at, is := network(f); is && isRequest(f) && i%20 == 0 {
				f.Data[at+8] ^= 4
			}
		}},
		{"a header that its sender wrote wrong", func(i int, f *capture.Frame) {
			if at, is := network(f); is && f.Data[at+15] == 2 && be.Uint16(f.Data[at+4:])%32 == 0 {
				f.Data[at+10] ^= 1
			}
		}, func(i int, f *capture.Frame) {
			if at, is := network(f); is && f.Data[at+15] == 2 && be.Uint16(f.Data[at+4:])%32 == 0 {
				f.Data[at+10] ^= 1
			}
		}},
		{"a router that decrements the hop limit", nothing, func(_ int, f *capture.Frame) {
			if at, is := network(f); is {
				f.Data[at+8]--
				sum(f.Data[at:])
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, write(t, "client.pcap", edited(client, c.atClient)), write(t, "server.pcap", edited(server, c.atServer)))
			r.want(t, 8, 10, 13)
		})
	}
}
