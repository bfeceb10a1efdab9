package record

import "github.com/rdmadump/rdmadump/dissect/nfs"

// Decoded is what a Call asks and its Reply says. It is good until the handler
// returns.
type Decoded struct{ Call, Reply Half }

// Half is one of them: neither is set where it was not seen, failed as an RPC, or
// is of no program that is known.
type Half struct {
	Message *nfs.Message
	Unread  string // why it cannot be read
}

// RPC is what a Call asks and its Reply says, by name.
type RPC struct {
	Call  *RPCMessage `json:"call" doc:"Decoded Call; null if the capture does not contain it or its program is unknown."`
	Reply *RPCMessage `json:"reply" doc:"Decoded Reply; null if the capture does not contain it, the RPC failed, or its program is unknown."`
}

// RPCMessage is one half.
type RPCMessage struct {
	Ops   []RPCOp     `json:"ops" doc:"Operations of a COMPOUND in order, or the one procedure."`
	Error Opt[string] `json:"error" doc:"Reason why a part of the message could not be decoded; null if everything was decoded."`
}

// RPCOp is an operation.
type RPCOp struct {
	Name   string      `json:"name" doc:"Name of the operation or procedure."`
	Status Opt[string] `json:"status" doc:"Status of the operation's results, by name; null in a Call."`
	Fields RPCFields   `json:"fields" doc:"Arguments or results under the names of their protocol document, in snake case."`
}

// RPCFields are named values, nested as the protocol nests them. Numbers are
// numbers, also those of 64 bits; file handles, opaque data, verifiers and masks are
// in hex; names are text; of file data there is {"bytes": how many}.
type RPCFields struct{ json string }

// NewRPCFields is what an object of JSON says.
func NewRPCFields(object []byte) RPCFields { return RPCFields{string(object)} }

// AppendJSON appends the object.
func (f RPCFields) AppendJSON(b []byte) []byte { return append(b, f.json...) }

// MarshalJSON is the object.
func (f RPCFields) MarshalJSON() ([]byte, error) { return []byte(f.json), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *RPCFields) UnmarshalJSON(b []byte) error {
	f.json = string(b)
	return nil
}
