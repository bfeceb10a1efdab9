package browse

import (
	"fmt"
	"io"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// million returns the Model of a synthetic capture with a million RPCs, 100,000 files and 10,000
// findings. No RPC failed, so that the key e has to look at all of them.
func million(b testing.TB) *Model {
	x := index.New(index.Options{Memory: 48 << 20, Folder: b.TempDir()}) // Most of the records are in the temporary file.
	h := x.Handler()
	var all []*record.Transaction
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		if !r.Failed() && r.Status.Replied() && len(r.Findings) == 0 {
			all = append(all, r.Clone())
		}
		return nil
	}, Connection: h.Connection}, dissect.Options{Files: true})
	if _, err := d.Run(b.Context(), testkit.Open(b, sample)); err != nil {
		b.Fatal(err)
	}
	h.Begin(all[0].Start())
	for i := range int64(1_000_000) {
		r := all[i%int64(len(all))].Clone()
		r.ID, r.XID = i+1, record.Hex32(0x10000+i)
		r.LatencyNS = record.Some(1000 + i*7919%5_000_011)
		for _, m := range []*record.Message{r.Call, r.Reply} {
			m.Time += record.Time(i * 100_000)
			m.Packet, m.LastPacket = m.Packet+i*8, m.LastPacket+i*8
		}
		name, handle := fmt.Sprintf("/export/home/file%05d", i*31%100_000), fmt.Sprintf("01000100%08x", i*31%100_000)
		if r.File.Known() {
			r.File, r.FileHandle = record.Some(name), record.Some(handle)
		}
		for j := range r.FileUses {
			r.FileUses[j].File, r.FileUses[j].Handle = name, handle
		}
		h.Transaction(r)
		if i%100 == 99 {
			h.Finding(&record.Finding{
				Rule: "call-repeated", Severity: "warning", Section: "RFC 8166", XID: record.Some(r.XID), Connection: record.Some(r.Connection),
				Packet: record.Some(r.Call.Packet), Time: record.Some(r.Start()), Message: "a finding of a test",
			})
		}
	}
	x.Finish(&record.Summary{}, nil)
	m := New(Options{
		Index: x, Look: render.Look{Colour: render.Colours16, Unicode: true}, Closed: "not here", Typed: "nfs.pcap",
		Create: func(string) (io.WriteCloser, error) { return nil, io.ErrShortWrite },
	})
	m.resize(200, 60)
	b.Cleanup(func() { m.Close(); x.Close() })
	settle(b, m)
	return m
}
