package describe_test

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/internal/describe"
	"github.com/rdmadump/rdmadump/link"
	"github.com/rdmadump/rdmadump/render"
	"github.com/rdmadump/rdmadump/rocev2"
)

// described returns the summary and the JSON members of a frame, which is given in hexadecimal.
func described(t *testing.T, kind capture.LinkType, frame string) (summary string, members map[string]json.RawMessage) {
	t.Helper()
	data, err := hex.DecodeString(strings.Join(strings.Fields(frame), ""))
	if err != nil {
		t.Fatal(err)
	}
	var l link.Decoder
	var p rocev2.Packet
	f := &capture.Frame{Number: 1, LinkType: kind, Length: len(data), Data: data}
	in := &describe.Input{Frame: f, Link: &l, Packet: &p}
	switch l.Decode(f) {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		in.Transport = "InfiniBand"
		in.Err = p.Decode(l.Transport, l.Length)
		in.ICRC = l.CheckICRC(&p)
	}
	d := &describe.Describer{Only: field.Everything}
	r := d.Describe(in)
	line := render.AppendPacketJSON(nil, r, true)
	if err := json.Unmarshal(line, &members); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return string(r.Summary), members
}

// roce returns a RoCEv2 frame, from the IPv4 header on, with the given transport packet.
func roce(transport string) string {
	const zeros = "0000000000"
	size := len(strings.Join(strings.Fields(transport), "")) / 2
	word := func(n int) string { return hex.EncodeToString([]byte{byte(n >> 8), byte(n)}) }
	return "4500" + word(28+size) + "0001" + zeros[:4] + "4011" + zeros[:4] + "0a000001 0a000002 c000 12b7" + word(8+size) + zeros[:4] + transport
}

// TestStrayPad checks that an acknowledgement with a pad count is shown with a note.
func TestStrayPad(t *testing.T) {
	const note = "The pad count is 3, but this operation has no payload."
	summary, members := described(t, capture.LinkIPv4, roce("1170ffff00000011 0000a50f 1f000004 deadbeef"))
	if want := "RC Acknowledge QPN 0x000011 PSN 42255 ACK, pad count 3 without payload"; summary != want {
		t.Errorf("summary %q, want %q", summary, want)
	}
	var got string
	if json.Unmarshal(members["note"], &got); got != note {
		t.Errorf("note %q, want %q", got, note)
	}
	if members["error"] != nil || members["aeth"] == nil {
		t.Errorf("error %s, AETH %s", members["error"], members["aeth"])
	}
	if _, members = described(t, capture.LinkIPv4, roce("1140ffff00000011 0000a50f 1f000004 deadbeef")); members["note"] != nil {
		t.Errorf("an acknowledgement without a pad count has the note %s", members["note"])
	}
}

// mad returns a UD packet to queue pair 1 (or 0) that carries a MAD of 256 bytes, of which head is given.
func mad(qpn, head string) string {
	head = strings.Join(strings.Fields(head), "")
	return "6400ffff00" + qpn + "00000001 80010000 00000001" + head + strings.Repeat("00", 256-len(head)/2) + "deadbeef"
}

// TestIPCM checks the addresses in the header of the IP CM service, whose IPv4 addresses are in the
// last four bytes of their fields.
func TestIPCM(t *testing.T) {
	const (
		header  = "01070203 0000 0000 0000000000000001 0010 0000 00000000" // MAD: CM REQ
		head    = "00000007 00000000 0000000001064e51"                     // communication ID, service ID: TCP port 20049
		zeros   = "00000000000000000000000000000000"
		between = 140 - 16 // bytes of the REQ between service ID and private data
	)
	for _, c := range []struct{ name, private, source, destination string }{
		{"IPv4", "00 40 e4f1" + zeros[:24] + "0a01103e" + zeros[:24] + "0a01103f", "10.1.16.62", "10.1.16.63"},
		{"IPv6", "00 60 e4f1" + "fd000000000000000000000000000001" + "fd000000000000000000000000000002", "fd00::1", "fd00::2"},
	} {
		summary, members := described(t, capture.LinkIPv4, roce(mad("000001", header+head+strings.Repeat("00", between)+c.private)))
		if want := " MAD CM REQ port 20049"; !strings.HasSuffix(summary, want) {
			t.Errorf("%s: summary %q, want %q at its end", c.name, summary, want)
		}
		var ipcm struct {
			Version     int    `json:"ip_version"`
			Port        int    `json:"source_port"`
			Source      string `json:"source"`
			Destination string `json:"destination"`
		}
		var cm map[string]json.RawMessage
		json.Unmarshal(members["cm"], &cm)
		if err := json.Unmarshal(cm["ip_cm"], &ipcm); err != nil || ipcm.Source != c.source || ipcm.Destination != c.destination || ipcm.Port != 0xe4f1 {
			t.Errorf("%s: %+v, error %v, in %s", c.name, ipcm, err, members["cm"])
		}
	}
}
