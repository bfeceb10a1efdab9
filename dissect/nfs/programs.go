package nfs

import (
	"fmt"
	"sync"
)

// The program numbers (RFC 5531 appendix, IANA registry of RPC programs).
const (
	ProgramRPCBind = 100000
	ProgramNFS     = 100003
	ProgramMount   = 100005
	ProgramNLM     = 100021
	ProgramStatus  = 100024
	ProgramNFSACL  = 100227
)

// Callback programs have numbers that the client chooses in SETCLIENTID or
// CREATE_SESSION, from the transient range of RFC 5531 s.13.1, which begins with ProgramCallback.
const (
	ProgramCallback = 0x40000000
	transientLast   = 0x5fffffff
)

// IsCompound reports whether a procedure is COMPOUND or CB_COMPOUND.
func IsCompound(program, version, procedure uint32) bool {
	return procedure == ProcedureCompound && (program == ProgramNFS && version == 4 || IsCallback(program))
}

// ProcedureCompound is the number of COMPOUND, the procedure of NFSv4 that carries
// all operations, and of CB_COMPOUND, the same procedure of its callbacks.
const ProcedureCompound = 1

// ProcedureMount is the number of MNT, the procedure of the MOUNT protocol that returns the handle of a directory.
const ProcedureMount = 1

// IsCallback reports whether a program number can be an NFSv4 callback program.
func IsCallback(program uint32) bool { return program >= ProgramCallback && program <= transientLast }

// key is a program and version.
type key struct{ program, version uint32 }

var programNames = map[uint32]string{
	ProgramRPCBind: "PORTMAP", ProgramNFS: "NFS", ProgramMount: "MOUNT", 100011: "RQUOTA", ProgramNLM: "NLM",
	ProgramStatus: "STATUS", ProgramNFSACL: "NFSACL",
}

// ProgramName returns the name of a program, such as "NFS", "NFS_CB" for a callback
// program, or "" if the program has no name.
func ProgramName(program uint32) string {
	if IsCallback(program) {
		return "NFS_CB"
	}
	return programNames[program]
}

// ProcedureName returns the name of a procedure, such as "GETATTR", or "" if the
// procedure has no name.
func ProcedureName(program, version, procedure uint32) string {
	table := procedureTable(program, version)
	if int64(procedure) < int64(len(table)) {
		return table[procedure].name
	}
	return ""
}

// statusNames has the status codes that NFSv3 and NFSv4 share, by number. NFSv3
// defines those below 72 and those from 10001 to 10008.
var statusNames = map[uint32]string{
	1: "PERM", 2: "NOENT", 5: "IO", 6: "NXIO", 13: "ACCESS", 17: "EXIST", 18: "XDEV", 19: "NODEV", 20: "NOTDIR",
	21: "ISDIR", 22: "INVAL", 27: "FBIG", 28: "NOSPC", 30: "ROFS", 31: "MLINK", 63: "NAMETOOLONG", 66: "NOTEMPTY",
	69: "DQUOT", 70: "STALE", 71: "REMOTE",
	10001: "BADHANDLE", 10003: "BAD_COOKIE", 10004: "NOTSUPP", 10005: "TOOSMALL", 10006: "SERVERFAULT",
	10007: "BADTYPE", 10008: "DELAY", 10009: "SAME", 10010: "DENIED", 10011: "EXPIRED", 10012: "LOCKED",
	10013: "GRACE", 10014: "FHEXPIRED", 10015: "SHARE_DENIED", 10016: "WRONGSEC", 10017: "CLID_INUSE",
	10018: "RESOURCE", 10019: "MOVED", 10020: "NOFILEHANDLE", 10021: "MINOR_VERS_MISMATCH",
	10022: "STALE_CLIENTID", 10023: "STALE_STATEID", 10024: "OLD_STATEID", 10025: "BAD_STATEID",
	10026: "BAD_SEQID", 10027: "NOT_SAME", 10028: "LOCK_RANGE", 10029: "SYMLINK", 10030: "RESTOREFH",
	10031: "LEASE_MOVED", 10032: "ATTRNOTSUPP", 10033: "NO_GRACE", 10034: "RECLAIM_BAD",
	10035: "RECLAIM_CONFLICT", 10036: "BADXDR", 10037: "LOCKS_HELD", 10038: "OPENMODE", 10039: "BADOWNER",
	10040: "BADCHAR", 10041: "BADNAME", 10042: "BAD_RANGE", 10043: "LOCK_NOTSUPP", 10044: "OP_ILLEGAL",
	10045: "DEADLOCK", 10046: "FILE_OPEN", 10047: "ADMIN_REVOKED", 10048: "CB_PATH_DOWN",
	10049: "BADIOMODE", 10050: "BADLAYOUT", 10051: "BAD_SESSION_DIGEST", 10052: "BADSESSION", 10053: "BADSLOT",
	10054: "COMPLETE_ALREADY", 10055: "CONN_NOT_BOUND_TO_SESSION", 10056: "DELEG_ALREADY_WANTED",
	10057: "BACK_CHAN_BUSY", 10058: "LAYOUTTRYLATER", 10059: "LAYOUTUNAVAILABLE", 10060: "NOMATCHING_LAYOUT",
	10061: "RECALLCONFLICT", 10062: "UNKNOWN_LAYOUTTYPE", 10063: "SEQ_MISORDERED", 10064: "SEQUENCE_POS",
	10065: "REQ_TOO_BIG", 10066: "REP_TOO_BIG", 10067: "REP_TOO_BIG_TO_CACHE", 10068: "RETRY_UNCACHED_REP",
	10069: "UNSAFE_COMPOUND", 10070: "TOO_MANY_OPS", 10071: "OP_NOT_IN_SESSION", 10072: "HASH_ALG_UNSUPP",
	10074: "CLIENTID_BUSY", 10075: "PNFS_IO_HOLE", 10076: "SEQ_FALSE_RETRY", 10077: "BAD_HIGH_SLOT",
	10078: "DEADSESSION", 10079: "ENCR_ALG_UNSUPP", 10080: "PNFS_NO_LAYOUT", 10081: "NOT_ONLY_OP",
	10082: "WRONG_CRED", 10083: "WRONG_TYPE", 10084: "DIRDELEG_UNAVAIL", 10085: "REJECT_DELEG",
	10086: "RETURNCONFLICT", 10087: "DELEG_REVOKED", 10088: "PARTNER_NOTSUPP", 10089: "PARTNER_NO_AUTH",
	10090: "UNION_NOTSUPP", 10091: "OFFLOAD_DENIED", 10092: "WRONG_LFS", 10093: "BADLABEL",
	10094: "OFFLOAD_NO_REQS", 10095: "NOXATTR", 10096: "XATTR2BIG",
}

// statusNames3 has the status codes that have another name in NFSv3.
var statusNames3 = map[uint32]string{10002: "NOT_SYNC", 10008: "JUKEBOX", 99: "WFLUSH"}

// statusTable has the complete names, so that StatusName does not allocate.
var statusTable = sync.OnceValue(func() map[key]string {
	table := map[key]string{}
	for version := uint32(2); version <= 4; version++ {
		prefix := statusPrefix(version)
		table[key{version, 0}] = okNames[version]
		for status, name := range statusNames {
			table[key{version, status}] = prefix + "ERR_" + name
		}
		for status, name := range statusNames3 {
			if version < 4 {
				table[key{version, status}] = prefix + "ERR_" + name
			}
		}
	}
	return table
})

func statusPrefix(version uint32) string {
	if version == 2 {
		return "NFS"
	}
	return fmt.Sprintf("NFS%d", version)
}

// okNames are the names of status 0, the most frequent status, by version.
var okNames = [...]string{2: "NFS_OK", 3: "NFS3_OK", 4: "NFS4_OK"}

// StatusName returns the name of a status of NFS, such as "NFS4_OK",
// "NFS3ERR_NOENT", or "NFSERR_STALE" for version 2.
func StatusName(version, status uint32) string {
	if status == 0 && version < uint32(len(okNames)) && okNames[version] != "" {
		return okNames[version]
	}
	if name, known := statusTable()[key{version, status}]; known {
		return name
	}
	return fmt.Sprintf("%sERR_%d", statusPrefix(version), status)
}
