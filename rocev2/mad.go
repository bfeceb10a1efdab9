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

// The management classes (IBTA volume 1, section 13.4.4).
const (
	ClassSubn         = 0x01 // subnet management, routed by LID
	ClassSubnAdm      = 0x03 // subnet administration
	ClassPerf         = 0x04 // performance management
	ClassBM           = 0x05 // baseboard management
	ClassDevMgt       = 0x06 // device management
	ClassCM           = 0x07 // communication management: the connection manager
	ClassSNMP         = 0x08 // SNMP tunneling
	ClassSubnDirected = 0x81 // subnet management, with a directed route
)

// madClasses maps each management class to its name, and to the prefix that its methods have in the
// notation of the specification, such as "SubnAdm" in SubnAdmGet(PathRecord).
var madClasses = map[uint8]struct{ name, prefix string }{
	ClassSubn: {"subnet management", "Subn"}, ClassSubnDirected: {"subnet management, directed route", "Subn"},
	ClassSubnAdm: {"subnet administration", "SubnAdm"}, ClassPerf: {"performance management", "Perf"},
	ClassBM: {"baseboard management", "BM"}, ClassDevMgt: {"device management", "DevMgt"},
	ClassCM: {"communication management", "ComMgt"}, ClassSNMP: {"SNMP tunneling", "Snmp"},
}

// madMethods maps each method to its name (IBTA volume 1, sections 13.4.5 and 15.2.2).
var madMethods = map[uint8]string{
	0x01: "Get", 0x02: "Set", 0x81: "GetResp", 0x03: "Send", 0x05: "Trap", 0x06: "Report", 0x86: "ReportResp", 0x07: "TrapRepress",
	0x12: "GetTable", 0x92: "GetTableResp", 0x13: "GetTraceTable", 0x14: "GetMulti", 0x94: "GetMultiResp", 0x15: "Delete", 0x95: "DeleteResp",
}

var subnAttributes = map[uint16]string{
	0x0002: "Notice", 0x0010: "NodeDescription", 0x0011: "NodeInfo", 0x0012: "SwitchInfo", 0x0014: "GUIDInfo", 0x0015: "PortInfo",
	0x0016: "P_KeyTable", 0x0017: "SLtoVLMappingTable", 0x0018: "VLArbitrationTable", 0x0019: "LinearForwardingTable",
	0x001a: "RandomForwardingTable", 0x001b: "MulticastForwardingTable", 0x001c: "LinkSpeedWidthPairsTable", 0x0020: "SMInfo",
	0x0030: "VendorDiag", 0x0031: "LedInfo",
}

// madAttributes maps each management class and attribute ID to the name of the attribute (IBTA volume
// 1, sections 14.2.5, 15.2.5 and 16.1.3). The attributes of the connection manager are in cmMessages.
var madAttributes = map[uint8]map[uint16]string{
	ClassSubn: subnAttributes, ClassSubnDirected: subnAttributes,
	ClassSubnAdm: {
		0x0001: "ClassPortInfo", 0x0002: "Notice", 0x0003: "InformInfo", 0x0011: "NodeRecord", 0x0012: "PortInfoRecord",
		0x0013: "SLtoVLMappingTableRecord", 0x0014: "SwitchInfoRecord", 0x0015: "LinearForwardingTableRecord",
		0x0016: "RandomForwardingTableRecord", 0x0017: "MulticastForwardingTableRecord", 0x0018: "SMInfoRecord",
		0x0019: "LinkSpeedWidthPairsTableRecord", 0x0020: "LinkRecord", 0x0030: "GUIDInfoRecord", 0x0031: "ServiceRecord",
		0x0033: "P_KeyTableRecord", 0x0035: "PathRecord", 0x0036: "VLArbitrationTableRecord", 0x0038: "MCMemberRecord",
		0x0039: "TraceRecord", 0x003a: "MultiPathRecord", 0x003b: "ServiceAssociationRecord", 0x00f3: "InformInfoRecord",
	},
	ClassPerf: {
		0x0001: "ClassPortInfo", 0x0010: "PortSamplesControl", 0x0011: "PortSamplesResult", 0x0012: "PortCounters",
		0x0015: "PortRcvErrorDetails", 0x0016: "PortXmitDiscardDetails", 0x0017: "PortOpRcvCounters", 0x0018: "PortFlowCtlCounters",
		0x0019: "PortVLOpPackets", 0x001a: "PortVLOpData", 0x001b: "PortVLXmitFlowCtlUpdateErrors", 0x001c: "PortVLXmitWaitCounters",
		0x001d: "PortCountersExtended", 0x001e: "PortSamplesResultExtended", 0x0030: "SwPortVLCongestion",
	},
}

// ClassName returns the name of a management class, such as "subnet administration", or "" if the
// class is unknown.
func ClassName(class uint8) string { return madClasses[class].name }

// MethodName returns the name of a method, such as "GetTable", or "" if the method is unknown.
func MethodName(method uint8) string { return madMethods[method] }

// AttributeName returns the name of an attribute of a management class, such as "PathRecord", or ""
// if the attribute is unknown. The names of the connection manager's attributes are those of its
// messages, such as "REQ".
func AttributeName(class uint8, attribute uint16) string {
	if class == ClassCM {
		return cmMessages[CMAttribute(attribute)].name
	}
	return madAttributes[class][attribute]
}

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
// Decode returns an error that wraps [ErrTruncated] for fewer than 24 bytes.
type MAD struct {
	BaseVersion       uint8
	Class             uint8
	ClassVersion      uint8
	Method            uint8
	Status            uint16
	ClassSpecific     uint16
	TransactionID     uint64
	Attribute         CMAttribute // its String is right for the connection manager only; see AttributeName
	Reserved16        uint16
	AttributeModifier uint32
}

// next returns the layer type of the message if the class is that of the connection
// manager, and gopacket.LayerTypePayload otherwise.
func (m *MAD) next() gopacket.LayerType {
	if m.Class == ClassCM {
		if layer := cmMessages[m.Attribute].layer; layer != nil {
			return layer()
		}
	}
	return gopacket.LayerTypePayload
}

func (*MAD) layout() layout { return layout{LayerTypeMAD, MADLen} }

func (m *MAD) decode(data []byte) {
	m.BaseVersion, m.Class, m.ClassVersion, m.Method = data[0], data[1], data[2], data[3]
	m.Status = be.Uint16(data[4:])
	m.ClassSpecific = be.Uint16(data[6:])
	m.TransactionID = be.Uint64(data[8:])
	m.Attribute = CMAttribute(be.Uint16(data[16:]))
	m.Reserved16 = be.Uint16(data[18:])
	m.AttributeModifier = be.Uint32(data[20:])
}

func (m *MAD) encode(data []byte) {
	data[0], data[1], data[2], data[3] = m.BaseVersion, m.Class, m.ClassVersion, m.Method
	be.PutUint16(data[4:], m.Status)
	be.PutUint16(data[6:], m.ClassSpecific)
	be.PutUint64(data[8:], m.TransactionID)
	be.PutUint16(data[16:], uint16(m.Attribute))
	be.PutUint16(data[18:], m.Reserved16)
	be.PutUint32(data[20:], m.AttributeModifier)
}

// Name returns the class, method and attribute of m in the notation of the specification, such as
// "SubnAdmGet(PathRecord)". A part without a known name is shown as a number.
func (m *MAD) Name() string {
	class, known := madClasses[m.Class]
	if !known {
		class.prefix = fmt.Sprintf("class 0x%02x ", m.Class)
	}
	method := MethodName(m.Method)
	if method == "" {
		method = fmt.Sprintf("method 0x%02x", m.Method)
		if known {
			class.prefix += " "
		}
	}
	attribute := AttributeName(m.Class, uint16(m.Attribute))
	if attribute == "" {
		attribute = fmt.Sprintf("attribute 0x%04x", uint16(m.Attribute))
	}
	return class.prefix + method + "(" + attribute + ")"
}

// String returns a one-line description.
func (m *MAD) String() string {
	return fmt.Sprintf("MAD %s transaction 0x%016x", m.Name(), m.TransactionID)
}
