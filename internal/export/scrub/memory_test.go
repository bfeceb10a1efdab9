package scrub

import (
	"runtime"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// heap returns the number of bytes on the heap.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// learnedOf gives the records of n RPCs of one connection to a Scrubber, scrubs the
// payload of all of their packets, and returns the memory that this takes.
// Each RPC has a Call, a Reply, and memory that an RDMA Write fills in two packets.
func learnedOf(t testing.TB, n int64) (memory int64) {
	t.Helper()
	before := heap()
	s := New(secret, temporary(t))
	h := s.Learn()
	call := synth.Null()
	call.XID = 1
	message := call.Bytes()
	data := make([]byte, 100)
	for i := range n {
		be.PutUint32(message, uint32(i+1))
		be.PutUint32(message[28:], uint32(i+1))
		for reply := range int64(2) {
			send, tx := 2*i+reply+1, record.Some(i+1)
			h.Observer.Payload(&wiremap.Payload{StreamOffset: wiremap.StreamOffset{StreamID: 1 + 2*reply, At: i}, Count: 1, Send: send, Transaction: tx, Bytes: len(message)})
			h.Observer.Message(&wiremap.Message{Send: send, Header: message[:28], Payload: message[28:], RPC: true, Transaction: tx, Reply: reply > 0})
		}
		for part := range int64(2) {
			h.Observer.Payload(&wiremap.Payload{StreamOffset: wiremap.StreamOffset{StreamID: 2, At: 2*i + part}, Count: 1, Transaction: record.Some(i + 1), Handle: 9, Offset: uint64(50 * part), Bytes: 50})
		}
		h.Observer.Message(&wiremap.Message{Segments: []wiremap.Segment{{Handle: 9, Length: 100}}, Payload: data, Transaction: record.Some(i + 1), Reply: true})
		if err := h.Transaction(&record.Transaction{ID: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	memory = heap() - before
	if err := s.Learned(); err != nil {
		t.Fatal(err)
	}
	out := make([]byte, len(message))
	for i := range n {
		for _, id := range []int64{1, 3} {
			if known := s.packet(out, wiremap.StreamOffset{StreamID: id, At: i}, stream{}); !known || be.Uint32(out) != uint32(i+1) || be.Uint32(out[28:]) != uint32(i+1) {
				t.Fatalf("packet %d of flow %d: %t, %x", i, id, known, out)
			}
		}
		if !s.packet(out[:50], wiremap.StreamOffset{StreamID: 2, At: 2*i + 1}, stream{}) {
			t.Fatalf("the Write of RPC %d is not known", i)
		}
	}
	if !s.recognized(n) || s.recognized(n+1) {
		t.Error("the wrong transactions are recognized")
	}
	memory = max(memory, heap()-before)
	if err := s.failed(); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(s)
	return memory
}

// TestMemory verifies that scrubbing keeps nothing in memory for each RPC: 300,000 RPCs of
// one connection take some megabytes, as fewer do.
func TestMemory(t *testing.T) {
	few := learnedOf(t, 30_000)
	memory := learnedOf(t, 300_000)
	if memory > 32<<20 || memory > few+8<<20 {
		t.Errorf("scrubbing 300,000 RPCs takes %d bytes of memory, and a tenth of them %d; want at most %d, and at most %d more", memory, few, 32<<20, 8<<20)
	}
	testkit.Proportional(t, 10_000, func(n int) func() { return func() { learnedOf(t, int64(n)) } })
}
