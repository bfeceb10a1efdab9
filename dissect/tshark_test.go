package dissect_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// tsharkFields maps the fields that tshark prints to the fields of rdmadump that they are
// compared with.
var tsharkFields = []struct{ tshark, header, name string }{
	{"infiniband.bth.opcode", "bth", "opcode"},
	{"infiniband.bth.destqp", "bth", "dest_qpn"},
	{"infiniband.bth.psn", "bth", "psn"},
	{"infiniband.reth.va", "reth", "virtual_address"},
	{"infiniband.reth.r_key", "reth", "r_key"},
	{"infiniband.reth.dmalen", "reth", "dma_length"},
	{"infiniband.aeth.syndrome", "aeth", "syndrome"},
	{"infiniband.aeth.msn", "aeth", "msn"},
	{"infiniband.deth.srcqp", "deth", "source_qpn"},
	{"infiniband.mad.attributeid", "mad", "attribute"},
	{"infiniband.cm.req.localqpn", "cm", "local_qpn"},
	{"infiniband.cm.rep.localqpn", "cm", "local_qpn"},
	{"infiniband.cm.req.startpsn", "cm", "starting_psn"},
	{"infiniband.cm.rep.startpsn", "cm", "starting_psn"},
	{"rpcordma.xid", "rpcrdma", "xid"},
	{"rpcordma.version", "rpcrdma", "rdma_vers"},
	{"rpcordma.flow_control", "rpcrdma", "credits"},
	{"rpcordma.msg_type", "rpcrdma", "rdma_proc"},
	{"rpcordma.rdma_handle", "segment", "handle"},
	{"rpcordma.rdma_length", "segment", "length"},
	{"rpcordma.rdma_offset", "segment", "offset"},
	{"rpcordma.position", "", "position"},
}

// tsharkWrong lists the places where tshark 4.0 is wrong, or decodes other bytes, with the
// reason. Any other difference fails the test.
var tsharkWrong = []struct {
	field, why string
	applies    func(name string, ours, theirs []uint64, p *seen) bool
}{
	{
		"rpcordma.", "tshark finds RPC-over-RDMA by a heuristic, which fails on messages that are not sound: just when they matter",
		func(name string, ours, theirs []uint64, p *seen) bool { return len(theirs) == 0 && p.broken },
	},
	{
		"rpcordma.", "tshark's heuristic wants version 1 (frames 43, 45) and the RPC message's XID (137, 139)",
		func(name string, ours, theirs []uint64, p *seen) bool {
			return len(theirs) == 0 && name == "rocev2-errors.pcap.zst" && slices.Contains([]int64{43, 45, 137, 139}, p.number)
		},
	},
	{
		"rpcordma.", "tshark dissects a Send in its last packet, reassembled; rdmadump in its first",
		func(name string, ours, theirs []uint64, p *seen) bool {
			return p.opcode == 0 && len(theirs) == 0 || (p.opcode == 2 || p.opcode == 0x16) && len(ours) == 0
		},
	},
}

// seen is the description of one packet by rdmadump.
type seen struct {
	values map[string][]uint64
	number int64
	opcode uint64
	broken bool // the RPC-over-RDMA header or the RPC header is malformed
	text   string
}

// TestTshark compares every field of every RoCEv2 packet with tshark.
func TestTshark(t *testing.T) {
	tshark := testkit.Tshark(t)
	for _, name := range testkit.Few(testkit.Glob(t, captures+"rocev2-*.zst")) {
		t.Run(strings.TrimSuffix(name, ".zst"), func(t *testing.T) {
			plain := filepath.Join(t.TempDir(), "capture")
			if err := os.WriteFile(plain, testkit.Decompressed(t, captures+name), 0o600); err != nil {
				t.Fatal(err)
			}
			holdAgainstTshark(t, tshark, plain, name)
		})
	}
}

func holdAgainstTshark(t *testing.T, tshark, plain, name string) {
	args := []string{"-r", plain, "-T", "fields", "-e", "frame.number", "-E", "occurrence=a", "-E", "aggregator=,"}
	for _, f := range tsharkFields {
		args = append(args, "-e", f.tshark)
	}
	out, err := exec.Command(tshark, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[int64][]string{}
	scanner := bufio.NewScanner(bytes.NewReader(out))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		columns := strings.Split(scanner.Text(), "\t")
		number, _ := strconv.ParseInt(columns[0], 10, 64)
		theirs[number] = columns[1:]
	}
	compared, differ := 0, 0
	read(t, name, dissect.Handler{Packet: func(p *record.Packet) error {
		if p.Transport == "" || p.ICRC == record.Bad { // tshark does not verify the ICRC, and decodes damaged packets.
			return nil
		}
		ours := values(p)
		for i, f := range tsharkFields {
			want := numbers(t, theirs[p.Number][i])
			got := ours.values[f.header+"."+f.name]
			if strings.HasPrefix(f.tshark, "infiniband.cm.req") && ours.text != "REQ" || strings.HasPrefix(f.tshark, "infiniband.cm.rep") && ours.text != "REP" {
				got = nil
			}
			if slices.Equal(got, want) {
				compared += len(got)
				continue
			}
			if known(name, f.tshark, got, want, ours) {
				continue
			}
			if differ++; differ <= 10 {
				t.Errorf("frame %d, %s: %x, tshark says %x (%s)", p.Number, f.tshark, got, want, p.Summary)
			}
		}

		return nil
	}}, dissect.Options{})
	if compared < 900 {
		t.Errorf("only %d values compared", compared)
	}
}

// known reports whether tshark is known to be wrong in this place.
func known(name, fieldName string, ours, theirs []uint64, p *seen) bool {
	for _, w := range tsharkWrong {
		if strings.HasPrefix(fieldName, w.field) && w.applies(name, ours, theirs, p) {
			return true
		}
	}
	return false
}

// numbers parses tshark's list of values.
func numbers(t *testing.T, list string) (all []uint64) {
	for s := range strings.SplitSeq(list, ",") {
		if s == "" {
			continue
		}
		v, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatalf("tshark printed %q", s)
		}
		all = append(all, v)
	}
	return all
}

// values returns the numbers of a packet's tree by header and name.
func values(p *record.Packet) *seen {
	s := &seen{values: map[string][]uint64{}, number: p.Number}
	position, reading := uint64(0), false
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch {
		case n.Kind == record.NodeNumber && n.Name == "position":
			position, reading = uint64(n.Number), true
		case n.Name == "write_chunks":
			reading = false
		case n.Table == &header.Segment && reading: // tshark repeats it for each segment.
			s.values[".position"] = append(s.values[".position"], position)
		case n.Kind == record.NodeText && n.Name == "message":
			s.text = n.Text
		case n.Kind == record.NodeText && n.Name == "error":
			s.broken = true
		}
		if n.Table == nil {
			continue
		}
		for j := range n.Table.Fields {
			f := &n.Table.Fields[j]
			if f.Bits <= 64 && f.Whole(n.Data) && f.Format != field.Bytes {
				key := n.Table.Name + "." + f.Name
				s.values[key] = append(s.values[key], f.Uint(n.Data))
			}
		}
	}
	if op := s.values["bth.opcode"]; len(op) == 1 {
		s.opcode = op[0]
	}
	return s
}

// TestTsharkCompounds compares the operations and the status of NFSv4 COMPOUNDs, short, chunked
// and long, with tshark.
func TestTsharkCompounds(t *testing.T) {
	tshark := testkit.Tshark(t)
	for _, name := range testkit.Few([]string{"lab-nfs40.pcap.zst", "rocev2-nfs41.pcap.zst", "rocev2-long42.pcap.zst", "rocev2-data42.pcap.zst"}) {
		plain := filepath.Join(t.TempDir(), "capture")
		if err := os.WriteFile(plain, testkit.Decompressed(t, captures+name), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(tshark, "-r", plain, "-Y", "rpc", "-T", "fields", "-e", "rpc.msgtyp", "-e", "rpc.xid", "-e", "nfs.opcode", "-e", "nfs.nfsstat4").Output()
		if err != nil {
			t.Fatal(err)
		}
		operations, failed := map[string]int{}, map[string]bool{}
		for line := range strings.Lines(string(out)) {
			c := strings.Split(strings.TrimRight(line, "\n"), "\t")
			xid, _, _ := strings.Cut(c[1], ",")
			switch {
			case strings.HasPrefix(c[0], "0") && c[2] != "":
				operations[xid] = strings.Count(c[2], ",") + 1
			case strings.HasPrefix(c[0], "1") && c[3] != "":
				failed[xid] = !strings.HasPrefix(c[3], "0")
			}
		}
		compared := 0
		read(t, name, dissect.Handler{Transaction: func(r *record.Transaction) error {
			xid := r.XID.String()
			bad, known := failed[xid]
			if operations[xid] == 0 || !known {
				return nil
			}
			compared++
			if len(r.Operations) != operations[xid] || !r.NFSStatus.Known() || (r.NFSStatus.Or("") != "NFS4_OK") != bad {
				t.Errorf("%s: %s: operations %v, status %v; tshark has %d, failed %t", name, xid, r.Operations, r.NFSStatus, operations[xid], bad)
			}

			return nil
		}}, dissect.Options{})
		if compared < 95 {
			t.Errorf("%s: only %d compared", name, compared)
		}
	}
}
