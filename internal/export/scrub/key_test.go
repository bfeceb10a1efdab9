package scrub

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/internal/testkit"
)

// shared returns the length of the common prefix of two addresses in bits.
func shared(a, b netip.Addr) (n int) {
	x, y := a.AsSlice(), b.AsSlice()
	for n < len(x)*8 && x[n/8]>>(7-n%8)&1 == y[n/8]>>(7-n%8)&1 {
		n++
	}
	return n
}

// TestAddresses verifies that pseudonyms share as long a prefix as the addresses,
// that no two are equal, and that an IPv4 address has the same pseudonym inside of an
// IPv6 address.
func TestAddresses(t *testing.T) {
	k := newKey(secret)
	all := []string{
		"192.168.77.1", "192.168.77.2", "192.168.78.1", "10.0.0.1", "10.0.0.255", "172.16.5.4", "8.8.8.8", "169.254.1.2", "169.254.9.9", "fe80::1", "fe80::2", "fe80::5054:ff:fe77:1",
		"2001:db8::1", "2001:db8::2", "2001:db8:1::1", "fd00::1", "fd00::ffff",
	}
	seen := map[netip.Addr]string{}
	for _, s := range all {
		a := netip.MustParseAddr(s)
		out := k.address(a)
		if out == a || out.Is4() != a.Is4() || seen[out] != "" || out != k.newAddress(a) {
			t.Errorf("%s: %s, which %q has", a, out, seen[out])
		}
		seen[out] = s
		for _, s := range all {
			if b := netip.MustParseAddr(s); a.Is4() == b.Is4() && shared(a, b) != shared(out, k.address(b)) {
				t.Errorf("%s and %s share %d bits, %s and %s %d", a, b, shared(a, b), out, k.address(b), shared(out, k.address(b)))
			}
		}
		if a.Is4() {
			mapped := k.address(netip.AddrFrom16(a.As16()))
			if mapped.Unmap() != out {
				t.Errorf("%s becomes %s, but %s inside of an IPv6 address", a, out, mapped)
			}
			compatible := a.As16()
			compatible[10], compatible[11] = 0, 0
			if got := k.address(netip.AddrFrom16(compatible)).As16(); !bytes.Equal(got[12:], out.AsSlice()) || !zero(got[:12]) {
				t.Errorf("%s becomes %s, but %v in an IPv4-compatible address", a, out, got)
			}
		}
	}
	for _, s := range []string{"0.0.0.0", "127.0.0.1", "224.0.0.18", "255.255.255.255", "239.1.2.3", "::", "::1", "ff02::1", "ff02::fb"} {
		if a := netip.MustParseAddr(s); k.address(a) != a {
			t.Errorf("%s becomes %s", a, k.address(a))
		}
	}
	for s, prefix := range map[string]string{"169.254.3.4": "169.254.0.0/16", "fe80::1:2": "fe80::/64", "ff02::1:ff77:1": "ff02::1:ff00:0/104"} {
		if a := k.address(netip.MustParseAddr(s)); !netip.MustParsePrefix(prefix).Contains(a) || a.String() == s {
			t.Errorf("%s becomes %s", s, a)
		}
	}
	in := netip.MustParseAddr("10.1.0.0")
	distinct := map[netip.Addr]bool{}
	for range 4096 {
		distinct[k.newAddress(in)] = true
		in = in.Next()
	}
	if len(distinct) != 4096 {
		t.Errorf("4096 addresses have %d pseudonyms", len(distinct))
	}
	if other := newKey([]byte("another")); other.address(netip.MustParseAddr("192.168.77.1")) == k.address(netip.MustParseAddr("192.168.77.1")) {
		t.Error("another key gives the same address")
	}
}

// TestMACs verifies that pseudonyms of MAC addresses are locally administered unicast
// addresses, and that addresses that identify no host are kept.
func TestMACs(t *testing.T) {
	k := newKey(secret)
	for _, c := range []struct {
		in   string
		same int // bytes
	}{
		{"525400770001", 0}, {"001b21aabbcc", 0}, {"ffffffffffff", 6}, {"01005e0000fb", 6}, {"000000000000", 6}, {"333300000001", 6}, {"3333ff770001", 3},
	} {
		in := testkit.Unhex(t, c.in)
		out := k.mac(in)
		if !bytes.Equal(out[:c.same], in[:c.same]) || c.same < 6 && bytes.Equal(out[c.same:], in[c.same:]) || c.same == 0 && out[0]&3 != 2 || len(out) != 6 {
			t.Errorf("%s becomes %x", c.in, out)
		}
	}
	// A solicited-node address and its MAC have the same 24 bits.
	group, mac := k.address(netip.MustParseAddr("ff02::1:ff77:1")).As16(), k.mac(testkit.Unhex(t, "3333ff770001"))
	if !bytes.Equal(group[13:], mac[3:]) {
		t.Errorf("%x and %x", group, mac)
	}
	// A GUID is the same in a GID.
	gid := k.address(netip.MustParseAddr("fe80::5054:ff:fe77:1")).As16()
	if guid := k.guid(testkit.Unhex(t, "505400fffe770001")); !bytes.Equal(guid, gid[8:]) {
		t.Errorf("%x and %x", guid, gid)
	}
	if !zero(k.guid(make([]byte, 8))) {
		t.Error("a GUID of 0 has a pseudonym")
	}
}

// TestNames verifies that pseudonyms of names have as many letters and digits, differ
// from the name, and are the same inside of a path.
func TestNames(t *testing.T) {
	k := newKey(secret)
	for _, s := range []string{"a", "ab", "file.txt", "Grüße", "\x00\xff\x1b[31m", strings.Repeat("long", 60)} {
		out := string(k.path([]byte(s)))
		if len(out) != len(s) || out == s || strings.Trim(out, letters) != "" {
			t.Errorf("%q becomes %q", s, out)
		}
	}
	if got, want := string(k.path([]byte("/srv/../a//b.c/."))), fmt.Sprintf("/%s/../%s//%s/.", k.path([]byte("srv")), k.path([]byte("a")), k.path([]byte("b.c"))); got != want {
		t.Errorf("path %q, its names make %q", got, want)
	}
	if out := k.path(nil); len(out) != 0 {
		t.Errorf("nothing becomes %q", out)
	}
	alice, uid := string(k.owner([]byte("alice@example.org"))), string(k.owner([]byte("1000")))
	if i := strings.IndexByte(alice, '@'); i != 5 || len(alice) != 17 || strings.Contains(alice, "alice") || strings.Contains(alice, "example") {
		t.Errorf("owner %q", alice)
	}
	if uid != fmt.Sprint(k.id(1000)) || len(uid) != 4 || uid == "1000" {
		t.Errorf("owner 1000 is %s, its number %d", uid, k.id(1000))
	}
	for _, s := range []string{"007", "99999999999", "4294967295"} {
		if out := string(k.owner([]byte(s))); len(out) != len(s) || strings.Trim(out, digits) != "" {
			t.Errorf("owner %s is %s", s, out)
		}
	}
}

// TestUniversal verifies that a universal address has the pseudonym of its IP address, if that is not longer, and the port
// that it had.
func TestUniversal(t *testing.T) {
	k, exact := newKey(secret), 0
	for _, c := range [][2]string{
		{"192.168.77.1", ".8.1"},
		{"192.168.177.201", ".0.111"},
		{"10.0.0.1", ".255.255"},
		{"172.16.100.100", ".0.0"},
		{"fe80::5054:ff:fe12:3456", ".8.1"},
		{"2001:db8:1111:2222:3333:4444:5555:6666", ".78.81"},
		{"::", ".0.111"},
	} {
		out := string(k.universal([]byte(c[0] + c[1])))
		host, same := strings.CutSuffix(out, c[1])
		if !same || len(host) != len(c[0]) || host == c[0] && c[0] != "::" {
			t.Errorf("the universal address %s%s becomes %s", c[0], c[1], out)
		}
		if want := k.address(netip.MustParseAddr(c[0])).String(); host == want {
			exact++
		} else if len(want) == len(c[0]) {
			t.Errorf("the universal address %s%s becomes %s, and its host %s", c[0], c[1], out, want)
		}
	}
	if exact < 2 {
		t.Errorf("%d universal addresses have the pseudonyms of their hosts", exact)
	}
	if got := padded("1.20.3.4", 11); got != "001.020.3.4" {
		t.Errorf("padded to 11 characters, an address is %s", got)
	}
	for _, s := range []string{"192.168.77.1", "1.2", "host.8.1", "192.168.77.1.8.256", ""} {
		if out := string(k.universal([]byte(s))); len(out) != len(s) || out == s && s != "" {
			t.Errorf("what is no universal address, %q, becomes %q", s, out)
		}
	}
}

// TestIDs verifies that numbers have different pseudonyms with as many digits.
func TestIDs(t *testing.T) {
	k := newKey(secret)
	for _, span := range [][2]uint32{{0, 10}, {10, 100}, {100, 1000}, {1000, 3000}, {65500, 65600}, {1<<32 - 20, 1<<32 - 1}} {
		seen := map[uint32]bool{}
		for v := span[0]; v < span[1]; v++ {
			out := k.id(v)
			if out == v || seen[out] || len(fmt.Sprint(out)) != len(fmt.Sprint(v)) {
				t.Fatalf("%d becomes %d", v, out)
			}
			seen[out] = true
		}
	}
	if k.id(nobody) != nobody {
		t.Error("the number that stands for nobody has a pseudonym")
	}
}

// TestStreams verifies that any part of a stream equals that part of the whole
// stream.
func TestStreams(t *testing.T) {
	k := newKey(secret)
	whole := make([]byte, 3*fewBytes) // the parts are short, and made in another way
	const first = -4*fewBytes - 4     // Offsets before the first known byte are negative.
	k.fill(whole, stream{"a", 1, 2}, first)
	for at := range 2 * fewBytes {
		part := make([]byte, 37)
		k.fill(part, stream{"a", 1, 2}, first+int64(at))
		if !bytes.Equal(part, whole[at:at+37]) {
			t.Fatalf("the part of the stream from %d on is %x, want %x", at, part, whole[at:at+37])
		}
	}
	other := make([]byte, len(whole))
	for _, s := range []stream{{"b", 1, 2}, {"a", 2, 2}, {"a", 1, 3}} {
		if k.fill(other, s, 0); bytes.Equal(whole, other) {
			t.Errorf("%v is the same", s)
		}
	}
	if got := hex.EncodeToString(newKey(secret).opaque("handle", []byte("01234567"))); got != hex.EncodeToString(k.opaque("handle", []byte("01234567"))) || len(got) != 16 {
		t.Errorf("equal keys give a handle the pseudonyms %s and another one, or one of another length than 16 digits", got)
	}
}

// TestPrefixes: with different secrets, an address keeps its first bits as rarely as chance allows. The first three bits of
// 192.168.77.2 may be the beginning of a multicast address, and are kept.
func TestPrefixes(t *testing.T) {
	a := netip.MustParseAddr("192.168.77.2")
	const secrets = 1 << 14
	kept := map[int]int{} // number of secrets by the bits that are kept
	for i := range secrets {
		b := newKey(binary.AppendUvarint(nil, uint64(i))).address(a)
		for bits := range 33 {
			if p, _ := a.Prefix(bits); p.Contains(b) {
				kept[bits]++
			}
		}
	}
	for bits, n := range kept {
		if want := secrets >> max(bits-3, 0); n > want+want/4+8 {
			t.Errorf("%d of %d secrets keep the first %d bits, expected are %d", n, secrets, bits, want)
		}
	}
}

// TestKeys verifies that scrubbing twice with one key gives the same bytes, and that
// another key changes every packet.
func TestKeys(t *testing.T) {
	frames, _ := testkit.Frames(t, "../../../samples/rocev2-callback41.pcap")
	a, _ := scrubbed(t, frames, secret)
	b, _ := scrubbed(t, frames, secret)
	c, _ := scrubbed(t, frames, []byte("another"))
	for i := range a {
		if !bytes.Equal(a[i].Data, b[i].Data) {
			t.Fatalf("packet %d: the same key gives other bytes", i+1)
		}
		if bytes.Equal(a[i].Data, c[i].Data) {
			t.Fatalf("packet %d: another key gives the same bytes", i+1)
		}
	}
	// A scrubbed capture can be scrubbed again.
	d, s := scrubbed(t, a, []byte("another"))
	if got, want := views(t, d, nil), views(t, a, s.key); !slices.Equal(got, want) {
		t.Error("the views show something else after scrubbing twice")
	}
}

// TestCookies verifies that cookies have different pseudonyms of the same width, and
// that small cookies are kept.
func TestCookies(t *testing.T) {
	k := newKey(secret)
	for _, bits := range []int{32, 64} {
		last := uint64(1)<<(bits-1)<<1 - 1
		seen := map[uint64]uint64{}
		for _, from := range []uint64{0, 500, 1 << 20, 1<<31 - 200, last - 511} {
			for v := from; v-from < 512; v++ {
				out := k.cookie(v, bits)
				if before, is := seen[out]; is || out > last || (out < smallCookies) != (v < smallCookies) || v < smallCookies && out != v || v > 1<<20 && out == v {
					t.Fatalf("%d bits: %#x becomes %#x, as %#x does", bits, v, out, before)
				}
				if seen[out] = v; v == last {
					break
				}
			}
			clear(seen)
		}
	}
	if newKey([]byte("another")).cookie(1<<40, 64) == k.cookie(1<<40, 64) {
		t.Error("another key gives the same cookie")
	}
}
