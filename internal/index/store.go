package index

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// space is the memory for blocks and rows. What exceeds its limit goes to a temporary file. It is
// safe for concurrent use.
type space struct {
	mu     sync.Mutex
	limit  int64
	used   int64 // bytes in memory
	folder string
	file   *os.File // nil until the limit is reached
	size   int64    // bytes in file
	err    error    // of creating or writing the file
}

// piece is data in memory, or in the temporary file.
type piece struct {
	data   []byte // nil if it is in the file
	at     int64  // offset in the file
	length int32
}

// keep stores data. It does not keep b. If neither memory nor the file has space, the piece is empty.
func (s *space) keep(b []byte) piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+int64(len(b)) <= s.limit {
		s.used += int64(len(b))
		return piece{data: slices.Clone(b), length: int32(len(b))}
	}
	if s.file == nil && s.err == nil {
		s.create()
	}
	if s.err != nil {
		return piece{}
	}
	at := s.size
	if _, err := s.file.WriteAt(b, at); err != nil {
		s.err = fmt.Errorf("the temporary file cannot be written: %w", err)
		return piece{}
	}
	s.size += int64(len(b))
	return piece{at: at, length: int32(len(b))}
}

// create creates the temporary file. Its name is removed at once if the system allows that, so that
// nothing is left of it when the process ends.
func (s *space) create() {
	f, err := os.CreateTemp(s.folder, "rdmadump-index-*")
	if err != nil {
		s.err = fmt.Errorf("--memory is used up, and no temporary file can be created: %w", err)
		return
	}
	if runtime.GOOS != "windows" {
		os.Remove(f.Name())
	}
	s.file = f
}

// load returns the data of a piece. It uses the memory of to for data in the file.
func (s *space) load(p piece, to []byte) ([]byte, error) {
	if p.data != nil || p.length == 0 {
		return p.data, nil
	}
	to = slices.Grow(to[:0], int(p.length))[:p.length]
	if _, err := s.file.ReadAt(to, p.at); err != nil {
		return nil, fmt.Errorf("%w: %w", errStored, err)
	}
	return to, nil
}

// free frees a piece. The space of the file is not used again.
func (s *space) free(p piece) {
	s.mu.Lock()
	s.used -= int64(len(p.data))
	s.mu.Unlock()
}

// spilled returns the number of bytes in the temporary file.
func (s *space) spilled() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.err
}

// close removes the temporary file.
func (s *space) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if runtime.GOOS == "windows" {
		os.Remove(s.file.Name())
	}
	return err
}

// perBlock is the number of records in a block. Larger blocks are smaller when compressed, and take
// longer to read one record from.
const perBlock = 64

// list is a list of records of one type, of which the first may be forgotten. One goroutine adds
// records while others read them.
type list[T any] struct {
	space *space
	words *words
	enc   *zstd.Encoder

	mu     sync.RWMutex
	first  int64   // number of the first record that is kept; a multiple of perBlock
	blocks []piece // compressed blocks of perBlock records, from first on
	tail   []byte  // records that are not in a block yet, in the form of a block
	count  int     // of records in the tail
	added  encoder
}

// newList returns an empty list.
func newList[T any](s *space, w *words, enc *zstd.Encoder) *list[T] {
	return &list[T]{space: s, words: w, enc: enc, added: encoder{words: w}}
}

// bounds returns the numbers of the first record and of the one after the last.
func (l *list[T]) bounds() (from, to int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.first, l.first + int64(len(l.blocks))*perBlock + int64(l.count)
}

// add adds a record. It does not keep r.
func (l *list[T]) add(r *T) {
	l.added.b = l.added.b[:0]
	add(&l.added, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = binary.AppendUvarint(l.tail, uint64(len(l.added.b)))
	l.tail = append(l.tail, l.added.b...)
	if l.count++; l.count == perBlock {
		l.blocks = append(l.blocks, l.space.keep(l.enc.EncodeAll(l.tail, l.added.b[:0])))
		l.tail, l.count = l.tail[:0], 0
	}
}

// forget forgets the records before number n, in whole blocks.
func (l *list[T]) forget(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	blocks := min(int((n-l.first)/perBlock), len(l.blocks))
	if blocks <= 0 {
		return
	}
	for _, p := range l.blocks[:blocks] {
		l.space.free(p)
	}
	l.blocks = append([]piece(nil), l.blocks[blocks:]...)
	l.first += int64(blocks) * perBlock
}

// reader reads records of a list. It is for one goroutine.
type reader[T any] struct {
	*list[T]
	dec    *zstd.Decoder
	block  int64 // number of the block in plain; -1 for none
	plain  []byte
	packed []byte
	starts [perBlock]int32 // of the records in plain
	held   int             // number of records in plain
	from   decoder
}

// reader returns a reader with a block of its own.
func (l *list[T]) reader() *reader[T] {
	dec, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)) // valid options
	return &reader[T]{list: l, dec: dec, block: -1, from: decoder{words: l.words}}
}

// get returns a record. It is nil if the record is not kept any more, or not there yet.
func (r *reader[T]) get(n int64) (*T, error) {
	if block := n / perBlock; block != r.block || int(n%perBlock) >= r.held {
		if err := r.open(block); err != nil {
			return nil, err
		}
	}
	i := int(n % perBlock)
	if n < 0 || i >= r.held {
		return nil, nil
	}
	b := r.plain[r.starts[i]:]
	size, length := binary.Uvarint(b)
	return read[T](&r.from, b[length:length+int(size)])
}

// open reads a block, or the tail.
func (r *reader[T]) open(block int64) error {
	l := r.list
	r.block, r.held = -1, 0
	l.mu.RLock()
	i := block - l.first/perBlock
	var packed piece
	gone := i < 0 || i > int64(len(l.blocks))
	switch {
	case gone:
	case i == int64(len(l.blocks)):
		r.plain = append(r.plain[:0], l.tail...)
	default:
		packed = l.blocks[i]
		r.plain = r.plain[:0]
	}
	l.mu.RUnlock()
	if gone {
		return nil
	}
	if packed.length > 0 {
		b, err := l.space.load(packed, r.packed)
		if err != nil {
			return err
		}
		if packed.data == nil {
			r.packed = b
		}
		if r.plain, err = r.dec.DecodeAll(b, r.plain); err != nil {
			return fmt.Errorf("%w: %w", errStored, err)
		}
	}
	for at := 0; at < len(r.plain) && r.held < perBlock; r.held++ {
		size, n := binary.Uvarint(r.plain[at:])
		if n <= 0 || size > uint64(len(r.plain)-at-n) {
			return errStored
		}
		r.starts[r.held] = int32(at)
		at += n + int(size)
	}
	r.block = block
	return nil
}

// close frees the decompressor.
func (r *reader[T]) close() { r.dec.Close() }
