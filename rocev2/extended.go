package rocev2

import "github.com/google/gopacket"

// extended is an extended header of fixed length: RETH, AETH and the others that follow a BTH.
type extended interface {
	decoder
	gopacket.SerializableLayer
	base() *BaseLayer
	header(data []byte) // decodes the header; the caller has checked the length
	put(data []byte)    // encodes the header; data has space for it
}

// base returns b, so that functions reach it in every layer.
func (b *BaseLayer) base() *BaseLayer { return b }

// decodeExtended implements DecodeFromBytes for a header of size bytes; what is its name in errors.
func decodeExtended(h extended, what string, size int, data []byte, df gopacket.DecodeFeedback) error {
	if err := splitHeader(h.base(), what, size, data, df); err != nil {
		return err
	}
	h.header(data)
	return nil
}

// serializeExtended implements SerializeTo for a header of size bytes.
func serializeExtended(h extended, size int, buf gopacket.SerializeBuffer) error {
	data, err := buf.PrependBytes(size)
	if err != nil {
		return err
	}
	h.put(data)
	return nil
}
