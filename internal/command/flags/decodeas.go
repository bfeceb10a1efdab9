package flags

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
)

// parsePorts converts the values of --decode-as, such as tcp.port==4045,rpc. The syntax is that of tshark -d.
func parsePorts(texts []string) (ports []dissect.Port, err error) {
	for _, text := range texts {
		layer, as, _ := strings.Cut(text, ",")
		name, number, _ := strings.Cut(layer, "==")
		port, err := strconv.ParseUint(number, 10, 16)
		if err != nil || name != "tcp.port" && name != "udp.port" || as != "rpc" && as != "other" {
			return nil, fmt.Errorf("--decode-as %s: must be tcp.port==PORT or udp.port==PORT, and then ,rpc or ,other, such as tcp.port==4045,rpc", text)
		}
		ports = append(ports, dissect.Port{UDP: name == "udp.port", RPC: as == "rpc", Number: uint16(port)})
	}
	return ports, nil
}
