package rocev2_test

import (
	"encoding/hex"
	"fmt"
	"log"

	"github.com/rdmadump/rdmadump/rocev2"
)

// The bytes after a UDP header with destination port 4791 are a packet.
func ExamplePacket() {
	payload, err := hex.DecodeString("1140ffff000000118000a50f1f00000400000000")
	if err != nil {
		log.Fatal(err)
	}
	var p rocev2.Packet
	if err := p.Decode(payload, len(payload)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Opcode, "to", p.DestQPN, "PSN", p.PSN)
	if p.Headers&rocev2.HasAETH != 0 {
		fmt.Println(p.AETH.Syndrome, "MSN", p.AETH.MSN)
	}
	fmt.Println(p.Decode(payload[:14], len(payload)))
	// Output:
	// RC Acknowledge to 17 PSN 42255
	// ACK MSN 4
	// rocev2: RC Acknowledge needs 4 bytes of extended header at offset 12, 2 left: truncated
}
