// Package register makes gopacket recognise RoCE: UDP port 4791 and EtherType
// 0x8915 are decoded by the layers of package rocev2. It is imported for that
// effect, by programs that decode whole frames with gopacket:
//
//	import _ "github.com/rdmadump/rdmadump/rocev2/register"
//
// It stands apart from rocev2 because gopacket/layers, which it takes, makes large
// tables whenever a program starts.
package register

import (
	"github.com/google/gopacket/layers"

	"github.com/rdmadump/rdmadump/rocev2"
)

func init() {
	layers.RegisterUDPPortLayerType(rocev2.UDPPort, rocev2.LayerTypeBTH)
	layers.EthernetTypeMetadata[rocev2.EtherTypeRoCEv1] = layers.EnumMetadata{
		DecodeWith: rocev2.LayerTypeGRH, Name: "RoCEv1", LayerType: rocev2.LayerTypeGRH,
	}
}
