package record

// Decoded holds the decoded arguments of a Call and results of its Reply. It is valid until
// the handler returns.
type Decoded struct{ Call, Reply Half }

// Half is a decoded Call or Reply. Message is nil and Unread is empty if the capture does not
// contain it, the RPC failed, or its program is unknown.
type Half struct {
	Message Content
	Unread  string // reason why it cannot be decoded
}

// Content is the arguments of a Call or the results of a Reply, as the package that knows their
// program decodes them. For NFS and its companion protocols it is an *nfs.Message.
type Content interface {
	// AppendNames appends the names of the operations of a COMPOUND, or of the procedure.
	AppendNames(names []string) []string
}

// RPC is the JSON form of decoded arguments and results.
type RPC struct {
	Call  *RPCMessage `json:"call" doc:"Decoded Call; null if the capture does not contain it or its program is unknown."`
	Reply *RPCMessage `json:"reply" doc:"Decoded Reply; null if the capture does not contain it, the RPC failed, or its program is unknown."`
}

// RPCMessage is a decoded Call or Reply.
type RPCMessage struct {
	Ops   []RPCOp     `json:"ops" doc:"Operations of a COMPOUND in order, or the one procedure."`
	Error Opt[string] `json:"error" doc:"Reason why a part of the message could not be decoded; null if everything was decoded."`
}

// RPCOp is an operation of a COMPOUND, or a procedure.
type RPCOp struct {
	Name   string      `json:"name" doc:"Name of the operation or procedure."`
	Status Opt[string] `json:"status" doc:"Status of the operation's results, by name; Calls have none (null)."`
	Fields RPCFields   `json:"fields" doc:"Arguments or results under the names of their protocol document, in snake case."`
}

// RPCFields are named values, nested as in the protocol. Numbers are JSON numbers, also those
// of 64 bits; file handles, opaque data, verifiers and masks are in hex; names are text. File
// data is replaced by its size: {"bytes": 4096}.
type RPCFields struct{ json string }

// NewRPCFields returns the fields in a JSON object.
func NewRPCFields(object []byte) RPCFields { return RPCFields{string(object)} }

// AppendJSON appends the JSON object.
func (f RPCFields) AppendJSON(b []byte) []byte { return append(b, f.json...) }

// MarshalJSON returns the JSON object.
func (f RPCFields) MarshalJSON() ([]byte, error) { return []byte(f.json), nil }

// UnmarshalJSON parses the output of MarshalJSON.
func (f *RPCFields) UnmarshalJSON(b []byte) error {
	f.json = string(b)
	return nil
}
