package files

import (
	"encoding/binary"

	"github.com/rdmadump/rdmadump/dissect/nfs"
)

// naming has the operations of NFSv4 that name a file, that learn names or that change the current
// file handle in another way than PUTFH and PUTROOTFH do.
var naming = [...]bool{
	6:  true, // CREATE
	10: true, // GETFH
	11: true, // LINK
	15: true, // LOOKUP
	16: true, // LOOKUPP
	18: true, // OPEN
	19: true, // OPENATTR
	23: true, // PUTPUBFH
	26: true, // READDIR
	28: true, // REMOVE
	29: true, // RENAME
	31: true, // RESTOREFH
	32: true, // SAVEFH
	33: true, // SECINFO
	52: true, // SECINFO_NO_NAME
}

// Wanted has the operations of a COMPOUND whose values [Resolver.Apply] uses, and those that move
// file data, for [nfs.Message.Wanted].
var Wanted = func() []bool {
	wanted := make([]bool, 80)
	copy(wanted, naming[:])
	for _, number := range [...]int{opPutFH, opRead, opWrite, opReadPlus} {
		wanted[number] = true
	}
	return wanted
}()

// The operations that select a file.
const (
	opPutFH     = 22
	opPutRootFH = 24
	opRead      = 25
	opWrite     = 38
	opReadPlus  = 68
)

// Single returns the file that all operations of an RPC act on, or nil if there is none. It returns
// false if only [Resolver.Apply] can tell: the RPC names files, or acts on several. m is the Call,
// decoded without values, and body its arguments; of procedures that are no COMPOUND, m is not used.
func (r *Resolver) Single(server string, procedure Procedure, m *nfs.Message, body []byte) (file *File, ok bool) {
	switch {
	case nfs.IsCallback(procedure.Program), procedure.Program == nfs.ProgramMount:
		return nil, false
	case !nfs.IsCompound(procedure.Program, procedure.Version, procedure.Procedure):
		handle, ok := procedure.handle(body)
		if !ok {
			return nil, false
		}
		return r.Server(server).ofHandle(handle), true
	}
	if !m.Named {
		return nil, false
	}
	first := int64(len(body)) // number of bytes before the first data item in a chunk
	for i := range m.Items {
		if m.Items[i].Reduced {
			first = m.Items[i].Position
			break
		}
	}
	selected := false
	for i := range m.Ops {
		o := &m.Ops[i]
		switch {
		case int64(o.Number) < int64(len(naming)) && naming[o.Number]:
			return nil, false
		case o.Number != opPutFH && o.Number != opPutRootFH:
			continue
		case selected || o.End > first:
			return nil, false
		}
		selected = true
		if o.Number == opPutRootFH {
			file = r.Server(server).root()
		} else if handle, whole := opaque(body[min(o.At+4, o.End):o.End]); whole {
			file = r.Server(server).ofHandle(handle)
		}
	}
	return file, true
}

// Procedure identifies the procedure of an RPC.
type Procedure struct{ Program, Version, Procedure uint32 }

// single has the procedures of NFSv3 whose arguments begin with the handle of their only file.
var single = [...]bool{
	1:  true, // GETATTR
	2:  true, // SETATTR
	4:  true, // ACCESS
	5:  true, // READLINK
	6:  true, // READ
	7:  true, // WRITE
	16: true, // READDIR
	18: true, // FSSTAT
	19: true, // FSINFO
	20: true, // PATHCONF
	21: true, // COMMIT
}

// handle returns the file handle that the arguments of a procedure begin with, and false if the
// procedure also has names or is not known here.
func (p Procedure) handle(body []byte) (handle []byte, ok bool) {
	switch {
	case p.Procedure == 0:
		return nil, true
	case p.Program == nfs.ProgramNFS && p.Version == 3 && int64(p.Procedure) < int64(len(single)) && single[p.Procedure],
		p.Program == nfs.ProgramNFSACL && p.Version == 3:
		handle, _ = opaque(body)
		return handle, true
	}
	return nil, false
}

// opaque returns the counted bytes that data begins with, and false if they are truncated.
func opaque(data []byte) ([]byte, bool) {
	if len(data) < 4 {
		return nil, false
	}
	n := binary.BigEndian.Uint32(data)
	if int64(n) > int64(len(data)-4) {
		return nil, false
	}
	return data[4 : 4+n], true
}
