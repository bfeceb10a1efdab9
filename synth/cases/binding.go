package cases

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about the NFS binding (RFC 8267).

// at returns a Call with the Position of its first Read chunk changed.
func at(call synth.Call, by int32) synth.Call {
	call.Reads = slices.Clone(call.Reads)
	call.Reads[0].Position += uint32(by)
	return call
}

// sized returns a Call with the length of its first Read chunk changed.
func sized(call synth.Call, length uint32) synth.Call {
	call.Reads = slices.Clone(call.Reads)
	call.Reads[0].Length = length
	return call
}

// padded returns a Call in which the XDR pads of reduced items remain.
func padded(call synth.Call) synth.Call {
	call.Args.Items = slices.Clone(call.Args.Items)
	for i := range call.Args.Items {
		call.Args.Items[i].KeepPad = true
	}
	return call
}

// split returns a Call whose only data item has its first n bytes in the Send, and the rest in a Read chunk.
func split(call synth.Call, n int) synth.Call {
	item := call.Args.Items[0]
	rest := item.Data[n:]
	call.Args.Bytes = slices.Insert(slices.Clone(call.Args.Bytes), item.At, item.Data[:n]...)
	call.Args.Items = []synth.Item{{At: item.At + n, Data: rest, Reduced: true}}
	call.Reads = synth.ReadChunk(call.Message().Position(0), synth.Mem(0xa1, uint32(len(rest))))
	return call
}

// write4 returns a COMPOUND with a WRITE that another operation follows.
func write4(n int) synth.Call {
	return onFile(synth.OpWrite(0, data(n)), synth.OpGetAttr())
}

// tagged returns a COMPOUND that consists of a long tag.
func tagged() synth.Call {
	return opened(100003, 4, 1, synth.XDR{}.Data([]byte("what a long tag")).Word(1, 0))
}

// twoWrites is a COMPOUND with two WRITEs. The segments of its two Read chunks alternate in the
// Read list.
var twoWrites = alternating(onFile(synth.OpWrite(0, data(4000)), synth.OpWrite(4000, data(3000))).Reduce(0xa1, 0xa2))

// alternating returns a Call whose first Read chunk has a second segment, at the end of the list.
func alternating(call synth.Call) synth.Call {
	first := call.Reads[0]
	rest := first
	rest.Length -= 1000
	rest.Offset += 1000
	first.Length = 1000
	call.Reads = slices.Concat([]rpcrdma.ReadSegment{first}, call.Reads[1:], []rpcrdma.ReadSegment{rest})
	return call
}

func write4Reply(n int) synth.Reply {
	return fileReply(synth.ResWrite(uint32(n)), synth.ResGetAttr())
}

// opened returns a Call of any program. Its arguments may mark items as DDP-eligible that are
// not.
func opened(program, version, procedure uint32, args synth.XDR) synth.Call {
	return synth.Call{Program: program, Version: version, Procedure: procedure, Args: args}
}

var lookup = opened(100003, 3, 3, synth.XDR{}.String("a file's handle.").Data([]byte("a name that is long")))

// protected returns a READ or WRITE with an RPCSEC_GSS credential.
func protected(call synth.Call, s oncrpc.Service) synth.Call {
	call.Cred = synth.GSS(s, 1)
	return call
}

// control returns a Call that creates an RPCSEC_GSS context.
func control() synth.Call {
	cred := oncrpc.Auth{Flavor: oncrpc.AuthRPCSECGSS, Body: synth.XDR{}.Word(1, 1, 0, uint32(oncrpc.ServiceNone)).Opaque(nil).Bytes}
	return synth.Call{Cred: cred, Args: synth.XDR{}.Opaque(data(100))}
}

var (
	oneRead4  = onFile(synth.OpRead(0, 4096)).Offer(mem).Offer(mem2)
	bothRead  = fileReply(synth.ResRead(data(4096)), synth.ResRead(data(4096)))
	twoReads4 = onFile(synth.OpRead(0, 4096), synth.OpRead(4096, 4096)).Offer(mem).Offer(mem2)
)

// twoReads reads twice into two Write chunks, of which one READ returns no data. The data is in a chunk.
func twoReads(first, second []byte, chunk int) script {
	return whole(twoReads4,
		fileReply(synth.ResRead(first), synth.ResRead(second)),
		func(r *synth.Reply) {
			items := r.Results.Items
			if size := len(items[0].Data) + len(items[1].Data); chunk == 1 {
				r.Writes[0][0].Length, r.Writes[1][0].Length = 0, uint32(size)
			} else {
				r.Writes[0][0].Length, r.Writes[1][0].Length = uint32(size), 0
			}
			items[0].Data, items[1].Data = pick(chunk == 0, data(4096)), pick(chunk == 1, data(4096))
		})
}

// results sends a COMPOUND with READs of these lengths and a number of Write chunks. In says where each result is: the number
// of a chunk, or "-" for the Send.
func results(chunks int, in string, lengths ...int) script {
	return func(c *conn) {
		ops, res := []synth.XDR{synth.OpPutFH()}, []synth.XDR{synth.ResPutFH()}
		for _, n := range lengths {
			ops, res = append(ops, synth.OpRead(0, uint32(n))), append(res, synth.ResRead(data(n)))
		}
		call := synth.Compound(ops...)
		for i := range chunks {
			call = call.Offer(synth.Mem(0xa1+uint32(i), 4096))
		}
		call.XID = 77
		r := synth.CompoundReply(res...).To(call)
		for i := range r.Writes {
			r.Writes[i][0].Length = 0
		}
		send(c.Client, call)
		for i, chunk := range in {
			item := &r.Results.Items[i]
			if item.Reduced = chunk != '-'; item.Reduced {
				segment := &r.Writes[chunk-'0'][0]
				segment.Length = uint32(len(item.Data))
				c.Server.Write(segment.Handle, segment.Offset, item.Data)
			}
		}
		answer(c.Server, r)
	}
}

// withCount returns x with the count of its first item moved to the item.
func withCount(x synth.XDR) synth.XDR {
	at, item := x.Items[0].At, x.Items[0].Data
	x.Items = slices.Clone(x.Items)
	x.Items[0] = synth.Item{At: at - 4, Data: slices.Concat(x.Bytes[at-4:at], item), Reduced: true}
	x.Bytes = slices.Delete(slices.Clone(x.Bytes), at-4, at)
	return x
}

// counted sends an exchange in which the Write chunk contains the count of the data item, too.
func counted(call synth.Call, reply synth.Reply) script {
	return whole(call, reply, func(r *synth.Reply) {
		r.Results = withCount(r.Results)
		r.Writes[0][0].Length = uint32(len(r.Results.Items[0].Data))
	})
}

// countMoved returns a Call with a Read chunk that contains the count of its data item, too.
func countMoved(call synth.Call) synth.Call {
	call.Args = withCount(call.Args)
	call.Reads = synth.ReadChunk(call.Message().Position(0), synth.Mem(0xa1, uint32(len(call.Args.Items[0].Data))))
	return call
}

// cutReply sends a READDIR whose Long Reply says that the Reply chunk has fewer bytes than were written.
func cutReply(c *conn) {
	call := numbered(listing)
	r := longNames.To(call)
	send(c.Client, call)
	c.Server.Push(r)
	r.ReplyChunk[0].Length = 60
	answer(c.Server, r)
}

var (
	longNames      = synth.Readdir3Reply("a", "b", "c", "d").Long()
	link           = synth.Symlink3("name", "a target")
	longLink       = synth.Symlink3("name", "a target of a symbolic link")
	link4          = onFile(synth.OpSymlink("name", "a target")).Reduce(0xa1)
	link4Reply     = fileReply(synth.ResCreate())
	readlink       = synth.Readlink3().Offer(mem)
	aTarget        = synth.Readlink3Reply("a target")
	readlinkTarget = synth.Readlink3Reply("the target")
)

// pick returns data if it is wanted.
func pick(wanted bool, data []byte) []byte {
	if wanted {
		return data
	}
	return nil
}

// integral returns a Call with its arguments in the layout of the integrity service.
func integral(call synth.Call) synth.Call {
	call = protected(call, oncrpc.ServiceIntegrity)
	call.Args = checked(call.Args)
	return call
}

func integralReply(r synth.Reply) synth.Reply {
	r.Results = checked(r.Results)
	return r
}

// checked returns a body in the layout of the integrity service (RFC 2203 s.5.3.2.2).
func checked(body synth.XDR) synth.XDR {
	return synth.XDR{}.Word(uint32(4+len(body.Whole())), 1).Append(body).Opaque(data(16))
}

// inline sends the Reply with its data in the Send, although there are chunks.
func inline(call synth.Call, reply synth.Reply) script {
	return whole(call, reply, func(r *synth.Reply) {
		for i := range r.Results.Items {
			r.Results.Items[i].Reduced = false
		}
		for i := range r.Writes {
			for k := range r.Writes[i] {
				r.Writes[i][k].Length = 0
			}
		}
	})
}

// listIn creates a session whose Replies have at most responseSize bytes, and lists a directory in it
// without a Reply chunk.
func listIn(responseSize uint32) script {
	return inTurn(
		does(synth.Compound(synth.OpCreateSession(0)), synth.CompoundReply(synth.ResCreateSessionOf(0, responseSize))),
		does(synth.Compound(synth.OpSequence(1), synth.OpPutFH(), synth.OpReadDir(32768)),
			synth.CompoundReply(synth.ResSequence(1), synth.ResPutFH(), synth.ResReadDir("a"))))
}

// failedAfterWrites returns a script that sends a READ, RDMA Writes of 2000 bytes, and a Reply
// that says that the READ failed and returns length bytes in the Write chunk. The responder may
// have written data before the READ failed.
func failedAfterWrites(length uint32) script {
	return func(c *conn) {
		call := numbered(onFile(synth.OpRead(0, 4096)).Offer(mem))
		send(c.Client, call)
		c.Server.Write(0xa1, mem.Offset, data(2000))
		r := synth.CompoundFailed(5, synth.ResPutFH(), synth.ResFailed(25, 5)).To(call)
		r.Writes[0][0].Length = length
		answer(c.Server, r)
	}
}

// Changes of a Reply: the lengths that it returns, and a pad that is left.
func returns(length uint32) func(*synth.Reply) {
	return func(r *synth.Reply) { r.Writes[0][0].Length = length }
}

func returnsReply(length uint32) func(*synth.Reply) {
	return func(r *synth.Reply) { r.ReplyChunk[0].Length = length }
}

func keepsPad(r *synth.Reply) { r.Results.Items[0].KeepPad = true }

var nothing = synth.Write3(0, nil).Reduce(0xa1)

var small = synth.Mem(0xa1, 512)

var binding = []Case{
	client("read-position-invalid", "beyond the Payload stream", calls(at(write(), 4000)), writes),
	client("read-position-invalid", "one word too far", calls(at(write(), -4)), writes),
	server("write-chunk-unused", "by the first of two results, the second in chunk 0",
		results(1, "-0", 600, 500), results(1, "0-", 600, 500)),
	server("write-chunk-unused", "by the first of two results of one length", results(1, "-0", 600, 600), results(1, "0-", 600, 600)),
	server("write-chunk-unused", "by the first of two results, with two chunks", results(2, "-1", 600, 500), results(2, "01", 600, 500)),
	server("write-chunk-unused", "by the second of three results", results(2, "0-1", 600, 400, 500), results(3, "012", 600, 400, 500)),
	server("chunk-length-mismatch", "the count of a READLINK is in the chunk",
		counted(readlink, readlinkTarget), does(readlink, readlinkTarget)),
	server("chunk-length-mismatch", "the count of a READ is in the chunk", counted(read(), readReply()), reads),
	server("chunk-length-mismatch", "a Long Reply that is cut by its returned length", cutReply, does(listing, longNames)),
	client("read-position-invalid", "of the count of a WRITE", calls(countMoved(write())), writes),
	client("read-position-invalid", "of the count of a WRITE in a COMPOUND",
		calls(countMoved(write4(1000).Reduce(0xa1))), does(write4(1000).Reduce(0xa1), write4Reply(1000))),
	client("read-position-invalid", "of an empty chunk", calls(at(nothing, -4)), does(nothing, synth.Write3Reply(0))),
	client("read-position-invalid", "of an empty chunk in a COMPOUND",
		calls(at(write4(0).Reduce(0xa1), -4)), does(write4(0).Reduce(0xa1), write4Reply(0))),
	client("chunk-length-mismatch", "a WRITE of no bytes with a chunk", calls(sized(nothing, 8)), does(nothing, synth.Write3Reply(0))),
	client("reduced-ineligible-item", "the tag of a COMPOUND",
		does(tagged().Reduce(0xa1), synth.CompoundReply()), does(tagged(), synth.CompoundReply())),
	client("long-call-position", "the tag of a COMPOUND",
		does(tagged().Reduce(0xa1).Long(0xa2), synth.CompoundReply()), does(tagged(), synth.CompoundReply())),
	client("read-position-invalid", "of two chunks whose segments alternate in the Read list",
		calls(at(twoWrites, 4)), does(twoWrites, fileReply(synth.ResWrite(4000), synth.ResWrite(3000)))),
	client("read-position-invalid", "of the rest of a data item",
		calls(split(write3(2000), 1000)), does(write3(2000).Reduce(0xa1), synth.Write3Reply(2000))),
	client("long-call-position", "of the rest of a data item",
		func(c *conn) {
			call := numbered(split(longLink, 8))
			m := call.Message().Inline()
			call.Proc, call.Reads = rpcrdma.NoMsg, append(synth.ReadChunk(0, synth.Mem(0xa2, uint32(len(m)))), call.Reads...)
			exchange(c, call, symlinkReply.To(call))
		},
		does(longLink.Reduce(0xa1).Long(0xa2), symlinkReply)),
	client("read-position-invalid", "in a COMPOUND",
		calls(at(write4(4096).Reduce(0xa1), 8)), does(write4(4096).Reduce(0xa1), write4Reply(4096))),
	client("read-position-invalid", "in the RPC header",
		calls(synth.Call{Cred: synth.AuthSys(0, 0), Reads: synth.ReadChunk(16, small)}), trusts(synth.AuthSys(0, 0))),
	client("read-position-invalid", "of a Call that is complete without chunks",
		func(c *conn) {
			call := getattr
			call.Reads = synth.ReadChunk(40, small)
			send(c.Client, call)
		},
		does(getattr, synth.Getattr3Reply())),

	client("chunk-length-mismatch", "a WRITE with less", does(sized(write(), 4000), writeReply()), writes),
	client("chunk-length-mismatch", "a WRITE with more",
		does(sized(write3(4093).Reduce(0xa1), 4097), synth.Write3Reply(4093)),
		does(sized(write3(4093).Reduce(0xa1), 4096), synth.Write3Reply(4093))), // the chunk may include the XDR round-up
	client("chunk-length-mismatch", "a SYMLINK", does(sized(link.Reduce(0xa1), 12), symlinkReply), does(link.Reduce(0xa1), symlinkReply)),
	client("chunk-length-mismatch", "a WRITE of NFSv2",
		does(sized(synth.Write2(0, data(4096)).Reduce(0xa1), 4092), synth.Write2Reply()),
		does(synth.Write2(0, data(4096)).Reduce(0xa1), synth.Write2Reply())),
	client("chunk-length-mismatch", "a CREATE of NFSv4", does(sized(link4, 16), link4Reply), does(link4, link4Reply)),
	edits("chunk-length-mismatch", "the result of a READ", read(), read3Reply(4000), returns(3000)),
	edits("chunk-length-mismatch", "the result of a READLINK", readlink, aTarget, returns(40)),

	client("reduced-pad-left", "nothing after it",
		does(padded(write3(4093).Reduce(0xa1)), synth.Write3Reply(4093)), does(write3(4093).Reduce(0xa1), synth.Write3Reply(4093))),
	client("reduced-pad-left", "what follows does not parse",
		does(padded(write4(4093).Reduce(0xa1)), write4Reply(4093)), does(write4(4093).Reduce(0xa1), write4Reply(4093))),
	edits("reduced-pad-left", "in a Reply", read(), read3Reply(4001), keepsPad),
	edits("reduced-pad-left", "in the Reply to a COMPOUND",
		onFile(synth.OpRead(0, 4096), synth.OpGetAttr()).Offer(mem), fileReply(synth.ResRead(data(4001)), synth.ResGetAttr()), keepsPad),

	edits("pad-written", "and returned", read(), read3Reply(6), returns(8)),
	server("pad-written", "not returned",
		func(c *conn) {
			call := numbered(read())
			r := read3Reply(6).To(call)
			c.Client.Call(call)
			c.Server.Write(0xa1, mem.Offset, data(8))
			answer(c.Server, r)
		},
		does(read(), read3Reply(8))),

	server("write-chunk-unused", "data in the Send", inline(readSmall, read3Reply(512)), does(readSmall, read3Reply(512))),
	edits("write-chunk-unused", "past the first",
		oneRead4, fileReply(synth.ResRead(data(4000))), func(r *synth.Reply) { r.Writes[0][0].Length, r.Writes[1][0].Length = 0, 4000 }),
	edits("write-chunk-unused", "the second result in the Send",
		onFile(synth.OpRead(0, 4096), synth.OpRead(4096, 500)).Offer(mem).Offer(mem2),
		fileReply(synth.ResRead(data(4096)), synth.ResRead(data(500))),
		func(r *synth.Reply) { r.Results.Items[1].Reduced = false; r.Writes[1][0].Length = 0 }),
	server("write-chunk-unused", "the first result in the second chunk, the second being empty",
		twoReads(data(4096), nil, 1), twoReads(data(4096), nil, 0)),
	server("write-chunk-unused", "an empty result may use a chunk or none", twoReads(data(4096), nil, 1), twoReads(nil, data(4096), 1)),
	server("write-chunk-unused", "an empty result need not use a chunk", twoReads(data(4096), nil, 1), twoReads(nil, data(4096), 0)),
	server("write-chunk-unused", "a READ that failed uses none",
		inline(readlink, aTarget), does(wholeRead.Offer(mem), synth.Failed(5, 0))),
	edits("unused-chunk-length", "a READ that failed", read(), synth.Failed(5, 0), returns(4096)),
	server("unused-chunk-length", "a READ that failed in a COMPOUND, after data was written",
		failedAfterWrites(2000), failedAfterWrites(0)),
	edits("unused-chunk-length", "an RPC that was rejected", read(), synth.Reply{Accept: 5}, returns(4096)),
	server("unused-chunk-length", "a result that is in the Send",
		whole(readSmall, read3Reply(512), func(r *synth.Reply) { r.Results.Items[0].Reduced = false }),
		inline(readSmall, read3Reply(512))),
	edits("unused-chunk-length", "the end of the file", read(), synth.Read3Reply(nil), returns(4096)),
	edits("unused-chunk-length", "the second of two Write chunks",
		read().Offer(mem2), readReply(), func(r *synth.Reply) { r.Writes[1][0].Length = 100 }),
	edits("unused-chunk-length", "a Reply chunk under RDMA_MSG", listing, synth.Readdir3Reply("a", "b"), returnsReply(4096)),
	server("unused-chunk-length", "a Long Reply uses the chunk", whole(listing, synth.Readdir3Reply("a", "b"), returnsReply(1)), lists),
	client("write-chunk-too-short", "a READ", does(synth.Read3(0, 4100).Offer(mem), read3Reply(4096)), reads),
	client("write-chunk-too-short", "the second READ of a COMPOUND",
		does(onFile(synth.OpRead(0, 4096), synth.OpRead(0, 5000)).Offer(mem).Offer(mem2),
			bothRead),
		does(onFile(synth.OpRead(0, 4096), synth.OpRead(0, 4096)).Offer(mem).Offer(mem2),
			bothRead)),
	client("write-chunk-too-short", "a Write chunk of no segments",
		inline(synth.Read3(0, 512).Offer(), read3Reply(512)), inline(synth.Read3(0, 512), read3Reply(512))),
	client("write-chunk-room-for-pad", "a READ", does(synth.Read3(0, 4094).Offer(mem), read3Reply(4094)), reads),
	client("reply-chunk-missing", "a READ that is too long",
		does(synth.Read3(0, 8192), read3Reply(8192)), does(synth.Read3(0, 8192).Offer(synth.Mem(0xa1, 8192)), read3Reply(8192))),
	client("reply-chunk-missing", "a READDIR whose Reply happens to fit",
		does(synth.Readdir3(8192), shortListing), does(synth.Readdir3(4000), shortListing)),
	client("reply-chunk-missing", "a Reply chunk that is too small for a Reply that fits",
		does(synth.Readdir3(8192).OfferReply(mem), shortListing),
		does(synth.Readdir3(8192).OfferReply(synth.Mem(0xa1, 8300)), shortListing)),
	client("reply-chunk-missing", "a READDIR in a session", listIn(1<<20), listIn(4000)),
	client("reply-chunk-missing", "a READDIR that is refused", does(synth.Readdir3(32768), chunkError), lists),
	client("reply-chunk-missing", "a Reply chunk that is too small",
		does(synth.Readdir3(32768).OfferReply(mem), chunkError),
		does(synth.Readdir3(32768).OfferReply(synth.Mem(0xa1, 40000)), listingReply)),

	client("reduced-ineligible-item", "a name", calls(lookup.Reduce(0xa1)), writes),
	server("reduced-ineligible-item", "a name, answered with success",
		does(lookup.Reduce(0xa1), synth.Reply{Results: synth.XDR{}.Word(0).String("a file's handle.").Word(0, 0)}), writes),
	client("reduced-ineligible-item", "a path of MOUNT",
		calls(opened(100005, 3, 1, synth.XDR{}.Data([]byte("/export/home"))).Reduce(0xa1)),
		does(opened(100005, 3, 1, synth.XDR{}.String("/export/home")), synth.Failed(2))),
	client("reduced-ineligible-item", "the credential", calls(reducedCredential(1)), trusts(synth.AuthSys(0, 0))),
	client("reduced-ineligible-item", "a Write chunk for a READDIR",
		does(synth.Readdir3(4096).Offer(mem), shortListing), does(listing, shortListing)),
	client("reduced-ineligible-item", "a Write chunk for an operation of a COMPOUND",
		does(onFile(synth.OpGetAttr()).Offer(mem), fileReply(synth.ResGetAttr())),
		does(onFile(synth.OpReadLink()).Offer(mem), fileReply(synth.ResReadLink("a target")))),
	client("reduced-ineligible-item", "six Write chunks for a READ",
		does(read().Offer(mem2).Offer(mem2).Offer(mem2).Offer(mem2).Offer(mem2), readReply()), reads),
	client("reduced-ineligible-item", "more Write chunks than READs",
		does(oneRead4, fileReply(synth.ResRead(data(4096)))),
		does(twoReads4,
			bothRead)),
	client("reduced-ineligible-item", "a Reply chunk without segments",
		does(synth.Readdir3(512).OfferReply(), shortListing), does(synth.Readdir3(512).OfferReply(small), shortListing)),
	server("reduced-ineligible-item", "names of a READDIR", whole(synth.Readdir3(4096).Offer(mem), shortListing, returns(100)), lists),

	client("reduced-under-gss", "a WRITE with integrity",
		calls(integral(write3(1000)).Reduce(0xa1)), does(integral(write3(1000)), integralReply(synth.Write3Reply(1000)))),
	client("reduced-under-gss", "a WRITE with privacy",
		calls(protected(write3(1000).Reduce(0xa1), oncrpc.ServicePrivacy)),
		does(protected(write3(1000), oncrpc.ServiceNone).Reduce(0xa1), synth.Write3Reply(1000))),
	client("reduced-under-gss", "a Write chunk for a READ with integrity",
		inline(integral(synth.Read3(0, 512)).Offer(mem), integralReply(read3Reply(512))),
		does(integral(synth.Read3(0, 512)), integralReply(read3Reply(512)))),
	client("reduced-under-gss", "a Write chunk for a READ with privacy",
		calls(protected(readSmall, oncrpc.ServicePrivacy)),
		does(protected(synth.Read3(0, 512), oncrpc.ServiceNone).Offer(mem), read3Reply(512))),
	client("reduced-under-gss", "a Write chunk for a control message", calls(control().Offer(mem)), calls(control().OfferReply(mem))),
	server("reduced-under-gss", "the result of a READ",
		does(integral(wholeRead).Offer(mem), integralReply(readReply())),
		does(protected(wholeRead, oncrpc.ServiceNone).Offer(mem), readReply())),
	client("reduced-under-gss", "the credential", calls(reducedCredential(6)), does(protected(null, oncrpc.ServiceNone), nullReply)),
}

// reducedCredential returns a NULL Call whose credential, of the given flavor, is in a Read
// chunk.
func reducedCredential(flavor uint32) synth.Call {
	x := synth.XDR{}.Word(7, 0, 2, 100003, 3, 0, flavor).Data(data(40)).Word(0, 0)
	x.Items[0].Reduced = true
	return synth.Call{XID: 7, RPC: &x, Reads: synth.ReadChunk(32, synth.Mem(0xa1, 40))}
}
