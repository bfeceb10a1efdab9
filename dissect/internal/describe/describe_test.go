package describe_test

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/internal/describe"
	"github.com/rdmadump/rdmadump/internal/link"
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
		t.Fatalf("the JSON of a packet is not valid: %v: %s", err, line)
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

// TestMAD checks the names of management datagrams in the summary and in the tree.
func TestMAD(t *testing.T) {
	for _, c := range []struct{ name, qpn, head, summary, class, method, attribute string }{
		{"SA", "000001", "01030212 0000 0000 0000000000000001 0035 0000 00000000", " MAD SubnAdmGetTable(PathRecord)", "subnet administration", "GetTable", "PathRecord"},
		{"SMP", "000000", "01010101 0000 0000 0000000000000001 0015 0000 00000000", " MAD SubnGet(PortInfo)", "subnet management", "Get", "PortInfo"},
		{"directed SMP", "000000", "01810181 8000 0103 0000000000000001 0011 0000 00000000", " MAD SubnGetResp(NodeInfo)", "subnet management, directed route", "GetResp", "NodeInfo"},
		{"performance", "000001", "01040101 0000 0000 0000000000000001 0012 0000 00000000", " MAD PerfGet(PortCounters)", "performance management", "Get", "PortCounters"},
		{"CM", "000001", "01070203 0000 0000 0000000000000001 0014 0000 00000000", " MAD CM RTU", "communication management", "Send", "RTU"},
		{"vendor", "000001", "01300101 0000 0000 0000000000000001 0011 0000 00000000", " MAD class 0x30 Get(attribute 0x0011)", "", "Get", ""},
	} {
		summary, members := described(t, capture.LinkIPv4, roce(mad(c.qpn, c.head)))
		var names struct {
			Class     string `json:"class_name"`
			Method    string `json:"method_name"`
			Attribute string `json:"attribute_name"`
		}
		if err := json.Unmarshal(members["mad"], &names); err != nil || names.Class != c.class || names.Method != c.method || names.Attribute != c.attribute {
			t.Errorf("%s: %+v, error %v, in %s", c.name, names, err, members["mad"])
		}
		if !strings.HasSuffix(summary, c.summary) {
			t.Errorf("%s: summary %q, want %q at its end", c.name, summary, c.summary)
		}
	}
}

// TestIPoIB checks datagrams of IP over InfiniBand, and a request for a connection in connected mode.
func TestIPoIB(t *testing.T) {
	const lrh = "0002 0001 0010 0002 "
	ud := func(payload string) string {
		return "6400ffff00000048 00000001 00000b1b 00000049" + payload + "deadbeef"
	}
	for _, c := range []struct {
		name  string
		kind  capture.LinkType
		frame string
		want  string
	}{
		{"IPv4", capture.LinkInfiniBand, lrh + ud("0800 0000 45000014"), "UD SEND Only QPN 0x000048 PSN 1 | IPoIB IPv4"},
		{"ARP", capture.LinkInfiniBand, lrh + ud("0806 0000 00200800"), "UD SEND Only QPN 0x000048 PSN 1 | IPoIB ARP"},
		{"another datagram", capture.LinkInfiniBand, lrh + ud("0800 0001 45000014"), "UD SEND Only QPN 0x000048 PSN 1"},
		{"RoCE", capture.LinkIPv4, roce(ud("0800 0000 45000014")), "UD SEND Only QPN 0x000048 PSN 1"},
	} {
		summary, members := described(t, c.kind, c.frame)
		if summary != c.want || (members["ipoib"] != nil) != strings.Contains(c.want, "IPoIB") {
			t.Errorf("%s: summary %q, want %q; member %s", c.name, summary, c.want, members["ipoib"])
		}
	}
	request := mad("000001", "01070203 0000 0000 0000000000000001 0010 0000 00000000 00000007 00000000 1000000000000048")
	if summary, _ := described(t, capture.LinkIPv4, roce(request)); !strings.HasSuffix(summary, " MAD CM REQ IPoIB QPN 0x000048") {
		t.Errorf("summary %q", summary)
	}
}

// TestPause checks the summary and the tree of a frame that pauses priorities.
func TestPause(t *testing.T) {
	summary, members := described(t, capture.LinkEthernet, "0180c2000001 020000000002 8808 0101 0018 0000 0000 0000 ffff 0001 0000 0000 0000")
	if want := "PFC pause of priority 3, 4"; summary != want {
		t.Errorf("summary %q, want %q", summary, want)
	}
	const want = `{"opcode":"0x0101","priorities":"0x0018","quanta_0":0,"quanta_1":0,"quanta_2":0,"quanta_3":65535,"quanta_4":1,"quanta_5":0,"quanta_6":0,"quanta_7":0}`
	if got := string(members["pfc"]); got != want {
		t.Errorf("tree %s, want %s", got, want)
	}
	if summary, _ = described(t, capture.LinkEthernet, "0180c2000001 020000000002 8808 0001 ffff"); summary != "Ethernet pause" {
		t.Errorf("summary %q", summary)
	}
}
