package synth

// The most frequent Calls and Replies of NFSv2 and NFSv3 (RFC 1094, RFC 1813). All Calls use
// the same file handle. Replies of NFSv3 contain no optional attributes, unless noted.

// nfsHandle is the file handle in all Calls, 16 bytes.
const nfsHandle = "a file's handle."

// v3 returns a Call of NFSv3 whose first argument is the file handle.
func v3(procedure uint32) Call {
	return Call{Version: 3, Procedure: procedure, Args: XDR{}.String(nfsHandle)}
}

// with returns the Call with more arguments.
func (c Call) with(args XDR) Call {
	c.Args = c.Args.Append(args)
	return c
}

// Failed returns the Reply of a procedure that failed: the status, and the words that follow
// it in this procedure. A 0 stands for a set of attributes that is absent.
func Failed(status uint32, words ...uint32) Reply {
	return Reply{Results: XDR{}.Word(status).Word(words...)}
}

// Getattr3 returns a Call for attributes.
func Getattr3() Call { return v3(1) }

// Getattr3Reply returns a Reply with all attributes, 84 bytes.
func Getattr3Reply() Reply {
	fattr := XDR{}.Word(0, 1, 0o644, 1, 0, 0).Hyper(8192, 8192).Word(0, 0).Hyper(1, 2).Word(1, 0, 1, 0, 1, 0)
	return Reply{Results: fattr}
}

// Readlink3 returns a Call for the target of a symbolic link.
func Readlink3() Call { return v3(5) }

// Readlink3Reply returns the Reply to it. The target is DDP-eligible.
func Readlink3Reply(target string) Reply {
	return Reply{Results: XDR{}.Word(0, 0).Data([]byte(target))}
}

// Read3 returns a Call that reads from a file.
func Read3(offset uint64, count uint32) Call { return v3(6).with(XDR{}.Hyper(offset).Word(count)) }

// Read3Reply returns the Reply to it. The data is DDP-eligible.
func Read3Reply(data []byte) Reply {
	return Reply{Results: XDR{}.Word(0, 0).Word(uint32(len(data))).Bool(true).Data(data)}
}

// Write3 returns a Call that writes to a file. The data is DDP-eligible.
func Write3(offset uint64, data []byte) Call {
	return v3(7).with(XDR{}.Hyper(offset).Word(uint32(len(data)), 2).Data(data))
}

// Write3Reply returns the Reply to it, with the number of bytes written.
func Write3Reply(count uint32) Reply {
	return Reply{Results: XDR{}.Word(0, 0, 0).Word(count, 2).Hyper(0x1122334455667788)}
}

// Symlink3 returns a Call that creates a symbolic link. The target is DDP-eligible.
func Symlink3(name, target string) Call {
	return v3(10).with(XDR{}.String(name).Word(0, 0, 0, 0, 0, 0).Data([]byte(target)))
}

// Symlink3Reply returns the Reply to it.
func Symlink3Reply() Reply {
	return Reply{Results: XDR{}.Word(0, 1).String(nfsHandle).Word(0, 0, 0)}
}

// Readdir3 returns a Call that lists a directory in a Reply of at most count bytes.
func Readdir3(count uint32) Call { return v3(16).with(XDR{}.Hyper(0, 0).Word(count)) }

// Readdir3Reply returns the Reply to it, a list of names.
func Readdir3Reply(names ...string) Reply {
	x := XDR{}.Word(0, 0).Hyper(1)
	for i, name := range names {
		x = x.Word(1).Hyper(uint64(i + 1)).String(name).Hyper(uint64(i + 1))
	}
	return Reply{Results: x.Word(0, 1)}
}

// Readdirplus3 returns a Call that lists a directory, with attributes and handles, in a
// Reply of at most maxCount bytes.
func Readdirplus3(maxCount uint32) Call {
	return v3(17).with(XDR{}.Hyper(0, 0).Word(maxCount, maxCount))
}

// Readdirplus3Reply returns the Reply to it, a list of names without attributes and handles.
func Readdirplus3Reply(names ...string) Reply {
	x := XDR{}.Word(0, 0).Hyper(1)
	for i, name := range names {
		x = x.Word(1).Hyper(uint64(i+1)).String(name).Hyper(uint64(i+1)).Word(0, 0)
	}
	return Reply{Results: x.Word(0, 1)}
}

// v2 returns a Call of NFSv2 whose first argument is the file handle.
func v2(procedure uint32) Call {
	return Call{Version: 2, Procedure: procedure, Args: XDR{}.Fixed([]byte(nfsHandle + nfsHandle))}
}

// fattr2 returns attributes of NFSv2, 17 words.
func fattr2() XDR { return XDR{}.Word(1, 0o644, 1, 0, 0, 8192, 4096, 0, 2, 1, 2, 1, 0, 1, 0, 1, 0) }

// Readlink2 is Readlink3 for NFSv2.
func Readlink2() Call { return v2(5) }

// Readlink2Reply is Readlink3Reply for NFSv2.
func Readlink2Reply(target string) Reply { return Reply{Results: XDR{}.Word(0).Data([]byte(target))} }

// Read2 is Read3 for NFSv2.
func Read2(offset, count uint32) Call { return v2(6).with(XDR{}.Word(offset, count, 0)) }

// Read2Reply is Read3Reply for NFSv2.
func Read2Reply(data []byte) Reply { return Reply{Results: XDR{}.Word(0).Append(fattr2()).Data(data)} }

// Write2 is Write3 for NFSv2.
func Write2(offset uint32, data []byte) Call { return v2(8).with(XDR{}.Word(0, offset, 0).Data(data)) }

// Write2Reply is Write3Reply for NFSv2.
func Write2Reply() Reply { return Reply{Results: XDR{}.Word(0).Append(fattr2())} }

// Symlink2 is Symlink3 for NFSv2.
func Symlink2(name, target string) Call {
	return v2(13).with(XDR{}.String(name).Data([]byte(target)).Word(0o777, 0, 0, 0, 0, 0, 0, 0))
}

// Symlink2Reply is Symlink3Reply for NFSv2.
func Symlink2Reply() Reply { return Reply{Results: XDR{}.Word(0)} }
