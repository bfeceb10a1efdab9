package scrub

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/internal/export"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
	"github.com/rdmadump/rdmadump/synth/cases"
)

var secret = []byte("a key of tests")

// all returns the paths of all captures.
func all(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, glob := range []string{"../../../samples/*.pcap*", "../../../testdata/captures/*.pcap*", "../../../testdata/*.pcap"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// dissected dissects frames.
func dissected(t testing.TB, frames []capture.Frame, h dissect.Handler, rebuild bool) *record.Summary {
	t.Helper()
	d := dissect.New(h, dissect.Options{Rebuild: rebuild})
	for i := range frames {
		if err := d.Frame(&frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	summary, err := d.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return summary
}

// scrubbed returns scrubbed frames.
func scrubbed(t testing.TB, frames []capture.Frame, secret []byte) ([]capture.Frame, *Scrubber) {
	t.Helper()
	learned, err := os.CreateTemp(t.TempDir(), "learned")
	if err != nil {
		t.Fatal(err)
	}
	defer learned.Close()
	s := New(secret, learned)
	dissected(t, frames, s.Learn(), false)
	if err := s.Learned(); err != nil {
		t.Fatal(err)
	}
	var out []capture.Frame
	dissected(t, frames, dissect.Handler{Frame: func(f *capture.Frame, p *record.Packet, at wiremap.StreamOffset) error {
		data, err := s.Frame(f, p, at)
		anew := *f
		anew.Data = slices.Clone(data)
		out = append(out, anew)
		return err
	}}, false)
	return out, s
}

var addressed = regexp.MustCompile(`"(address|peer|directions|client|server)":"([^"]*)"`)

// credentials are the fields of transactions whose values scrubbing replaces.
var credentials = regexp.MustCompile(`("uid"|"gid"|"machine"|"mount_path"):("[^"]*"|[0-9]+|null)`)

// owners are the names that clients give themselves. Scrubbing replaces them, and what follows them if they are truncated.
var owners = regexp.MustCompile(`"client_owner":"[^"]*",|"boot_verifier":"[^"]*",`)

// keys are keys of connections, which are made of addresses.
var keys = regexp.MustCompile(`"connection_key":"0x[0-9a-f]{16}"`)

// preserved lists nodes of undamaged packets that scrubbing preserves.
var preserved = []string{"rpcrdma", "header_bytes", "program_name", "procedure_name"}

// shortest is the length of packets with enough of a Send to recognize it. The XID of a
// packet with fewer bytes is replaced.
const shortest = 70

// views returns what the views show of frames, one line per record. If k is not nil,
// it replaces addresses by their pseudonyms.
func views(t testing.TB, frames []capture.Frame, k *key) (lines []string) {
	t.Helper()
	add := func(r any) error {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b = owners.ReplaceAll(credentials.ReplaceAll(b, []byte("${1}:0")), nil)
		b = keys.ReplaceAll(b, []byte(`"connection_key":"known"`))
		if k != nil {
			b = addressed.ReplaceAllFunc(b, func(b []byte) []byte {
				m := addressed.FindSubmatch(b)
				a, err := netip.ParseAddr(string(m[2]))
				if err != nil {
					return b // a LID
				}
				return fmt.Appendf(nil, `"%s":%q`, m[1], k.address(a).Unmap().String())
			})
		}
		lines = append(lines, string(b))
		return nil
	}
	summary := dissected(t, frames, dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			if slices.Contains(r.Findings, "reduced-under-gss") { // Nobody can say where the results are, so they are replaced.
				r.BytesRead = record.Opt[int64]{}
			}
			return add(r)
		},
		Connection: func(r *record.Connection) error { return add(r) },
		Finding:    func(r *record.Finding) error { return add(r) },
		Frame: func(_ *capture.Frame, p *record.Packet, at wiremap.StreamOffset) error {
			var crcs, nodes []string
			for i := range p.Nodes {
				n := &p.Nodes[i]
				if n.Name == "crc" || n.Name == "vcrc" {
					crcs = append(crcs, n.Text)
				}
				if slices.Contains(preserved, n.Name) && p.ICRC == record.Good {
					nodes = append(nodes, fmt.Sprintf("%s %s %d %x", n.Name, n.Text, n.Number, n.Data))
				}
			}
			xid := p.XID
			if p.Captured < shortest {
				xid = record.Opt[record.Hex32]{}
			}
			lines = append(lines, fmt.Sprint("packet ", p.Number, p.Length, p.Captured, p.Transport, p.Connection, p.ICRC, p.RDMAOperation, p.Transaction, xid, p.Part, p.Marks, p.NoTransactionReason, at, crcs, nodes))
			return nil
		},
	}, false)
	for i := range summary.Absences { // the two addresses are in the order of their texts, which is another one for pseudonyms
		summary.Absences[i].Address, summary.Absences[i].Peer = "", ""
	}
	add(summary)
	return lines
}

// quoted is the part of a finding that quotes a word as XID, although the bytes are not
// an RPC message. The word is replaced.
var quoted = regexp.MustCompile("in the chunk is 0x[0-9a-f]{8}")

// sameViews compares what the views show of frames with what they show of the
// scrubbed frames, which it returns.
func sameViews(t testing.TB, frames []capture.Frame) []capture.Frame {
	t.Helper()
	out, s := scrubbed(t, frames, secret)
	want, got := views(t, frames, s.key), views(t, out, nil)
	for _, lines := range [][]string{want, got} {
		for i := range lines {
			lines[i] = quoted.ReplaceAllString(lines[i], "in the chunk")
		}
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			line := "nothing"
			if i < len(got) {
				line = got[i]
			}
			t.Errorf("record %d of %d:\nscrubbed %s\noriginal %s", i, len(want), line, want[i])
			break
		}
	}
	sameChecksums(t, frames, out)
	return out
}

// sameChecksums verifies that IP and TCP checksums are right if they were right, and
// wrong if they were wrong.
func sameChecksums(t testing.TB, before, after []capture.Frame) {
	t.Helper()
	for i := range before {
		if len(after[i].Data) != len(before[i].Data) {
			t.Fatalf("packet %d has %d bytes, it had %d", before[i].Number, len(after[i].Data), len(before[i].Data))
		}
		if a, b := state(&before[i]), state(&after[i]); a != b {
			t.Errorf("packet %d: %s, it was %s", before[i].Number, b, a)
			return
		}
	}
}

// state describes the headers of a frame and the state of its checksums.
func state(f *capture.Frame) string {
	var l link.Decoder
	var tcp link.TCP
	out := fmt.Sprint(l.Decode(f), l.Length)
	for _, h := range l.Headers() {
		out += fmt.Sprint(" ", h.Kind, h.Length)
		if h.Kind == link.HeaderIPv4 {
			out += fmt.Sprint(link.Fold(link.AddWords(0, f.Data[h.Offset:h.Offset+h.Length])) == 0xffff)
		}
	}
	tcp.Src, tcp.Dst = l.Src, l.Dst
	if l.Carries == link.CarriesTCP && tcp.Decode(l.Transport, l.Length, l.Offset) {
		out += fmt.Sprint(sound(&tcp), tcp.Seq, tcp.Ack, tcp.Flags, tcp.SrcPort, tcp.DstPort)
	}
	return out
}

// read returns the frames of a capture, up to the first damage.
func read(t testing.TB, path string) (frames []capture.Frame) {
	t.Helper()
	f, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for frame, err := range capture.All(context.Background(), f) {
		if err != nil {
			break
		}
		kept := *frame
		kept.Data = slices.Clone(frame.Data)
		frames = append(frames, kept)
	}
	return frames
}

// TestCaptures verifies that a scrubbed capture shows the same transactions,
// connections, timelines, findings, summary and packets, except for addresses, and
// that it contains no names, handles, credentials and addresses of the original.
func TestCaptures(t *testing.T) {
	for _, path := range testkit.Short(t, all(t)) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			frames := read(t, path)
			out := sameViews(t, frames)
			noneOf(t, secrets(t, frames), out)
		})
	}
}

// TestCases verifies the same for connections that break rules, and for the same
// connections without the violation.
func TestCases(t *testing.T) {
	for _, c := range cases.All() {
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			for _, broken := range []bool{true, false} {
				if c.On(transport) {
					t.Run(fmt.Sprintf("%s/%s/%s/%t", transport, c.Rule, c.Name, broken), func(t *testing.T) {
						frames := framesOf(c.Wire(transport, broken))
						noneOf(t, secrets(t, frames), sameViews(t, frames))
					})
				}
			}
		}
	}
}

// TestSplitItem verifies that the first bytes of a data item are replaced if a Read chunk has
// the rest of it, and that its length is kept.
func TestSplitItem(t *testing.T) {
	call := synth.Symlink3("a link", "the diary of alice, in her home.")
	item := call.Args.Items[0]
	at, inline := item.At, 16
	call.Args.Bytes = slices.Concat(call.Args.Bytes[:at], item.Data[:inline], call.Args.Bytes[at:])
	call.Args.Items = []synth.Item{{At: at + inline, Data: item.Data[inline:], Reduced: true}}
	call.Reads = synth.ReadChunk(call.Message().Position(0), synth.Mem(0xa1, uint32(len(item.Data)-inline)))
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.RPC(call, synth.Symlink3Reply())
	frames := framesOf(w)
	found := false
	for _, line := range views(t, frames, nil) {
		found = found || strings.Contains(line, "it is inside a data item of 32 bytes")
	}
	if !found {
		t.Error("the item is not split")
	}
	noneOf(t, map[string]string{"a link": "name", "the ": "target", "diary": "target", "alice": "target", "her home": "target"}, sameViews(t, frames))
}

// sensitive lists the members of a record's rpc whose strings must be replaced.
var sensitive = map[string]bool{
	"name": true, "to_name": true, "path": true, "target": true, "owner": true, "owner_group": true, "who": true, "fh": true, "dir_fh": true,
	"to_dir_fh": true, "object_fh": true, "filehandle": true, "id": true, "ownerid": true, "tag": true, "nii_domain": true, "nii_name": true,
	"server_scope": true, "server_major_id": true, "addr": true, "machinename": true, "xattr_name": true, "caller_name": true, "hostname": true,
	"groups": true, "components": true, "server": true, "xattr_value": true, "xattr_names": true,
}

// addSecrets adds what identifies somebody in the value of a member of a record's rpc, as secrets returns it.
func addSecrets(found map[string]string, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for n, v := range v {
			addSecrets(found, n, v)
		}
	case []any:
		for _, v := range v {
			addSecrets(found, name, v)
		}
	case string:
		if name = strings.TrimRight(name, "_0123456789"); name == "cookie" { // a cookie may be a hash of a name
			if v, err := strconv.ParseUint(v, 0, 64); err == nil && v >= 1<<32 {
				found[string(be.AppendUint64(nil, v))] = name
			}
		}
		if !sensitive[name] {
			return
		}
		if b, err := hex.DecodeString(v); err == nil && len(b) >= 4 {
			found[string(b)] = name
		}
		for _, word := range strings.FieldsFunc(v, func(r rune) bool { return r == '/' || r == '@' }) {
			if len(word) >= 4 {
				found[word] = name
			}
		}
	}
}

// addMACs adds the MAC addresses of an Ethernet frame, as secrets returns them.
func addMACs(found map[string]string, f *capture.Frame) {
	if f.LinkType != capture.LinkEthernet || len(f.Data) < 14 {
		return
	}
	for _, mac := range [][]byte{f.Data[:6], f.Data[6:12]} {
		if mac[0]&1 == 0 && !zero(mac) {
			found[string(mac)] = "MAC " + hex.EncodeToString(mac)
		}
	}
}

// secrets returns the bytes that must not be in a scrubbed capture, with a
// description of each. It finds them in the records of Calls and Replies and in the
// headers of packets.
func secrets(t testing.TB, frames []capture.Frame) map[string]string {
	t.Helper()
	found := map[string]string{}
	d := dissect.New(dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			if r.RPC == nil {
				return nil
			}
			b, err := json.Marshal(r.RPC)
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatal(err)
			}
			halves, _ := v.(map[string]any)
			for _, half := range halves {
				h, _ := half.(map[string]any)
				ops, _ := h["ops"].([]any)
				for _, op := range ops {
					addSecrets(found, "", op.(map[string]any)["fields"])
				}
			}
			return nil
		},
		Payload: func(_ *record.Transaction, call, _ *record.Payload) error {
			var h oncrpc.Header
			if call == nil || h.Decode(call.Data) != nil || h.Credential.Flavor != oncrpc.AuthSys || len(h.Credential.Body) < 12 {
				return nil
			}
			b := h.Credential.Body
			if n := int(be.Uint32(b[4:])); n >= 4 && n <= len(b)-8 {
				found[string(b[8:8+n])] = "machine name"
			}
			return nil
		},
		Packet: func(p *record.Packet) error {
			for _, a := range []string{p.Src.String(), p.Dst.String()} {
				if ip, err := netip.ParseAddr(a); err == nil && !ip.IsLinkLocalUnicast() && !ip.IsMulticast() && !ip.IsLoopback() && !ip.IsUnspecified() {
					found[string(ip.AsSlice())] = "address " + a
					found[a] = "address"
				}
			}
			return nil
		},
	}, dissect.Options{RPC: true})
	for i := range frames {
		d.Frame(&frames[i])
		addMACs(found, &frames[i])
	}
	d.Finish()
	return found
}

// noneOf reports the secrets that are in frames as errors.
func noneOf(t testing.TB, secrets map[string]string, frames []capture.Frame) {
	t.Helper()
	var bytesOf []byte
	for i := range frames {
		bytesOf = append(append(bytesOf, frames[i].Data...), "|frame|"...)
	}
	for s, what := range secrets {
		if strings.Count(s, "\x00") > len(s)/2 { // a number may have the same bytes
			continue
		}
		if i := bytes.Index(bytesOf, []byte(s)); i >= 0 {
			t.Errorf("%s: packet %[3]d still contains %[2]q", what, s, 1+bytes.Count(bytesOf[:i], []byte("|frame|")))
		}
	}
}

// TestFileData verifies that no eight successive bytes of file data are left.
func TestFileData(t *testing.T) {
	for _, name := range []string{"rocev2-data42", "lab-iwarpdata3", "lab-inline16"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frames, _ := testkit.Frames(t, "../../../testdata/captures/"+name+".pcap.zst")
			runs, total := map[[8]byte]bool{}, 0
			data := func(b []byte) {
				total += len(b)
				for ; len(b) >= 8; b = b[8:] {
					if w := [8]byte(b); bytes.Count(w[:], w[:1]) < 8 {
						runs[w] = true
					}
				}
			}
			var call, reply nfs.Message
			dissected(t, frames, dissect.Handler{Payload: func(_ *record.Transaction, c, r *record.Payload) error {
				var h, answer oncrpc.Header
				if c == nil || h.Decode(c.Data) != nil {
					return nil
				}
				call.Call(h.Program, h.Version, h.Procedure, nfs.NewStream(c.Data[h.Length:], nil))
				values := call.Values
				if r != nil && answer.Decode(r.Data) == nil && answer.Succeeded() {
					reply.Reply(h.Program, h.Version, h.Procedure, nfs.NewStream(r.Data[answer.Length:], nil))
					values = slices.Concat(values, reply.Values)
				}
				for _, v := range values {
					if v.Kind == nfs.Data {
						data(v.Bytes)
					}
				}
				return nil
			}}, true)
			if len(runs) < 1000 {
				t.Fatalf("%d bytes of file data, %d runs of eight", total, len(runs))
			}
			out, _ := scrubbed(t, frames, secret)
			left := 0
			for i := range out {
				for b := out[i].Data; len(b) >= 8; b = b[1:] {
					if runs[[8]byte(b)] {
						left++
					}
				}
			}
			if left > 0 {
				t.Errorf("%d runs of eight bytes of file data are left", left)
			}
		})
	}
}

// seeds lists seeds of [testkit.Damage] that found a defect before, by the number of
// the capture.
var seeds = map[int][]uint64{9: {135, 203, 339}, 12: {119}, 16: {127}, 18: {329, 331}}

// TestDamaged verifies that damaged captures are scrubbed without a panic and
// contain no secrets of the undamaged capture. If packets are only missing,
// truncated, repeated or out of order, the views show the same, too.
func TestDamaged(t *testing.T) {
	var whole [][]capture.Frame
	for _, path := range all(t) {
		if info, err := os.Stat(path); err == nil && info.Size() < 200<<10 {
			whole = append(whole, read(t, path))
		}
	}
	// This damage moves bytes of a header into a payload, or changes the type of a
	// header. The bytes at the offsets of structure may then be anything.
	moves := regexp.MustCompile("link|transplant")
	honest := regexp.MustCompile("^(unchecked,)?(,?(cut|snaplen|drop|late|duplicate|reorder|times|ends))+$")
	for i, frames := range whole {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			others := whole[(i+7)%len(whole)]
			private := secrets(t, frames)
			for s, what := range secrets(t, others) {
				private[s] = what
			}
			for _, seed := range append([]uint64{0, 1, 2, 3}, seeds[i]...) {
				file, done := testkit.Damage(uint64(i)*1000+seed, frames, others)
				if strings.HasSuffix(done, "file") { // the damage is in the capture file's own format
					continue
				}
				path := filepath.Join(t.TempDir(), "damaged")
				if err := os.WriteFile(path, file, 0o600); err != nil {
					t.Fatal(err)
				}
				if len(file) == 0 {
					continue
				}
				damaged := read(t, path)
				t.Run(done, func(t *testing.T) {
					var out []capture.Frame
					if honest.MatchString(done) {
						out = sameViews(t, damaged)
					} else {
						out, _ = scrubbed(t, damaged, secret)
					}
					if !moves.MatchString(done) {
						noneOf(t, private, out)
					}
				})
			}
		})
	}
}

// TestVariants verifies the same for captures that are truncated, that begin in the
// middle of the traffic, that have packets twice, or that lack packets.
func TestVariants(t *testing.T) {
	type change struct {
		name string
		make func([]capture.Frame) []capture.Frame
	}
	var changes []change
	for _, snap := range []int{54, 96, 140, 256} {
		changes = append(changes, change{fmt.Sprint("cut to ", snap), func(frames []capture.Frame) []capture.Frame {
			for i := range frames {
				frames[i].Data = frames[i].Data[:min(snap, len(frames[i].Data))]
			}
			return frames
		}})
	}
	for _, v := range testkit.Variants {
		changes = append(changes, change{v.Name, func(frames []capture.Frame) (out []capture.Frame) {
			for i := range frames {
				for range v.Times(&frames[i]) {
					out = append(out, frames[i])
				}
			}
			return out
		}})
	}
	changes = append(changes, change{"every third missing", func(frames []capture.Frame) (out []capture.Frame) {
		for i := range frames {
			if i%3 != 1 {
				out = append(out, frames[i])
			}
		}
		return out
	}})
	for _, part := range []int{2, 5} {
		changes = append(changes, change{fmt.Sprint("from a part of ", part), func(frames []capture.Frame) []capture.Frame { return frames[len(frames)/part:] }})
	}
	for _, name := range []string{"rocev2-callback41", "lab-iwarpcallback41", "lab-krb5", "derived-ib-callback41", "rocev2-storm41"} {
		for _, c := range changes {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				frames, _ := testkit.Frames(t, "../../../testdata/captures/"+filesOf(t, name))
				private := secrets(t, frames)
				frames = c.make(frames)
				for i := range frames {
					frames[i].Number = int64(i + 1)
				}
				noneOf(t, private, sameViews(t, frames))
			})
		}
	}
}

// framesOf returns the frames of a synthetic wire.
func framesOf(w *synth.Wire) (frames []capture.Frame) {
	for i, f := range w.Frames {
		frames = append(frames, capture.Frame{Number: int64(i + 1), Time: f.Time, LinkType: capture.LinkType(f.LinkType), Length: f.Length, Data: f.Data})
	}
	return frames
}

// TestFraming scrubs FPDUs with and without markers and CRCs, in TCP segments of
// several sizes, repeated and out of order.
func TestFraming(t *testing.T) {
	file := []byte(strings.Repeat("what is in the file, ", 400))
	for _, o := range []synth.Options{{}, {Markers: true}, {NoCRC: true}, {Markers: true, NoCRC: true}, {MTU: 300}, {Markers: true, MTU: 3000}} {
		for _, cut := range []int{0, 7, 100, 512, 1000, 5000} {
			t.Run(fmt.Sprintf("%+v/%d", o, cut), func(t *testing.T) {
				w := synth.New()
				c := w.IWARP(o)
				c.Connect()
				sides := []*synth.Side{c.Client, c.Server}
				if cut > 0 {
					for _, s := range sides {
						s.Cork()
					}
				}
				mem, back := synth.Mem(0xa1, 8192), synth.Mem(0xa2, 8192)
				c.RPC(synth.Write3(0, file[:8001]).Offer(mem), synth.Write3Reply(8001))
				c.RPC(synth.Read3(0, 8192).Offer(back), synth.Read3Reply(file[:8100]))
				c.RPC(synth.Compound(synth.OpPutRootFH(), synth.OpLookup("a name of somebody")), synth.CompoundReply(synth.ResPutRootFH(), synth.ResLookup()))
				if cut > 0 {
					for _, s := range sides {
						s.Uncork(cut)
					}
				}
				frames := framesOf(w)
				for i := 8; i+3 < len(frames); i += 7 { // some frames of each direction
					frames[i].Data, frames[i+2].Data = frames[i+2].Data, frames[i].Data
					frames[i].Length, frames[i+2].Length = frames[i+2].Length, frames[i].Length
				}
				frames = append(frames, frames[len(frames)/2:]...)
				for i := range frames {
					frames[i].Number = int64(i + 1)
				}
				out := sameViews(t, frames)
				noneOf(t, map[string]string{"in the file": "file data", "somebody": "name", "name of": "name"}, out)
			})
		}
	}
}

// TestTunnels verifies that addresses are replaced in inner and outer headers, and
// that each checksum is right if it was right.
func TestTunnels(t *testing.T) {
	frames, _ := testkit.Frames(t, "../../../samples/rocev2-callback41.pcap")
	for i := range frames {
		f := &frames[i]
		outer := testkit.Unhex(t, "525400aa0001 525400aa0002 0800 4500 0000 0000 0000 40 11 0000 0a090807 0a090806 4444 12b5 0000 0000 0800000000002a00")
		outer = append(outer, f.Data...)
		be.PutUint16(outer[16:], uint16(len(outer)-14))
		be.PutUint16(outer[38:], uint16(len(outer)-34))
		be.PutUint16(outer[24:], ^link.Fold(link.AddWords(0, outer[14:34])))
		be.PutUint16(outer[40:], ^link.Fold(link.AddWords(17+uint64(len(outer)-34), outer[26:])))
		if f.Number == 7 { // this frame gets wrong checksums
			outer[40] ^= 0x55
			outer[24] ^= 0x55
		}
		f.Data, f.Length = outer, f.Length+len(outer)-len(f.Data)
	}
	out := sameViews(t, frames)
	for i := range out {
		b := out[i].Data
		ip, udp := link.Fold(link.AddWords(0, b[14:34])) == 0xffff, link.Fold(link.AddWords(17+uint64(len(b)-34), b[26:])) == 0xffff
		if want := i != 6; ip != want || udp != want {
			t.Fatalf("packet %d: IP checksum right %t, UDP checksum right %t", i+1, ip, udp)
		}
	}
	noneOf(t, map[string]string{"\x0a\x09\x08\x07": "address", "\xc0\xa8\x4d\x01": "address", "\x52\x54\x00\xaa": "MAC", "\x52\x54\x00\x77": "MAC"}, out)
}

// onIP returns an Ethernet frame that carries b over IPv4.
func onIP(t testing.TB, protocol byte, fragment uint16, b []byte) []capture.Frame {
	frame := append(testkit.Unhex(t, "525400aa0001 525400aa0002 0800 4500 0000 0000 0000 40 00 0000 0a090807 0a090806"), b...)
	be.PutUint16(frame[16:], uint16(len(frame)-14))
	be.PutUint16(frame[20:], fragment)
	frame[23] = protocol
	be.PutUint16(frame[24:], ^link.Fold(link.AddWords(0, frame[14:34])))
	return []capture.Frame{{Number: 1, Time: 1, LinkType: capture.LinkEthernet, Length: len(frame), Data: frame}}
}

// TestNotRDMA verifies that nothing is kept of a datagram to RoCE's port that is not
// a RoCE packet, and of bytes that are not a TCP header.
func TestNotRDMA(t *testing.T) {
	none := func(t *testing.T, frames []capture.Frame, text string) {
		t.Helper()
		out, _ := scrubbed(t, frames, secret)
		for i := 0; i+4 <= len(text); i++ {
			if bytes.Contains(out[0].Data, []byte(text[i:i+4])) {
				t.Errorf("%q of %q was kept: %q", text[i:i+4], text, out[0].Data[34:])
				return
			}
		}
		again, _ := scrubbed(t, out, secret)
		if len(again[0].Data) != len(frames[0].Data) {
			t.Error("another length")
		}
	}
	for _, text := range []string{"<13>Nov 21 somehost su: alice on tty1", "Tell all that alice is here, and what she has", "dear alice, this is a datagram", "!alice", "abc", " 012345alice67890 and more"} {
		for _, fragment := range []uint16{0, 0x2000, 0x2001} {
			datagram := be.AppendUint16(be.AppendUint16(testkit.Unhex(t, "4444 12b7"), uint16(8+len(text))), 0)
			none(t, onIP(t, 17, fragment, append(datagram, text...)), text)
		}
		cut := onIP(t, 17, 0, append(testkit.Unhex(t, "4444 12b7 0400 0000"), text...))
		cut[0].Length += 1000
		none(t, cut, text)
	}
	// The first fragment of a packet that could be a RoCE packet is not RDMA traffic.
	packet := testkit.Unhex(t, "4444 12b7 0400 0000 0440 ffff 00000012 80000001")
	none(t, onIP(t, 17, 0x2000, append(packet, "what alice wrote"...)), "what alice wrote")
	for _, c := range []struct{ options, text string }{
		{"0810", "alicealiceali."}, {"0509", "alice.7"}, {"0303", ""}, {"080b", "alice.bob"}, {"0206", "alix"}, {"0508", "alice."},
	} {
		options := append(testkit.Unhex(t, c.options), c.text...)
		options = append(options, make([]byte, -len(options)&3)...)
		header := append(testkit.Unhex(t, "4444 0801 00000001 00000002 5010 0000 0000 0000"), options...)
		header[12] = byte(len(header)/4) << 4
		none(t, onIP(t, 6, 0, header), c.text)
	}
	none(t, onIP(t, 6, 0, append(testkit.Unhex(t, "4444 0801"), "alice and \x4fwho else"...)), "alice and \x4fwho else")
	none(t, onIP(t, 6, 0, append(testkit.Unhex(t, "4444 0801"), "alice an\xf0d who else"...)), "alice an\xf0d who else")
	// A well-formed header is kept.
	good := onIP(t, 6, 0, testkit.Unhex(t, "4444 0801 00000001 00000002 d010 0000 0000 0000 020405b4 0402 080a0000000100000002 01 030307 01 050a0000000100000003 00"))
	out, _ := scrubbed(t, good, secret)
	for i, b := range good[0].Data[34:] {
		if at := 34 + i; b != out[0].Data[at] && at != 50 && at != 51 {
			t.Errorf("byte %d of a sound header is %#x, it was %#x", i, out[0].Data[at], b)
		}
	}
}

// TestLimits verifies that nothing is kept after a value that is above the limit of
// its protocol, because such a value shows that the bytes were decoded wrongly.
func TestLimits(t *testing.T) {
	text := []byte("what alice has, whose words could be numbers of anything at all, as they are many")
	channel := synth.XDR{}.Word(0, 1<<20, 1<<20, 4096, 8, 16)
	for name, op := range map[string]synth.XDR{
		"rdma_ird":       synth.XDR{}.Word(43).Hyper(7).Word(1, 0).Append(channel).Word(8).Fixed(text[:32]).Append(channel).Word(0, 1, 0),
		"client_impl_id": synth.XDR{}.Word(42).Hyper(7).String("me").Word(0, 0, 2).String("a.org").String("b").Fixed(text[:12]).String("a.org").String("b").Fixed(text[12:24]),
		"bitmap":         synth.XDR{}.Word(9, 8).Fixed(text[:32]),
		"bool":           synth.XDR{}.Word(53).Fixed(make([]byte, 16)).Fixed(text[:20]),
		"duration":       synth.XDR{}.Word(34).Fixed(make([]byte, 16)).Word(3, 0, 0, 1<<(70-64), 32, 1, 3).Fixed(text[:24]),
	} {
		w := synth.New()
		c := w.RoCE(synth.Options{})
		c.Connect()
		c.RPC(synth.Compound(synth.OpPutRootFH(), op), synth.CompoundReply(synth.ResPutRootFH(), synth.ResFailed(0, 1)))
		frames := framesOf(w)
		out, _ := scrubbed(t, frames, secret)
		found := false
		for i := range out {
			for at := 0; at+4 <= 32; at += 4 {
				found = found || bytes.Contains(frames[i].Data, text[at:at+4])
				if bytes.Contains(out[i].Data, text[at:at+4]) {
					t.Errorf("%s: %q was kept", name, text[at:at+4])
				}
			}
		}
		if !found {
			t.Errorf("%s: nothing was there", name)
		}
	}
}

// TestMetadata verifies that descriptions of interfaces are not written.
func TestMetadata(t *testing.T) {
	frames, _ := testkit.Frames(t, "../../../samples/rocev2-callback41.pcap")
	learned, err := os.CreateTemp(t.TempDir(), "learned")
	if err != nil {
		t.Fatal(err)
	}
	defer learned.Close()
	for i := range frames {
		frames[i].From = &capture.Origin{LinkType: frames[i].LinkType, Name: "enp1s0-secret", Description: "of host secret", Digits: 9}
	}
	s := New(secret, learned)
	dissected(t, frames, s.Learn(), false)
	if err := s.Learned(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e := export.NewPackets(&out, "test")
	e.Rewrite, e.HideXID = s.Frame, s.HidesXID
	dissected(t, frames, e.Handler(), false)
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out.Bytes(), []byte("secret")) || !bytes.Contains(out.Bytes(), []byte("XID 0x")) {
		t.Error("the interface is described, or no packet")
	}
}

// FuzzFrames verifies that scrubbing preserves the length of any frame, and the
// layers that are found in it.
func FuzzFrames(f *testing.F) {
	for _, name := range []string{"rocev2-errors.pcap.zst", "rocev2-callback41.pcap.zst", "derived-ib-erf-callback41.pcap.zst", "lab-iwarperrors.pcap.zst"} {
		frames, _ := testkit.Frames(f, "../../../testdata/captures/"+name)
		var some []byte
		for i := range min(len(frames), 60) {
			some = append(be.AppendUint16(some, uint16(len(frames[i].Data))), frames[i].Data...)
		}
		f.Add(uint16(frames[0].LinkType), some)
	}
	f.Fuzz(func(t *testing.T, linkType uint16, b []byte) {
		var frames []capture.Frame
		for len(b) >= 2 && len(frames) < 200 {
			n := min(int(be.Uint16(b)), len(b)-2)
			frames = append(frames, capture.Frame{Number: int64(len(frames) + 1), Time: int64(len(frames)) * 1000, LinkType: capture.LinkType(linkType), Length: int(be.Uint16(b)), Data: b[2 : 2+n]})
			b = b[2+n:]
		}
		out, _ := scrubbed(t, frames, secret)
		if len(out) != len(frames) {
			t.Fatalf("%d frames, there were %d", len(out), len(frames))
		}
		var before, after link.Decoder
		for i := range out {
			if len(out[i].Data) != len(frames[i].Data) {
				t.Fatalf("frame %d has %d bytes, it had %d", i+1, len(out[i].Data), len(frames[i].Data))
			}
			if a, b := before.Decode(&frames[i]), after.Decode(&out[i]); a != b || before.Offset != after.Offset || before.Length != after.Length {
				t.Errorf("frame %d carries %d, it carried %d", i+1, b, a)
			}
		}
	})
}

// value is a value of a message, as it is compared with that of the scrubbed message.
type value struct {
	name string
	kind nfs.Kind
	n    uint64
	bits int // width of a cookie
	text string
}

// meanings returns the values of all Calls and Replies.
func meanings(t testing.TB, frames []capture.Frame) (all []value) {
	t.Helper()
	var m nfs.Message
	add := func() {
		for _, v := range m.Values {
			found := value{v.Name, v.Kind, v.Uint, int(v.Len) * 8, ""}
			switch v.Kind {
			case nfs.String, nfs.Handle, nfs.Opaque:
				found.text = string(v.Bytes)
			case nfs.Data: // only its length is compared
			case nfs.Time, nfs.Enum, nfs.Stateid, nfs.Session, nfs.Bitmap:
				found.text = v.String()
			}
			all = append(all, found)
		}
	}
	dissected(t, frames, dissect.Handler{Payload: func(_ *record.Transaction, c, r *record.Payload) error {
		var call, reply oncrpc.Header
		if c == nil || c.Missing() > 0 || call.Decode(c.Data) != nil || call.Credential.Flavor == oncrpc.AuthRPCSECGSS {
			return nil
		}
		m.Call(call.Program, call.Version, call.Procedure, nfs.NewStream(c.Data[call.Length:], nil))
		add()
		if r != nil && r.Missing() == 0 && reply.Decode(r.Data) == nil && reply.Succeeded() {
			m.Reply(call.Program, call.Version, call.Procedure, nfs.NewStream(r.Data[reply.Length:], nil))
			add()
		}
		return nil
	}}, true)
	return all
}

// TestMeaning verifies that each value of each Call and Reply is unchanged or is
// replaced by its pseudonym, inline or in chunks.
func TestMeaning(t *testing.T) {
	made := synth.New()
	c := made.RoCE(synth.Options{})
	c.Connect()
	mem := synth.Mem(0xa1, 4096)
	c.RPC(synth.Compound(synth.OpPutRootFH(), synth.OpLookup("somewhere")), synth.CompoundReply(synth.ResPutRootFH(), synth.ResLookup()))
	c.RPC(synth.Compound(synth.OpPutRootFH(), synth.OpReadLink()).Offer(mem), synth.CompoundReply(synth.ResPutRootFH(), synth.ResReadLink("../somewhere/else")))
	c.RPC(synth.Symlink3("a link", "../somewhere/else").Reduce(0xa3), synth.Symlink3Reply())
	c.RPC(synth.Compound(synth.OpReadDir(4096)).OfferReply(mem), synth.CompoundReply(synth.ResReadDir("somewhere", "two")).Long())
	captures := map[string][]capture.Frame{"made up": framesOf(made)}
	for _, name := range []string{"rocev2-nfs3", "rocev2-long42", "lab-iwarpcallback41", "lab-nfs40"} {
		captures[name], _ = testkit.Frames(t, "../../../testdata/captures/"+filesOf(t, name))
	}
	for name, frames := range captures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, s := scrubbed(t, frames, secret)
			before, after := meanings(t, frames), meanings(t, out)
			if len(before) != len(after) || len(before) < 10 {
				t.Fatalf("%d values, there were %d", len(after), len(before))
			}
			k, strings := s.key, 0
			for i, want := range before {
				switch b := []byte(want.text); {
				case want.kind == nfs.String && (want.name == "owner" || want.name == "owner_group" || want.name == "who"):
					want.text = string(k.owner(b))
				case want.kind == nfs.String && want.name == "addr":
					want.text = string(k.universal(b))
				case want.kind == nfs.String && want.name != "netid":
					want.text = string(k.path(b))
					strings++
				case want.kind == nfs.Handle:
					want.text = string(k.opaque("handle", b))
				case want.kind == nfs.Opaque:
					want.text = string(k.opaque("opaque", b))
				case want.name == "uid" || want.name == "gid" || want.name == "gids" || want.name == "id":
					if want.kind == nfs.Uint {
						want.n = uint64(k.id(uint32(want.n)))
					}
				case want.name == "cookie" && want.kind == nfs.Hex:
					want.n = k.cookie(want.n, want.bits)
				case want.name == "stamp":
					want.n = after[i].n
				}
				if after[i] != want {
					t.Fatalf("value %d: %+v, and not %+v", i, after[i], want)
				}
			}
			if strings < 3 {
				t.Errorf("%d names", strings)
			}
		})
	}
}

// TestPlainRPC scrubs RPC over TCP, in records of several fragments and in TCP segments of several sizes, repeated and
// captured in part, and over UDP. All RPCs remain, and nothing that was sent in them, or after them in another protocol.
func TestPlainRPC(t *testing.T) {
	const name, data, text = "a-secret-file-name", "the contents of a file that nobody may read", "USER alice PASSWORD, then GET /home/alice"
	call := func(xid uint32) synth.XDR {
		c := synth.Symlink3(name, data)
		c.XID, c.Cred = xid, synth.AuthSys(4242, 4343)
		return c.Message()
	}
	reply := func(xid uint32) synth.XDR {
		r := synth.Symlink3Reply()
		r.XID = xid
		return r.Message()
	}
	type rpc struct {
		xid             record.Hex32
		status          record.Status
		transport, name string
		retransmitted   int
		call, reply     record.Opt[int]
	}
	list := func(frames []capture.Frame) (list []rpc) {
		dissected(t, frames, dissect.Handler{Transaction: func(r *record.Transaction) error {
			x := rpc{xid: r.XID, status: r.Status, transport: r.Transport, name: r.ProgramProcedure(), retransmitted: r.Retransmitted}
			if r.Call != nil {
				x.call = r.Call.SendBytes
			}
			if r.Reply != nil {
				x.reply = r.Reply.SendBytes
			}
			list = append(list, x)
			return nil
		}}, false)
		return list
	}
	for _, size := range []int{1460, 100, 33, 5} {
		for _, fragments := range [][]int{nil, {40}, {24, 4, 60}} {
			w := synth.New()
			c := w.IWARP(synth.Options{Client: synth.End{Port: 900}, Server: synth.End{Port: 2049}})
			c.Open()
			u := w.IWARP(synth.Options{Client: synth.End{Port: 901}, Server: synth.End{Port: 2049}})
			for xid := range uint32(6) {
				c.Client.Cork()
				c.Client.Stream(synth.Record(call(xid+1), fragments...))
				sent := c.Client.Uncork(size)
				if xid == 3 {
					w.Retransmit(sent...)
				}
				c.Server.Stream(synth.Record(reply(xid+1), fragments[:min(len(fragments), 1)]...))
				u.Client.Datagram(call(xid + 100))
				u.Server.Datagram(reply(xid + 100))
			}
			c.Client.Stream([]byte(text))
			c.Server.Stream(append([]byte{0x80, 0, 0, byte(len(text))}, text...))
			for _, snap := range []int{0, 120} {
				frames := framesOf(w)
				for i := range frames {
					if snap > 0 && i%3 == 0 {
						frames[i].Data = frames[i].Data[:min(snap, len(frames[i].Data))]
					}
				}
				out, _ := scrubbed(t, frames, secret)
				before, after := list(frames), list(out)
				if !slices.Equal(before, after) || len(before) < 6 {
					t.Errorf("segments of %d bytes, fragments of %d, captured %d: the RPCs\n%v\nbecome\n%v", size, fragments, snap, before, after)
				}
				if snap == 0 && len(before) != 12 {
					t.Errorf("segments of %d bytes, fragments of %d: there are %d RPCs", size, fragments, len(before))
				}
				for i := range out {
					for _, private := range []string{name[:5], data[4:12], "alice", "USER", "PASS", "\x00\x00\x10\x92", "\x00\x00\x10\xf7"} {
						if bytes.Contains(out[i].Data, []byte(private)) {
							t.Errorf("segments of %d bytes, fragments of %d: packet %d still contains %q", size, fragments, i+1, private)
						}
					}
				}
			}
		}
	}
}

// TestForeignMessages verifies that nothing is kept of messages of other protocols on a
// connection that carries RPC, and of headers that only look like RPC-over-RDMA.
func TestForeignMessages(t *testing.T) {
	text := "USER alice PASSWORD \"open sesame\", then GET /home/alice/diary?page=1 and more of that kind"
	fill := func(words ...any) (b []byte) {
		for _, w := range words {
			switch w := w.(type) {
			case int:
				b = be.AppendUint32(b, uint32(w))
			case string:
				b = append(b, w...)
			}
		}
		return b
	}
	for name, message := range map[string][]byte{
		"text":                   []byte(text),
		"a short text":           []byte("USER alice"),
		"a version":              fill("USER", 1, text),
		"credits":                fill("USER", 1, "alic", 0, 0, 0),
		"a procedure":            fill("USER", 1, 32, "alic", "e PA"),
		"another version":        fill("USER", 3, 32, "alic", "e PA"),
		"an error":               fill(77, 1, 32, 4, "alic", "e PASSWORD"),
		"an ERR_VERS":            fill(77, 1, 32, 4, 1, "alice PA", text),
		"an ERR_CHUNK":           fill(77, 1, 32, 4, 2, text),
		"lists":                  fill(77, 1, 32, 0, "alic", "e PASSWORD"),
		"the RPC header":         fill(77, 1, 32, 0, 0, 0, 0, "USER", "alic", "e PA", text),
		"the RPC version":        fill(77, 1, 32, 0, 0, 0, 0, 77, 0, "USER", "alic", text),
		"the procedure":          fill(77, 1, 32, 0, 0, 0, 0, 77, 0, 2, 100003, 4, "USER", text),
		"the credential":         fill(77, 1, 32, 0, 0, 0, 0, 77, 0, 2, 100003, 4, 1, "USER", 8, text),
		"the credential's size":  fill(77, 1, 32, 0, 0, 0, 0, 77, 0, 2, 100003, 4, 1, 1, "USER", text),
		"the reply state":        fill(77, 1, 32, 0, 0, 0, 0, 77, 1, "USER", text),
		"the accept state":       fill(77, 1, 32, 0, 0, 0, 0, 77, 1, 0, 0, 0, "USER", text),
		"the versions":           fill(77, 1, 32, 0, 0, 0, 0, 77, 1, 0, 0, 0, 2, "USER", "alic", text),
		"the reason of a denial": fill(77, 1, 32, 0, 0, 0, 0, 77, 1, 1, 1, "USER", text),
		"GSS":                    fill(77, 1, 32, 0, 0, 0, 0, 77, 0, 2, 100003, 4, 1, 6, 24, "USER alice PASSWORD ", 0, 0, 0, text),
	} {
		for transport, open := range map[string]func(*synth.Wire, synth.Options) *synth.Conn{"RoCE": (*synth.Wire).RoCE, "iWARP": (*synth.Wire).IWARP} {
			for _, snap := range []int{0, 96, 110} {
				w := synth.New()
				c := open(w, synth.Options{})
				c.Connect()
				c.RPC(synth.Null(), synth.NullReply())
				at := len(w.Frames)
				c.Client.Send(message)
				c.Server.Ack()
				c.Server.Send(message)
				c.Client.Ack()
				frames := framesOf(w)
				if snap > 0 {
					for i := at; i < len(frames); i++ {
						frames[i].Data = frames[i].Data[:min(snap, len(frames[i].Data))]
					}
				}
				out, scrubber := scrubbed(t, frames, secret)
				private := map[string]string{}
				for i := 0; i+4 <= len(text); i++ {
					private[text[i:i+4]] = "text"
				}
				var file bytes.Buffer
				e := export.NewPackets(&file, "test")
				e.HideXID = scrubber.HidesXID
				dissected(t, frames, e.Handler(), false)
				if err := e.Flush(); err != nil || !bytes.Contains(file.Bytes(), []byte("XID 0x00000001")) {
					t.Fatalf("the comments have no XIDs, %v", err)
				}
				for s := range private {
					if hidden := fmt.Sprintf("0x%x", s); bytes.Contains(file.Bytes(), []byte(hidden)) {
						t.Errorf("%s, %s: a comment contains %s", name, transport, hidden)
					}
				}
				for i := range out {
					for s := range private {
						if bytes.Contains(out[i].Data, []byte(s)) {
							t.Errorf("%s, %s, captured %d bytes: packet %d still contains %q", name, transport, snap, i+1, s)
						}
					}
				}
			}
		}
	}
}
