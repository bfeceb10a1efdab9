package oncrpc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

var messages = []struct{ name, wire, want, err string }{
	{
		"Call, AUTH_NONE", "00000001 00000000 00000002 000186a3 00000004 00000001 00000000 00000000 00000000 00000000 61626364",
		"CALL 1 2 100003.4.1 AUTH_NONE  AUTH_NONE 40", "",
	},
	{
		"Call, AUTH_SYS, padded", "00000001 00000000 00000002 000186a3 00000003 00000006 00000001 00000005 0102030405000000 00000000 00000000",
		"CALL 1 2 100003.3.6 AUTH_SYS 0102030405 AUTH_NONE 48", "",
	},
	{"Reply", "00000001 00000001 00000000 00000000 00000000 00000000 aabbccdd", "REPLY 1 SUCCESS true 24", ""},
	{"PROG_MISMATCH", "00000001 00000001 00000000 00000000 00000000 00000002 00000002 00000004", "REPLY 1 PROG_MISMATCH 2-4 false 32", ""},
	{"GARBAGE_ARGS", "00000001 00000001 00000000 00000000 00000000 00000004", "REPLY 1 GARBAGE_ARGS false 24", ""},
	{"RPC_MISMATCH", "00000001 00000001 00000001 00000000 00000002 00000002", "REPLY 1 RPC_MISMATCH 2-2 false 24", ""},
	{"AUTH_ERROR", "00000001 00000001 00000001 00000001 00000001", "REPLY 1 AUTH_BADCRED false 20", ""},
	{"unknown accept state", "00000001 00000001 00000000 00000000 00000000 00000063", "REPLY 1 ACCEPT_99 false 24", ""},
	{"nothing", "", "", "oncrpc: xid needs 4 bytes at offset 0, 0 left: truncated"},
	{"cut", "00000001 00000000 00000002 0001", "", "oncrpc: program needs 4 bytes at offset 12, 2 left: truncated"},
	{"neither Call nor Reply", "00000001 00000007", "", "oncrpc: message type 7 at offset 4: malformed"},
	{"credential that lies", "00000001 00000000 00000002 000186a3 00000004 00000001 00000001 00001000 00", "", "oncrpc: credential at offset 28 claims 4096 bytes, the limit is 400: malformed"},
	{"credential cut", "00000001 00000000 00000002 000186a3 00000004 00000001 00000001 00000010 0000", "", "oncrpc: credential needs 16 bytes at offset 32, 2 left: truncated"},
	{"reply state that cannot be", "00000001 00000001 00000005", "", "oncrpc: reply state 5 at offset 8: malformed"},
}

func TestHeader(t *testing.T) {
	for _, c := range messages {
		t.Run(c.name, func(t *testing.T) {
			var h oncrpc.Header
			err := h.Decode(testkit.Unhex(t, c.wire))
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("error %v, want %s", err, c.err)
				}
				if !errors.Is(err, oncrpc.ErrTruncated) && !errors.Is(err, oncrpc.ErrMalformed) {
					t.Errorf("error %v wraps no sentinel", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%v %d %s %t %d", h.Type, h.XID, h.Status(), h.Succeeded(), h.Length)
			if h.High > 0 { // a version mismatch
				got = fmt.Sprintf("%v %d %s %d-%d %t %d", h.Type, h.XID, h.Status(), h.Low, h.High, h.Succeeded(), h.Length)
			}
			if h.Type == oncrpc.Call {
				got = fmt.Sprintf("%v %d %d %d.%d.%d %v %x %v %d", h.Type, h.XID, h.RPCVersion, h.Program, h.Version, h.Procedure, h.Credential.Flavor, h.Credential.Body, h.Verifier.Flavor, h.Length)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestGSS(t *testing.T) {
	a := oncrpc.Auth{Flavor: oncrpc.AuthRPCSECGSS, Body: testkit.Unhex(t, "00000001 00000000 00000007 00000002 00000000")}
	if g, ok := a.GSS(); !ok || g != (oncrpc.GSS{Version: 1, Sequence: 7, Service: oncrpc.ServiceIntegrity}) {
		t.Errorf("the credential is %+v, known %t; want version 1, sequence number 7, integrity", g, ok)
	}
	if _, ok := (oncrpc.Auth{Flavor: oncrpc.AuthRPCSECGSS, Body: a.Body[:12]}).GSS(); ok {
		t.Error("read from twelve bytes")
	}
}

// FuzzHeader: the decoded header lies within the message.
func FuzzHeader(f *testing.F) {
	for _, c := range messages {
		f.Add(testkit.Unhex(f, c.wire))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var h oncrpc.Header
		if h.Decode(data); h.Length > len(data) {
			t.Errorf("%d bytes read of %d", h.Length, len(data))
		}
		h.Status()
		g, _ := h.Credential.GSS()
		g.Service.Protected(data[h.Length:])
		h.Credential.Sys()
		h.Credential.Caller()
		h.Credential.Handle()
	})
}

// TestSys: an AUTH_SYS credential is decoded, unless it is truncated, claims more
// bytes than there are, or exceeds the limits of the RFC.
func TestSys(t *testing.T) {
	whole := testkit.Unhex(t, "00000009 00000003 616263ff 00000001 00000002 00000002 0000000a 0000000b")
	s, ok := oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: whole}.Sys()
	if got := fmt.Sprintf("%t %d %q %d %d %v", ok, s.Stamp, s.Machine, s.UID, s.GID, s.GIDs); got != `true 9 "abc" 1 2 [10 11]` {
		t.Error(got)
	}
	if s, ok := (oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: whole}).Caller(); !ok || string(s.Machine) != "abc" || s.UID != 1 || s.GID != 2 || s.GIDs != nil {
		t.Errorf("the caller is %+v", s)
	}
	for n := range whole {
		if _, ok := (oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: whole[:n]}).Sys(); ok {
			t.Errorf("read from %d bytes", n)
		}
	}
	for _, wire := range []string{
		"00000009 ffffffff 616263ff 00000001 00000002 00000002 0000000a 0000000b",
		"00000009 00000003 616263ff 00000001 00000002 40000000 0000000a 0000000b",
		"00000009 00000000 00000001 00000002 00000011" + strings.Repeat("00000001", 17),
	} {
		if s, ok := (oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: testkit.Unhex(t, wire)}).Sys(); ok {
			t.Errorf("the credential %s is longer or shorter than it says, but is read as %+v", wire, s)
		}
	}
	if _, ok := (oncrpc.Auth{Flavor: oncrpc.AuthNone, Body: whole}).Sys(); ok {
		t.Error("read from another flavor")
	}
}

// TestProtected: the fields that RPCSEC_GSS puts around a body are decoded.
func TestProtected(t *testing.T) {
	for _, c := range []struct{ wire, want string }{
		{"0000000c 00000007 11111111 22222222 00000003 aabbcc00", "true 12 7 aabbcc"},
		{"0000000c 00000007 11111111 22222222 00000005 aabbcc00", "true 12 7 "},
		{"0000000c 00000007 11111111 22222222", "true 12 7 "},
		{"ffffffff 00000007 11111111 22222222", "true 4294967295 7 "},
		{"00000000 00000007", "true 0 7 "},
		{"0000000c 000000", "false 0 0 "},
	} {
		p, ok := oncrpc.ServiceIntegrity.Protected(testkit.Unhex(t, c.wire))
		if got := fmt.Sprintf("%t %d %d %x", ok, p.Length, p.Sequence, p.Checksum); got != c.want {
			t.Errorf("%s: got %s, want %s", c.wire, got, c.want)
		}
	}
	if _, ok := oncrpc.ServicePrivacy.Protected(make([]byte, 32)); ok {
		t.Error("read what is encrypted")
	}
	a := oncrpc.Auth{Flavor: oncrpc.AuthRPCSECGSS, Body: testkit.Unhex(t, "00000001 00000000 00000007 00000002 00000002 abcd0000")}
	if got := fmt.Sprintf("%x", a.Handle()); got != "abcd" {
		t.Error(got)
	}
	a.Body[19] = 9
	if got := a.Handle(); got != nil {
		t.Errorf("the handle is longer than the credential, but is read as %x", got)
	}
}
