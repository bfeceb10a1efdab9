package rule

// Scope returns a filter for the RPCs of which the rule can be violated, and for which a capture can show it. It is empty for
// all RPCs whose Call is in the capture.
func (r *Rule) Scope() string { return scopes[r.ID] }

// scopes has the scopes of rules that are not about all RPCs.
var scopes = map[string]string{
	LongCallPosition.ID: withRead, PositionUnaligned.ID: withRead, PositionInvalid.ID: withRead,
	ReplyBeforeReads.ID: withRead, ReadChunkNotRead.ID: withRead,
	PadWritten.ID: withWrite, WriteListNotCopied.ID: withWrite, WriteChunkUnused.ID: withWrite, WriteChunkTooShort.ID: withWrite,
	WriteChunkRoomForPad.ID: withWrite,
	ReplyChunkNotCopied.ID:  "reply_chunk != null or findings == \"reply-chunk-not-copied\"", // A Reply may have a chunk that its Call did not offer.
	ChunkLengthMismatch.ID:  withMemory, ReturnedTooLong.ID: withMemory, ReturnedNotSeen.ID: withMemory, FilledOutOfOrder.ID: withMemory,
	UnusedChunkLength.ID: withMemory, ReducedPadLeft.ID: withMemory, EmptySegment.ID: withMemory, MemoryExposedTwice.ID: withMemory,
}

// The scopes that several rules have: of Calls that offer Read chunks, Write chunks, or any chunk.
const (
	withRead   = "len(read_chunks) > 0"
	withWrite  = "len(write_chunks) > 0"
	withMemory = "len(read_chunks) > 0 or len(write_chunks) > 0 or reply_chunk != null"
)
