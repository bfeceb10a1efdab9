package nfs

import (
	"fmt"
	"math"
)

// writeResponse is write_response4 of RFC 7862.
const writeResponse = " callback_id:[]s count:U committed:stable_how4 verifier:X "

// types are the types that several rows of the tables share.
var types = map[string]string{
	// NFSv4
	"change_info4": "atomic:z before:U after:U",
	"owner4":       "clientid:X owner:o",
	"nfsace4":      "type:acetype4 flag:x access_mask:x who:t",
	"specdata4":    "specdata1:u specdata2:u",
	"pathname4":    "components:[]t",
	"impl_id4":     "nii_domain:t nii_name:t nii_date:T",
	"channel4": `headerpadsize:u maxrequestsize:u maxresponsesize:u maxresponsesize_cached:u maxoperations:u maxrequests:u
		rdma_ird:[]u`,
	"callback_sec_parms4": `flavor:auth_flavor{AUTH_NONE | AUTH_SYS stamp:x machinename:t uid:u gid:u gids:[]u |
		RPCSEC_GSS service:rpc_gss_svc_t handle_from_server:o handle_from_client:o}`,
	"secinfo4":     "flavor:auth_flavor{RPCSEC_GSS oid:o qop:u service:rpc_gss_svc_t | *}",
	"protect_ops4": "must_enforce:O must_allow:O",
	"open_claim4": `claim:open_claim_type4{CLAIM_NULL,CLAIM_DELEGATE_PREV name:t | CLAIM_PREVIOUS delegate_type:open_delegation_type4 |
		CLAIM_DELEGATE_CUR delegate_stateid:s name:t | CLAIM_FH,CLAIM_DELEG_PREV_FH | CLAIM_DELEG_CUR_FH delegate_stateid:s}`,
	"open_delegation4": `delegation:open_delegation_type4{OPEN_DELEGATE_NONE |
		OPEN_DELEGATE_READ,OPEN_DELEGATE_READ_ATTRS_DELEG delegation_stateid:s recall:z permissions:@nfsace4 |
		OPEN_DELEGATE_WRITE,OPEN_DELEGATE_WRITE_ATTRS_DELEG delegation_stateid:s recall:z
			limitby:limit_by4{NFS_LIMIT_SIZE filesize:U | NFS_LIMIT_BLOCKS num_blocks:u bytes_per_block:u} permissions:@nfsace4 |
		OPEN_DELEGATE_NONE_EXT why:why_no_delegation4{WND4_CONTENTION server_will_push_deleg:z | WND4_RESOURCE server_will_signal_avail:z | *}}`,
	"lock_denied4":   "offset:U length:U locktype:nfs_lock_type4 owner:@owner4",
	"clientaddr4":    "netid:t addr:t",
	"layoutupdate4":  "layout_type:layouttype4 layoutupdate:o",
	"netloc4":        "type:netloc_type4{NL4_NAME server_name:t | NL4_URL url:t | NL4_NETADDR netid:t addr:t}",
	"sequence4":      "sessionid:S sequenceid:u slotid:u highest_slotid:u",
	"notify4":        "mask:B values:o",
	"deleg_claim4":   "claim:open_claim_type4{CLAIM_FH,CLAIM_DELEG_PREV_FH | CLAIM_PREVIOUS delegate_type:open_delegation_type4}",
	"fs_location4":   "server:[]t rootpath:@pathname4",
	"copy_needs4":    "consecutive:z synchronous:z",
	"setting_time4":  "how:time_how4{SET_TO_CLIENT_TIME4 time:T | *}",
	"fs_server4":     "currency:u info:o server:t",
	"open_features4": "share_access:B share_deny:B share_access_want:B open_claim:B createmode:B",

	// NFSv3
	"fattr3": "type:ftype3 mode:m nlink:u uid:u gid:u size:U used:U rdev:@specdata4 fsid:X fileid:U atime:y mtime:y ctime:y",
	"sattr3": `mode:?m uid:?u gid:?u size:?U set_atime:time_how{SET_TO_CLIENT_TIME atime:y | DONT_CHANGE,SET_TO_SERVER_TIME}
		set_mtime:time_how{SET_TO_CLIENT_TIME mtime:y | DONT_CHANGE,SET_TO_SERVER_TIME}`,
	"wcc_data": "before:?(size:U mtime:y ctime:y) after:?@fattr3",

	// NFSv2
	"fattr2": "type:ftype mode:m nlink:u uid:u gid:u size:u blocksize:u rdev:u blocks:u fsid:x fileid:u atime:Y mtime:Y ctime:Y",
	"sattr2": "mode:m uid:u gid:u size:u atime:Y mtime:Y",

	// NFSACL: each list is a count and an array that repeats this count
	"posix_acl": "mask:aclmask acl_count:u acl:[](tag:x id:u perm:x) default_acl_count:u default_acl:[](tag:x id:u perm:x)",

	// NLM4
	"nlm4_lock":    "caller_name:t fh:h owner:o svid:u offset:U length:U",
	"nlm4_holder":  "exclusive:z svid:u owner:o offset:U length:U",
	"nlm4_testres": "cookie:o stat:nlm4_stats{NLM4_DENIED @nlm4_holder | *}",
	"nlm4_res":     "cookie:o stat:nlm4_stats",
	"nlm4_share":   "cookie:o caller_name:t fh:h owner:o mode:fsh4_mode access:fsh4_access reclaim:z",
}

// operations has the operations of NFSv4.0 (RFC 7530, RFC 7531), 4.1 (RFC 8881,
// RFC 5662), 4.2 (RFC 7862, RFC 7863) and extended attributes (RFC 8276), by number.
// The failure of a row describes the results of any status other than NFS4_OK, or
// only of the status in on.
//
// To add an operation, add its row, in the notation of layout.go. Add a type that
// several rows share to types, and an enumeration to sets.
var operations = []operation{
	3: {name: "ACCESS", args: "access:access4", results: "supported:access4 access:access4"},
	4: {name: "CLOSE", args: "seqid:u stateid:s", results: "stateid:s"},
	5: {name: "COMMIT", args: "offset:U count:u", results: "verifier:X"},
	6: {
		name:    "CREATE",
		args:    "type:nfs_ftype4{NF4LNK target:L | NF4BLK,NF4CHR @specdata4 | *} name:t attributes:F",
		results: "cinfo:@change_info4 attrset:b",
	},
	7:  {name: "DELEGPURGE", args: "clientid:X"},
	8:  {name: "DELEGRETURN", args: "stateid:s"},
	9:  {name: "GETATTR", args: "attr_request:b", results: "attributes:F"},
	10: {name: "GETFH", results: "object_fh:h"},
	11: {name: "LINK", args: "name:t", results: "cinfo:@change_info4"},
	12: {
		name: "LOCK",
		args: `locktype:nfs_lock_type4 reclaim:z offset:U length:U new_lock_owner:z{1 open_seqid:u open_stateid:s lock_seqid:u lock_owner:@owner4 |
			0 lock_stateid:s lock_seqid:u}`,
		results: "lock_stateid:s", on: 10010, failure: "denied:@lock_denied4",
	},
	13: {name: "LOCKT", args: "locktype:nfs_lock_type4 offset:U length:U owner:@owner4", on: 10010, failure: "denied:@lock_denied4"},
	14: {name: "LOCKU", args: "locktype:nfs_lock_type4 seqid:u lock_stateid:s offset:U length:U", results: "lock_stateid:s"},
	15: {name: "LOOKUP", args: "name:t"},
	16: {name: "LOOKUPP"},
	17: {name: "NVERIFY", args: "attributes:F"},
	18: {
		name: "OPEN",
		args: `seqid:u share_access:open_share_access4 share_deny:open_share_deny4 open_owner:@owner4
			opentype:opentype4{OPEN4_CREATE createmode:createmode4{UNCHECKED4,GUARDED4 attributes:F | EXCLUSIVE4 verifier:X |
				EXCLUSIVE4_1 verifier:X attributes:F} | *} @open_claim4`,
		results: "stateid:s cinfo:@change_info4 rflags:open_rflags4 attrset:b @open_delegation4",
	},
	19: {name: "OPENATTR", args: "createdir:z"},
	20: {name: "OPEN_CONFIRM", args: "stateid:s seqid:u", results: "stateid:s"},
	21: {name: "OPEN_DOWNGRADE", args: "stateid:s seqid:u share_access:open_share_access4 share_deny:open_share_deny4", results: "stateid:s"},
	22: {name: "PUTFH", args: "fh:h"},
	23: {name: "PUTPUBFH"},
	24: {name: "PUTROOTFH"},
	25: {name: "READ", args: "stateid:s offset:U count!:u", results: "eof:z data!:D"},
	26: {
		name: "READDIR", args: "cookie:X cookieverf:X dircount:u maxcount!:u attr_request:b",
		results: "cookieverf:X entries:*(cookie:X name:t attributes:F) eof:z",
	},
	27: {name: "READLINK", results: "target!:L"},
	28: {name: "REMOVE", args: "name:t", results: "cinfo:@change_info4"},
	29: {name: "RENAME", args: "name:t to_name:t", results: "source_cinfo:@change_info4 target_cinfo:@change_info4"},
	30: {name: "RENEW", args: "clientid:X"},
	31: {name: "RESTOREFH"},
	32: {name: "SAVEFH"},
	33: {name: "SECINFO", args: "name:t", results: "flavors!:[](@secinfo4)"},
	34: {name: "SETATTR", args: "stateid:s attributes:F", results: "attrset:b", failure: "attrset:b"},
	35: {
		name: "SETCLIENTID", args: "verifier:X id:o cb_program:x netid:t addr:t callback_ident:u", results: "clientid:X confirm:X",
		on: 10017, failure: "client_using:@clientaddr4",
	},
	36: {name: "SETCLIENTID_CONFIRM", args: "clientid:X confirm:X"},
	37: {name: "VERIFY", args: "attributes:F"},
	38: {name: "WRITE", args: "stateid:s offset:U stable:stable_how4 data:D", results: "count:u committed:stable_how4 verifier:X"},
	39: {name: "RELEASE_LOCKOWNER", args: "lock_owner:@owner4"},
	40: {name: "BACKCHANNEL_CTL", args: "cb_program:x sec_parms:[](@callback_sec_parms4)"},
	41: {name: "BIND_CONN_TO_SESSION", args: "sessionid:S dir:channel_dir_from_c4 use_rdma:z", results: "sessionid:S dir:channel_dir_from_s4 use_rdma:z"},
	42: {
		name: "EXCHANGE_ID",
		args: `verifier:X ownerid:o flags:exchgid4_flags state_protect:state_protect_how4{SP4_NONE | SP4_MACH_CRED @protect_ops4 |
			SP4_SSV @protect_ops4 hash_algs:[]o encr_algs:[]o window:u num_gss_handles:u} client_impl_id:[]@impl_id4`,
		results: `clientid:X sequenceid:u flags:exchgid4_flags state_protect:state_protect_how4{SP4_NONE | SP4_MACH_CRED @protect_ops4 |
			SP4_SSV @protect_ops4 hash_alg:u encr_alg:u ssv_len:u window:u handles:[]o}
			server_minor_id:U server_major_id:o server_scope:o server_impl_id:[]@impl_id4`,
	},
	43: {
		name: "CREATE_SESSION",
		args: `clientid:X sequenceid:u flags:create_session4_flags fore_channel:@channel4 back_channel:@channel4 cb_program:x
			sec_parms:[](@callback_sec_parms4)`,
		results: "sessionid:S sequenceid:u flags:create_session4_flags fore_channel:@channel4 back_channel:@channel4",
	},
	44: {name: "DESTROY_SESSION", args: "sessionid:S"},
	45: {name: "FREE_STATEID", args: "stateid:s"},
	46: {
		name:    "GET_DIR_DELEGATION",
		args:    "signal_deleg_avail:z notification_types:B child_attr_delay:T dir_attr_delay:T child_attributes:b dir_attributes:b",
		results: "answer:gddrnf4_status{GDD4_OK cookieverf:X stateid:s notification:B child_attributes:b dir_attributes:b | GDD4_UNAVAIL will_signal:z}",
	},
	47: {
		name: "GETDEVICEINFO", args: "deviceid:d layout_type:layouttype4 maxcount!:u notify_types:B",
		results: "layout_type:layouttype4 addr_body:o notification:B", on: 10005, failure: "mincount:u",
	},
	48: {name: "GETDEVICELIST", args: "layout_type:layouttype4 maxdevices:u cookie:X cookieverf:X", results: "cookie:X cookieverf:X devices!:[]d eof:z"},
	49: {
		name: "LAYOUTCOMMIT", args: "offset:U length:U reclaim:z stateid:s last_write_offset:?U time_modify:?T @layoutupdate4",
		results: "size:?U",
	},
	50: {
		name:    "LAYOUTGET",
		args:    "signal_layout_avail:z layout_type:layouttype4 iomode:layoutiomode4 offset:U length:U minlength:U stateid:s maxcount!:u",
		results: "return_on_close:z stateid:s layouts:[](offset:U length:U iomode:layoutiomode4 layout_type:layouttype4 content:o)",
		on:      10058, failure: "will_signal_layout_avail:z",
	},
	51: {
		name: "LAYOUTRETURN",
		args: `reclaim:z layout_type:layouttype4 iomode:layoutiomode4 return_type:layoutreturn_type4{LAYOUTRETURN4_FILE offset:U length:U stateid:s body:o |
			*}`,
		results: "stateid:?s",
	},
	52: {name: "SECINFO_NO_NAME", args: "style:secinfo_style4", results: "flavors!:[](@secinfo4)"},
	53: {name: "SEQUENCE", args: "@sequence4 cachethis:z", results: "@sequence4 target_highest_slotid:u status_flags:seq4_status"},
	54: {name: "SET_SSV", args: "ssv:o digest:o", results: "digest:o"},
	55: {name: "TEST_STATEID", args: "stateids:[]s", results: "statuses:[]nfsstat4"},
	56: {name: "WANT_DELEGATION", args: "want:open_share_access4 @deleg_claim4", results: "@open_delegation4"},
	57: {name: "DESTROY_CLIENTID", args: "clientid:X"},
	58: {name: "RECLAIM_COMPLETE", args: "one_fs:z"},
	59: {name: "ALLOCATE", args: "stateid:s offset:U length:U"},
	60: {
		name: "COPY", args: "src_stateid:s dst_stateid:s src_offset:U dst_offset:U count:U @copy_needs4 source_servers:[](@netloc4)",
		results: writeResponse + "@copy_needs4", on: 10094, failure: "@copy_needs4",
	},
	61: {name: "COPY_NOTIFY", args: "src_stateid:s destination_server:@netloc4", results: "lease_time:T stateid:s source_servers:[](@netloc4)"},
	62: {name: "DEALLOCATE", args: "stateid:s offset:U length:U"},
	63: {name: "IO_ADVISE", args: "stateid:s offset:U count:U hints:B", results: "hints:B"},
	64: {name: "LAYOUTERROR", args: "offset:U length:U stateid:s errors:[](deviceid:d status:nfsstat4 opnum:u)"},
	65: {
		name: "LAYOUTSTATS",
		args: "offset:U length:U stateid:s read_count:U read_bytes:U write_count:U write_bytes:U deviceid:d @layoutupdate4",
	},
	66: {name: "OFFLOAD_CANCEL", args: "stateid:s"},
	67: {name: "OFFLOAD_STATUS", args: "stateid:s", results: "count:U complete:[]nfsstat4"},
	68: {
		name: "READ_PLUS", args: "stateid:s offset:U count!:u",
		results: "eof:z contents:[](content:data_content4{NFS4_CONTENT_DATA offset:U data:P | NFS4_CONTENT_HOLE offset:U length:U})",
	},
	69: {name: "SEEK", args: "stateid:s offset:U what:data_content4", results: "eof:z offset:U"},
	70: {
		name: "WRITE_SAME",
		args: `stateid:s stable:stable_how4 offset:U block_size:U block_count:U reloff_blocknum:U block_num:u reloff_pattern:U
			pattern:o`,
		results: writeResponse,
	},
	71: {name: "CLONE", args: "src_stateid:s dst_stateid:s src_offset:U dst_offset:U count:U"},
	72: {name: "GETXATTR", args: "xattr_name:t", results: "xattr_value!:o"},
	73: {name: "SETXATTR", args: "option:setxattr_option4 xattr_name:t xattr_value:o", results: "cinfo:@change_info4"},
	74: {name: "LISTXATTRS", args: "cookie:X maxcount!:u", results: "cookie:X xattr_names:[]t eof:z"},
	75: {name: "REMOVEXATTR", args: "xattr_name:t", results: "cinfo:@change_info4"},
}

// callbackOperations has the operations of CB_COMPOUND.
var callbackOperations = []operation{
	3: {name: "CB_GETATTR", args: "fh:h attr_request:b", results: "attributes:F"},
	4: {name: "CB_RECALL", args: "stateid:s truncate:z fh:h"},
	5: {
		name: "CB_LAYOUTRECALL",
		args: `layout_type:layouttype4 iomode:layoutiomode4 changed:z
			recall_type:layoutrecall_type4{LAYOUTRECALL4_FILE fh:h offset:U length:U stateid:s | LAYOUTRECALL4_FSID fsid_major:X fsid_minor:X | LAYOUTRECALL4_ALL}`,
	},
	6:  {name: "CB_NOTIFY", args: "stateid:s fh:h changes:[](@notify4)"},
	7:  {name: "CB_PUSH_DELEG", args: "fh:h @open_delegation4"},
	8:  {name: "CB_RECALL_ANY", args: "objects_to_keep:u type_mask:B"},
	9:  {name: "CB_RECALLABLE_OBJ_AVAIL", args: "objects_to_keep:u"},
	10: {name: "CB_RECALL_SLOT", args: "target_highest_slotid:u"},
	11: {
		name:    "CB_SEQUENCE",
		args:    "@sequence4 cachethis:z referring_call_lists:[](sessionid:S referring_calls:[](sequenceid:u slotid:u))",
		results: "@sequence4 target_highest_slotid:u",
	},
	12: {name: "CB_WANTS_CANCELLED", args: "contended_wants_cancelled:z resourced_wants_cancelled:z"},
	13: {name: "CB_NOTIFY_LOCK", args: "fh:h lock_owner:@owner4"},
	14: {name: "CB_NOTIFY_DEVICEID", args: "changes:[](@notify4)"},
	15: {name: "CB_OFFLOAD", args: "fh:h stateid:s status:nfsstat4{0 " + writeResponse + "| * bytes_copied:U}"},
}

const opIllegal = 10044

// rank returns how little an operation says about the purpose of its COMPOUND; 0
// says most. Nearly every COMPOUND contains several of the operations listed here.
func rank(operation string) int {
	switch operation {
	case "CREATE", "LINK", "REMOVE", "RENAME":
		return 0
	case "LOOKUP", "LOOKUPP", "VERIFY", "NVERIFY":
		return 2
	case "ACCESS":
		return 3
	case "GETATTR":
		return 4
	case "GETFH", "PUTFH", "PUTROOTFH", "PUTPUBFH", "SAVEFH", "RESTOREFH", "SEQUENCE", "CB_SEQUENCE":
		return 5
	}
	return 1
}

// PrincipalOperation returns the operation that a COMPOUND is for: the first one of the
// lowest rank. A COMPOUND that changes the name of a file is for that, whatever else
// it does. PrincipalOperation returns "" if there are no operations.
func PrincipalOperation(operations []string) (name string) {
	least := math.MaxInt
	for _, op := range operations {
		if n := rank(op); n < least {
			name, least = op, n
		}
	}
	return name
}

func lookup(number uint32, callback bool) *operation {
	table := operations
	if callback {
		table = callbackOperations
	}
	if int64(number) >= int64(len(table)) || table[number].name == "" {
		return nil
	}
	return &table[number]
}

func operationName(op *operation, number uint32) string {
	switch {
	case op != nil:
		return op.name
	case number == opIllegal:
		return "ILLEGAL"
	}
	return fmt.Sprintf("OP_%d", number)
}
