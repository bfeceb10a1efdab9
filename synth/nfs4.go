package synth

// COMPOUNDs (RFC 7530, RFC 8881): arguments are Op values, results Res values,
// each a piece of XDR that begins with the operation's number. Data that may be
// reduced keeps its place between them.

const (
	sessionID = "a session's name"             // 16 bytes
	stateID   = "\x00\x00\x00\x01a stateid..." // a count of 4 bytes, and 12
)

// Compound is a COMPOUND of NFSv4.1.
func Compound(operations ...XDR) Call { return Compound4(1, operations...) }

// Compound4 is a COMPOUND of another minor version.
func Compound4(minor uint32, operations ...XDR) Call {
	args := XDR{}.String("").Word(minor, uint32(len(operations))).Append(operations...)
	return Call{Version: 4, Procedure: 1, Args: args}
}

// CompoundReply are results that are all NFS4_OK.
func CompoundReply(results ...XDR) Reply { return CompoundFailed(0, results...) }

// CompoundFailed are results of which the last has failed with a status.
func CompoundFailed(status uint32, results ...XDR) Reply {
	return Reply{Results: XDR{}.Word(status).String("").Word(uint32(len(results))).Append(results...)}
}

// op is the number of an operation, res that and NFS4_OK.
func op(number uint32) XDR { return XDR{}.Word(number) }

func res(number uint32) XDR { return XDR{}.Word(number, 0) }

// ResFailed is the result of an operation that failed: its number and a status.
func ResFailed(number, status uint32) XDR { return XDR{}.Word(number, status) }

// OpPutFH sets the current file handle.
func OpPutFH() XDR { return op(22).String(nfsHandle) }

// ResPutFH is its result.
func ResPutFH() XDR { return res(22) }

// OpPutRootFH sets it to the root.
func OpPutRootFH() XDR { return op(24) }

// ResPutRootFH is its result.
func ResPutRootFH() XDR { return res(24) }

// OpLookup looks a name up.
func OpLookup(name string) XDR { return op(15).String(name) }

// ResLookup is its result.
func ResLookup() XDR { return res(15) }

// OpGetAttr asks for the attributes "change" and "size".
func OpGetAttr() XDR { return op(9).Word(1, 0x18) }

// ResGetAttr are they.
func ResGetAttr() XDR { return res(9).Word(1, 0x18, 16).Hyper(7, 8192) }

// OpRead reads from a file.
func OpRead(offset uint64, count uint32) XDR {
	return op(25).Fixed([]byte(stateID)).Hyper(offset).Word(count)
}

// ResRead is what was read; it may be reduced.
func ResRead(data []byte) XDR { return res(25).Bool(true).Data(data) }

// OpWrite writes to a file; the data may be reduced.
func OpWrite(offset uint64, data []byte) XDR {
	return op(38).Fixed([]byte(stateID)).Hyper(offset).Word(2).Data(data)
}

// ResWrite says how much was written.
func ResWrite(count uint32) XDR { return res(38).Word(count, 2).Hyper(0x1122334455667788) }

// OpReadLink asks for the target of a symbolic link.
func OpReadLink() XDR { return op(27) }

// ResReadLink is it; the target may be reduced.
func ResReadLink(target string) XDR { return res(27).Data([]byte(target)) }

// OpSymlink is a CREATE of a symbolic link; the target may be reduced.
func OpSymlink(name, target string) XDR {
	return op(6).Word(5).Data([]byte(target)).String(name).Word(0, 0)
}

// ResCreate is its result.
func ResCreate() XDR { return res(6).Bool(true).Hyper(1, 2).Word(0) }

// OpReadDir lists a directory into so many bytes.
func OpReadDir(maxCount uint32) XDR { return op(26).Hyper(0, 0).Word(maxCount, maxCount, 1, 0x18) }

// ResReadDir is a list of names.
func ResReadDir(names ...string) XDR {
	x := res(26).Hyper(1)
	for i, name := range names {
		x = x.Word(1).Hyper(uint64(i+3)).String(name).Word(1, 0x18, 16).Hyper(7, 8192)
	}
	return x.Word(0, 1)
}

// OpSequence begins a COMPOUND of a session.
func OpSequence(sequence uint32) XDR { return op(53).Fixed([]byte(sessionID)).Word(sequence, 0, 0, 1) }

// ResSequence is its result.
func ResSequence(sequence uint32) XDR {
	return res(53).Fixed([]byte(sessionID)).Word(sequence, 0, 7, 7, 0)
}

// ConnBackChannel is the flag of CREATE_SESSION that makes its connection carry
// callbacks.
const ConnBackChannel = 2

// OpCreateSession makes a session.
func OpCreateSession(flags uint32) XDR {
	channel := XDR{}.Word(0, 1<<20, 1<<20, 4096, 8, 16, 0)
	return op(43).Hyper(0x1234).Word(1, flags).Append(channel, channel).Word(programCallback, 1, 0)
}

// ResCreateSession is its result, with the flags that the server grants.
func ResCreateSession(flags uint32) XDR {
	channel := XDR{}.Word(0, 1<<20, 1<<20, 4096, 8, 16, 0)
	return res(43).Fixed([]byte(sessionID)).Word(1, flags).Append(channel, channel)
}

// OpBindConn binds the connection to a session: 1 fore, 2 back, 3 fore or both, 7
// back or both.
func OpBindConn(direction uint32) XDR { return op(41).Fixed([]byte(sessionID)).Word(direction, 0) }

// ResBindConn is its result: 1 fore, 2 back, 3 both.
func ResBindConn(direction uint32) XDR { return res(41).Fixed([]byte(sessionID)).Word(direction, 0) }

// OpReadPlus is READ_PLUS of NFSv4.2.
func OpReadPlus(offset uint64, count uint32) XDR {
	return op(68).Fixed([]byte(stateID)).Hyper(offset).Word(count)
}

// ResReadPlus is one piece of data, at an offset.
func ResReadPlus(offset uint64, data []byte) XDR {
	return res(68).Bool(true).Word(1, 0).Hyper(offset).Data(data)
}

// CBNull is the NULL Call of callbacks, which the server sends.
func CBNull() Call { return Call{Program: programCallback, Version: 1} }

// CBCompound is a CB_COMPOUND of NFSv4.1, which the server sends. Its Reply is a
// CompoundReply.
func CBCompound(operations ...XDR) Call {
	args := XDR{}.String("").Word(1, 0, uint32(len(operations))).Append(operations...)
	return Call{Program: programCallback, Version: 1, Procedure: 1, Args: args}
}

// OpCBSequence begins a CB_COMPOUND.
func OpCBSequence(sequence uint32) XDR {
	return op(11).Fixed([]byte(sessionID)).Word(sequence, 0, 0, 0, 0)
}

// ResCBSequence is its result.
func ResCBSequence(sequence uint32) XDR {
	return res(11).Fixed([]byte(sessionID)).Word(sequence, 0, 0, 0)
}

// OpCBRecall asks for a delegation back.
func OpCBRecall() XDR { return op(4).Fixed([]byte(stateID)).Word(0).String(nfsHandle) }

// ResCBRecall is its result.
func ResCBRecall() XDR { return res(4) }
