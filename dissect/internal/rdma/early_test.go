package rdma_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// TestEarlyFPDUs: a whole FPDU is shown once, in the packet that carries it, also if an earlier
// segment comes later or is missing. If it spans segments, or if a segment that came early begins
// within an FPDU, it is shown in the packet that completes the stream up to there.
func TestEarlyFPDUs(t *testing.T) {
	xid := regexp.MustCompile(`XID 0x0000000(\d)`)
	for name, test := range map[string]struct {
		corked int // number of the last Calls that are sent as one stream, in segments of size bytes
		size   int
		harm   func(w *synth.Wire, sent []*synth.Frame)
		want   string // the XIDs in the packets, and a + after those that came early
	}{
		"in order":          {0, 0, func(*synth.Wire, []*synth.Frame) {}, "1, 2, 3"},
		"out of order":      {0, 0, func(w *synth.Wire, sent []*synth.Frame) { w.Swap(sent[0], sent[2]) }, "3+, 2+, 1"},
		"the first missing": {0, 0, func(w *synth.Wire, sent []*synth.Frame) { w.Drop(sent[0]) }, "2+, 3+"},
		"two in a segment":  {2, 1400, func(w *synth.Wire, sent []*synth.Frame) { w.Swap(sent[0], sent[1]) }, "23+, 1"},
		"across segments":   {3, 100, func(w *synth.Wire, sent []*synth.Frame) { w.Swap(sent[0], sent[1]) }, "+, 12, 3"},
	} {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			c := w.IWARP(synth.Options{ManualAck: true})
			c.Connect()
			var sent []*synth.Frame
			for i := range 3 {
				if i == 3-test.corked {
					c.Client.Cork()
				}
				sent = append(sent, c.Client.Call(synth.Call{XID: uint32(i) + 1})...)
			}
			if test.corked > 0 {
				sent = append(sent, c.Client.Uncork(test.size)...)
			}
			test.harm(w, sent)
			c.Server.Ack()
			var got []string
			d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
				if f := w.Frames[p.Number-1]; f.From == c.Client && p.Number > 5 {
					said := ""
					for _, m := range xid.FindAllSubmatch(p.Summary, -1) {
						said += string(m[1])
					}
					if p.Marks&record.AfterGap != 0 {
						said += "+"
					}
					got = append(got, said)
				}
				return nil
			}}, dissect.Options{})
			for f := range testkit.Made(w.Frames) {
				d.Frame(f)
			}
			d.Finish()
			if said := strings.Join(got, ", "); said != test.want {
				t.Errorf("%s, want %s", said, test.want)
			}
		})
	}
}
