package transaction

import (
	"strings"
	"unicode"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// What RPCs to rpcbind and mountd ask for: where a server waits for Calls, and the path that
// a client mounts. The answers of rpcbind also name the ports of programs.

// rendezvous is what a Call to rpcbind or mountd asks for.
type rendezvous struct {
	mapping *record.Mapping
	path    record.Opt[string]
}

// rendezvousCost is its cost in bytes of the budget, without the path.
const rendezvousCost = 160

// noteRendezvous records what a Call to rpcbind or mountd asks for.
func noteRendezvous(x *txn, m *message) {
	p := &x.procedure
	if p.program != nfs.ProgramRPCBind && p.program != nfs.ProgramMount {
		return
	}
	arguments, ok := x.gss.Plain(m.payload[m.rpc.Length:])
	if !ok || x.control {
		return
	}
	v := rendezvous{}
	if p.program == nfs.ProgramMount {
		path, ok := nfs.MountPath(p.procedure, arguments)
		v.path = record.SomeIf(visible(path), ok)
	} else if asked, ok := nfs.MappingAsked(p.version, p.procedure, arguments); ok {
		v.mapping = &record.Mapping{
			Program: asked.Program, ProgramName: named(nfs.ProgramName(asked.Program)), Version: asked.Version, Protocol: visible(asked.Protocol),
		}
	}
	if v != (rendezvous{}) {
		x.rendezvous = &v
		x.charge(rendezvousCost + int64(len(v.path.Or(""))))
	}
}

// readRendezvous reads the results of rpcbind and mountd. It returns false for other programs.
func readRendezvous(x *txn, results []byte) bool {
	p, known := &x.procedure, x.cs.table.Ports
	switch {
	case !p.known:
		return false
	case p.program == nfs.ProgramMount:
		if name, ok := nfs.MountStatus(p.version, p.procedure, results); ok {
			x.nfsStatus = record.Some(name)
		}
	case p.program == nfs.ProgramRPCBind:
		if v := x.rendezvous; v != nil && v.mapping != nil {
			port, ok := nfs.MappingAnswer(p.version, p.procedure, results)
			v.mapping.Port = record.SomeIf(port, ok)
			known.Learn(nfs.Mapping{Protocol: v.mapping.Protocol, Port: port})
		}
		nfs.EachMapping(p.version, p.procedure, results, known.Learn)
	default:
		return false
	}
	return true
}

// visible replaces what a terminal must not get.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
