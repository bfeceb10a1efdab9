package rocev2

import (
	"fmt"
	"slices"

	"github.com/google/gopacket"
)

// Header is a header of this package, or a message of the connection manager: a struct whose fields
// are those on the wire. [Decode] and [Append] decode and encode it.
type Header interface{ layout() layout }

// layout is the layer type of a header, and its length in bytes.
type layout struct {
	layer gopacket.LayerType
	size  int
}

// fixed is a header that is no message of the connection manager. The caller of its methods has
// checked the length.
type fixed interface {
	Header
	decode(data []byte)
	encode(data []byte)
}

// Decode decodes the header at the beginning of data. The error wraps [ErrTruncated] if data is too
// short.
func Decode(data []byte, h Header) error {
	l := h.layout()
	if len(data) < l.size {
		return short(l.layer.String(), l.size, len(data))
	}
	switch h := h.(type) {
	case fixed:
		h.decode(data)
	case message:
		decodeMessage(data, h)
	}
	return nil
}

// Append encodes a header and appends it to b.
func Append(b []byte, h Header) []byte {
	at, size := len(b), h.layout().size
	b = slices.Grow(b, size)[:at+size]
	encode(b[at:], h)
	return b
}

// encode encodes a header into data, which has its length.
func encode(data []byte, h Header) {
	clear(data)
	switch h := h.(type) {
	case fixed:
		h.encode(data)
	case message:
		encodeMessage(data, h)
	}
}

// Layer is a header as a layer of gopacket. H is a struct that is a [Header].
type Layer[H any] struct {
	Header H

	contents, payload []byte
}

// header returns the header.
func (l *Layer[H]) header() Header { return any(&l.Header).(Header) }

// LayerType returns the layer type of the header.
func (l *Layer[H]) LayerType() gopacket.LayerType { return l.header().layout().layer }

// CanDecode returns the layer type of the header.
func (l *Layer[H]) CanDecode() gopacket.LayerClass { return l.LayerType() }

// LayerContents returns the bytes of the header.
func (l *Layer[H]) LayerContents() []byte { return l.contents }

// LayerPayload returns the bytes after the header, or the private data of a message.
func (l *Layer[H]) LayerPayload() []byte { return l.payload }

// NextLayerType returns the layer type of what follows: gopacket.LayerTypePayload, unless the header
// says more about it.
func (l *Layer[H]) NextLayerType() gopacket.LayerType {
	if h, says := l.header().(interface{ next() gopacket.LayerType }); says {
		return h.next()
	}
	return gopacket.LayerTypePayload
}

// DecodeFromBytes decodes the header.
func (l *Layer[H]) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	h := l.header()
	if err := Decode(data, h); err != nil {
		df.SetTruncated()
		return err
	}
	size := h.layout().size
	l.contents, l.payload = data[:size], data[size:]
	if h, says := h.(interface{ payload(data []byte) []byte }); says {
		l.payload = h.payload(data)
	}
	return nil
}

// SerializeTo prepends the header to buf. With FixLengths it computes the length in a GRH or LRH from
// the contents of buf, which must end with the ICRC.
func (l *Layer[H]) SerializeTo(buf gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	h := l.header()
	if h, has := h.(interface{ fix(payload int) }); has && opts.FixLengths {
		h.fix(len(buf.Bytes()))
	}
	data, err := buf.PrependBytes(h.layout().size)
	if err != nil {
		return err
	}
	encode(data, h)
	return nil
}

// String returns a one-line description.
func (l *Layer[H]) String() string { return fmt.Sprint(l.header()) }

// decodeLayer is the decoder of a layer type for gopacket.NewPacket.
func decodeLayer[H any](data []byte, p gopacket.PacketBuilder) error {
	l := new(Layer[H])
	if err := l.DecodeFromBytes(data, p); err != nil {
		return err
	}
	p.AddLayer(l)
	if next := l.NextLayerType(); next != gopacket.LayerTypeZero {
		return p.NextDecoder(next)
	}
	return nil
}

// extendedLayers has a function for each bit of [Headers] that adds the layer of the extended
// header to a packet, and returns the bytes after it.
var extendedLayers = [...]func([]byte, gopacket.PacketBuilder) ([]byte, error){
	addLayer[RDETH], addLayer[DETH], addLayer[XRCETH], addLayer[FETH], addLayer[RETH],
	addLayer[AtomicETH], addLayer[AETH], addLayer[AtomicAckETH], addLayer[ImmDt], addLayer[IETH],
}

func addLayer[H any](data []byte, p gopacket.PacketBuilder) ([]byte, error) {
	l := new(Layer[H])
	err := l.DecodeFromBytes(data, p)
	if err == nil {
		p.AddLayer(l)
	}
	return l.payload, err
}

// decodeBTH adds the layers of a packet: BTH, extended headers, and the payload.
func decodeBTH(data []byte, b gopacket.PacketBuilder) error {
	p := new(Packet)
	if err := p.DecodeFromBytes(data, b); err != nil {
		return err
	}
	b.AddLayer(p)
	rest := data[BTHLen : len(data)-ICRCLen-len(p.Pad)]
	for i, add := range extendedLayers {
		if p.Headers&(1<<i) == 0 {
			continue
		}
		var err error
		if rest, err = add(rest, b); err != nil {
			return err
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return b.NextDecoder(p.NextLayerType())
}
