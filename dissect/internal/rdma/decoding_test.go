package rdma_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/rocev2"
)

// TestCounters checks which counter of the summary each frame increments.
func TestCounters(t *testing.T) {
	const (
		eth  = "0180c2000001 020000000002 "
		ack  = "1140ffff00000011 0000a50f 1f000004 deadbeef"
		ip   = "45000030 00010000 40110000 0a000001 0a000002 " // 48 bytes
		lrh  = "0002 0001 0009 0002 "
		erf  = "0000000000000000 15 04 0036 0000 0026 " // 38 bytes on the wire
		vcrc = "beef"
	)
	for _, c := range []struct {
		name   string
		kind   capture.LinkType
		frame  string
		want   record.Summary // Bytes, RDMA, Other, Malformed, Truncated and PFCPauses
		length int
	}{
		{"acknowledgement", capture.LinkIPv4, ip + "c000 12b7 001c 0000" + ack, record.Summary{Bytes: 48, RDMA: 1}, 48},
		{"acknowledgement with a pad count", capture.LinkIPv4, ip + "c000 12b7 001c 0000 1170" + ack[4:], record.Summary{Bytes: 48, RDMA: 1}, 48},
		{"from port 4791", capture.LinkIPv4, ip + "12b7 c000 001c 0000" + ack, record.Summary{Bytes: 48, RDMA: 1}, 48},
		{"ERF", capture.LinkERF, erf + lrh + ack + "00000000 0000 0000" + vcrc, record.Summary{Bytes: 38, RDMA: 1}, 54},
		{"PFC pause", capture.LinkEthernet, eth + "8808 0101 0018 0000 0000 0000 ffff 0001 0000 0000 0000", record.Summary{Bytes: 34, Other: 1, PFCPauses: 1}, 34},
		{"end of a PFC pause", capture.LinkEthernet, eth + "8808 0101 0018 0000 0000 0000 0000 0000 0000 0000 0000", record.Summary{Bytes: 34, Other: 1}, 34},
		{"pause of the link", capture.LinkEthernet, eth + "8808 0001 ffff", record.Summary{Bytes: 18, Other: 1, PFCPauses: 1}, 18},
	} {
		data := testkit.Unhex(t, c.frame)
		d := dissect.New(dissect.Handler{}, dissect.Options{})
		if err := d.Frame(&capture.Frame{Number: 1, Time: 1e18, LinkType: c.kind, Length: c.length, Data: data}); err != nil {
			t.Fatal(err)
		}
		s, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		got := record.Summary{Bytes: s.Bytes, RDMA: s.RDMA, Other: s.Other, Malformed: s.Malformed, Truncated: s.Truncated, PFCPauses: s.PFCPauses}
		if got.Bytes != c.want.Bytes || got.RDMA != c.want.RDMA || got.Other != c.want.Other || got.Malformed != c.want.Malformed || got.Truncated != c.want.Truncated || got.PFCPauses != c.want.PFCPauses {
			t.Errorf("%s: %d bytes, %d of RDMA, %d other, %d malformed, %d truncated, %d PFC pauses; want %+v", c.name, got.Bytes, got.RDMA, got.Other, got.Malformed, got.Truncated, got.PFCPauses, c.want)
		}
	}
}

// TestIPoIBConnection checks that the service ID of IP over InfiniBand names the upper layer.
func TestIPoIBConnection(t *testing.T) {
	var upper []string
	w := &wire{t: t, d: dissect.New(dissect.Handler{Connection: func(c *record.Connection) error {
		upper = append(upper, c.UpperLayer)
		return nil
	}}, dissect.Options{})}
	req := request(7, 17, 100)
	req.ServiceID = 0x1000000000000048
	w.cm(false, 0, rocev2.CMReq, req)
	w.cm(true, 1, rocev2.CMRep, &rocev2.REP{LocalCommID: 9, RemoteCommID: 7, LocalQPN: 18, StartingPSN: 200})
	w.cm(false, 2, rocev2.CMRtu, &rocev2.RTU{LocalCommID: 7, RemoteCommID: 9})
	w.d.Finish()
	if len(upper) != 1 || upper[0] != "ipoib" {
		t.Errorf("upper layers %q, want ipoib", upper)
	}
}
