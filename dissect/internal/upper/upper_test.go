package upper

import (
	"encoding/binary"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

var none record.Opt[record.Hex64]

// words returns big-endian words.
func words(list ...uint32) (data []byte) {
	for _, w := range list {
		data = binary.BigEndian.AppendUint32(data, w)
	}
	return data
}

// The messages of the tests. Without chunks, a header has three empty lists.
var (
	call     = words(7, 1, 32, 0, 0, 0, 0, 7, 0, 2, 100003, 4, 1, 0, 0, 0, 0)
	reply    = words(7, 1, 32, 0, 0, 0, 0, 7, 1, 0, 0, 0, 0)
	longCall = words(7, 1, 32, 1, 1, 0, 0xa1, 100, 0, 0, 0, 0, 0)
	refusal  = words(7, 1, 32, 4, 2)
	private  = []byte{0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3}
)

// with returns a copy of a message with another word.
func with(data []byte, word int, value uint32) []byte {
	data = append([]byte(nil), data...)
	binary.BigEndian.PutUint32(data[4*word:], value)
	return data
}

// TestService: ports, service IDs and plain RPC show the protocol, once.
func TestService(t *testing.T) {
	for _, c := range []struct {
		plain bool
		port  uint16
		id    record.Opt[record.Hex64]
		want  string
		rpc   bool
	}{
		{port: 20049, want: "rpcrdma", rpc: true},
		{plain: true, port: 2049, want: "rpc", rpc: true},
		{port: 4420, want: "nvme"},
		{port: 3260, want: "iser"},
		{port: 445, id: record.Some[record.Hex64](0x01060000 + 445), want: "smbdirect"},
		{port: 5445, want: "smbdirect"},
		{port: 7174, want: "rping"},
		{port: 18515, want: "perftest"},
		{id: record.Some[record.Hex64](0x1000000000<<24 | 0x48), port: 4420, want: "ipoib"},
		{port: 2049, want: "unknown"},
		{want: "unknown"},
	} {
		var p Protocols
		r := p.New()
		shown := r.Service(c.plain, c.port, c.id)
		if known := c.want != "unknown"; shown != known || r.Name() != c.want || r.Searches() == known || r.IsRPC() != c.rpc || r.Is("rpcrdma") != (c.want == "rpcrdma") {
			t.Errorf("port %d, service ID %v: %q, RPC %t, want %q", c.port, c.id, r.Name(), r.IsRPC(), c.want)
		}
		if want := c.port != 0 && c.port != 2049; ServerPort(c.port) != want {
			t.Errorf("port %d is a server's: %t, want %t", c.port, !want, want)
		}
		if r.Service(false, 20049, none) == shown {
			t.Errorf("port %d: the service is looked up again: %t", c.port, !shown)
		}
	}
}

// TestPrivate: private data of RPC-over-RDMA shows it, also after the search for it stopped, unless the protocol is
// known.
func TestPrivate(t *testing.T) {
	var p Protocols
	r := p.New()
	if r.Private([]byte("something else")) || !r.Searches() {
		t.Error("other private data shows nothing")
	}
	for range most {
		r.Message(nil, 0)
	}
	if r.Searches() || r.Service(false, 20049, none) {
		t.Error("the search stopped")
	}
	if !r.Private(private) || !r.Is(RPCRDMA) || !r.Unread() {
		t.Errorf("private data shows RPC-over-RDMA, not %s", r.Name())
	}
	if r.Private(private) {
		t.Error("the protocol is known")
	}
	r = p.New()
	r.Service(false, 4420, none)
	if r.Private(private) || r.Name() != "nvme" {
		t.Errorf("the service shows NVMe, and private data %s", r.Name())
	}
}

// TestMessage: a message of RPC-over-RDMA shows it, and any word that cannot be one does not.
func TestMessage(t *testing.T) {
	for _, c := range []struct {
		name   string
		data   []byte
		beyond int64 // bytes that were not captured
		want   bool
	}{
		{"a Call", call, 0, true},
		{"a Call, cut in the RPC header", call[:44], 8, true},
		{"a Call, cut before its RPC version", call[:36], 16, false},
		{"a Call that ends in the RPC header", call[:44], 0, false},
		{"a Reply", reply, 0, true},
		{"a Long Call", longCall, 0, true},
		{"a Long Call, and more", append(append([]byte(nil), longCall...), 0), 0, false},
		{"a Long Call without chunks", words(7, 1, 32, 1, 0, 0, 0), 0, false},
		{"an error", refusal, 0, true},
		{"an error, and more", append(append([]byte(nil), refusal...), 0), 0, false},
		{"RDMA_DONE", words(7, 1, 32, 3), 0, false},
		{"another version", with(call, 1, 2), 0, false},
		{"no XID", with(with(call, 0, 0), 7, 0), 0, false},
		{"as many credits as nobody grants", with(call, 2, 1<<16), 0, true},
		{"more credits", with(call, 2, 1<<16+1), 0, false},
		{"another procedure", with(call, 3, 9), 0, false},
		{"another XID", with(call, 7, 8), 0, false},
		{"another RPC version", with(call, 9, 3), 0, false},
		{"neither Call nor Reply", with(call, 8, 2), 0, false},
		{"nothing", nil, 0, false},
	} {
		var p Protocols
		r := p.New()
		over := r.Message(c.data, int64(len(c.data))+c.beyond)
		if over != c.want || r.IsRPC() != c.want || r.Searches() == c.want || r.Unread() == c.want {
			t.Errorf("%s: recognized: %t, searches %t, unread %t", c.name, r.IsRPC(), r.Searches(), r.Unread())
		}
	}
	var p Protocols
	r := p.New()
	for i := range most {
		if over := r.Message([]byte("GET / HTTP/1.1\r\n\r\n"), 18); over != (i == most-1) {
			t.Errorf("after %d messages, the search is over: %t", i+1, over)
		}
	}
	if r.Searches() || r.IsRPC() || r.Name() != "unknown" {
		t.Errorf("after %d messages without a known protocol: %s", most, r.Name())
	}
}

// TestJoin: what either direction of a connection showed counts, and RPC counts more than a service.
func TestJoin(t *testing.T) {
	var p Protocols
	as := func(port uint16, others int) *Recognizer {
		r := p.New()
		for range others {
			r.Message(nil, 0)
		}
		r.Service(false, port, none)
		return &r
	}
	for _, c := range []struct {
		into, old *Recognizer
		shown     bool
		want      string
		unread    bool
	}{
		{as(0, 0), as(0, 0), false, "unknown", false},
		{as(0, 0), as(0, 1), false, "unknown", true},
		{as(0, 0), as(20049, 0), true, "rpcrdma", false},
		{as(20049, 1), as(0, 0), false, "rpcrdma", true},
		{as(20049, 0), as(20049, 0), false, "rpcrdma", false},
		{as(20049, 0), as(4420, 0), false, "rpcrdma", false},
		{as(4420, 0), as(20049, 0), true, "rpcrdma", false},
		{as(0, 0), as(4420, 0), true, "nvme", false},
		{as(3260, 0), as(4420, 0), false, "iser", false},
	} {
		before := c.into.Name() + " and " + c.old.Name()
		if shown := c.into.Join(c.old); shown != c.shown || c.into.Name() != c.want || c.into.Unread() != c.unread {
			t.Errorf("%s: %s, shown %t, unread %t", before, c.into.Name(), shown, c.into.Unread())
		}
	}
	r := as(0, most/2)
	if r.Join(as(0, most/2)); !r.Message(nil, 0) || r.Searches() {
		t.Error("the messages of both directions count")
	}
}
