package scrub

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// Pseudonyms computes the pseudonyms that scrubbed captures contain, for output of another kind.
// With the same secret, a value has the same pseudonym here and there.
type Pseudonyms struct{ key *key }

// NewPseudonyms returns the pseudonyms for a secret of any length.
func NewPseudonyms(secret []byte) *Pseudonyms { return &Pseudonyms{newKey(secret)} }

// Address returns the pseudonym of an address as records contain it: an IP address or GID, with or
// without a port. The number of a port and the LID of native InfiniBand stay. Any other text is
// replaced as a name is.
func (p *Pseudonyms) Address(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return p.key.address(a).String()
	}
	if a, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(p.key.address(a.Addr()), a.Port()).String()
	}
	if at := strings.LastIndexByte(text, ':'); at > 0 {
		if a, err := netip.ParseAddr(text[:at]); err == nil {
			return p.key.address(a).String() + text[at:]
		}
	}
	if lid, found := strings.CutPrefix(text, "LID "); found {
		if _, err := strconv.ParseUint(lid, 10, 16); err == nil {
			return text
		}
	}
	return p.Path(text)
}

// Path returns the pseudonym of a path, of the name of a file, or of the name of a machine.
func (p *Pseudonyms) Path(text string) string { return string(p.key.path([]byte(text))) }

// Owner returns the pseudonym of the name of a user, such as user@domain.
func (p *Pseudonyms) Owner(text string) string { return string(p.key.owner([]byte(text))) }

// Handle returns the pseudonym of a file handle in hexadecimal. A short form of a handle, such as fh:0x62d40c52, has
// another short form as its pseudonym.
func (p *Pseudonyms) Handle(text string) string {
	if digits, short := strings.CutPrefix(text, "fh:0x"); short {
		return "fh:0x" + string(p.key.word("short handle", []byte(digits), "0123456789abcdef"))
	}
	if b, err := hex.DecodeString(text); err == nil {
		return hex.EncodeToString(p.key.opaque("handle", b))
	}
	return p.Path(text)
}

// ID returns the pseudonym of the number of a user or group.
func (p *Pseudonyms) ID(v uint32) uint32 { return p.key.id(v) }
