package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// MADLen is the length of the common header of management datagrams in bytes. MADSize is the length
// of a whole management datagram.
const (
	MADLen  = 24
	MADSize = 256
)

// ClassCM is the management class of the connection manager.
const ClassCM = 0x07

// MAD is the common header of management datagrams (IBTA volume 1, section 13.4.3).
//
//	offset width
//	0      8 bits  base version: 1
//	1      8       management class: 0x07 for the connection manager
//	2      8       class version: 2 for the connection manager
//	3      8       method: 0x03 is Send
//	4      16      status
//	6      16      class specific
//	8      64      transaction ID
//	16     16      attribute ID
//	18     16      reserved
//	20     32      attribute modifier
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 24 bytes.
type MAD struct {
	BaseLayer
	BaseVersion       uint8
	Class             uint8
	ClassVersion      uint8
	Method            uint8
	Status            uint16
	ClassSpecific     uint16
	TransactionID     uint64
	Attribute         CMAttribute
	Reserved16        uint16
	AttributeModifier uint32
}

// LayerType returns LayerTypeMAD.
func (m *MAD) LayerType() gopacket.LayerType { return LayerTypeMAD }

// CanDecode returns LayerTypeMAD.
func (m *MAD) CanDecode() gopacket.LayerClass { return LayerTypeMAD }

// NextLayerType returns the layer type of the message if the class is that of the connection
// manager, and gopacket.LayerTypePayload otherwise.
func (m *MAD) NextLayerType() gopacket.LayerType {
	if m.Class == ClassCM {
		if row, known := cmMessages[m.Attribute]; known {
			return row.layer()
		}
	}
	return gopacket.LayerTypePayload
}

// DecodeFromBytes decodes the header. Payload holds the bytes after the header.
func (m *MAD) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := splitHeader(&m.BaseLayer, "MAD", MADLen, data, df); err != nil {
		return err
	}
	m.BaseVersion, m.Class, m.ClassVersion, m.Method = data[0], data[1], data[2], data[3]
	m.Status = be.Uint16(data[4:])
	m.ClassSpecific = be.Uint16(data[6:])
	m.TransactionID = be.Uint64(data[8:])
	m.Attribute = CMAttribute(be.Uint16(data[16:]))
	m.Reserved16 = be.Uint16(data[18:])
	m.AttributeModifier = be.Uint32(data[20:])
	return nil
}

// SerializeTo prepends the header to buf.
func (m *MAD) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	data, err := buf.PrependBytes(MADLen)
	if err != nil {
		return err
	}
	data[0], data[1], data[2], data[3] = m.BaseVersion, m.Class, m.ClassVersion, m.Method
	be.PutUint16(data[4:], m.Status)
	be.PutUint16(data[6:], m.ClassSpecific)
	be.PutUint64(data[8:], m.TransactionID)
	be.PutUint16(data[16:], uint16(m.Attribute))
	be.PutUint16(data[18:], m.Reserved16)
	be.PutUint32(data[20:], m.AttributeModifier)
	return nil
}

// String returns a one-line description.
func (m *MAD) String() string {
	return fmt.Sprintf("MAD class 0x%02x attribute %v transaction 0x%016x", m.Class, m.Attribute, m.TransactionID)
}
