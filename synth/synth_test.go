package synth_test

import (
	"github.com/rdmadump/rdmadump/synth"
)

// kind is a kind of connection: the function that opens it, its options, and the number of
// its packets that are not RDMA traffic.
type kind struct {
	open    func(*synth.Wire, synth.Options) *synth.Conn
	options synth.Options
	other   int64
}

var kinds = map[string]kind{
	"RoCE":                 {(*synth.Wire).RoCE, synth.Options{}, 0},
	"RoCE, MTU 4096, VLAN": {(*synth.Wire).RoCE, synth.Options{MTU: 4096, VLAN: 7}, 0},
	"RoCE, IPv6":           {(*synth.Wire).RoCE, synth.Options{IPv6: true}, 0},
	"RoCE, raw IP":         {(*synth.Wire).RoCE, synth.Options{Link: synth.LinkRaw}, 0},
	"iWARP":                {(*synth.Wire).IWARP, synth.Options{}, 3},
	"iWARP, IPv6, VLAN":    {(*synth.Wire).IWARP, synth.Options{IPv6: true, VLAN: 7}, 3},
	"iWARP, markers":       {(*synth.Wire).IWARP, synth.Options{Markers: true}, 3},
	"iWARP, no CRC":        {(*synth.Wire).IWARP, synth.Options{NoCRC: true}, 3},
	"iWARP, MTU 300":       {(*synth.Wire).IWARP, synth.Options{MTU: 300, Markers: true}, 3},
}

// data returns n bytes that are not all equal.
func data(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8)
	}
	return b
}

// healthy is a conversation without errors.
func healthy(c *synth.Conn) {
	c.Connect()
	c.RPC(synth.Null(), synth.NullReply())
	c.RPC(synth.Getattr3(), synth.Getattr3Reply())
	c.RPC(synth.Read3(0, 5000).Offer(synth.Mem(0xa1, 4096), synth.Mem(0xa2, 904)), synth.Read3Reply(data(5000)).Invalidating(0xa1))
	c.RPC(synth.Write3(4096, data(3001)).Reduce(0xa3), synth.Write3Reply(3001).Invalidating(0xa3))
	c.RPC(synth.Readdir3(4096).OfferReply(synth.Mem(0xa4, 8192)), synth.Readdir3Reply("one", "two", "three").Long())
	c.RPC(synth.Symlink3("name", "target").Reduce(0xa5).Long(0xa6), synth.Symlink3Reply())
	c.RPC(synth.Readlink3().Offer(synth.Mem(0xa7, 1024)), synth.Readlink3Reply("target"))
	c.RPC(synth.Read3(0, 100), synth.Read3Reply(data(100)))
	c.RPC(synth.Compound(synth.OpCreateSession(synth.ConnBackChannel)), synth.CompoundReply(synth.ResCreateSession(synth.ConnBackChannel)))
	c.RPC(
		synth.Compound(synth.OpSequence(1), synth.OpPutFH(), synth.OpRead(0, 2000), synth.OpGetAttr()).Offer(synth.Mem(0xb1, 2000)),
		synth.CompoundReply(synth.ResSequence(1), synth.ResPutFH(), synth.ResRead(data(1998)), synth.ResGetAttr()))
	c.RPC(
		synth.Compound(synth.OpSequence(2), synth.OpPutFH(), synth.OpWrite(0, data(1999)), synth.OpGetAttr()).Reduce(0xb2),
		synth.CompoundReply(synth.ResSequence(2), synth.ResPutFH(), synth.ResWrite(1999), synth.ResGetAttr()))
	c.Server.RPC(
		synth.CBCompound(synth.OpCBSequence(1), synth.OpCBRecall()),
		synth.CompoundReply(synth.ResCBSequence(1), synth.ResCBRecall()))
	c.Disconnect(c.Client)
}
