package dissect

import (
	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/rocev2"
)

type details struct{}

type Packet struct{}

func (d *Dissector) describe(f *capture.Frame, carries capture.Carries, icrc rocev2.ICRCResult, c *conn, err error) *Packet {
	return nil
}
