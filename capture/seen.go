package capture

// Seen is what a capture at several points shows of one packet.
type Seen struct {
	Sent          int64 // time at which the packet left its sender's point; 0 if it was not captured there
	Arrived       int64 // time at which it came to its receiver's point; 0 if it was not captured there
	Fate          Fate
	Key           uint64 // equal for retransmissions of the packet; 0 if it has none
	Point         int    // index of the point that captured the frame
	SentPoint     int    // index of the point that captured the packet first
	SentNumber    int64  // number of the frame at that point; 0 if it was not captured there
	ArrivedPoint  int    // index of the point nearest to the receiver
	ArrivedNumber int64  // number of the frame at that point; 0 if it was not captured there
	// SentBetween says that the point that captured the packet first is not at its sender: packets passed something in
	// between. ArrivedBetween says the same of the point nearest to the receiver, or that the frame had a wrong address or
	// header checksum already at its first point, so that no receiver takes it.
	SentBetween, ArrivedBetween bool
	Changed                     bool // what arrived has another payload than what was sent, with a right TCP checksum, so that its receiver takes it
	Duplicate                   bool // the network made this copy before the point that captured the frame
	BadChecksum                 bool // of FateCorrupted: the damaged frame was captured, and its ICRC, or its TCP or UDP checksum, is bad
	Unchecked                   bool // the frame's ICRC proves nothing, because the file has no good ones
	Copy                        Copy // what the frame is, if another frame stands for the packet
}

// Copy is what a frame is whose packet another frame stands for.
type Copy uint8

// The copies.
const (
	NoCopy      Copy = iota // the frame stands for the packet
	CopySent                // the packet before it came to the next point; SentPoint and SentNumber are those of the other frame
	CopyMirror              // the second copy of a mirror port, or of a file that is given twice
	CopyDamaged             // the packet after it was damaged on the way
)

// Fate is what happened to a packet between the capture points.
type Fate uint8

// The fates.
const (
	FateUnknown     Fate = iota // the packet was seen at one point, and the capture does not show what happened
	FateDelivered               // it arrived
	FateLost                    // it was lost between the points
	FateCorrupted               // it arrived, but damaged
	FateNotCaptured             // its receiver got it, but the capture at that point does not contain it
	FateDuplicated              // it arrived, and is a copy that the network made
	FateMissing                 // the capture at its receiver's point lacks it, and nothing shows whether the network or the capture lost it
)
