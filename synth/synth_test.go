package synth_test

import (
	"github.com/rdmadump/rdmadump/synth"
)

// kind is a kind of connection: who opens it, with which options, and how many of
// its packets are no RDMA traffic.
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

// healthy is a conversation in which nothing is wrong.
func healthy(c *synth.Conn) {
	c.Connect()
	c.RPC(synth.Null(), synth.NullReply())
	c.Disconnect(c.Client)
}
