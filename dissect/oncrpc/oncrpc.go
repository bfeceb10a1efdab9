// Package oncrpc decodes the header of an ONC RPC message (RFC 5531).
package oncrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Decode errors wrap one of these: ErrTruncated if the message is too short,
// ErrMalformed if a value is not allowed.
var (
	ErrTruncated = errors.New("truncated")
	ErrMalformed = errors.New("malformed")
)

var be = binary.BigEndian

// MessageType is the type of a message, Call or Reply.
type MessageType uint32

// The message types.
const (
	Call  MessageType = 0
	Reply MessageType = 1
)

// String returns "CALL" or "REPLY", or the number of an unknown type.
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

// The flavors that have a name here.
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

// String returns the name of the flavor, such as "AUTH_SYS".
func (f Flavor) String() string {
	if name, known := flavorNames[f]; known {
		return name
	}
	return fmt.Sprintf("flavor %d", uint32(f))
}

// Service is the protection of arguments and results that an RPCSEC_GSS credential
// selects (RFC 2203 s.5.3.1).
type Service uint32

// The services.
const (
	ServiceNone      Service = 1
	ServiceIntegrity Service = 2
	ServicePrivacy   Service = 3
)

var serviceNames = [...]string{"", "none", "integrity", "privacy"}

// String returns the name of the service, such as "integrity".
func (s Service) String() string {
	if s > 0 && int64(s) < int64(len(serviceNames)) {
		return serviceNames[s]
	}
	return fmt.Sprintf("service %d", uint32(s))
}

// Protected has the fields that surround the body of a message whose integrity is
// protected (RFC 2203 s.5.3.2.2).
type Protected struct {
	Length   uint32 // bytes of the sequence number and the body together
	Sequence uint32
	Checksum []byte // aliases the message; nil if it is missing or truncated
}

// Protected decodes the fields that surround the body. It returns false if the service
// is not integrity, or if the body has fewer than 8 bytes.
func (s Service) Protected(body []byte) (p Protected, ok bool) {
	if s != ServiceIntegrity || len(body) < 8 {
		return p, false
	}
	p.Length, p.Sequence = be.Uint32(body), be.Uint32(body[4:])
	if end := (int64(p.Length) + 3) &^ 3; end <= int64(len(body)-8) { // the length word of the checksum is complete
		if rest := body[4+end:]; int64(be.Uint32(rest)) <= int64(len(rest)-4) {
			p.Checksum = rest[4 : 4+be.Uint32(rest)]
		}
	}
	return p, true
}

// Plain returns the readable part of a body that the service protects (RFC 2203
// s.5.3.2). It is the whole body without protection, and the part after the length
// and the sequence number with integrity. It returns false if nothing is readable:
// with privacy, or if an integrity-protected body is too short.
func (s Service) Plain(body []byte) ([]byte, bool) {
	switch s {
	case ServicePrivacy:
		return nil, false
	case ServiceIntegrity:
		if len(body) < 8 {
			return nil, false
		}
		return body[8:], true // up to its end and not by the length, which counts reduced items too
	}
	return body, true
}

// Auth is a credential or verifier.
type Auth struct {
	Flavor Flavor
	Body   []byte // aliases the message
}

// Sys is the body of an AUTH_SYS credential (RFC 5531 appendix A). Machine aliases the
// message, and is not safe to print: it may hold any bytes.
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

var errShortSys = fmt.Errorf("oncrpc: the body of AUTH_SYS ends before its last group: %w", ErrMalformed)

// Misfit returns an error that wraps [ErrMalformed] if an AUTH_SYS or RPCSEC_GSS credential exceeds the limits of the RFC, or does not
// end with its last group or its handle, and nil otherwise.
func (a Auth) Misfit() error {
	switch a.Flavor {
	case AuthSys:
		return a.misfitSys()
	case AuthRPCSECGSS:
		return a.misfitGSS()
	}
	return nil
}

// misfitGSS is Misfit for version 1 of RPCSEC_GSS. Only data has a service.
func (a Auth) misfitGSS() error {
	g, ok := a.GSS()
	switch {
	case ok && g.Version != 1:
		return nil
	case !ok || len(a.Body) < 20 || int64(len(a.Body)) != 20+(int64(be.Uint32(a.Body[16:]))+3)&^3:
		return fmt.Errorf("oncrpc: the body of RPCSEC_GSS has %d bytes and does not end with its handle: %w", len(a.Body), ErrMalformed)
	case int64(g.Procedure) >= int64(len(gssProcedures)):
		return fmt.Errorf("oncrpc: RPCSEC_GSS procedure %d is not defined: %w", g.Procedure, ErrMalformed)
	case !g.Control() && (g.Service < 1 || g.Service > 3):
		return fmt.Errorf("oncrpc: RPCSEC_GSS service %d is not defined: %w", g.Service, ErrMalformed)
	}
	return nil
}

func (a Auth) misfitSys() error {
	if len(a.Body) < 8 {
		return errShortSys
	}
	size := be.Uint32(a.Body[4:])
	if size > maxMachine {
		return fmt.Errorf("oncrpc: the machine name of AUTH_SYS has %d bytes, the limit is %d: %w", size, maxMachine, ErrMalformed)
	}
	gids := 8 + int(size+3)&^3 + 8
	if len(a.Body) < gids+4 {
		return errShortSys
	}
	switch n, left := be.Uint32(a.Body[gids:]), len(a.Body)-gids-4; {
	case n > maxGIDs:
		return fmt.Errorf("oncrpc: AUTH_SYS has %d groups, the limit is %d: %w", n, maxGIDs, ErrMalformed)
	case left < int(n)*4:
		return errShortSys
	case left > int(n)*4:
		return fmt.Errorf("oncrpc: the body of AUTH_SYS has %d bytes after its last group: %w", left-int(n)*4, ErrMalformed)
	}
	return nil
}

// Sys decodes the body of an AUTH_SYS credential. It returns false if the credential
// has another flavor, is truncated or exceeds the limits of the RFC.
func (a Auth) Sys() (s Sys, ok bool) {
	s, gids, ok := a.sys()
	for ; len(gids) > 0; gids = gids[4:] {
		s.GIDs = append(s.GIDs, be.Uint32(gids))
	}
	return s, ok
}

// Caller is like Sys, but leaves out GIDs, so that it does not allocate memory.
func (a Auth) Caller() (s Sys, ok bool) {
	s, _, ok = a.sys()
	return s, ok
}

// sys decodes the body of an AUTH_SYS credential except for the additional groups, which it
// returns as they are on the wire.
func (a Auth) sys() (s Sys, gids []byte, ok bool) {
	const fixed = 20 // bytes of the words stamp, length of the machine name, uid, gid and number of gids
	if a.Flavor != AuthSys || len(a.Body) < fixed {
		return Sys{}, nil, false
	}
	size := be.Uint32(a.Body[4:])
	if size > maxMachine || len(a.Body)-fixed < int(size+3)&^3 {
		return Sys{}, nil, false
	}
	rest := a.Body[8+int(size+3)&^3:]
	n := be.Uint32(rest[8:])
	if n > maxGIDs || len(rest)-12 < int(n)*4 {
		return Sys{}, nil, false
	}
	s = Sys{Stamp: be.Uint32(a.Body), Machine: a.Body[8 : 8+size], UID: be.Uint32(rest), GID: be.Uint32(rest[4:])}
	return s, rest[12 : 12+n*4], true
}

// GSS is the body of an RPCSEC_GSS credential (RFC 2203 s.5).
type GSS struct {
	Version, Procedure, Sequence uint32
	Service                      Service
}

// gssProcedures are the names of the procedures of RFC 2203 s.5.
var gssProcedures = [...]string{"RPCSEC_GSS_DATA", "RPCSEC_GSS_INIT", "RPCSEC_GSS_CONTINUE_INIT", "RPCSEC_GSS_DESTROY"}

// ProcedureName returns the name of the procedure, such as "RPCSEC_GSS_DATA".
func (g GSS) ProcedureName() string { return name(gssProcedures[:], g.Procedure, "RPCSEC_GSS") }

// Control reports whether the message creates or destroys a context. Such a message
// carries no arguments of its program.
func (g GSS) Control() bool { return g.Procedure != 0 }

// Handle returns the context handle of an RPCSEC_GSS credential, or nil if it is
// missing or truncated.
func (a Auth) Handle() []byte {
	if a.Flavor != AuthRPCSECGSS || len(a.Body) < 20 {
		return nil
	}
	if n := be.Uint32(a.Body[16:]); int64(n) <= int64(len(a.Body)-20) {
		return a.Body[20 : 20+n]
	}
	return nil
}

// GSS decodes the first four words of an RPCSEC_GSS credential. It returns false if the
// credential has another flavor or is truncated.
func (a Auth) GSS() (g GSS, ok bool) {
	if a.Flavor != AuthRPCSECGSS || len(a.Body) < 16 {
		return g, false
	}
	return GSS{be.Uint32(a.Body), be.Uint32(a.Body[4:]), be.Uint32(a.Body[8:]), Service(be.Uint32(a.Body[12:]))}, true
}

// The reply, accept and reject states that the code depends on; [Header.Status] names
// all states.
const (
	accepted = 0
	denied   = 1

	acceptSuccess  = 0
	acceptMismatch = 2
	rejectMismatch = 0
	rejectAuth     = 1

	version = 2 // of the RPC protocol
)

var (
	acceptNames = [...]string{"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"}
	authNames   = [...]string{
		"AUTH_OK", "AUTH_BADCRED", "AUTH_REJECTEDCRED", "AUTH_BADVERF", "AUTH_REJECTEDVERF", "AUTH_TOOWEAK",
		"AUTH_INVALIDRESP", "AUTH_FAILED", "AUTH_KERB_GENERIC", "AUTH_TIMEEXPIRE", "AUTH_TKT_FILE",
		"AUTH_DECODE", "AUTH_NET_ADDR", "RPCSEC_GSS_CREDPROBLEM", "RPCSEC_GSS_CTXPROBLEM",
	}
)

// Header is the header of a Call or Reply (RFC 5531 s.9).
//
// A Call consists of xid, 0, RPC version, program, version, procedure, credential and
// verifier. An accepted Reply consists of xid, 1, 0, verifier and accept state;
// PROG_MISMATCH adds the low and high version. A denied Reply consists of xid, 1, 1,
// and then either 0, low and high version, or 1 and the reason. All are 32-bit
// big-endian words; credential and verifier are flavor, length, and up to 400 bytes
// padded to a multiple of 4.
type Header struct {
	XID  uint32
	Type MessageType

	RPCVersion, Program, Version, Procedure uint32 // in a Call
	Credential, Verifier                    Auth   // both in a Call, Verifier in an accepted Reply

	ReplyState, AcceptState, RejectState, AuthState uint32 // in a Reply
	Low, High                                       uint32 // supported versions, after a version mismatch

	Length int // number of header bytes that were decoded
}

// maxAuth is the maximum size in bytes of the body of a credential (RFC 5531 s.8.2).
const maxAuth = 400

// Decode decodes the header at the start of data; the arguments or results begin at
// Length. Credential and verifier alias data. If an error is returned, h holds the
// fields before it. The error wraps [ErrTruncated] or [ErrMalformed].
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

// Succeeded reports whether a Reply carries results.
func (h *Header) Succeeded() bool {
	return h.Type == Reply && h.ReplyState == accepted && h.AcceptState == acceptSuccess
}

// Undefined returns an error that wraps [ErrMalformed] if a field of a header that was decoded has a value that
// RFC 5531 s.9 does not define, and nil otherwise.
func (h *Header) Undefined() error {
	switch {
	case h.Type == Call && h.RPCVersion != version:
		return fmt.Errorf("oncrpc: RPC version %d at offset 8, but only version %d is defined: %w", h.RPCVersion, version, ErrMalformed)
	case h.Type == Reply && h.ReplyState == accepted && int64(h.AcceptState) >= int64(len(acceptNames)):
		return fmt.Errorf("oncrpc: accept state %d is not defined: %w", h.AcceptState, ErrMalformed)
	case h.Type == Reply && h.ReplyState == denied && h.RejectState > rejectAuth:
		return fmt.Errorf("oncrpc: reject state %d at offset 12 is not defined: %w", h.RejectState, ErrMalformed)
	}
	return nil
}

// Mismatch returns the versions that a Reply lists as supported, and the offset of the lower one. It returns false if the
// Reply reports no mismatch of versions.
func (h *Header) Mismatch() (low, high uint32, at int, ok bool) {
	ok = h.Type == Reply && (h.ReplyState == accepted && h.AcceptState == acceptMismatch || h.ReplyState == denied && h.RejectState == rejectMismatch)
	return h.Low, h.High, h.Length - 8, ok
}

// Status returns the outcome of the RPC in a Reply: an accept state ("SUCCESS"),
// "RPC_MISMATCH", or an authentication state.
func (h *Header) Status() string {
	switch {
	case h.ReplyState == accepted:
		return name(acceptNames[:], h.AcceptState, "ACCEPT")
	case h.RejectState == rejectMismatch:
		return "RPC_MISMATCH"
	case h.RejectState == rejectAuth:
		return name(authNames[:], h.AuthState, "AUTH")
	}
	return fmt.Sprintf("REJECT_%d", h.RejectState)
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
