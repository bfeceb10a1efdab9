package rdma

import "math/bits"

// buffers lends byte slices out, and takes them back for the next: who puts a Send
// together, or holds packets, needs many of them, one after the other. They come in
// sizes, four for each power of two.
type buffers struct{ free [sizes][][]byte }

const (
	minBits = 6  // of the smallest size, 64 bytes
	maxBits = 20 // of the largest, maxSend
	sizes   = 4*(maxBits-minBits) + 1

	keepOfSize = 1 << 17 // bytes of buffers of one size that are kept, or one that is larger
)

// sizeOf is the smallest size that n bytes fit in, sizes or more when none is.
func sizeOf(n int) int {
	if n <= 1<<minBits {
		return 0
	}
	high := bits.Len(uint(n-1)) - 1 // n is in (1<<high, 2<<high]
	return 4*(high-minBits) + (n-1)>>(high-2) - 3
}

// bytesOf is how many bytes a size has.
func bytesOf(size int) int {
	if size == 0 {
		return 1 << minBits
	}
	return (5 + (size-1)%4) << ((size-1)/4 + minBits - 2)
}

// take is an empty buffer for n bytes.
func (b *buffers) take(n int) []byte {
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

// back takes a buffer that nobody needs any more.
func (b *buffers) back(buf []byte) {
	size := sizeOf(cap(buf))
	if size < sizes && cap(buf) == bytesOf(size) && len(b.free[size]) < max(keepOfSize/cap(buf), 1) {
		b.free[size] = append(b.free[size], buf[:0])
	}
}

// add appends to a buffer, or to a larger one that takes its place.
func (b *buffers) add(buf, data []byte) []byte {
	if n := len(buf) + len(data); n > cap(buf) {
		larger := append(b.take(max(n, min(cap(buf)+cap(buf)/2, 1<<maxBits))), buf...)
		b.back(buf)
		buf = larger
	}
	return append(buf, data...)
}
