package synth

// The arguments of a COMPOUND (RFC 7530, RFC 8881) are the values of the Op functions, and its
// results are the values of the Res functions. Each is a piece of XDR that begins with the
// operation's number. DDP-eligible data keeps its place between them.

const (
	sessionID = "a session's name"             // 16 bytes
	stateID   = "\x00\x00\x00\x01a stateid..." // a seqid of 4 bytes, and 12 other bytes
)

// Compound returns a COMPOUND of NFSv4.1.
func Compound(operations ...XDR) Call { return Compound4(1, operations...) }

// Compound4 returns a COMPOUND of another minor version.
func Compound4(minor uint32, operations ...XDR) Call {
	args := XDR{}.String("").Word(minor, uint32(len(operations))).Append(operations...)
	return Call{Version: 4, Procedure: 1, Args: args}
}

// CompoundReply returns the Reply to a COMPOUND whose operations all succeeded.
func CompoundReply(results ...XDR) Reply { return CompoundFailed(0, results...) }

// CompoundFailed returns the Reply to a COMPOUND whose last operation failed with status.
func CompoundFailed(status uint32, results ...XDR) Reply {
	return Reply{Results: XDR{}.Word(status).String("").Word(uint32(len(results))).Append(results...)}
}

// op returns the number of an operation, and res the number and NFS4_OK.
func op(number uint32) XDR { return XDR{}.Word(number) }

func res(number uint32) XDR { return XDR{}.Word(number, 0) }

// ResFailed returns the result of an operation that failed: its number and a status.
func ResFailed(number, status uint32) XDR { return XDR{}.Word(number, status) }

// OpPutFH sets the current file handle.
func OpPutFH() XDR { return op(22).String(nfsHandle) }

// ResPutFH is the result of OpPutFH.
func ResPutFH() XDR { return res(22) }

// OpPutRootFH sets the current file handle to the root.
func OpPutRootFH() XDR { return op(24) }

// ResPutRootFH is the result of OpPutRootFH.
func ResPutRootFH() XDR { return res(24) }

// OpLookup looks up a name.
func OpLookup(name string) XDR { return op(15).String(name) }

// ResLookup is the result of OpLookup.
func ResLookup() XDR { return res(15) }

// OpGetAttr asks for the attributes "change" and "size".
func OpGetAttr() XDR { return op(9).Word(1, 0x18) }

// ResGetAttr is the result of OpGetAttr.
func ResGetAttr() XDR { return res(9).Word(1, 0x18, 16).Hyper(7, 8192) }

// OpRead reads from a file.
func OpRead(offset uint64, count uint32) XDR {
	return op(25).Fixed([]byte(stateID)).Hyper(offset).Word(count)
}

// ResRead is the result of OpRead. The data is DDP-eligible.
func ResRead(data []byte) XDR { return res(25).Bool(true).Data(data) }

// OpWrite writes to a file. The data is DDP-eligible.
func OpWrite(offset uint64, data []byte) XDR {
	return op(38).Fixed([]byte(stateID)).Hyper(offset).Word(2).Data(data)
}

// ResWrite is the result of OpWrite, with the number of bytes written.
func ResWrite(count uint32) XDR { return res(38).Word(count, 2).Hyper(0x1122334455667788) }

// OpReadLink asks for the target of a symbolic link.
func OpReadLink() XDR { return op(27) }

// ResReadLink is the result of OpReadLink. The target is DDP-eligible.
func ResReadLink(target string) XDR { return res(27).Data([]byte(target)) }

// OpSymlink is a CREATE of a symbolic link. The target is DDP-eligible.
func OpSymlink(name, target string) XDR {
	return op(6).Word(5).Data([]byte(target)).String(name).Word(0, 0)
}

// ResCreate is the result of OpSymlink.
func ResCreate() XDR { return res(6).Bool(true).Hyper(1, 2).Word(0) }

// OpReadDir lists a directory in a Reply of at most maxCount bytes.
func OpReadDir(maxCount uint32) XDR { return op(26).Hyper(0, 0).Word(maxCount, maxCount, 1, 0x18) }

// ResReadDir is the result of OpReadDir, a list of names.
func ResReadDir(names ...string) XDR {
	x := res(26).Hyper(1)
	for i, name := range names {
		x = x.Word(1).Hyper(uint64(i+3)).String(name).Word(1, 0x18, 16).Hyper(7, 8192)
	}
	return x.Word(0, 1)
}

// OpSequence is the first operation of a COMPOUND in a session.
func OpSequence(sequence uint32) XDR { return op(53).Fixed([]byte(sessionID)).Word(sequence, 0, 0, 1) }

// ResSequence is the result of OpSequence.
func ResSequence(sequence uint32) XDR {
	return res(53).Fixed([]byte(sessionID)).Word(sequence, 0, 7, 7, 0)
}

// ConnBackChannel is the flag of CREATE_SESSION that makes its connection carry callbacks.
const ConnBackChannel = 2

// OpCreateSession creates a session.
func OpCreateSession(flags uint32) XDR {
	channel := XDR{}.Word(0, 1<<20, 1<<20, 4096, 8, 16, 0)
	return op(43).Hyper(0x1234).Word(1, flags).Append(channel, channel).Word(programCallback, 1, 0)
}

// ResCreateSession is the result of OpCreateSession, with the flags that the server grants.
func ResCreateSession(flags uint32) XDR { return ResCreateSessionOf(flags, 1<<20) }

// ResCreateSessionOf is ResCreateSession with the ca_maxresponsesize of both channels.
func ResCreateSessionOf(flags, responseSize uint32) XDR {
	channel := XDR{}.Word(0, 1<<20, responseSize, 4096, 8, 16, 0)
	return res(43).Fixed([]byte(sessionID)).Word(1, flags).Append(channel, channel)
}

// OpDestroySession destroys the session, and ResDestroySession is its result.
func OpDestroySession() XDR  { return op(44).Fixed([]byte(sessionID)) }
func ResDestroySession() XDR { return res(44) }

// OpBindConn binds the connection to a session. The direction is 1 for fore, 2 for back, 3
// for fore or both, 7 for back or both.
func OpBindConn(direction uint32) XDR { return op(41).Fixed([]byte(sessionID)).Word(direction, 0) }

// ResBindConn is the result of OpBindConn. The direction is 1 for fore, 2 for back, 3 for
// both.
func ResBindConn(direction uint32) XDR { return res(41).Fixed([]byte(sessionID)).Word(direction, 0) }

// OpReadPlus is the READ_PLUS of NFSv4.2.
func OpReadPlus(offset uint64, count uint32) XDR {
	return op(68).Fixed([]byte(stateID)).Hyper(offset).Word(count)
}

// ResReadPlus is the result of OpReadPlus: one piece of data at an offset.
func ResReadPlus(offset uint64, data []byte) XDR {
	return res(68).Bool(true).Word(1, 0).Hyper(offset).Data(data)
}

// CBNull returns the NULL Call of callbacks, which the server sends.
func CBNull() Call { return Call{Program: programCallback, Version: 1} }

// CBCompound returns a CB_COMPOUND of NFSv4.1, which the server sends. Use CompoundReply for
// its Reply.
func CBCompound(operations ...XDR) Call {
	args := XDR{}.String("").Word(1, 0, uint32(len(operations))).Append(operations...)
	return Call{Program: programCallback, Version: 1, Procedure: 1, Args: args}
}

// OpCBSequence is the first operation of a CB_COMPOUND.
func OpCBSequence(sequence uint32) XDR {
	return op(11).Fixed([]byte(sessionID)).Word(sequence, 0, 0, 0, 0)
}

// ResCBSequence is the result of OpCBSequence.
func ResCBSequence(sequence uint32) XDR {
	return res(11).Fixed([]byte(sessionID)).Word(sequence, 0, 0, 0)
}

// OpCBRecall recalls a delegation.
func OpCBRecall() XDR { return op(4).Fixed([]byte(stateID)).Word(0).String(nfsHandle) }

// ResCBRecall is the result of OpCBRecall.
func ResCBRecall() XDR { return res(4) }
