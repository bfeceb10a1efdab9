package nfs

import (
	"iter"
	"sync"
)

// attributeRows are the attributes of NFSv4 by number, in the layout that they have
// in a fattr4: RFC 7530 s.5.8, RFC 8881 s.5.8 to 5.12, RFC 7862 s.12.2, RFC 8275,
// RFC 8276 and RFC 9754. To add an attribute, add its row, in the notation of
// layout.go.
var attributeRows = []string{
	0: "supported_attrs:b", 1: "type:nfs_ftype4", 2: "fh_expire_type:fh4_expire", 3: "change:U", 4: "size:U", 5: "link_support:z", 6: "symlink_support:z",
	7: "named_attr:z", 8: "fsid:(major:U minor:U)", 9: "unique_handles:z", 10: "lease_time:u", 11: "rdattr_error:nfsstat4", 12: "acl:[]@nfsace4",
	13: "aclsupport:x", 14: "archive:z", 15: "cansettime:z", 16: "case_insensitive:z", 17: "case_preserving:z", 18: "chown_restricted:z",
	19: "filehandle:h", 20: "fileid:U", 21: "files_avail:U", 22: "files_free:U", 23: "files_total:U",
	24: "fs_locations:(fs_root:@pathname4 locations:[](@fs_location4))", 25: "hidden:z", 26: "homogeneous:z", 27: "maxfilesize:U", 28: "maxlink:u",
	29: "maxname:u", 30: "maxread:U", 31: "maxwrite:U", 32: "mimetype:t", 33: "mode:m", 34: "no_trunc:z", 35: "numlinks:u", 36: "owner:t",
	37: "owner_group:t", 38: "quota_avail_hard:U", 39: "quota_avail_soft:U", 40: "quota_used:U", 41: "rawdev:@specdata4", 42: "space_avail:U",
	43: "space_free:U", 44: "space_total:U", 45: "space_used:U", 46: "system:z", 47: "time_access:T", 48: "time_access_set:@setting_time4",
	49: "time_backup:T", 50: "time_create:T", 51: "time_delta:(seconds:U nseconds:u)", 52: "time_metadata:T", 53: "time_modify:T", 54: "time_modify_set:@setting_time4",
	55: "mounted_on_fileid:U", 56: "dir_notif_delay:(seconds:U nseconds:u)", 57: "dirent_notif_delay:(seconds:U nseconds:u)", 58: "dacl:(flag:x aces:[]@nfsace4)", 59: "sacl:(flag:x aces:[]@nfsace4)",
	60: "change_policy:(major:U minor:U)", 61: "fs_status:(absent:z type:fs4_status_type source:t current:t age:u version:T)",
	62: "fs_layout_types:[]layouttype4", 63: "layout_hint:(layout_type:layouttype4 body:o)", 64: "layout_types:[]layouttype4", 65: "layout_blksize:u",
	66: "layout_alignment:u",
	67: "fs_locations_info:(flags:x valid_for:u fs_root:@pathname4 items:[](entries:[]@fs_server4 rootpath:@pathname4))",
	68: "mdsthreshold:[](layout_type:layouttype4 hintset:B hintlist:o)", 69: "retention_get:(duration:U begin_time:[]T)",
	70: "retention_set:(enable:z duration:[]U)", 71: "retentevt_get:(duration:U begin_time:[]T)", 72: "retentevt_set:(enable:z duration:[]U)",
	73: "retention_hold:X", 74: "mode_set_masked:(value:m mask:m)", 75: "suppattr_exclcreat:b", 76: "fs_charset_cap:x", 77: "clone_blksize:u",
	78: "space_freed:U", 79: "change_attr_type:change_attr_type4", 80: "sec_label:(lfs:u pi:u data:o)", 81: "mode_umask:(mode:m umask:m)",
	82: "xattr_support:z", 83: "offline:z", 84: "time_deleg_access:T", 85: "time_deleg_modify:T", 86: "open_arguments:@open_features4",
}

// attributes returns the compiled rows, by attribute number.
var attributes = sync.OnceValue(func() [][]item {
	compiling.Lock()
	defer compiling.Unlock()
	table := make([][]item, len(attributeRows))
	for i, row := range attributeRows {
		table[i] = layout(row)
	}
	return table
})

// AttributeName returns the name of an attribute of NFSv4, such as "change", or ""
// if the attribute has no name.
func AttributeName(number uint32) string {
	if table := attributes(); int64(number) < int64(len(table)) {
		return table[number][0].name
	}
	return ""
}

// Attributes returns the attribute numbers in a bitmap, the Bytes of a [Bitmap].
func Attributes(bitmap []byte) iter.Seq[uint32] { return setBits(bitmap) }
