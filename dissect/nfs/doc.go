// Package nfs knows the RPC programs of NFS: their names and status codes, which
// operations a COMPOUND has, and by name what is in every argument and result of
// NFSv2, NFSv3, NFSv4.0 to 4.2 and its callbacks, MOUNT, NFSACL and NLM4.
//
// [Message] decodes a Call or Reply: into operations ([Op]), the data items that
// chunks can carry ([Item]) and, unless its Limit is negative, values ([Value]): who
// wants no values gets past a message in a fraction of the time. The tables are in
// compound.go for NFSv4, procedures.go for the rest and attributes.go for the
// attributes of NFSv4, in a notation that layout.go explains: to add an operation,
// add its row.
//
// # Names that stay
//
// Values are called what the documents call them, in snake case, with a few names
// that are the same wherever the same thing is meant, so that file handles can be
// followed to names:
//
//	fh           arguments: the file handle that the operation is about; what
//	             PUTFH makes the current one
//	dir_fh       arguments of NFSv2 and v3: the directory that name is in
//	name         the name in that directory, or in the current one: of LOOKUP,
//	             CREATE, OPEN, REMOVE, LINK, and the old one of RENAME
//	to_dir_fh    where RENAME puts it
//	to_name      and its new name
//	object_fh    results: the file handle of what was named, created or asked
//	             for: of LOOKUP and its kind in NFSv2 and v3, of GETFH, of MNT
//	path         arguments of MNT: what object_fh of its Reply is the handle of
//	entries      results of READDIR and READDIRPLUS: a list of groups with fileid,
//	             name, cookie; object_fh in a READDIRPLUS, and in NFSv4 what was
//	             asked for, in the group attributes: filehandle among it
//	target       of a symbolic link
//	offset, count, stable, committed, stateid, data, eof
//	             of READ and WRITE
//	sessionid, sequenceid, slotid
//	             of SEQUENCE
//	attr_request the attributes asked for
//	attributes   their values; new_attributes are those that NFSv2 and v3 are to set
//
// An operation of NFSv4 that works on the current file handle has no fh: it is
// what the last PUTFH, LOOKUP, OPEN, CREATE and so on before it left, and the
// object_fh of a GETFH names it.
package nfs
