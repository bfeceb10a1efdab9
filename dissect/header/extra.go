package header

// Kind is the type of the value of an [Extra].
type Kind uint8

// The kinds of value.
const (
	Text       Kind = iota
	Number          // zero or positive
	TextOrNull      // null if the value has no name
	TextList
	NumberList
)

// Extra is a member of a packet's tree that is in no table, because it is computed or has no fixed
// position.
type Extra struct {
	Object string // object that contains the member; empty for the packet itself
	Name   string
	Kind   Kind
	Doc    string
	Alias  string // name of the member in Wireshark
}

// Extras lists all members that are in no table.
var Extras = []Extra{
	{"", "payload_bytes", Number, "The number of payload bytes after the headers.", ""},
	{"", "vcrc", Text, "The result of checking the variant CRC of a native InfiniBand packet: ok or bad.", ""},
	{"", "note", Text, "A remark on a packet that is unusual but can be decoded, such as one with a pad count but no payload.", ""},
	{"", "error", Text, "The reason why the headers of the transport cannot be decoded.", ""},
	{"cm", "message", Text, "The message of the connection manager: REQ, REP, RTU, DREQ, ...", ""},
	{"mpa", "frame", Text, "The kind of MPA frame: request or reply.", ""},
	{"mpa", "ird", Number, "The number of RDMA Reads that the sender of an enhanced frame accepts at once.", ""},
	{"mpa", "ord", Number, "The number of RDMA Reads that the sender of an enhanced frame issues at once.", ""},
	{"mpa", "ulpdu_length", Number, "The length of the ULPDU in the FPDU, in bytes.", "iwarp_mpa.ulpdulength"},
	{"mpa", "crc", Text, "The result of checking the CRC of the FPDU: ok, bad, or off if the FPDU has no CRC.", ""},
	{"rdmap", "error", Text, "The error that a Terminate message reports.", ""},
	{"rpcrdma", "rdma_err", Text, "The error code of an RDMA_ERROR message: ERR_VERS or ERR_CHUNK.", ""},
	{"rpcrdma", "vers_low", Number, "The lowest version that the responder supports, in an ERR_VERS error.", "rpcordma.vers_low"},
	{"rpcrdma", "vers_high", Number, "The highest version that the responder supports, in an ERR_VERS error.", "rpcordma.vers_high"},
	{"rpcrdma", "rdma_direction", Text, "Whether a message of version 2 of the remote invalidation draft is a Call or a Reply.", ""},
	{"rpcrdma", "rdma_inv_handle", Text, "The rdma_inv_handle of such a message, which names the handle that the responder may invalidate; 0 for none.", ""},
	{"rpcrdma", "align", Number, "The rdma_align field of RDMA_MSGP in bytes.", "rpcordma.rdma_align"},
	{"rpcrdma", "thresh", Number, "The rdma_thresh field of RDMA_MSGP in bytes.", "rpcordma.rdma_thresh"},
	{"rpcrdma", "continues", Text, "That the header does not end in this packet, the first of a Send of several.", ""},
	{"rpcrdma", "error", Text, "The reason why the RPC-over-RDMA header cannot be decoded.", ""},
	{"rpcrdma", "header_bytes", Number, "The length of the RPC-over-RDMA header in bytes.", ""},
	{"rpc", "rpc_vers", Number, "The version of the RPC protocol.", ""},
	{"rpc", "program", Number, "The RPC program number. Filters also find a Reply by it.", ""},
	{"rpc", "program_name", TextOrNull, "The name of the RPC program; null if the program has no known name.", ""},
	{"rpc", "version", Number, "The version of the RPC program. Wireshark's rpc.version is another field: the version of RPC, which is rpc.rpc_vers here.", "rpc.programversion"},
	{"rpc", "procedure", Number, "The procedure number.", ""},
	{"rpc", "procedure_name", TextOrNull, "The name of the procedure; null if the procedure has no known name.", ""},
	{"rpc", "credential", Text, "The flavor of the Call's credential.", ""},
	{"rpc", "verifier", Text, "The flavor of the Call's verifier.", ""},
	{"rpc", "rpc_status", Text, "The accept status or reject status of a Reply.", ""},
	{"rpc", "low", Number, "The lowest version that the responder supports, of the RPC protocol or of the program, in a Reply that rejects another version.", "rpc.programversion.min"},
	{"rpc", "high", Number, "The highest version that the responder supports.", "rpc.programversion.max"},
	{"rpc", "nfs_status", Text, "The NFS status at the start of the results.", ""},
	{"rpc", "operations", TextList, "The names of the operations of a COMPOUND, in order.", ""},
	{"rpc", "continues", Text, "That the header does not end in this packet, the first of a Send of several.", ""},
	{"rpc", "error", Text, "The reason why the RPC header cannot be decoded.", ""},

	// The following members exist only if the tree is requested with -V, --rpc or a filter.
	{"auth_sys", "stamp", Number, "The stamp of the AUTH_SYS credential.", "rpc.auth.stamp"},
	{"auth_sys", "machine_name", Text, "The machine name of the AUTH_SYS credential.", "rpc.auth.machinename"},
	{"auth_sys", "uid", Number, "The user ID of the AUTH_SYS credential.", "rpc.auth.uid"},
	{"auth_sys", "gid", Number, "The group ID of the AUTH_SYS credential.", "rpc.auth.gid"},
	{"auth_sys", "gids", NumberList, "The auxiliary group IDs of the AUTH_SYS credential.", ""},
	{"rpcsec_gss", "version", Number, "The version of RPCSEC_GSS.", "rpc.authgss.version"},
	{"rpcsec_gss", "procedure", Text, "The RPCSEC_GSS procedure: RPCSEC_GSS_DATA, or a procedure that establishes or destroys a context.", "rpc.authgss.procedure"},
	{"rpcsec_gss", "sequence", Number, "The sequence number in the RPCSEC_GSS credential.", "rpc.authgss.seqnum"},
	{"rpcsec_gss", "service", Text, "The protection of arguments and results: none, integrity or privacy.", "rpc.authgss.service"},
	{"rpcsec_gss", "handle_bytes", Number, "The length of the context handle in bytes.", "rpc.authgss.context.length"},
	{"gss_body", "unreadable", Text, "The reason why arguments and results cannot be decoded, if the service is privacy.", ""},
	{"gss_body", "body_bytes", Number, "The length of the sequence number and the body, if the service is integrity, in bytes.", "rpc.authgss.data.length"},
	{"gss_body", "sequence", Number, "The sequence number before the body, if the service is integrity.", ""},
	{"gss_body", "checksum_bytes", Number, "The length of the checksum after the body, if the service is integrity, in bytes.", ""},
}
