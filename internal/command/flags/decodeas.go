package flags

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
)

// parsePorts converts the values of --decode-as, such as tcp.port==4045,rpc or udp.port==8473,vxlan. The syntax is that of
// tshark -d.
func parsePorts(texts []string) (ports []dissect.Port, tunnels []dissect.Tunnel, err error) {
	for _, text := range texts {
		layer, as, _ := strings.Cut(text, ",")
		name, number, _ := strings.Cut(layer, "==")
		port, err := strconv.ParseUint(number, 10, 16)
		tunnel := as == "vxlan" || as == "geneve"
		if err != nil || name != "tcp.port" && name != "udp.port" || as != "rpc" && as != "other" && !tunnel || tunnel && name == "tcp.port" {
			return nil, nil, fmt.Errorf("--decode-as %s: must be tcp.port==PORT or udp.port==PORT, and then ,rpc or ,other, such as tcp.port==4045,rpc; udp.port==PORT may also have ,vxlan or ,geneve", text)
		}
		if tunnel {
			tunnels = append(tunnels, dissect.Tunnel{Port: uint16(port), Geneve: as == "geneve"})
			continue
		}
		ports = append(ports, dissect.Port{UDP: name == "udp.port", RPC: as == "rpc", Number: uint16(port)})
	}
	return ports, tunnels, nil
}
