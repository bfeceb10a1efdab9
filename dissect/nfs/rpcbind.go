package nfs

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// The procedures of rpcbind, which tells clients the ports of programs (RFC 1833), and of
// the status monitor of NLM. Version 2 of rpcbind is called the port mapper.

const (
	mapping = "program:rpc_program version:u protocol:ip_protocol port:u"
	rpcb    = "program:rpc_program version:u netid:t address:t owner:t"
)

// portmap2 has the procedures of RFC 1833 s.3.
var portmap2 = []operation{
	bare("NULL", "", ""),
	bare("SET", mapping, "done:z"),
	bare("UNSET", mapping, "done:z"),
	bare("GETPORT", mapping, "port:u"),
	bare("DUMP", "", "mappings!:*("+mapping+")"),
	bare("CALLIT", "program:rpc_program version:u procedure:u arguments:o", "port:u results:o"),
}

// rpcbind3 and rpcbind4 have the procedures of RFC 1833 s.2.
var (
	rpcbind3 = rpcbind("CALLIT")
	rpcbind4 = append(rpcbind("BCAST"),
		bare("GETVERSADDR", rpcb, "address:t"),
		bare("INDIRECT", "program:rpc_program version:u procedure:u arguments:o", "address:t results:o"),
		bare("GETADDRLIST", rpcb, "entries!:*(address:t netid:t semantics:u family:t protocol:t)"),
		operation{name: "GETSTAT", unread: true},
	)
)

// rpcbind returns the procedures that versions 3 and 4 share, of which one has two names.
func rpcbind(callIt string) []operation {
	return []operation{
		bare("NULL", "", ""),
		bare("SET", rpcb, "done:z"),
		bare("UNSET", rpcb, "done:z"),
		bare("GETADDR", rpcb, "address:t"),
		bare("DUMP", "", "mappings!:*("+rpcb+")"),
		bare(callIt, "program:rpc_program version:u procedure:u arguments:o", "address:t results:o"),
		bare("GETTIME", "", "seconds:u"),
		bare("UADDR2TADDR", "address:t", "maximum_length:u address:o"),
		bare("TADDR2UADDR", "maximum_length:u address:o", "address:t"),
	}
}

// status1 has the procedures of the status monitor (The Open Group C702, XNFS chapter 11).
var status1 = []operation{
	bare("NULL", "", ""),
	bare("STAT", "mon_name:t", "failed:z state:u"),
	bare("MON", "mon_name:t my_name:t my_program:rpc_program my_version:u my_procedure:u private:d", "failed:z state:u"),
	bare("UNMON", "mon_name:t my_name:t my_program:rpc_program my_version:u my_procedure:u", "state:u"),
	bare("UNMON_ALL", "my_name:t my_program:rpc_program my_version:u my_procedure:u", "state:u"),
	bare("SIMU_CRASH", "", ""),
	bare("NOTIFY", "mon_name:t state:u", ""),
}

// The procedures of rpcbind that this package reads.
const (
	procedureGetPort     = 3 // GETADDR in versions 3 and 4
	procedureDump        = 4
	procedureGetVersAddr = 9
)

// Mapping is a program and the port at which it waits for Calls.
type Mapping struct {
	Program, Version uint32
	Protocol         string // TCP, UDP or a netid; it may be any text
	Port             uint16 // 0 if the program is not registered
}

// UDP reports whether the port is one of UDP.
func (m *Mapping) UDP() bool { return m.Protocol == "UDP" || strings.HasPrefix(m.Protocol, "udp") }

// TCP reports whether the port is one of TCP.
func (m *Mapping) TCP() bool { return m.Protocol == "TCP" || strings.HasPrefix(m.Protocol, "tcp") }

// asksForPort reports whether a procedure of rpcbind asks for the port of a program.
func asksForPort(version, procedure uint32) bool {
	return procedure == procedureGetPort || version == 4 && procedure == procedureGetVersAddr
}

// MappingAsked returns the program for whose port a Call to rpcbind asks. It returns false
// if the Call does not ask for a port, or if its arguments are truncated.
func MappingAsked(version, procedure uint32, arguments []byte) (m Mapping, ok bool) {
	if !asksForPort(version, procedure) {
		return m, false
	}
	r := words{data: arguments}
	if version == 2 {
		m = r.mapping()
	} else {
		m = r.rpcb()
	}
	m.Port = 0
	return m, !r.short
}

// MappingAnswer returns the port in the Reply to a Call that [MappingAsked] decodes. The
// port is 0 if the program is not registered. It returns false if the results are truncated
// or have no port.
func MappingAnswer(version, procedure uint32, results []byte) (port uint16, ok bool) {
	if !asksForPort(version, procedure) {
		return 0, false
	}
	r := words{data: results}
	if version == 2 {
		v := r.word()
		return uint16(v), !r.short && v < 1<<16
	}
	return portOf(r.text()), !r.short
}

// maxMappings is the maximum number of mappings of one Reply that are read.
const maxMappings = 256

// EachMapping calls f for each complete mapping in the Reply to DUMP.
func EachMapping(version, procedure uint32, results []byte, f func(Mapping)) {
	if procedure != procedureDump {
		return
	}
	r := words{data: results}
	for n := 0; n < maxMappings && r.word() != 0; n++ {
		m := Mapping{}
		if version == 2 {
			m = r.mapping()
		} else {
			m = r.rpcb()
		}
		if r.short {
			return
		}
		f(m)
	}
}

// MountPath returns the path in the arguments of MNT and UMNT. It returns false if the
// procedure has none, or if it is truncated.
func MountPath(procedure uint32, arguments []byte) (path string, ok bool) {
	if procedure != 1 && procedure != 3 {
		return "", false
	}
	r := words{data: arguments}
	path = r.text()
	return path, !r.short
}

// MountStatus returns the name of the status in the results of MNT. It returns false if the
// procedure has none.
func MountStatus(version, procedure uint32, results []byte) (name string, ok bool) {
	if procedure != ProcedureMount || len(results) < 4 {
		return "", false
	}
	status := binary.BigEndian.Uint32(results)
	if version < 3 {
		return StatusName(2, status), true
	}
	if name = mountStatus[status]; name == "" {
		name = "MNT3ERR_" + strconv.FormatUint(uint64(status), 10)
	}
	return name, true
}

// maxText is the maximum length of a text that is read, in bytes. Longer ones are
// shortened.
const maxText = 1024

// words reads XDR words and texts. Short is set if data ends too early.
type words struct {
	data  []byte
	short bool
}

func (r *words) word() uint32 {
	if len(r.data) < 4 {
		r.short = true
		return 0
	}
	v := binary.BigEndian.Uint32(r.data)
	r.data = r.data[4:]
	return v
}

func (r *words) text() string {
	n := int64(r.word())
	if (n+3)&^3 > int64(len(r.data)) {
		r.short = true
		return ""
	}
	s := string(r.data[:min(n, maxText)])
	r.data = r.data[(n+3)&^3:]
	return s
}

// mapping reads a mapping of version 2.
func (r *words) mapping() (m Mapping) {
	m.Program, m.Version = r.word(), r.word()
	switch protocol := r.word(); protocol {
	case 6:
		m.Protocol = "TCP"
	case 17:
		m.Protocol = "UDP"
	default:
		m.Protocol = strconv.FormatUint(uint64(protocol), 10)
	}
	m.Port = uint16(r.word())
	return m
}

// rpcb reads a mapping of version 3 or 4.
func (r *words) rpcb() (m Mapping) {
	m.Program, m.Version, m.Protocol = r.word(), r.word(), r.text()
	m.Port = portOf(r.text())
	r.text()
	return m
}

// portOf returns the port of a universal address, such as "10.0.0.1.8.1" for port 2049, or
// 0 if the address is empty or has no port (RFC 5665 s.5.2.3).
func portOf(address string) uint16 {
	rest, low, _ := splitLast(address)
	_, high, found := splitLast(rest)
	if !found {
		return 0
	}
	h, err := strconv.ParseUint(high, 10, 8)
	l, err2 := strconv.ParseUint(low, 10, 8)
	if err != nil || err2 != nil {
		return 0
	}
	return uint16(h<<8 | l)
}

// splitLast splits a text at its last dot.
func splitLast(s string) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return "", s, false
}
