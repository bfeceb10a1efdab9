// Package register makes gopacket recognise RoCE: gopacket then decodes UDP port 4791 and EtherType
// 0x8915 with the layers of package rocev2. Programs that decode whole frames with gopacket import
// it for this effect:
//
//	import _ "github.com/rdmadump/rdmadump/rocev2/register"
//
// The package is separate from rocev2 because it imports gopacket/layers, which builds large tables
// at program start.
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
