package scrub

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

var (
	be = binary.BigEndian
	le = binary.LittleEndian
)

// key computes pseudonyms. Equal values have equal pseudonyms of the same length.
// Without the secret, nobody can compute the value of a pseudonym.
type key struct {
	secret [32]byte
	hmac   hash.Hash
	bit    cipher.Block // decides which bits of addresses are flipped
	pad    [2][16]byte  // for IPv4 and IPv6

	addresses map[netip.Addr]netip.Addr
	macs      map[[6]byte][]byte
	ids       map[uint32]uint32
	streams   map[stream]*source
}

// maxKept limits the number of cached pseudonyms of each kind. Others are computed
// again when they are needed.
const maxKept = 1 << 12

// newKey returns the key for a secret of any length.
func newKey(secret []byte) *key {
	k := &key{secret: sha256.Sum256(secret), addresses: map[netip.Addr]netip.Addr{}, macs: map[[6]byte][]byte{}, ids: map[uint32]uint32{}, streams: map[stream]*source{}}
	k.hmac = hmac.New(sha256.New, k.secret[:])
	seed := k.hash("address", nil)
	k.bit = newAES(seed[:16])
	k.bit.Encrypt(k.pad[0][:], seed[16:])
	k.bit.Encrypt(k.pad[1][:], k.pad[0][:])
	return k
}

func newAES(key []byte) cipher.Block {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("scrub: " + err.Error()) // the length of the key is not one of AES
	}
	return block
}

// hash returns the keyed hash of a value in a class.
func (k *key) hash(class string, value []byte) (sum [32]byte) {
	mac := k.hmac
	mac.Reset()
	mac.Write([]byte(class))
	mac.Write([]byte{0})
	mac.Write(value)
	mac.Sum(sum[:0])
	return sum
}

// stream identifies an endless sequence of pseudorandom bytes.
type stream struct {
	class string
	a, b  int64
}

// source generates the bytes of a stream.
type source struct {
	block          cipher.Block
	iv             [8]byte
	counter, bytes [aes.BlockSize]byte
}

func newSource(seed [32]byte) *source {
	return &source{block: newAES(seed[:16]), iv: [8]byte(seed[16:24])}
}

// fill writes the bytes of a stream, beginning at an offset.
func (k *key) fill(to []byte, s stream, at int64) {
	from := k.streams[s]
	if from == nil {
		if len(k.streams) >= maxKept {
			clear(k.streams)
		}
		var name [16]byte
		be.PutUint64(name[:], uint64(s.a))
		be.PutUint64(name[8:], uint64(s.b))
		seed := k.hash(s.class, name[:])
		from = newSource(seed)
		k.streams[s] = from
	}
	from.fill(to, at)
}

// fewBytes is the number of bytes up to which encrypting single blocks takes less time than making a cipher object for them.
const fewBytes = 256

// fill writes the bytes of the stream, beginning at an offset: those of AES in counter mode.
func (s *source) fill(to []byte, at int64) {
	block, skip := uint64(at)/aes.BlockSize, uint64(at)%aes.BlockSize // Offsets before the first known byte are negative.
	copy(s.counter[:8], s.iv[:])
	for ; len(to) > 0 && len(to) <= fewBytes; block, skip = block+1, 0 {
		be.PutUint64(s.counter[8:], block)
		s.block.Encrypt(s.bytes[:], s.counter[:])
		to = to[copy(to, s.bytes[skip:]):]
	}
	if len(to) == 0 {
		return
	}
	be.PutUint64(s.counter[8:], block)
	ctr := cipher.NewCTR(s.block, s.counter[:])
	if skip > 0 {
		var before [aes.BlockSize]byte
		ctr.XORKeyStream(before[:skip], before[:skip])
	}
	clear(to)
	ctr.XORKeyStream(to, to)
}

// opaque returns the pseudonym of an opaque value.
func (k *key) opaque(class string, value []byte) []byte {
	out := make([]byte, len(value))
	for salt := byte(0); len(out) > 0; salt++ {
		seed := k.hash(class, append(value[:len(value):len(value)], salt))
		s := newSource(seed)
		if s.fill(out, 0); !bytes.Equal(out, value) {
			break
		}
	}
	return out
}

// data returns n random bytes for the data in a message. They are others if any byte of the message, such as its XID, is
// another one.
func (k *key) data(n int, message []byte) []byte {
	seed := k.hash("data", message)
	s := newSource(seed)
	out := make([]byte, n)
	s.fill(out, 0)
	return out
}

// token returns the pseudonym of a checksum or verifier. It keeps the header of a
// Kerberos token (RFC 4121 s.4.2.6): kind, flags and sequence number.
func (k *key) token(value []byte) []byte {
	out := k.opaque("verifier", value)
	if len(value) >= 16 && (value[0] == 4 || value[0] == 5) && value[1] == 4 && value[3] == 0xff {
		copy(out, value[:16])
	}
	return out
}

const (
	digits  = "0123456789"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" + digits
)

// word returns the pseudonym of one name, in characters of set.
func (k *key) word(class string, value []byte, set string) []byte {
	out := append([]byte(nil), value...)
	for salt := 0; len(out) > 0 && bytes.Equal(out, value); salt++ {
		copy(out, k.opaque(class+strconv.Itoa(salt), value))
		for i, b := range out {
			out[i] = set[int(b)%len(set)]
		}
	}
	return out
}

// words replaces each name in a list of names with separators.
func words(value []byte, separators string, one func([]byte) []byte) []byte {
	out := make([]byte, 0, len(value))
	for {
		i := bytes.IndexAny(value, separators)
		if i < 0 {
			return append(out, one(value)...)
		}
		out = append(append(out, one(value[:i])...), value[i])
		value = value[i+1:]
	}
}

// path returns the pseudonym of a name or of a path.
func (k *key) path(value []byte) []byte {
	return words(value, "/", func(b []byte) []byte {
		if s := string(b); s == "." || s == ".." {
			return b
		}
		return k.word("name", b, letters)
	})
}

// owner returns the pseudonym of a user or group, which is "user@domain" or a number.
func (k *key) owner(value []byte) []byte {
	return words(value, "@", func(b []byte) []byte {
		if len(bytes.Trim(b, digits)) > 0 || len(b) == 0 {
			return k.word("owner", b, letters)
		}
		if v, err := strconv.ParseUint(string(b), 10, 32); err == nil && (b[0] != '0' || len(b) == 1) {
			return strconv.AppendUint(nil, uint64(k.id(uint32(v))), 10)
		}
		return k.word("owner", b, digits)
	})
}

// universal returns the pseudonym of a universal address (RFC 5665 s.5.2.3.3): that of its IP address, if that can be
// written with as many characters, and otherwise other digits. The two numbers at its end, which are the port, do not change.
func (k *key) universal(value []byte) []byte {
	host, port := value, []byte(nil)
	if low := bytes.LastIndexByte(value, '.'); low > 0 {
		if high := bytes.LastIndexByte(value[:low], '.'); high > 0 && isOctet(value[low+1:]) && isOctet(value[high+1:low]) {
			host, port = value[:high], value[high:]
		}
	}
	if a, err := netip.ParseAddr(string(host)); err == nil && a.Zone() == "" {
		if text := padded(k.address(a).String(), len(host)); len(text) == len(host) {
			return append([]byte(text), port...)
		}
	}
	return append(words(host, ".:", func(b []byte) []byte { return k.word("universal address", b, digits) }), port...)
}

// isOctet reports whether a text is a number of a byte.
func isOctet(text []byte) bool {
	_, err := strconv.ParseUint(string(text), 10, 8)
	return err == nil
}

// padded returns the text of an address with zeros before its numbers, up to a length if it does not need more.
func padded(text string, length int) string {
	width, separator := 3, "."
	if strings.Contains(text, ":") {
		width, separator = 4, ":"
	}
	parts := strings.Split(text, separator)
	for i, part := range parts {
		if n := min(length-len(text), width-len(part)); n > 0 && part != "" {
			parts[i] = strings.Repeat("0", n) + part
			length -= n
		}
	}
	return strings.Join(parts, separator)
}

// nobody is the number that stands for no user or group.
const nobody = 1<<32 - 1

// id returns the pseudonym of the number of a user or group: a number with as many
// digits. Different numbers have different pseudonyms.
func (k *key) id(v uint32) uint32 {
	if v == nobody {
		return v
	}
	if out, known := k.ids[v]; known {
		return out
	}
	lo, hi := uint64(0), uint64(10)
	for ; uint64(v) >= hi; hi *= 10 {
		lo = hi
	}
	size := min(hi, nobody) - lo
	p := permutation{k: k, size: size}
	step := k.hash("id", be.AppendUint64(nil, size))
	at := p.walk(uint64(v)-lo, false) + 1 + be.Uint64(step[:])%(size-1)
	out := uint32(lo + p.walk(at%size, true))
	if len(k.ids) >= maxKept {
		clear(k.ids)
	}
	k.ids[v] = out
	return out
}

// smallCookies is the first cookie that is replaced. Servers that count entries use
// the cookies below it, and others use them for the beginning, "." and "..".
const smallCookies = 16

// cookie returns the pseudonym of a directory cookie of width bits, which may be a
// hash of a name. Different cookies have different pseudonyms.
func (k *key) cookie(v uint64, width int) uint64 {
	if v < smallCookies {
		return v
	}
	p := permutation{k: k, size: uint64(1)<<(width-1)<<1 - smallCookies} // 1<<64 wraps to 0, and the difference is right
	return p.walk(v-smallCookies, false) + smallCookies
}

// permutation permutes the numbers below size. It is a Feistel network that is
// applied until the result is below size (cycle walking).
type permutation struct {
	k    *key
	size uint64
}

const rounds = 6

// walk returns the image of v or, if back is true, the number whose image is v.
func (p permutation) walk(v uint64, back bool) uint64 {
	half := max((bits.Len64(p.size-1)+1)/2, 1)
	mask := uint64(1)<<half - 1
	for {
		l, r := v>>half, v&mask
		for round := range rounds {
			if back {
				l, r = r^p.mix(rounds-1-round, l)&mask, l
			} else {
				l, r = r, l^p.mix(round, r)&mask
			}
		}
		if v = l<<half | r; v < p.size {
			return v
		}
	}
}

// mix returns the round function of v.
func (p permutation) mix(round int, v uint64) uint64 {
	sum := p.k.hash("permutation", be.AppendUint64(be.AppendUint64([]byte{byte(round)}, p.size), v))
	return be.Uint64(sum[:])
}

// fixed lists the addresses that are kept, because they have a meaning of their own
// and do not identify a host.
var fixed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0/96"), netip.MustParsePrefix("fe80::/64"), netip.MustParsePrefix("ff00::/8"),
}

// local lists the prefixes of fixed of which only the prefix is kept.
var local = []netip.Prefix{fixed[2], fixed[6]}

// address returns the pseudonym of an IP address or GID. If two addresses share a
// prefix of n bits and no more, so do their pseudonyms (like Crypto-PAn). An IPv4 address
// has the same pseudonym inside of an IPv6 address.
func (k *key) address(a netip.Addr) netip.Addr {
	if out, known := k.addresses[a]; known {
		return out
	}
	out := k.newAddress(a)
	if len(k.addresses) >= maxKept {
		clear(k.addresses)
	}
	k.addresses[a] = out
	return out
}

// newAddress computes the pseudonym of an address that is not cached.
func (k *key) newAddress(a netip.Addr) netip.Addr {
	raw := a.As16()
	in4 := [4]byte(raw[12:])
	switch {
	case a.Is4():
		return netip.AddrFrom4([4]byte(k.flip(in4[:], k.pad[0])))
	case a.Is4In6(), fixed[4].Contains(a) && in4[0] != 0:
		copy(raw[12:], k.flip(in4[:], k.pad[0]))
	case raw[0] == 0xff && raw[1]&0xf == 2 && bytes.Equal(raw[2:13], solicited):
		copy(raw[13:], k.opaque("solicited", raw[13:])) // these are 24 bits of an address
	default:
		copy(raw[:], k.flip(raw[:], k.pad[1]))
	}
	return netip.AddrFrom16(raw)
}

var solicited = []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff} // ff02::1:ff00:0/104, without ff02

// flip flips each bit depending on the bits before it. It keeps a bit if the bits
// before it may be the beginning of a fixed address.
func (k *key) flip(in []byte, pad [16]byte) []byte {
	out := append([]byte(nil), in...)
	var sum [16]byte
	block := pad
	for i := range len(in) * 8 {
		mask := byte(0x80 >> (i % 8))
		if !leadsToFixed(in, i) {
			// If a bit is equal to the pad, the block for the next bit is the same. So each bit takes another bit of the result.
			if k.bit.Encrypt(sum[:], block[:]); sum[i/8]&mask != 0 {
				out[i/8] ^= mask
			}
		}
		block[i/8] = block[i/8]&^mask | in[i/8]&mask
	}
	return out
}

// leadsToFixed reports whether the first n bits of in are, or may be the beginning
// of, a fixed address.
func leadsToFixed(in []byte, n int) bool {
	a, _ := netip.AddrFromSlice(in)
	for _, p := range fixed {
		if p.Addr().BitLen() != a.BitLen() {
			continue
		}
		if n >= p.Bits() && (p == local[0] || p == local[1]) {
			continue
		}
		if same, err := a.Prefix(min(n, p.Bits())); err == nil && same.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

// guid returns the pseudonym of the GUID of an adapter or port. It is the same as
// in a link-local GID with this GUID.
func (k *key) guid(b []byte) []byte {
	gid := [16]byte{0: 0xfe, 1: 0x80}
	if copy(gid[8:], b); bytes.Equal(gid[8:], make([]byte, 8)) {
		return gid[8:]
	}
	out := k.address(netip.AddrFrom16(gid)).As16()
	return out[8:]
}

// mac returns the pseudonym of a MAC address, which is a locally administered
// address.
func (k *key) mac(b []byte) []byte {
	if out, known := k.macs[[6]byte(b)]; known {
		return out
	}
	out := append([]byte(nil), b...)
	switch {
	case bytes.Equal(b, make([]byte, 6)):
	case b[0] == 0x33 && b[1] == 0x33 && b[2] == 0xff: // MAC address of a solicited-node address
		copy(out[3:], k.opaque("solicited", b[3:6]))
	case b[0]&1 == 0:
		out = k.opaque("mac", b)
		out[0] = out[0]&^1 | 2
	}
	if len(k.macs) >= maxKept {
		clear(k.macs)
	}
	k.macs[[6]byte(b)] = out
	return out
}
