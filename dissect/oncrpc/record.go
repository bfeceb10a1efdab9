package oncrpc

// Record marking: how RPC messages follow each other in a TCP stream.

// RecordMarkLen is the length of a record mark in bytes.
const RecordMarkLen = 4

// RecordMark is the word before each fragment of a record (RFC 5531 s.11). A record is one
// RPC message. The highest bit says that the fragment is the last one of its record, and
// the other 31 bits are the length of the fragment in bytes, without the mark.
type RecordMark uint32

// Last reports whether the fragment is the last one of its record.
func (m RecordMark) Last() bool { return m>>31 != 0 }

// Length returns the length of the fragment in bytes, without the mark.
func (m RecordMark) Length() int { return int(m & 0x7fff_ffff) }

// NewRecordMark returns the mark of a fragment.
func NewRecordMark(length int, last bool) RecordMark {
	m := RecordMark(length) & 0x7fff_ffff
	if last {
		m |= 1 << 31
	}
	return m
}

// MaxFragment is the length of a fragment, in bytes, above which a word is not taken for a
// record mark. Linux accepts records of about 4 MiB, and other systems of 64 MiB at most.
const MaxFragment = 64 << 20

// The smallest messages: a Reply that is denied because of its credential, a Call whose
// credential and verifier are empty, and the words from which a message is recognized.
const (
	minReply  = 20
	minCall   = 40
	minTested = 12
)

// maxVersion is the highest version and the highest procedure number of a program that an
// unknown message is expected to have.
const maxVersion = 1 << 16

// Plausible reports whether data begins with the header of an RPC message, and which type
// the message has. It checks every word that can be wrong, as far as data has it. The
// message has size bytes on the wire, or more if atLeast is set: a Call has its whole header in its first
// fragment. It returns false if data has fewer than 12 bytes.
func Plausible(data []byte, size int, atLeast bool) (t MessageType, ok bool) {
	if len(data) < minTested {
		return 0, false
	}
	t = MessageType(be.Uint32(data[4:]))
	switch third := be.Uint32(data[8:]); {
	case t == Call && third == 2: // the RPC version
		return t, size >= minCall && (atLeast || size&3 == 0) && plausibleCall(data)
	case t == Reply && third <= denied:
		return t, (atLeast || size >= minReply && size&3 == 0) && plausibleReply(data, third)
	}
	return t, false
}

// plausibleCall reports whether the words after the RPC version of a Call are possible.
func plausibleCall(data []byte) bool {
	return !(len(data) >= 16 && be.Uint32(data[12:]) == 0 ||
		len(data) >= 20 && be.Uint32(data[16:]) >= maxVersion ||
		len(data) >= 24 && be.Uint32(data[20:]) >= maxVersion ||
		!plausibleAuths(data, 24, 2))
}

// plausibleReply reports whether the words after the reply state of a Reply are possible.
func plausibleReply(data []byte, state uint32) bool {
	if state == denied {
		return !(len(data) >= 16 && be.Uint32(data[12:]) > rejectAuth)
	}
	if !plausibleAuths(data, 12, 1) {
		return false
	}
	if len(data) < 20 {
		return true
	}
	at := 20 + (int(be.Uint32(data[16:]))+3)&^3
	return len(data) < at+4 || be.Uint32(data[at:]) < uint32(len(acceptNames))
}

// plausibleAuths reports whether n credentials or verifiers that begin at an offset are
// possible, as far as data has them.
func plausibleAuths(data []byte, at, n int) bool {
	for ; n > 0 && len(data) >= at+8; n-- {
		size := be.Uint32(data[at+4:])
		if size > maxAuth {
			return false
		}
		at += 8 + int(size+3)&^3
	}
	return true
}

// PlausibleRecord reports whether data begins with a record mark and the header of an RPC
// message, and which type the message has. It returns false if data has fewer than 16
// bytes.
func PlausibleRecord(data []byte) (t MessageType, ok bool) {
	if len(data) < RecordMarkLen+minTested {
		return 0, false
	}
	m := RecordMark(be.Uint32(data))
	if n := m.Length(); n > MaxFragment || n < minTested {
		return 0, false
	}
	message := data[RecordMarkLen:]
	return Plausible(message[:min(len(message), m.Length())], m.Length(), !m.Last())
}

// starttls is the verifier of the Reply that accepts TLS.
const starttls = "STARTTLS"

// TLSRecord reports whether data begins with a record of the messages that start TLS (RFC 9289 s.4.1), and which type the message
// has: a Call of the procedure NULL with a credential of AUTH_TLS, or a Reply whose verifier is "STARTTLS".
func TLSRecord(data []byte) (t MessageType, ok bool) {
	t, ok = PlausibleRecord(data)
	if !ok {
		return 0, false
	}
	message := data[RecordMarkLen:]
	switch {
	case t == Call:
		return t, len(message) >= 28 && be.Uint32(message[20:]) == 0 && Flavor(be.Uint32(message[24:])) == AuthTLS
	case len(message) < 20+len(starttls) || be.Uint32(message[8:]) == denied || be.Uint32(message[16:]) != uint32(len(starttls)):
		return t, false
	}
	return t, string(message[20:20+len(starttls)]) == starttls
}
