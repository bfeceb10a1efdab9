package scrub

import "github.com/rdmadump/rdmadump/dissect/nfs"

// A value above the limit of its protocol shows that the bytes are damaged or are
// not what they were decoded as. Nothing after such a value is trusted.

// elements has the maximum number of elements of a list, by its name.
var elements = map[string]uint64{
	"rdma_ird": 1, "client_impl_id": 1, "server_impl_id": 1, "begin_time": 1, "duration": 1, // RFC 8881
	"callback_id": 1, "complete": 1, // RFC 7862
	"gids": 16,                        // RFC 5531
	"acl":  1024, "default_acl": 1024, // NFSACL
}

// opaques has the maximum number of bytes of an opaque value, by its name.
var opaques = map[string]uint64{
	"owner": 1024, "id": 1024, "ownerid": 1024, "server_major_id": 1024, "server_scope": 1024, // NFS4_OPAQUE_LIMIT
	"cookie": 1024, // MAXNETOBJ_SZ
}

// texts has the maximum number of bytes of a string, by its name.
var texts = map[string]uint64{
	"machinename": 255,
	"caller_name": 1025, "mon_name": 1024, "host": 1025, // LM_MAXSTRLEN
	"hostname": 255, "groups": 255, // MNTNAMLEN
}

// bitmapWords is the maximum number of words of a bitmap. No document defines bits
// beyond these words.
const bitmapWords = 4

// handles returns the maximum number of bytes of a file handle.
func handles(m *nfs.Message) uint64 {
	switch {
	case m.Program == nfs.ProgramNFS && m.Version == 4 || nfs.IsCallback(m.Program):
		return 128 // NFS4_FHSIZE
	case m.Program == nfs.ProgramNLM:
		return 1024 // MAXNETOBJ_SZ
	}
	return 64 // NFS3_FHSIZE
}

// tooMuch reports whether a value is above the limit of its protocol.
func tooMuch(m *nfs.Message, v *nfs.Value) bool {
	most, limited := uint64(0), true
	switch v.Kind {
	case nfs.List:
		if most, limited = elements[v.Name]; v.Name == "acl" && m.Program == nfs.ProgramNFS { // an nfsace4<>
			limited = false
		}
	case nfs.Opaque:
		most, limited = opaques[v.Name]
	case nfs.String:
		if most, limited = texts[v.Name]; m.Version == 2 && m.Program == nfs.ProgramNFS {
			most, limited = 1024, true // MAXPATHLEN
		}
	case nfs.Handle:
		most = handles(m)
	case nfs.Bitmap, nfs.Operations, nfs.Bits:
		return v.Len > 4+4*bitmapWords
	case nfs.Uint:
		most, limited = 9, v.Name == "minorversion"
	case nfs.Bool:
		most = 1
	default:
		return false
	}
	return limited && v.Uint > most
}
