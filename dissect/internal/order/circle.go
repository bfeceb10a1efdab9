// Package order puts the requests of one sender into the order in which their receiver accepts
// them, only by their sequence numbers. It reports what each packet shows as facts, which its
// caller applies to operations, and knows nothing about operations, connections and memory.
package order

// Both transports number their data on a circle, of 24 bits (PSNs) or of 32 bits (bytes
// of TCP). A packet is an item of length 1 on the first circle, and a segment is an
// item of its own length on the second.

// Circle is the number of bits of a sequence number.
type Circle uint8

// The circles.
const (
	PSNs   Circle = 24
	Octets Circle = 32
)

// Delta returns how far a is ahead of b. The result is negative if a is before b.
func (c Circle) Delta(a, b uint32) int32 {
	shift := (32 - c) & 31 // the mask spares the processor a comparison
	return int32((a-b)<<shift) >> shift
}

// Add returns a + n on the circle.
func (c Circle) Add(a, n uint32) uint32 { return (a + n) << (32 - c) >> (32 - c) }

// Run is a range of sequence numbers, [From, To).
type Run struct{ From, To uint32 }

// One returns the run of one PSN.
func One(psn uint32) Run { return Run{psn, PSNs.Add(psn, 1)} }
