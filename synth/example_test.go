package synth_test

import (
	"fmt"

	"github.com/rdmadump/rdmadump/synth"
)

// A READ whose data the server writes to a Write chunk, and a second one in whose Reply the
// server claims to have written more than the chunk holds.
func Example() {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()

	// A healthy exchange.
	call := synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096))
	c.RPC(call, synth.Read3Reply(make([]byte, 4096)).Invalidating(0xa1))

	// The same exchange step by step, with one error.
	call = synth.Read3(4096, 4096).Offer(synth.Mem(0xa2, 4096))
	c.Client.Call(call)
	c.Server.Ack()
	reply := synth.Read3Reply(make([]byte, 4096)).To(call)
	c.Server.Push(reply)
	reply.Writes[0][0].Length += 4
	c.Server.Reply(reply)
	c.Client.Ack()

	c.Disconnect(c.Client)
	fmt.Println(len(w.Frames), "frames")
	// Output: 21 frames
}

// The server's Reply is lost on the way, and retransmitted a second later.
func ExampleWire_Drop() {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.Client.Call(synth.Null())
	c.Server.Ack()
	reply := c.Server.Reply(synth.NullReply())
	w.Advance(1e9)
	w.Retransmit(reply...)
	c.Client.Ack()
	w.Drop(reply...) // the capture was taken at the client
	fmt.Println(len(w.Frames), "frames")
	// Output: 7 frames
}
