// Package oncrpc holds the header of an ONC RPC message (RFC 5531).
package oncrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrTruncated is wrapped by decode errors that ran out of bytes, ErrMalformed
// by those that met a value that cannot be.
var (
	ErrTruncated = errors.New("truncated")
	ErrMalformed = errors.New("malformed")
)

var be = binary.BigEndian

// MessageType says whether a message is a Call or a Reply.
type MessageType uint32

// The message types.
const (
	Call  MessageType = 0
	Reply MessageType = 1
)

// String is "CALL" or "REPLY".
func (t MessageType) String() string {
	switch t {
	case Call:
		return "CALL"
	case Reply:
		return "REPLY"
	}
	return fmt.Sprintf("message type %d", uint32(t))
}

// Flavor is an authentication flavor.
type Flavor uint32

// The flavors that are seen.
const (
	AuthNone      Flavor = 0
	AuthSys       Flavor = 1
	AuthShort     Flavor = 2
	AuthDH        Flavor = 3
	AuthRPCSECGSS Flavor = 6
	AuthTLS       Flavor = 7
)

var flavorNames = map[Flavor]string{
	AuthNone: "AUTH_NONE", AuthSys: "AUTH_SYS", AuthShort: "AUTH_SHORT", AuthDH: "AUTH_DH",
	AuthRPCSECGSS: "RPCSEC_GSS", AuthTLS: "AUTH_TLS",
}

// String is the name of the flavor, "AUTH_SYS".
func (f Flavor) String() string {
	if name, known := flavorNames[f]; known {
		return name
	}
	return fmt.Sprintf("flavor %d", uint32(f))
}

// Service is what an RPCSEC_GSS credential asks of the payload (RFC 2203
// s.5.3.1).
type Service uint32

// The services.
const (
	ServiceNone      Service = 1
	ServiceIntegrity Service = 2
	ServicePrivacy   Service = 3
)

var serviceNames = [...]string{"", "none", "integrity", "privacy"}

// String is the name of the service: "integrity".
func (s Service) String() string {
	if s > 0 && int64(s) < int64(len(serviceNames)) {
		return serviceNames[s]
	}
	return fmt.Sprintf("service %d", uint32(s))
}

// Protected is what stands around the body of a message whose integrity is
// protected (RFC 2203 s.5.3.2.2).
type Protected struct {
	Length   uint32 // bytes of the sequence number and the body
	Sequence uint32
	Checksum []byte // aliases the message; nil when it is not there
}

// Protected reads what stands around the body; false when the service is another,
// or its beginning is not there.
func (s Service) Protected(body []byte) (p Protected, ok bool) {
	if s != ServiceIntegrity || len(body) < 8 {
		return p, false
	}
	p.Length, p.Sequence = be.Uint32(body), be.Uint32(body[4:])
	if end := (int64(p.Length) + 3) &^ 3; end <= int64(len(body)-8) { // the word of the checksum's length is there
		if rest := body[4+end:]; int64(be.Uint32(rest)) <= int64(len(rest)-4) {
			p.Checksum = rest[4 : 4+be.Uint32(rest)]
		}
	}
	return p, true
}

// Plain returns what can be read of the body that the service protects (RFC 2203
// s.5.3.2): all of it without protection; with integrity what stands behind the
// length and the sequence number; with privacy nothing. It is false when there
// is nothing to read.
func (s Service) Plain(body []byte) ([]byte, bool) {
	switch s {
	case ServicePrivacy:
		return nil, false
	case ServiceIntegrity:
		if len(body) < 8 {
			return nil, false
		}
		return body[8:], true // to its end: it may have come without what was reduced
	}
	return body, true
}

// Auth is a credential or verifier.
type Auth struct {
	Flavor Flavor
	Body   []byte // aliases the message
}

// Sys is the body of an AUTH_SYS credential (RFC 5531 appendix A). Machine
// aliases the message, and may be anything.
type Sys struct {
	Stamp    uint32
	Machine  []byte
	UID, GID uint32
	GIDs     []uint32
}

// The limits of an AUTH_SYS credential (RFC 5531 appendix A).
const (
	maxMachine = 255
	maxGIDs    = 16
)

// Sys reads the credential's AUTH_SYS body; false when it has none, or one that is
// not whole or claims more than may be.
func (a Auth) Sys() (s Sys, ok bool) {
	d := decoder{data: a.Body}
	s.Stamp = d.word("stamp")
	size := d.word("machine name")
	if a.Flavor != AuthSys || d.err != nil || size > maxMachine || len(a.Body)-d.at < int(size+3)&^3 {
		return Sys{}, false
	}
	s.Machine = a.Body[d.at : d.at+int(size)]
	d.at += int(size+3) &^ 3
	s.UID, s.GID = d.word("uid"), d.word("gid")
	n := d.word("gids")
	if d.err != nil || n > maxGIDs || len(a.Body)-d.at < int(n)*4 {
		return Sys{}, false
	}
	for range n {
		s.GIDs = append(s.GIDs, d.word("gid"))
	}
	return s, true
}

// GSS is the body of an RPCSEC_GSS credential (RFC 2203 s.5).
type GSS struct {
	Version, Procedure, Sequence uint32
	Service                      Service
}

// gssProcedures are those of RFC 2203 s.5.
var gssProcedures = [...]string{"RPCSEC_GSS_DATA", "RPCSEC_GSS_INIT", "RPCSEC_GSS_CONTINUE_INIT", "RPCSEC_GSS_DESTROY"}

// ProcedureName is the name of its procedure: "RPCSEC_GSS_DATA".
func (g GSS) ProcedureName() string { return name(gssProcedures[:], g.Procedure, "RPCSEC_GSS") }

// Control says that the message makes or ends a context: it carries no arguments
// of its program.
func (g GSS) Control() bool { return g.Procedure != 0 }

// Handle is the context that an RPCSEC_GSS credential names, nil when it has none
// or not all of it.
func (a Auth) Handle() []byte {
	if a.Flavor != AuthRPCSECGSS || len(a.Body) < 20 {
		return nil
	}
	if n := be.Uint32(a.Body[16:]); int64(n) <= int64(len(a.Body)-20) {
		return a.Body[20 : 20+n]
	}
	return nil
}

// GSS reads the credential's RPCSEC_GSS words; false when it has none.
func (a Auth) GSS() (g GSS, ok bool) {
	if a.Flavor != AuthRPCSECGSS || len(a.Body) < 16 {
		return g, false
	}
	return GSS{be.Uint32(a.Body), be.Uint32(a.Body[4:]), be.Uint32(a.Body[8:]), Service(be.Uint32(a.Body[12:]))}, true
}

// The reply and accept states that matter; [Header.Status] names all.
const (
	accepted = 0
	denied   = 1

	acceptSuccess  = 0
	acceptMismatch = 2
	rejectMismatch = 0
	rejectAuth     = 1
)

var (
	acceptNames = [...]string{"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"}
	authNames   = [...]string{
		"AUTH_OK", "AUTH_BADCRED", "AUTH_REJECTEDCRED", "AUTH_BADVERF", "AUTH_REJECTEDVERF", "AUTH_TOOWEAK",
		"AUTH_INVALIDRESP", "AUTH_FAILED", "AUTH_KERB_GENERIC", "AUTH_TIMEEXPIRE", "AUTH_TKT_FILE",
		"AUTH_DECODE", "AUTH_NET_ADDR", "RPCSEC_GSS_CREDPROBLEM", "RPCSEC_GSS_CTXPROBLEM",
	}
)

// Header is the head of a Call or Reply (RFC 5531 s.9).
//
// A Call: xid, 0, RPC version, program, version, procedure, credential,
// verifier. A Reply that was accepted: xid, 1, 0, verifier, accept state, with
// low and high version behind PROG_MISMATCH. One that was denied: xid, 1, 1,
// then 0 with low and high version, or 1 with the reason. All are 32-bit words;
// credential and verifier are flavor, length, and up to 400 bytes padded to 4.
type Header struct {
	XID  uint32
	Type MessageType

	RPCVersion, Program, Version, Procedure uint32 // Call
	Credential, Verifier                    Auth   // Verifier in Replies too

	ReplyState, AcceptState, RejectState, AuthState uint32 // Reply
	Low, High                                       uint32 // of a mismatch

	Length int // bytes of header that were read
}

// maxAuth bounds the body of a credential (RFC 5531 s.8.2).
const maxAuth = 400

// Decode reads the head of a message; arguments or results begin at Length.
// What could be read stays in h when there is an error, which wraps
// [ErrTruncated] or [ErrMalformed].
func (h *Header) Decode(data []byte) (err error) {
	*h = Header{}
	d := decoder{data: data}
	defer func() { h.Length, err = d.at, d.err }()
	h.XID = d.word("xid")
	h.Type = MessageType(d.word("message type"))
	switch {
	case d.err != nil:
	case h.Type == Call:
		h.RPCVersion = d.word("RPC version")
		h.Program = d.word("program")
		h.Version = d.word("version")
		h.Procedure = d.word("procedure")
		h.Credential = d.auth("credential")
		h.Verifier = d.auth("verifier")
	case h.Type == Reply:
		h.reply(&d)
	default:
		d.err = fmt.Errorf("oncrpc: message type %d at offset 4: %w", h.Type, ErrMalformed)
	}
	return
}

func (h *Header) reply(d *decoder) {
	switch h.ReplyState = d.word("reply state"); h.ReplyState {
	case accepted:
		h.Verifier = d.auth("verifier")
		if h.AcceptState = d.word("accept state"); h.AcceptState == acceptMismatch {
			h.Low, h.High = d.word("low version"), d.word("high version")
		}
	case denied:
		switch h.RejectState = d.word("reject state"); h.RejectState {
		case rejectMismatch:
			h.Low, h.High = d.word("low version"), d.word("high version")
		case rejectAuth:
			h.AuthState = d.word("authentication state")
		}
	default:
		if d.err == nil {
			d.err = fmt.Errorf("oncrpc: reply state %d at offset 8: %w", h.ReplyState, ErrMalformed)
		}
	}
}

// Succeeded says that a Reply carries results.
func (h *Header) Succeeded() bool {
	return h.Type == Reply && h.ReplyState == accepted && h.AcceptState == acceptSuccess
}

// Status is what a Reply says of the RPC: an accept state ("SUCCESS"),
// "RPC_MISMATCH", or the authentication state.
func (h *Header) Status() string {
	switch {
	case h.ReplyState == accepted:
		return name(acceptNames[:], h.AcceptState, "ACCEPT")
	case h.RejectState == rejectMismatch:
		return "RPC_MISMATCH"
	}
	return name(authNames[:], h.AuthState, "AUTH")
}

func name(names []string, v uint32, prefix string) string {
	if int64(v) < int64(len(names)) {
		return names[v]
	}
	return fmt.Sprintf("%s_%d", prefix, v)
}

type decoder struct {
	data []byte
	at   int
	err  error
}

func (d *decoder) word(what string) uint32 {
	if d.err != nil {
		return 0
	}
	if len(d.data)-d.at < 4 {
		d.err = fmt.Errorf("oncrpc: %s needs 4 bytes at offset %d, %d left: %w", what, d.at, len(d.data)-d.at, ErrTruncated)
		return 0
	}
	d.at += 4
	return be.Uint32(d.data[d.at-4:])
}

func (d *decoder) auth(what string) (a Auth) {
	a.Flavor = Flavor(d.word(what))
	size := d.word(what)
	if d.err != nil {
		return a
	}
	if size > maxAuth {
		d.err = fmt.Errorf("oncrpc: %s at offset %d claims %d bytes, the limit is %d: %w", what, d.at-4, size, maxAuth, ErrMalformed)
		return a
	}
	padded := int(size+3) &^ 3
	if len(d.data)-d.at < padded {
		d.err = fmt.Errorf("oncrpc: %s needs %d bytes at offset %d, %d left: %w", what, padded, d.at, len(d.data)-d.at, ErrTruncated)
		return a
	}
	a.Body = d.data[d.at : d.at+int(size)]
	d.at += padded
	return a
}
