package nfs

import (
	"fmt"
	"testing"
)

// TestMappings: what Calls to rpcbind ask for, and what its Replies answer.
func TestMappings(t *testing.T) {
	rpcb := func(netid, address string) []byte {
		return bytesOf(100003, 4, netid, address, "")
	}
	for _, c := range []struct {
		name               string
		version, procedure uint32
		arguments, results []byte
		want               string
	}{
		{"GETPORT", 2, 3, bytesOf(100005, 3, 6, 0), bytesOf(20048), "{100005 3 TCP 0} true 20048 true"},
		{"GETPORT of a program that is not registered", 2, 3, bytesOf(100005, 3, 17, 0), bytesOf(0), "{100005 3 UDP 0} true 0 true"},
		{"GETPORT with another protocol", 2, 3, bytesOf(1, 2, 99, 0), bytesOf(0x10000), "{1 2 99 0} true 0 false"},
		{"GETADDR", 4, 3, rpcb("tcp6", ""), bytesOf("::1.8.1"), "{100003 4 tcp6 0} true 2049 true"},
		{"GETADDR without an answer", 3, 3, rpcb("rdma", "10.0.0.1.0.0"), bytesOf(""), "{100003 4 rdma 0} true 0 true"},
		{"truncated", 3, 3, rpcb("tcp", "")[:10], bytesOf(90), "{100003 4  0} false 0 false"},
		{"NULL", 2, 0, nil, nil, "{0 0  0} false 0 false"},
	} {
		asked, ok := MappingAsked(c.version, c.procedure, c.arguments)
		port, answered := MappingAnswer(c.version, c.procedure, c.results)
		if got := fmt.Sprint(asked, " ", ok, " ", port, " ", answered); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	var all []Mapping
	EachMapping(2, 4, bytesOf(1, 100000, 2, 6, 111, 1, 100003, 3, 17, 2049, 0), func(m Mapping) { all = append(all, m) })
	if got := fmt.Sprint(all); got != "[{100000 2 TCP 111} {100003 3 UDP 2049}]" {
		t.Errorf("DUMP: %s", got)
	}
}

// FuzzMappings: nothing that a message of rpcbind or mountd contains makes the parsers crash.
func FuzzMappings(f *testing.F) {
	f.Add(uint32(2), uint32(3), bytesOf(100005, 3, 6, 0))
	f.Add(uint32(4), uint32(4), bytesOf(1, 100000, 2, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, version, procedure uint32, data []byte) {
		MappingAsked(version, procedure, data)
		MappingAnswer(version, procedure, data)
		MountStatus(version, procedure, data)
		n := 0
		EachMapping(version, procedure, data, func(Mapping) { n++ })
		if n > maxMappings {
			t.Errorf("%d mappings", n)
		}
		if path, ok := MountPath(procedure, data); ok && len(path) > maxText {
			t.Errorf("a path of %d bytes", len(path))
		}
	})
}
