package browse

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/rdmadump/rdmadump/internal/records"
	"github.com/rdmadump/rdmadump/render"
)

// space is the memory for blocks. What exceeds its limit, in bytes, goes to a temporary file. It is safe for concurrent use.
type space struct {
	mu     sync.Mutex
	limit  int64
	used   int64    // bytes in memory
	file   *os.File // nil until the limit is reached
	size   int64    // bytes in file
	failed error    // of creating or writing the file
}

// block is compressed data in memory, or in the temporary file.
type block struct {
	data   []byte // nil if it is in the file
	at     int64  // offset in the file
	length int
}

// keep stores data, which the caller may change afterwards. If neither memory nor the file has space, the block is empty.
func (s *space) keep(b []byte) block {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+int64(len(b)) <= s.limit {
		s.used += int64(len(b))
		return block{data: slices.Clone(b), length: len(b)}
	}
	if s.file == nil && s.failed == nil {
		if s.file, s.failed = os.CreateTemp("", "rdmadump-browse-*"); s.failed == nil && runtime.GOOS != "windows" {
			os.Remove(s.file.Name()) // Nothing is left of it when the process ends.
		}
	}
	if s.failed == nil {
		_, s.failed = s.file.WriteAt(b, s.size)
	}
	if s.failed != nil {
		return block{}
	}
	s.size += int64(len(b))
	return block{at: s.size - int64(len(b)), length: len(b)}
}

// load returns the data of a block.
func (s *space) load(b block) ([]byte, error) {
	if b.data != nil || b.length == 0 {
		return b.data, nil
	}
	data := make([]byte, b.length)
	if _, err := s.file.ReadAt(data, b.at); err != nil {
		return nil, fmt.Errorf("a record cannot be read back from the temporary file: %w", err)
	}
	return data, nil
}

// free frees a block. The space of the file is not used again.
func (s *space) free(b block) {
	s.mu.Lock()
	s.used -= int64(len(b.data))
	s.mu.Unlock()
}

// close removes the temporary file.
func (s *space) close() {
	if s.file != nil {
		s.file.Close()
		if runtime.GOOS == "windows" {
			os.Remove(s.file.Name())
		}
	}
}

// perBlock is the number of records in a block. Larger blocks are smaller when compressed, and take longer to read one record from.
const perBlock = 64

// store keeps records of one type as lines of JSON, in compressed blocks. The first ones may be forgotten. One goroutine adds records
// while others read them.
type store struct {
	space *space
	enc   *zstd.Encoder

	mu     sync.RWMutex
	first  int64   // number of the first record that is kept; a multiple of perBlock
	blocks []block // of perBlock records, from first on
	tail   []byte  // lines that are in no block yet
	count  int     // of lines in the tail
}

func newStore(s *space) *store {
	enc, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), // valid options
		zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	return &store{space: s, enc: enc}
}

// bounds returns the numbers of the first record that is kept, and of the one after the last.
func (s *store) bounds() (from, to int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.first, s.first + int64(len(s.blocks))*perBlock + int64(s.count)
}

// add adds the record that r points to, and does not keep r.
func (s *store) add(r any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = render.AppendJSON(s.tail, r)
	if s.count++; s.count == perBlock {
		s.blocks = append(s.blocks, s.space.keep(s.enc.EncodeAll(s.tail, nil)))
		s.tail, s.count = s.tail[:0], 0
	}
}

// forget forgets the records before number n, in whole blocks.
func (s *store) forget(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := min(int((n-s.first)/perBlock), len(s.blocks))
	if gone <= 0 {
		return
	}
	for _, b := range s.blocks[:gone] {
		s.space.free(b)
	}
	s.blocks, s.first = slices.Clone(s.blocks[gone:]), s.first+int64(gone)*perBlock
}

// reader reads records of a store. It keeps the block that it read last, so that neighbours are read fast. It is for one goroutine.
type reader struct {
	*store
	dec   *zstd.Decoder
	block int64 // number of the block in lines; -1 for none
	plain []byte
	lines [][]byte
}

func (s *store) reader() *reader {
	dec, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)) // valid options
	return &reader{store: s, dec: dec, block: -1}
}

// get returns a record: a pointer to it, which stays valid. It is nil if the record is not kept any more, or not there yet.
func (r *reader) get(n int64) (any, error) {
	if n < 0 {
		return nil, nil
	}
	if n/perBlock != r.block || int(n%perBlock) >= len(r.lines) {
		if err := r.open(n / perBlock); err != nil {
			return nil, err
		}
	}
	if i := int(n % perBlock); i < len(r.lines) {
		return records.Parse(r.lines[i])
	}
	return nil, nil
}

// open reads a block, or the tail.
func (r *reader) open(number int64) error {
	r.block, r.lines = -1, r.lines[:0]
	var packed block
	r.mu.RLock()
	i := number - r.first/perBlock
	switch {
	case i < 0 || i > int64(len(r.blocks)):
		r.mu.RUnlock()
		return nil
	case i == int64(len(r.blocks)):
		r.plain = append(r.plain[:0], r.tail...)
	default:
		packed = r.blocks[i]
	}
	r.mu.RUnlock()
	if i < int64(len(r.blocks)) || packed.length > 0 {
		data, err := r.space.load(packed)
		if err == nil {
			r.plain, err = r.dec.DecodeAll(data, r.plain[:0])
		}
		if err != nil {
			return err
		}
	}
	r.block = number
	for line := range bytes.Lines(r.plain) {
		r.lines = append(r.lines, line)
	}
	return nil
}

// close frees the decompressor.
func (r *reader) close() { r.dec.Close() }
