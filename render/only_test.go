package render_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// TestOnly: a column or filter of packets has the same value if only the needed parts of a
// packet are described as if all parts are. The same holds for lines and JSON.
func TestOnly(t *testing.T) {
	shows := map[field.Set][]func([]byte, *record.Packet) []byte{
		render.OnlyLine: {func(b []byte, p *record.Packet) []byte { return line(b, p, nil) }},
		render.OnlyRow: {func(b []byte, p *record.Packet) []byte {
			return line(b, p, []string{"RPC ID", "XID", "OPERATION", "QPN", "PSN", "MARKS", "SUMMARY"})
		}},
		render.OnlyJSON: {func(b []byte, p *record.Packet) []byte { return render.AppendPacketJSON(b, p, false) }},
	}
	column := func(names ...string) {
		c, err := render.NewColumns(names, query.Packets)
		if err != nil {
			t.Fatal(err)
		}
		shows[c.Only()] = append(shows[c.Only()], func(b []byte, p *record.Packet) []byte { return c.Append(b, p) })
	}
	for _, path := range query.Packets.Names() {
		if query.Decoded(path) || path == "type" {
			continue
		}
		column(path)
		where := header.Where(path)
		shows[where] = append(shows[where], func(b []byte, p *record.Packet) []byte { return fmt.Append(b, query.Packets.Get(p, path), ";") })
	}
	column("bth.opcode", "infiniband.reth.va", "rpcrdma.xid", "segment.handle", "ddp.last")
	column("number", "summary", "src")
	paths, err := filepath.Glob(captures + "*.pcap*")
	if err != nil || len(paths) < 30 {
		t.Fatal(paths, err)
	}
	total := 0
	for _, path := range paths {
		if strings.Contains(path, "cut") { // Frames wants whole files
			continue
		}
		all, _ := testkit.Frames(t, path)
		all = all[:min(len(all), 150)]
		for only, shown := range shows {
			want, got := lines(all, shown, field.Everything), lines(all, shown, only)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s, packet %d, of %b only\n%s\nwant\n%s", path, i+1, only, got[i], want[i])
				}
				total += len(want[i])
			}
		}
	}
	if total < 10e6 {
		t.Errorf("only %d bytes were compared", total)
	}
}

// line appends a packet as text: as a row of a table if columns is not nil.
func line(b []byte, p *record.Packet, columns []string) []byte {
	to := bytes.NewBuffer(b)
	look := render.NewLook(render.Look{Columns: columns})
	if columns == nil {
		render.NewPackets(to, look, 0).Packet(p)
	} else {
		text := render.NewText(to, look, 0)
		text.Packet(p)
		text.Finish()
	}
	return to.Bytes()
}

// lines returns the output for each packet if only some parts of it are described.
func lines(frames []capture.Frame, shows []func([]byte, *record.Packet) []byte, only field.Set) (list []string) {
	var line []byte
	d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
		line = line[:0]
		for _, show := range shows {
			line = show(line, p)
		}
		list = append(list, string(line))
		return nil
	}}, dissect.Options{Only: only})
	for i := range frames {
		d.Frame(&frames[i])
	}
	return list
}
