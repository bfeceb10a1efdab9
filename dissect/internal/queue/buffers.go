package queue

import "math/bits"

// Buffers is a pool of byte slices for Sends that are reassembled and for held packets.
// It has four sizes for each power of two.
type Buffers struct{ free [sizes][][]byte }

const (
	minBits = 6  // of the smallest size, 64 bytes
	maxBits = 21 // of the largest size: a record with 1 MiB of file data, and its headers
	sizes   = 4*(maxBits-minBits) + 1

	mostAhead  = 8 << 20 // number of bytes up to which a buffer grows by half at least
	keepOfSize = 1 << 17 // maximum number of bytes of free buffers of one size, unless one buffer is larger
)

// sizeOf returns the index of the smallest size that n bytes fit in. The result is at
// least sizes if n is larger than the largest size.
func sizeOf(n int) int {
	if n <= 1<<minBits {
		return 0
	}
	high := bits.Len(uint(n-1)) - 1 // n is in (1<<high, 2<<high]
	return 4*(high-minBits) + (n-1)>>(high-2) - 3
}

// bytesOf returns the number of bytes of a size.
func bytesOf(size int) int {
	if size == 0 {
		return 1 << minBits
	}
	return (5 + (size-1)%4) << ((size-1)/4 + minBits - 2)
}

// Take returns an empty buffer with a capacity of at least n bytes.
func (b *Buffers) Take(n int) []byte {
	size := sizeOf(n)
	if size >= sizes {
		return make([]byte, 0, n)
	}
	last := len(b.free[size]) - 1
	if last < 0 {
		return make([]byte, 0, bytesOf(size))
	}
	buf := b.free[size][last]
	b.free[size] = b.free[size][:last]
	return buf
}

// Back returns a buffer to the pool. The caller must not use it afterwards.
func (b *Buffers) Back(buf []byte) {
	size := sizeOf(cap(buf))
	if size < sizes && cap(buf) == bytesOf(size) && len(b.free[size]) < max(keepOfSize/cap(buf), 1) {
		b.free[size] = append(b.free[size], buf[:0])
	}
}

// Add appends data to a buffer, and replaces the buffer by a larger one if necessary.
func (b *Buffers) Add(buf, data []byte) []byte {
	if n := len(buf) + len(data); n > cap(buf) {
		larger := append(b.Take(max(n, min(cap(buf)+cap(buf)/2, mostAhead))), buf...)
		b.Back(buf)
		buf = larger
	}
	return append(buf, data...)
}
