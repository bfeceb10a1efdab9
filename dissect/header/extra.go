package header

// Kind is what the value of an [Extra] is.
type Kind uint8

// The kinds.
const (
	Text       Kind = iota
	Number          // never negative
	TextOrNull      // null where it has no name
	TextList
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
}
