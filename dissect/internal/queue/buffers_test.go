package queue

import (
	"bytes"
	"testing"
)

// TestSizes: every number of bytes has the smallest size that it fits in.
func TestSizes(t *testing.T) {
	if last := bytesOf(sizes - 1); last != 1<<maxBits {
		t.Errorf("the largest size has %d bytes, want %d", last, 1<<maxBits)
	}
	size := 0
	for n := range 1 << maxBits {
		if n > bytesOf(size) {
			size++
		}
		if got := sizeOf(n); got != size {
			t.Fatalf("%d bytes: size %d of %d bytes, want %d of %d", n, got, bytesOf(got), size, bytesOf(size))
		}
	}
	if got := sizeOf(1<<maxBits + 1); got < sizes {
		t.Errorf("one byte more than the largest fits in size %d", got)
	}
}

// TestBuffers: a buffer contains the bytes that were added, no two users share a
// buffer, and the pool keeps no more free buffers than its limit.
func TestBuffers(t *testing.T) {
	var b Buffers
	var want []byte
	buf := b.Add(nil, nil)
	for i := range 3000 {
		data := bytes.Repeat([]byte{byte(i)}, i%700)
		want = append(want, data...)
		buf = b.Add(buf, data)
		if !bytes.Equal(buf, want) {
			t.Fatalf("after %d pieces, %d bytes are not what was added", i, len(buf))
		}
	}
	b.Back(buf)
	seen := map[*byte]bool{}
	for _, n := range []int{0, 1, 64, 65, 1448, 1448, 1 << 16, 1 << 20, 1 << 20} {
		buf := b.Take(n)
		if at := &buf[:1][0]; seen[at] || len(buf) != 0 || cap(buf) < n || cap(buf) > max(n+n/4, 64) {
			t.Errorf("for %d bytes: a buffer of %d of %d, lent before %t", n, len(buf), cap(buf), seen[at])
		} else {
			seen[at] = true
		}
	}
	b = Buffers{}
	for _, c := range []struct{ size, back, kept int }{
		{64, 3000, 2048}, {5 << 10, 200, 25}, {1 << 19, 3, 1}, {1 << 20, 3, 1}, {100, 5, 0}, {1 << 22, 1, 0}, {0, 1, 0},
	} {
		for range c.back {
			b.Back(make([]byte, c.size))
		}
		kept := 0
		for _, free := range b.free {
			for _, buf := range free {
				if cap(buf) == c.size {
					kept++
				}
			}
		}
		if kept != c.kept {
			t.Errorf("of %d buffers of %d bytes %d are kept, want %d", c.back, c.size, kept, c.kept)
		}
	}
}
