package nfs

import (
	"slices"
	"strconv"
	"sync"
)

// names has the names of the values of an enumeration, or of the bits of a word of
// flags.
type names struct {
	list   []string // names of the values first, first+1, ...
	first  uint32
	values map[uint32]string // names by value, for an enumeration whose values are far apart
	bits   []flag
	status uint32 // for status codes: the version of NFS, else 0
}

// flag is a value under a mask; usually it is one bit.
type flag struct {
	mask, value uint32
	name        string
}

// of returns the name of a value, or "" if it has none.
func (n *names) of(value uint32) string {
	if n.status != 0 {
		return statusTable()[key{n.status, value}]
	}
	if at := int64(value) - int64(n.first); at >= 0 && at < int64(len(n.list)) {
		return n.list[at]
	}
	return n.values[value]
}

// value returns the value that a name of the tables stands for.
func (n *names) value(name string) uint32 {
	if n != nil {
		if at := slices.Index(n.list, name); at >= 0 {
			return n.first + uint32(at)
		}
		for value, have := range n.values {
			if have == name {
				return value
			}
		}
	}
	panic("nfs: no value is called " + name)
}

// appendFlags appends the names of the bits of v, and the unnamed bits in hex.
func (n *names) appendFlags(b []byte, v uint32) []byte {
	start := len(b)
	for _, f := range n.bits {
		if f.value != 0 && v&f.mask == f.value {
			if len(b) > start {
				b = append(b, '|')
			}
			b = append(b, f.name...)
			v &^= f.mask
		}
	}
	switch {
	case v == 0 && len(b) > start:
		return b
	case len(b) > start:
		b = append(b, '|')
	}
	b = append(b, "0x"...)
	return strconv.AppendUint(b, uint64(v), 16)
}

// enum returns the names of the values first, first+1, and so on.
func enum(first uint32, list ...string) *names { return &names{first: first, list: list} }

// bits returns the names of bits, lowest first; an empty string leaves a bit unnamed.
func bits(list ...string) *names {
	n := &names{bits: []flag{}}
	for i, name := range list {
		if bit := uint32(1) << i; name != "" {
			n.bits = append(n.bits, flag{bit, bit, name})
		}
	}
	return n
}

// sets are the enumerations and words of flags, by the name of their type in the
// protocol documents. They are built on first use, because most captures need few
// of them.
var sets = sync.OnceValue(func() map[string]*names {
	return map[string]*names{
		// NFSv4: RFC 7531, RFC 5662, RFC 7863, RFC 8276.
		"nfsstat4":              {status: 4},
		"nfs_ftype4":            enum(1, "NF4REG", "NF4DIR", "NF4BLK", "NF4CHR", "NF4LNK", "NF4SOCK", "NF4FIFO", "NF4ATTRDIR", "NF4NAMEDATTR"),
		"stable_how4":           enum(0, "UNSTABLE4", "DATA_SYNC4", "FILE_SYNC4"),
		"opentype4":             enum(0, "OPEN4_NOCREATE", "OPEN4_CREATE"),
		"createmode4":           enum(0, "UNCHECKED4", "GUARDED4", "EXCLUSIVE4", "EXCLUSIVE4_1"),
		"open_claim_type4":      enum(0, "CLAIM_NULL", "CLAIM_PREVIOUS", "CLAIM_DELEGATE_CUR", "CLAIM_DELEGATE_PREV", "CLAIM_FH", "CLAIM_DELEG_CUR_FH", "CLAIM_DELEG_PREV_FH"),
		"open_delegation_type4": enum(0, "OPEN_DELEGATE_NONE", "OPEN_DELEGATE_READ", "OPEN_DELEGATE_WRITE", "OPEN_DELEGATE_NONE_EXT", "OPEN_DELEGATE_READ_ATTRS_DELEG", "OPEN_DELEGATE_WRITE_ATTRS_DELEG"),
		"why_no_delegation4": enum(0, "WND4_NOT_WANTED", "WND4_CONTENTION", "WND4_RESOURCE", "WND4_NOT_SUPP_FTYPE", "WND4_WRITE_DELEG_NOT_SUPP_FTYPE",
			"WND4_NOT_SUPP_UPGRADE", "WND4_NOT_SUPP_DOWNGRADE", "WND4_CANCELLED", "WND4_IS_DIR"),
		"limit_by4":           enum(1, "NFS_LIMIT_SIZE", "NFS_LIMIT_BLOCKS"),
		"nfs_lock_type4":      enum(1, "READ_LT", "WRITE_LT", "READW_LT", "WRITEW_LT"),
		"channel_dir_from_c4": {values: map[uint32]string{1: "CDFC4_FORE", 2: "CDFC4_BACK", 3: "CDFC4_FORE_OR_BOTH", 7: "CDFC4_BACK_OR_BOTH"}},
		"channel_dir_from_s4": enum(1, "CDFS4_FORE", "CDFS4_BACK", "CDFS4_BOTH"),
		"state_protect_how4":  enum(0, "SP4_NONE", "SP4_MACH_CRED", "SP4_SSV"),
		"layouttype4":         enum(1, "LAYOUT4_NFSV4_1_FILES", "LAYOUT4_OSD2_OBJECTS", "LAYOUT4_BLOCK_VOLUME", "LAYOUT4_FLEX_FILES", "LAYOUT4_SCSI"),
		"layoutiomode4":       enum(1, "LAYOUTIOMODE4_READ", "LAYOUTIOMODE4_RW", "LAYOUTIOMODE4_ANY"),
		"layoutreturn_type4":  enum(1, "LAYOUTRETURN4_FILE", "LAYOUTRETURN4_FSID", "LAYOUTRETURN4_ALL"),
		"layoutrecall_type4":  enum(1, "LAYOUTRECALL4_FILE", "LAYOUTRECALL4_FSID", "LAYOUTRECALL4_ALL"),
		"gddrnf4_status":      enum(0, "GDD4_OK", "GDD4_UNAVAIL"),
		"secinfo_style4":      enum(0, "SECINFO_STYLE4_CURRENT_FH", "SECINFO_STYLE4_PARENT"),
		"netloc_type4":        enum(1, "NL4_NAME", "NL4_URL", "NL4_NETADDR"),
		"data_content4":       enum(0, "NFS4_CONTENT_DATA", "NFS4_CONTENT_HOLE"),
		"time_how4":           enum(0, "SET_TO_SERVER_TIME4", "SET_TO_CLIENT_TIME4"),
		"setxattr_option4":    enum(0, "SETXATTR4_EITHER", "SETXATTR4_CREATE", "SETXATTR4_REPLACE"),
		"fs4_status_type":     enum(1, "STATUS4_FIXED", "STATUS4_UPDATED", "STATUS4_VERSIONED", "STATUS4_WRITABLE", "STATUS4_REFERRAL"),
		"acetype4":            enum(0, "ACE4_ACCESS_ALLOWED_ACE_TYPE", "ACE4_ACCESS_DENIED_ACE_TYPE", "ACE4_SYSTEM_AUDIT_ACE_TYPE", "ACE4_SYSTEM_ALARM_ACE_TYPE"),
		"change_attr_type4": enum(0, "NFS4_CHANGE_TYPE_IS_MONOTONIC_INCR", "NFS4_CHANGE_TYPE_IS_VERSION_COUNTER", "NFS4_CHANGE_TYPE_IS_VERSION_COUNTER_NOPNFS",
			"NFS4_CHANGE_TYPE_IS_TIME_METADATA", "NFS4_CHANGE_TYPE_IS_UNDEFINED"),
		"open_share_deny4": enum(0, "OPEN4_SHARE_DENY_NONE", "OPEN4_SHARE_DENY_READ", "OPEN4_SHARE_DENY_WRITE", "OPEN4_SHARE_DENY_BOTH"),
		"open_share_access4": {bits: []flag{
			{3, 1, "OPEN4_SHARE_ACCESS_READ"},
			{3, 2, "OPEN4_SHARE_ACCESS_WRITE"},
			{3, 3, "OPEN4_SHARE_ACCESS_BOTH"},
			{0xff00, 0x100, "OPEN4_SHARE_ACCESS_WANT_READ_DELEG"},
			{0xff00, 0x200, "OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG"},
			{0xff00, 0x300, "OPEN4_SHARE_ACCESS_WANT_ANY_DELEG"},
			{0xff00, 0x400, "OPEN4_SHARE_ACCESS_WANT_NO_DELEG"},
			{0xff00, 0x500, "OPEN4_SHARE_ACCESS_WANT_CANCEL"},
			{0x10000, 0x10000, "OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL"},
			{0x20000, 0x20000, "OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED"},
			{0x100000, 0x100000, "OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS"},
			{0x200000, 0x200000, "OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION"},
		}},
		"open_rflags4": bits("", "OPEN4_RESULT_CONFIRM", "OPEN4_RESULT_LOCKTYPE_POSIX", "OPEN4_RESULT_PRESERVE_UNLINKED", "OPEN4_RESULT_NO_OPEN_STATEID", "OPEN4_RESULT_MAY_NOTIFY_LOCK"),
		"access4":      bits("READ", "LOOKUP", "MODIFY", "EXTEND", "DELETE", "EXECUTE", "XAREAD", "XAWRITE", "XALIST"),
		"exchgid4_flags": {bits: []flag{
			{1, 1, "SUPP_MOVED_REFER"},
			{2, 2, "SUPP_MOVED_MIGR"},
			{4, 4, "SUPP_FENCE_OPS"},
			{0x100, 0x100, "BIND_PRINC_STATEID"},
			{0x10000, 0x10000, "USE_NON_PNFS"},
			{0x20000, 0x20000, "USE_PNFS_MDS"},
			{0x40000, 0x40000, "USE_PNFS_DS"},
			{0x40000000, 0x40000000, "UPD_CONFIRMED_REC_A"},
			{0x80000000, 0x80000000, "CONFIRMED_R"},
		}},
		"create_session4_flags": bits("PERSIST", "CONN_BACK_CHAN", "CONN_RDMA"),
		"seq4_status": bits("CB_PATH_DOWN", "CB_GSS_CONTEXTS_EXPIRING", "CB_GSS_CONTEXTS_EXPIRED", "EXPIRED_ALL_STATE_REVOKED", "EXPIRED_SOME_STATE_REVOKED",
			"ADMIN_STATE_REVOKED", "RECALLABLE_STATE_REVOKED", "LEASE_MOVED", "RESTART_RECLAIM_NEEDED", "CB_PATH_DOWN_SESSION", "BACKCHANNEL_FAULT",
			"DEVID_CHANGED", "DEVID_DELETED"),
		"fh4_expire": bits("NOEXPIRE_WITH_OPEN", "VOLATILE_ANY", "VOL_MIGRATION", "VOL_RENAME"),

		// RPC: RFC 5531, RFC 2203, and the IANA registry of flavors.
		"auth_flavor": {values: map[uint32]string{
			0: "AUTH_NONE", 1: "AUTH_SYS", 2: "AUTH_SHORT", 3: "AUTH_DH", 6: "RPCSEC_GSS", 7: "AUTH_TLS",
			390003: "KRB5", 390004: "KRB5I", 390005: "KRB5P",
		}},
		"rpc_program":   {values: programNames},
		"ip_protocol":   {values: map[uint32]string{6: "TCP", 17: "UDP"}},
		"rpc_gss_svc_t": enum(1, "RPC_GSS_SVC_NONE", "RPC_GSS_SVC_INTEGRITY", "RPC_GSS_SVC_PRIVACY"),

		// NFSv3 and MOUNT: RFC 1813. NFSv2: RFC 1094.
		"ftype3":      enum(1, "NF3REG", "NF3DIR", "NF3BLK", "NF3CHR", "NF3LNK", "NF3SOCK", "NF3FIFO"),
		"stable_how":  enum(0, "UNSTABLE", "DATA_SYNC", "FILE_SYNC"),
		"createmode3": enum(0, "UNCHECKED", "GUARDED", "EXCLUSIVE"),
		"time_how":    enum(0, "DONT_CHANGE", "SET_TO_SERVER_TIME", "SET_TO_CLIENT_TIME"),
		"fsf3":        bits("LINK", "SYMLINK", "", "HOMOGENEOUS", "CANSETTIME"),
		"ftype":       enum(0, "NFNON", "NFREG", "NFDIR", "NFBLK", "NFCHR", "NFLNK"),

		// NFSACL, and NLM as in RFC 1813 appendix II.
		"aclmask": bits("ACL", "ACLCNT", "DFACL", "DFACLCNT"),
		"nlm4_stats": enum(0, "NLM4_GRANTED", "NLM4_DENIED", "NLM4_DENIED_NOLOCKS", "NLM4_BLOCKED", "NLM4_DENIED_GRACE_PERIOD", "NLM4_DEADLCK", "NLM4_ROFS",
			"NLM4_STALE_FH", "NLM4_FBIG", "NLM4_FAILED"),
		"fsh4_mode":   enum(0, "fsm_DN", "fsm_DR", "fsm_DW", "fsm_DRW"),
		"fsh4_access": enum(0, "fsa_NONE", "fsa_R", "fsa_W", "fsa_RW"),
	}
})

// mountStatus is mountstat3 (RFC 1813 s.5.1.5).
var mountStatus = map[uint32]string{
	0: "MNT3_OK", 1: "MNT3ERR_PERM", 2: "MNT3ERR_NOENT", 5: "MNT3ERR_IO", 13: "MNT3ERR_ACCES", 20: "MNT3ERR_NOTDIR", 22: "MNT3ERR_INVAL",
	63: "MNT3ERR_NAMETOOLONG", 10004: "MNT3ERR_NOTSUPP", 10006: "MNT3ERR_SERVERFAULT",
}
