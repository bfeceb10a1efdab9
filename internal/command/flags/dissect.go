package flags

import (
	"runtime/debug"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// otherMemory is the number of bytes that the program may use in addition to the state of
// the dissector before the garbage collector works harder.
const otherMemory = 100 << 20

// Observe makes the garbage collector observe --memory. It is called before captures are opened, because to open many of them, and
// to compare them, takes memory, too.
func (m Size) Observe() {
	if command.OwnProcess && m > 0 { // Tests run several commands at once in one process.
		debug.SetMemoryLimit(int64(m) + otherMemory)
	}
}

// Dissection returns the options of the dissector. It also makes the garbage collector
// observe --memory.
func (s *Settings) Dissection() dissect.Options {
	s.Memory.Observe()
	ofPackets := s.View.Fields == query.Packets
	return dissect.Options{
		OtherOperations: s.View.diagnoses, Window: s.window(),
		Memory: int64(s.Memory), Files: s.Files, RPC: s.RPC && !ofPackets, Decode: s.Decode && !ofPackets || s.Ladder, Tree: s.Decode && ofPackets,
		Unanswered: record.Time(s.unanswered), Ports: s.ports, Tunnels: s.Tunnels, Points: s.AtPoints, At: s.at,
	}
}

// Only sets which parts of packets have to be described.
func (s *Settings) Only(o *dissect.Options) {
	switch {
	case s.Lost:
		o.Only = render.OnlyLine
	case s.View.Fields != query.Packets || s.Tree:
		return
	case s.JSON:
		o.Only = render.OnlyJSON
	case s.Columns != nil:
		o.Only = s.Columns.Only()
	case len(s.Look.Columns) > 0:
		o.Only = render.OnlyRow
	default:
		o.Only = render.OnlyLine
	}
	if s.Filter != nil {
		for _, path := range s.Filter.Paths() {
			o.Only |= header.Where(path)
		}
	}
	if len(s.Conns) > 0 || len(s.XIDs) > 0 {
		o.Only |= header.Where("connection") | header.Where("xid")
	}
}
