package scrub

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// RecordPseudonyms computes the pseudonyms that scrubbed captures contain, for output of another kind.
// With the same secret, a value has the same pseudonym here and there.
type RecordPseudonyms struct{ key *key }

// NewRecordPseudonyms returns the pseudonyms for a secret of any length.
func NewRecordPseudonyms(secret []byte) *RecordPseudonyms { return &RecordPseudonyms{newKey(secret)} }

// Text returns the pseudonym of a text in a record. Capture points and sentences are not in captures: they have none.
func (p *RecordPseudonyms) Text(what record.Secret, text string) string {
	switch what {
	case record.SecretAddress:
		return p.address(text)
	case record.SecretHandle:
		return p.handle(text)
	case record.SecretUser:
		return string(p.key.owner([]byte(text)))
	case record.SecretPath:
		if strings.HasPrefix(text, "fh:") { // the capture shows only the last directories of the path
			handle, rest, more := strings.Cut(text, "/")
			if handle = p.handle(handle); more {
				return handle + "/" + p.name(rest)
			}
			return handle
		}
	}
	return p.name(text)
}

// ID returns the pseudonym of the number of a user or group.
func (p *RecordPseudonyms) ID(v uint32) uint32 { return p.key.id(v) }

// name returns the pseudonym of a path, of the name of a file, or of the name of a machine.
func (p *RecordPseudonyms) name(text string) string { return string(p.key.path([]byte(text))) }

// address returns the pseudonym of an address as records contain it: an IP address or GID, with or
// without a port. The number of a port and the LID of native InfiniBand stay. Any other text is
// replaced as a name is.
func (p *RecordPseudonyms) address(text string) string {
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
	return p.name(text)
}

// handle returns the pseudonym of a file handle in hexadecimal. A short form of a handle, such as fh:0x62d40c52, has
// another short form as its pseudonym.
func (p *RecordPseudonyms) handle(text string) string {
	if digits, short := strings.CutPrefix(text, "fh:0x"); short {
		return "fh:0x" + string(p.key.word("short handle", []byte(digits), "0123456789abcdef"))
	}
	if b, err := hex.DecodeString(text); err == nil {
		return hex.EncodeToString(p.key.opaque("handle", b))
	}
	return p.name(text)
}
