package capture

import (
	"slices"
	"sync"
)

// Options of pcapng blocks that are passed on from one file to another: comments, what capture programs note about packets
// and interfaces, and names of addresses.

// Section is a section of a pcapng file: what the file says about all of its packets.
type Section struct {
	// Options has the options of the section's header, for Writer.Section.
	Options string

	order order
	mu    sync.Mutex
	names []string // bodies of blocks with names of addresses
	size  int      // bytes of names
}

// Scrubbed follows the name of the program in the header of a section whose packets have pseudonyms instead of sensitive data.
const Scrubbed = ", scrubbed"

// maxNames is the largest number of bytes of names that are kept of a section.
const maxNames = 1 << 20

// Names returns the names of addresses that were read so far, for Writer.Names: the bodies of the section's name resolution
// blocks. The reader may be ahead of the frames that it returned. Any goroutine may call it.
func (s *Section) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

// add keeps the body of a name resolution block: records, the end of the records, and options. It is called by the reader
// only.
func (s *Section) add(body []byte) {
	if len(body) < 4 || s.order.Uint16(body) == optEnd || s.size+len(body) > maxNames {
		return
	}
	records, rest := convert(nil, body, s.order, nil)
	records = appendOption(records, optEnd, nil)
	if options, _ := convert(nil, rest, s.order, nil); len(options) > 0 {
		records = appendOption(append(records, options...), optEnd, nil)
	}
	s.size += len(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, string(records))
}

// numbers has the sizes, in bytes, of the numbers with which the values of options begin, by code. All other values are bytes
// or text, which have no byte order.
type numbers map[uint16]int

// optCustom are the options whose values begin with the number of an enterprise, in any block.
var optCustom = []uint16{2988, 2989, 19372, 19373}

// These options have numbers.
var (
	packetNumbers    = numbers{2: 4, 4: 8, 5: 8, 6: 4} // flags, packets that were dropped before, an id, a queue
	interfaceNumbers = numbers{8: 8, 16: 8, 17: 8}     // speed, and speeds of both directions
)

// convert appends options, without their end, in the byte order of a Writer. It stops at the end of the options, or at a
// malformed one, and returns what follows it.
func convert(to, list []byte, from order, sizes numbers) (options, rest []byte) {
	for len(list) >= 4 {
		code, size := from.Uint16(list), int(from.Uint16(list[2:]))
		list = list[4:]
		if code == optEnd || size > len(list) {
			break
		}
		to = from.appendOption(to, code, list[:size], sizes)
		list = list[min((size+3)&^3, len(list)):]
	}
	return to, list
}

// appendOption appends an option that has a value in this byte order, in the byte order of a Writer.
func (o order) appendOption(to []byte, code uint16, value []byte, sizes numbers) []byte {
	at, number := len(to)+4, sizes[code]
	if slices.Contains(optCustom, code) {
		number = 4
	}
	to = appendOption(to, code, value)
	if o == bigEndian && number <= len(value) {
		slices.Reverse(to[at : at+number])
	}
	return to
}
