package header

// Kind is what the value of an [Extra] is.
type Kind uint8

// The kinds.
const (
	Text       Kind = iota
	Number          // never negative
	TextOrNull      // null where it has no name
	TextList
	NumberList
)

// Extra is a member of a packet's tree that is in no table: it is worked out, or
// has no fixed place.
type Extra struct {
	Object string // that it is in; empty for the packet itself
	Name   string
	Kind   Kind
	Doc    string
	Alias  string // Wireshark's name for it
}

// Extras are all of them.
var Extras = []Extra{
	{"", "payload_bytes", Number, "bytes behind the headers", ""},
	{"", "vcrc", Text, "native InfiniBand: what came of checking the variant CRC: ok, bad", ""},
	{"", "error", Text, "why the transport's headers cannot be read", ""},
	{"cm", "message", Text, "which message of the connection manager: REQ, REP, RTU, DREQ, ...", ""},
	{"mpa", "frame", Text, "request, reply", ""},
	{"mpa", "ird", Number, "RDMA Reads it accepts at once (enhanced)", ""},
	{"mpa", "ord", Number, "RDMA Reads it sends at once (enhanced)", ""},
	{"mpa", "ulpdu_length", Number, "of the FPDU, bytes", ""},
	{"mpa", "crc", Text, "of the FPDU: ok, bad, off", ""},
	{"rdmap", "error", Text, "what a Terminate says", ""},
	{"rpcrdma", "rdma_err", Text, "code of an RDMA_ERROR: ERR_VERS, ERR_CHUNK", ""},
	{"rpcrdma", "vers_low", Number, "lowest version that the responder supports", ""},
	{"rpcrdma", "vers_high", Number, "highest version that the responder supports", ""},
	{"rpcrdma", "align", Number, "rdma_align of RDMA_MSGP, bytes", ""},
	{"rpcrdma", "thresh", Number, "rdma_thresh of RDMA_MSGP, bytes", ""},
	{"rpcrdma", "error", Text, "why the header cannot be read", ""},
	{"rpcrdma", "header_bytes", Number, "of the RPC-over-RDMA header", ""},
	{"rpc", "rpc_vers", Number, "version of the RPC protocol", ""},
	{"rpc", "program", Number, "RPC program number", ""},
	{"rpc", "program_name", TextOrNull, "program by name", ""},
	{"rpc", "version", Number, "of the program", "rpc.programversion"},
	{"rpc", "procedure", Number, "procedure number", ""},
	{"rpc", "procedure_name", TextOrNull, "procedure by name", ""},
	{"rpc", "credential", Text, "flavor of the Call's credential", ""},
	{"rpc", "verifier", Text, "flavor of the Call's verifier", ""},
	{"rpc", "rpc_status", Text, "accept or reject status of a Reply", ""},
	{"rpc", "nfs_status", Text, "status that the results begin with", ""},
	{"rpc", "operations", TextList, "of a COMPOUND, in order", ""},
	{"rpc", "error", Text, "why the header cannot be read", ""},

	// These are there when the tree is asked for, by -V, --rpc or a filter.
	{"auth_sys", "stamp", Number, "of an AUTH_SYS credential", "rpc.auth.stamp"},
	{"auth_sys", "machine_name", Text, "what the client calls itself", "rpc.auth.machinename"},
	{"auth_sys", "uid", Number, "user", "rpc.auth.uid"},
	{"auth_sys", "gid", Number, "group", "rpc.auth.gid"},
	{"auth_sys", "gids", NumberList, "further groups", ""},
	{"rpcsec_gss", "version", Number, "of RPCSEC_GSS", "rpc.authgss.version"},
	{"rpcsec_gss", "procedure", Text, "RPCSEC_GSS_DATA, or what makes or ends a context", "rpc.authgss.procedure"},
	{"rpcsec_gss", "sequence", Number, "sequence number in the credential", "rpc.authgss.seqnum"},
	{"rpcsec_gss", "service", Text, "what is protected: none, integrity, privacy", "rpc.authgss.service"},
	{"rpcsec_gss", "handle_bytes", Number, "of the context's handle", "rpc.authgss.context.length"},
	{"gss_body", "unreadable", Text, "privacy: why arguments and results cannot be read", ""},
	{"gss_body", "body_bytes", Number, "integrity: of the sequence number and the body behind it", "rpc.authgss.data.length"},
	{"gss_body", "sequence", Number, "integrity: sequence number before the body", ""},
	{"gss_body", "checksum_bytes", Number, "integrity: of the checksum behind the body", ""},
}
