// Package nfs decodes the RPC programs of NFS. It knows their names and status
// codes, the operations of a COMPOUND, and every argument and result of NFSv2,
// NFSv3, NFSv4.0 to 4.2 and its callbacks, MOUNT, NFSACL and NLM4 by name.
//
// [Message] decodes a Call or Reply into operations ([Op]), the data items that
// chunks can carry ([Item]) and, unless its Limit is negative, values ([Value]).
// Without values, decoding takes a fraction of the time. The tables are in
// compound.go for NFSv4, in procedures.go for the other programs and in
// attributes.go for the attributes of NFSv4. They use a notation that layout.go
// explains. To add an operation, add its row.
//
// # Stable names
//
// Values have the names of the protocol documents, in snake case. The names in the
// list below are an exception: each of them has the same meaning in all operations,
// so that programs can map file handles to file names:
//
//	fh           arguments: the file handle that the operation uses; for PUTFH,
//	             the handle that becomes the current one
//	dir_fh       arguments of NFSv2 and v3: the directory that contains name
//	name         the name in that directory, or in the current one: in LOOKUP,
//	             CREATE, OPEN, REMOVE and LINK, and the old name in RENAME
//	to_dir_fh    RENAME: the directory that the file moves to
//	to_name      RENAME: the new name
//	object_fh    results: the file handle of the object that the Call named, created
//	             or asked for: in LOOKUP, CREATE and similar procedures of NFSv2 and
//	             v3, in GETFH, in MNT
//	path         arguments of MNT: the path whose handle the Reply returns as
//	             object_fh
//	entries      results of READDIR and READDIRPLUS: a list of groups with fileid,
//	             name and cookie. READDIRPLUS adds object_fh. NFSv4 adds the
//	             requested attributes as the group attributes; filehandle is one of
//	             them
//	target       the target of a symbolic link
//	offset, count, stable, committed, stateid, data, eof
//	             READ and WRITE
//	sessionid, sequenceid, slotid
//	             SEQUENCE
//	attr_request the attributes that the Call asks for
//	attributes   the values of attributes; new_attributes are the values that a Call
//	             of NFSv2 or v3 sets
//
// An operation of NFSv4 that uses the current file handle has no fh. The last
// PUTFH, LOOKUP, OPEN, CREATE or similar operation before it has set the current
// file handle, and the object_fh of a GETFH gives its value.
package nfs
