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
