package nfs

// procedures has the procedures of all programs except COMPOUND, by number. The
// failure of a row describes the results of any status other than OK. To add a
// procedure, add its row.
var procedures = map[key][]operation{
	{ProgramRPCBind, 2}: portmap2,
	{ProgramRPCBind, 3}: rpcbind3,
	{ProgramRPCBind, 4}: rpcbind4,
	{ProgramStatus, 1}:  status1,
	{ProgramNFS, 2}:     nfs2,
	{ProgramNFS, 3}:     nfs3,
	{ProgramNFS, 4}:     nfs4,
	{ProgramMount, 1}:   mount("H", ""),
	{ProgramMount, 2}:   append(mount("H", ""), bare("EXPORTALL", "", exports), operation{name: "PATHCONF", unread: true}),
	{ProgramMount, 3}:   mount("h", " flavors:[]auth_flavor"),
	{ProgramNFSACL, 2}:  nfsacl2,
	{ProgramNFSACL, 3}:  nfsacl3,
	{ProgramNLM, 1}:     onlyNames(nlm4)[:18],
	{ProgramNLM, 2}:     onlyNames(nlm4)[:18],
	{ProgramNLM, 3}:     onlyNames(nlm4),
	{ProgramNLM, 4}:     nlm4,
}

var nfs4 = []operation{bare("NULL", "", ""), {name: "COMPOUND", unread: true}}

var callbackProcedures = []operation{bare("CB_NULL", "", ""), {name: "CB_COMPOUND", unread: true}}

func procedureTable(program, version uint32) []operation {
	switch {
	case program == ProgramNFS && version == 4: // by far the most frequent program
		return nfs4
	case IsCallback(program):
		return callbackProcedures
	}
	return procedures[key{program, version}]
}

// nfs2 has the procedures of RFC 1094 s.2.2.
var nfs2 = []operation{
	bare("NULL", "", ""),
	{name: "GETATTR", args: "fh:H", results: "attributes:@fattr2"},
	{name: "SETATTR", args: "fh:H new_attributes:@sattr2", results: "attributes:@fattr2"},
	bare("ROOT", "", ""),
	{name: "LOOKUP", args: "dir_fh:H name:t", results: "object_fh:H attributes:@fattr2"},
	{name: "READLINK", args: "fh:H", results: "target!:L"},
	{name: "READ", args: "fh:H offset:u count!:u totalcount:u", results: "attributes:@fattr2 data!:D"},
	bare("WRITECACHE", "", ""),
	{name: "WRITE", args: "fh:H beginoffset:u offset:u totalcount:u data:D", results: "attributes:@fattr2"},
	{name: "CREATE", args: "dir_fh:H name:t new_attributes:@sattr2", results: "object_fh:H attributes:@fattr2"},
	{name: "REMOVE", args: "dir_fh:H name:t"},
	{name: "RENAME", args: "dir_fh:H name:t to_dir_fh:H to_name:t"},
	{name: "LINK", args: "fh:H dir_fh:H name:t"},
	{name: "SYMLINK", args: "dir_fh:H name:t target:L new_attributes:@sattr2"},
	{name: "MKDIR", args: "dir_fh:H name:t new_attributes:@sattr2", results: "object_fh:H attributes:@fattr2"},
	{name: "RMDIR", args: "dir_fh:H name:t"},
	{name: "READDIR", args: "dir_fh:H cookie:x count!:u", results: "entries:*(fileid:u name:t cookie:x) eof:z"},
	{name: "STATFS", args: "fh:H", results: "tsize:u bsize:u blocks:u bfree:u bavail:u"},
}

// nfs3 has the procedures of RFC 1813 s.3.3.
var nfs3 = []operation{
	bare("NULL", "", ""),
	{name: "GETATTR", args: "fh:h", results: "attributes:@fattr3"},
	{name: "SETATTR", args: "fh:h new_attributes:@sattr3 guard:?y", results: "wcc:@wcc_data", failure: "wcc:@wcc_data"},
	{name: "LOOKUP", args: "dir_fh:h name:t", results: "object_fh:h attributes:?@fattr3 dir_attributes:?@fattr3", failure: "dir_attributes:?@fattr3"},
	{name: "ACCESS", args: "fh:h access:access4", results: "attributes:?@fattr3 access:access4", failure: "attributes:?@fattr3"},
	{name: "READLINK", args: "fh:h", results: "attributes:?@fattr3 target!:L", failure: "attributes:?@fattr3"},
	{name: "READ", args: "fh:h offset:U count!:u", results: "attributes:?@fattr3 count:u eof:z data!:D", failure: "attributes:?@fattr3"},
	{
		name: "WRITE", args: "fh:h offset:U count:u stable:stable_how data:D",
		results: "wcc:@wcc_data count:u committed:stable_how verifier:X", failure: "wcc:@wcc_data",
	},
	{
		name:    "CREATE",
		args:    "dir_fh:h name:t createmode:createmode3{UNCHECKED,GUARDED new_attributes:@sattr3 | EXCLUSIVE verifier:X}",
		results: "object_fh:?h attributes:?@fattr3 dir_wcc:@wcc_data", failure: "dir_wcc:@wcc_data",
	},
	{
		name: "MKDIR", args: "dir_fh:h name:t new_attributes:@sattr3",
		results: "object_fh:?h attributes:?@fattr3 dir_wcc:@wcc_data", failure: "dir_wcc:@wcc_data",
	},
	{
		name: "SYMLINK", args: "dir_fh:h name:t new_attributes:@sattr3 target:L",
		results: "object_fh:?h attributes:?@fattr3 dir_wcc:@wcc_data", failure: "dir_wcc:@wcc_data",
	},
	{
		name:    "MKNOD",
		args:    "dir_fh:h name:t type:ftype3{NF3CHR,NF3BLK new_attributes:@sattr3 @specdata4 | NF3SOCK,NF3FIFO new_attributes:@sattr3 | *}",
		results: "object_fh:?h attributes:?@fattr3 dir_wcc:@wcc_data", failure: "dir_wcc:@wcc_data",
	},
	{name: "REMOVE", args: "dir_fh:h name:t", results: "dir_wcc:@wcc_data", failure: "dir_wcc:@wcc_data"},
	{name: "RMDIR", args: "dir_fh:h name:t", results: "dir_wcc:@wcc_data", failure: "dir_wcc:@wcc_data"},
	{
		name: "RENAME", args: "dir_fh:h name:t to_dir_fh:h to_name:t",
		results: "dir_wcc:@wcc_data to_dir_wcc:@wcc_data", failure: "dir_wcc:@wcc_data to_dir_wcc:@wcc_data",
	},
	{
		name: "LINK", args: "fh:h dir_fh:h name:t",
		results: "attributes:?@fattr3 dir_wcc:@wcc_data", failure: "attributes:?@fattr3 dir_wcc:@wcc_data",
	},
	{
		name: "READDIR", args: "dir_fh:h cookie:X cookieverf:X count!:u",
		results: "dir_attributes:?@fattr3 cookieverf:X entries:*(fileid:U name:t cookie:X) eof:z", failure: "dir_attributes:?@fattr3",
	},
	{
		name: "READDIRPLUS", args: "dir_fh:h cookie:X cookieverf:X dircount:u maxcount!:u",
		results: "dir_attributes:?@fattr3 cookieverf:X entries:*(fileid:U name:t cookie:X attributes:?@fattr3 object_fh:?h) eof:z",
		failure: "dir_attributes:?@fattr3",
	},
	{
		name: "FSSTAT", args: "fh:h",
		results: "attributes:?@fattr3 tbytes:U fbytes:U abytes:U tfiles:U ffiles:U afiles:U invarsec:u", failure: "attributes:?@fattr3",
	},
	{
		name: "FSINFO", args: "fh:h",
		results: `attributes:?@fattr3 rtmax:u rtpref:u rtmult:u wtmax:u wtpref:u wtmult:u dtpref:u maxfilesize:U time_delta:(seconds:u nseconds:u)
			properties:fsf3`,
		failure: "attributes:?@fattr3",
	},
	{
		name: "PATHCONF", args: "fh:h",
		results: "attributes:?@fattr3 linkmax:u name_max:u no_trunc:z chown_restricted:z case_insensitive:z case_preserving:z",
		failure: "attributes:?@fattr3",
	},
	{name: "COMMIT", args: "fh:h offset:U count:u", results: "wcc:@wcc_data verifier:X", failure: "wcc:@wcc_data"},
}

const exports = "exports!:*(path:t groups:*t)"

// mount returns the procedures of RFC 1094 appendix A or RFC 1813 s.5.2. The two
// differ in the type of the file handle and in the items after it.
func mount(handle, flavors string) []operation {
	return []operation{
		bare("NULL", "", ""),
		{name: "MNT", args: "path:t", results: "object_fh:" + handle + flavors},
		bare("DUMP", "", "mounts!:*(hostname:t path:t)"),
		bare("UMNT", "path:t", ""),
		bare("UMNTALL", "", ""),
		bare("EXPORT", "", exports),
	}
}

// nfsacl2 and nfsacl3 have the procedures of the program that Solaris introduced
// and Linux implements. No document specifies it.
var nfsacl2 = []operation{
	bare("NULL", "", ""),
	{name: "GETACL", args: "fh:H mask:aclmask", results: "attributes:@fattr2 acls!:@posix_acl"},
	{name: "SETACL", args: "fh:H acls:@posix_acl", results: "attributes:@fattr2"},
	{name: "GETATTR", args: "fh:H", results: "attributes:@fattr2"},
	{name: "ACCESS", args: "fh:H access:access4", results: "attributes:@fattr2 access:access4"},
	{name: "GETXATTRDIR", args: "fh:H create:z", results: "object_fh:H attributes:@fattr2"},
}

var nfsacl3 = []operation{
	bare("NULL", "", ""),
	{name: "GETACL", args: "fh:h mask:aclmask", results: "attributes:?@fattr3 acls!:@posix_acl", failure: "attributes:?@fattr3"},
	{name: "SETACL", args: "fh:h acls:@posix_acl", results: "attributes:?@fattr3", failure: "attributes:?@fattr3"},
	{name: "GETXATTRDIR", args: "fh:h create:z", results: "object_fh:h attributes:?@fattr3"},
}

// nlm4 has the procedures of RFC 1813 s.6.2 and appendix II. A procedure whose name
// ends in _MSG has no results: a Call of the matching _RES procedure carries them.
var nlm4 = []operation{
	bare("NULL", "", ""),
	bare("TEST", "cookie:o exclusive:z @nlm4_lock", "@nlm4_testres"),
	bare("LOCK", "cookie:o block:z exclusive:z @nlm4_lock reclaim:z state:u", "@nlm4_res"),
	bare("CANCEL", "cookie:o block:z exclusive:z @nlm4_lock", "@nlm4_res"),
	bare("UNLOCK", "cookie:o @nlm4_lock", "@nlm4_res"),
	bare("GRANTED", "cookie:o exclusive:z @nlm4_lock", "@nlm4_res"),
	bare("TEST_MSG", "cookie:o exclusive:z @nlm4_lock", ""),
	bare("LOCK_MSG", "cookie:o block:z exclusive:z @nlm4_lock reclaim:z state:u", ""),
	bare("CANCEL_MSG", "cookie:o block:z exclusive:z @nlm4_lock", ""),
	bare("UNLOCK_MSG", "cookie:o @nlm4_lock", ""),
	bare("GRANTED_MSG", "cookie:o exclusive:z @nlm4_lock", ""),
	bare("TEST_RES", "@nlm4_testres", ""),
	bare("LOCK_RES", "@nlm4_res", ""),
	bare("CANCEL_RES", "@nlm4_res", ""),
	bare("UNLOCK_RES", "@nlm4_res", ""),
	bare("GRANTED_RES", "@nlm4_res", ""),
	bare("SM_NOTIFY", "mon_name:t state:u private:d", ""),
	{name: "17", unread: true},
	{name: "18", unread: true},
	{name: "19", unread: true},
	bare("SHARE", "@nlm4_share", "@nlm4_res sequence:u"),
	bare("UNSHARE", "@nlm4_share", "@nlm4_res sequence:u"),
	bare("NM_LOCK", "cookie:o block:z exclusive:z @nlm4_lock reclaim:z state:u", "@nlm4_res"),
	bare("FREE_ALL", "host:t state:u", ""),
}

// onlyNames returns rows that keep only the names of the given rows.
func onlyNames(rows []operation) []operation {
	out := make([]operation, len(rows))
	for i := range rows {
		out[i].name, out[i].unread = rows[i].name, true
	}
	return out
}
