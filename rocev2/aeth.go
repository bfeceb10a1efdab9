package rocev2

import "fmt"

// AETHLen is the length of an AETH in bytes.
const AETHLen = 4

// Syndrome is the first byte of an AETH. Bits 6 and 5 distinguish ACK, RNR NAK and NAK; bits 4 to 0
// hold the credit count, the RNR timer or the NAK code.
type Syndrome uint8

// The NAK codes in bits 4 to 0 (IBTA volume 1, table 58).
const (
	NakPSNSequenceError     = 0
	NakInvalidRequest       = 1
	NakRemoteAccessError    = 2
	NakRemoteOperationError = 3
	NakInvalidRDRequest     = 4
)

var nakNames = [...]string{
	NakPSNSequenceError: "PSN sequence error", NakInvalidRequest: "invalid request",
	NakRemoteAccessError: "remote access error", NakRemoteOperationError: "remote operational error",
	NakInvalidRDRequest: "invalid RD request",
}

// IsAck reports whether the AETH is a positive acknowledgement.
func (s Syndrome) IsAck() bool { return s>>5&3 == 0 }

// IsRNR reports whether the AETH is a receiver-not-ready NAK.
func (s Syndrome) IsRNR() bool { return s>>5&3 == 1 }

// IsNak reports whether the AETH is a NAK other than an RNR NAK.
func (s Syndrome) IsNak() bool { return s>>5&3 == 3 }

// Code returns bits 4 to 0.
func (s Syndrome) Code() uint8 { return uint8(s) & 0x1f }

// NakName returns the name of the NAK code, such as "remote access error".
func (s Syndrome) NakName() string {
	if int(s.Code()) < len(nakNames) {
		return nakNames[s.Code()]
	}
	return fmt.Sprintf("NAK code %d", s.Code())
}

// String returns a one-line description.
func (s Syndrome) String() string {
	switch {
	case s.IsAck() && s.Code() == 31:
		return "ACK"
	case s.IsAck():
		return fmt.Sprintf("ACK, credit code %d", s.Code())
	case s.IsRNR():
		return fmt.Sprintf("RNR NAK, timer code %d", s.Code())
	case s.IsNak():
		return "NAK, " + s.NakName()
	}
	return fmt.Sprintf("reserved syndrome 0x%02x", uint8(s))
}

// AETH is the ACK Extended Transport Header (IBTA volume 1, section 9.3.5).
//
//	offset width
//	0      8 bits  syndrome
//	1      24      MSN, message sequence number
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type AETH struct {
	Syndrome Syndrome
	MSN      uint32 // 24 bits
}

func (*AETH) layout() layout { return layout{LayerTypeAETH, AETHLen} }

func (a *AETH) decode(data []byte) {
	a.Syndrome = Syndrome(data[0])
	a.MSN = be.Uint32(data) & 0xffffff
}

func (a *AETH) encode(data []byte) {
	be.PutUint32(data, uint32(a.Syndrome)<<24|a.MSN&0xffffff)
}

// String returns a one-line description.
func (a *AETH) String() string { return fmt.Sprintf("AETH %v MSN %d", a.Syndrome, a.MSN) }
