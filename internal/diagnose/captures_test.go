package diagnose

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// firsts has the first problem of each capture of the repository, with its places, as reading the packets shows it: "OK" if nothing is worse than a
// note.
var firsts = []struct{ file, first string }{
	{"samples/rocev2-callback41.pcap", "OK"},
	{"samples/rocev2-errors.pcap", "rdma-error client"},
	{"samples/rocev2-fewcredits3.pcap.zst", "OK"},
	{"samples/rocev2-lostlink41.pcap.zst", "outage network server"},
	{"samples/rocev2-slowwrite42.pcap.zst", "retransmission network"},
	{"testdata/captures/ends-stormall42-client.pcap.zst", "retransmission network"},
	{"testdata/captures/ends-stormall42-server.pcap.zst", "retransmission network"},
	{"testdata/captures/ends-twoclock42-client.pcap.zst", "grace-period server"},
	{"testdata/captures/iwarp-nfs41.pcap.zst", "OK"},
	{"testdata/captures/lab-inline16.pcap.zst", "OK"},
	{"testdata/captures/lab-iwarpcallback41.pcap.zst", "OK"},
	{"testdata/captures/lab-iwarpdata3.pcap.zst", "OK"},
	{"testdata/captures/lab-iwarperrors.pcap.zst", "rdma-error client"},
	{"testdata/captures/lab-iwarploss41.pcap.zst", "retransmission network"},
	{"testdata/captures/lab-krb5.pcap.zst", "OK"},
	{"testdata/captures/lab-loss3.pcap.zst", "retransmission network"},
	{"testdata/captures/lab-nfs40.pcap.zst", "grace-period server"},
	{"testdata/captures/lab-retries42.pcap.zst", "outage network server"},
	{"testdata/captures/lab-slowserver41.pcap.zst", "slow-server server"},
	{"testdata/captures/rocev2-chimera-noreplychunk3.pcap.zst", "inline-overrun server"},
	{"testdata/captures/rocev2-chimera-overrun42.pcap.zst", "memory-violation server"},
	{"testdata/captures/rocev2-data42.pcap.zst", "OK"},
	{"testdata/captures/rocev2-ipv6-nfs42.pcap.zst", "OK"},
	{"testdata/captures/rocev2-long42.pcap.zst", "OK"},
	{"testdata/captures/rocev2-loss42.pcap.zst", "retransmission network"},
	{"testdata/captures/rocev2-mixed.pcap.zst", "OK"},
	{"testdata/captures/rocev2-nconnect41.pcapng.zst", "OK"},
	{"testdata/captures/rocev2-nfs3.pcap.zst", "OK"},
	{"testdata/captures/rocev2-nfs41.pcap.zst", "OK"},
	{"testdata/captures/rocev2-storm41.pcap.zst", "retransmission network"},
	{"testdata/other/lab-tcprecall40.pcap.zst", "recall client"},
	{"testdata/stories/rec/s02-killed3/client.pcap.zst", "server-restarted server"},
	{"testdata/stories/rec/s04-umountf/client.pcap.zst", "path-slower network server"},
	{"testdata/stories/rec/s06-recallheld/server.pcap.zst", "recall client"},
	{"testdata/stories/rec/s08-loss1/client.pcap.zst", "retransmission network"},
	{"testdata/stories/rec/s10-bursts/client.pcap.zst", "connection-lost client"},
	{"testdata/stories/rec/s12-slowserver/client.pcap.zst", "slow-server server"},
	{"testdata/stories/rec/s14-refused/client.pcap.zst", "mount-failed server"},
	{"testdata/stories/rec/s16-iwloss1/client.pcap.zst", "slow-rpc client network server"},
	{"testdata/stories/rec/s22-iwbusy/client.pcap.zst", "slow-rpc client network server"},
	{"testdata/stories/rec/s24-nconnect/client.pcap.zst", "OK"},
	{"testdata/stories/last/s13-krb5p/client.pcap.zst", "OK"},
	{"testdata/stories/last/s17-iwcut10/client.pcap.zst", "outage network server"},
	{"testdata/stories/last/s19-cut10v3/client.pcap.zst", "outage network server"},
	{"testdata/stories/last/s29-cut3/client.pcap.zst", "outage network server"},
	{"testdata/stories/last/s35-crash3/client.pcap.zst", "server-restarted server"},
	{"testdata/stories/rec/s28-iwbursts/client.pcap.zst", "outage network server"},
	{"testdata/stories/rec/s30-gone/client.pcap.zst", "server-gone server"},
	{"testdata/stories/rec/s34-delay12/client.pcap.zst", "path-slower network server"},
}

const root = "../../"

// stories returns the recordings of a folder whose story is known: the folder of each.
func stories(t *testing.T, of string) []string {
	t.Helper()
	list, err := filepath.Glob(root + "testdata/stories/" + of + "/*")
	if err != nil || len(list) == 0 {
		t.Fatalf("no recordings (%v)", err)
	}
	return list
}

// truthOf returns what truth.md says of a recording.
func truthOf(t *testing.T, folder string) (want truth) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(folder, "truth.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, found := strings.Cut(rest, "```")
	if err := json.Unmarshal([]byte(text), &want); err != nil || !found {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		want.mayBeSlow = want.mayBeSlow || strings.HasPrefix(line, "- may be there:") && strings.Contains(line, "slow-rpc note or warning")
		want.mayBeNotes = want.mayBeNotes || strings.HasPrefix(line, "- further problems that must be there:") && strings.Contains(line, "(note or warning)")
	}
	return want
}

// traced has the recordings whose truth counts only the requests that one client's kernel traced, which were fewer: before it was unmounted, and in one
// of its two lives.
var traced = map[string]bool{"s01-frozen40": true, "s03-clientreboot": true}

// unexplainedWaits sums the waits of all captures, and those that end in kinds that explain nothing, in nanoseconds.
var unexplainedWaits, allWaits int64

// TestMain prints the share of waits that problems do not explain.
func TestMain(m *testing.M) {
	code := m.Run()
	if allWaits > 0 {
		fmt.Printf("%.1f%% of %.0f s of waits end in kinds that explain nothing\n", 100*float64(unexplainedWaits)/float64(allWaits), float64(allWaits)/1e9)
	}
	os.Exit(code)
}

// TestStories compares the problems of recordings with what was done.
func TestStories(t *testing.T) {
	for _, folder := range slices.Concat(stories(t, "rec"), stories(t, "unopened"), stories(t, "last")) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			want := truthOf(t, folder)
			c, problems := diagnose(t, testkit.Open(t, filepath.Join(folder, want.File)))
			if want.Requests != nil {
				*want.Requests += c.f.totals.others // the truth has those of clients over RDMA only
			}
			if traced[filepath.Base(folder)] {
				want.Requests = nil
			}
			checkTruth(t, c, &want, problems)
			checkClaims(t, c, problems)
		})
	}
}

// diagnose returns the diagnosis of a capture, with its problems.
func diagnose(t *testing.T, source capture.Source) (*Collector, []*record.Problem) {
	t.Helper()
	c := &Collector{}
	h := dissect.Handler{
		Transaction: func(r *record.Transaction) error { c.Transaction(r); return nil },
		Task:        func(r *record.Task) error { c.Task(r); return nil },
		Connection:  func(r *record.Connection) error { c.Connection(r); return nil },
		Finding:     func(r *record.Finding) error { c.Finding(r); return nil },
		Operation:   func(r *record.RDMAOperation) error { c.Operation(r); return nil },
	}
	s, err := dissect.New(h, dissect.Options{Files: true, OtherOperations: true}).Run(context.Background(), source)
	if err != nil && s == nil {
		t.Fatal(err)
	}
	return c, c.Problems(s)
}

// first describes the first problem.
func first(list []*record.Problem) string {
	if len(list) == 0 || list[0].Severity == record.Note {
		return "OK"
	}
	return list[0].ID + " " + places(list[0])
}

// places returns the places of a problem as a text.
func places(p *record.Problem) string { return strings.Trim(fmt.Sprint(p.Places), "[]") }

// TestFirst: the first problem of each capture is the one that an expert names, and everything that is wrong is claimed.
func TestFirst(t *testing.T) {
	for _, c := range firsts {
		t.Run(c.file, func(t *testing.T) {
			collector, list := diagnose(t, testkit.Open(t, root+c.file))
			if got := first(list); got != c.first {
				t.Errorf("first problem %q, want %q", got, c.first)
			}
			checkClaims(t, collector, list)
		})
	}
}

// checkClaims reports what is wrong and that no problem explains, and prints the part of all waits in problems that explain nothing.
func checkClaims(t *testing.T, c *Collector, list []*record.Problem) {
	t.Helper()
	f := &c.f
	missing := func(of *claim, what string, args ...any) {
		if of.by == nil {
			t.Errorf("not claimed: "+what, args...)
		}
	}
	for _, x := range f.findings {
		missing(&x.by, "%s at packet %d", x.Rule, x.Packet.Or(0))
	}
	for _, x := range f.connections {
		if end, ended := x.Ended.Get(); ended && end.OutstandingCalls > 0 && x.NotCaptured == 0 {
			missing(&x.by, "the end of connection %d", x.ID)
		}
	}
	for _, r := range f.rpcs {
		if r.again == nil && r.status != record.NoCall && (r.failed() || r.unanswered()) {
			missing(&r.outcome, "RPC %d %s %s", r.id, r.status, r.failure)
		}
		if r.latency >= slow {
			missing(&r.slowly, "%d ms of RPC %d", r.latency/1e6, r.id)
		}
		for i := range r.waits {
			if w := &r.waits[i]; w.ns >= slow {
				missing(&w.by, "%s of RPC %d, %d ms", w.Reason, r.id, w.ns/1e6)
			}
		}
	}
	for _, s := range f.stalls {
		if s.ns >= slow {
			missing(&s.by, "stall of %s", s.operation)
		}
	}
	var all, unexplained int64
	for i, p := range list {
		if p.Rank != i+1 {
			t.Errorf("problem %d has rank %d", i+1, p.Rank)
		}
		if words := len(strings.Fields(strings.NewReplacer(" ms", "ms", " s", "s", " B", "B", " KiB", "KiB").Replace(p.Headline))); words > 14 {
			t.Errorf("headline has %d words: %s", words, p.Headline)
		}
		all += p.BlockedNS
		if slices.Contains([]string{"slow-rpc", "rpc-failed", "protocol-violation"}, p.ID) {
			unexplained += p.BlockedNS
		}
	}
	t.Logf("%d%% of %d ms of waits unexplained", 100*unexplained/max(all, 1), all/1e6)
	unexplainedWaits, allWaits = unexplainedWaits+unexplained, allWaits+all
}

// truth is what is known of a capture without this program.
type truth struct {
	File    string
	Healthy bool
	First   []string
	Places  [][]string
	Must    []struct {
		ID      []string
		Blocked []float64 `json:"blocked_s"` // the least and the most, of all problems of these kinds together, or of the worst
		From    []float64 `json:"from_s"`    // of the first of them, since the first packet
		XIDs    []record.Hex32
	}
	Never      []string
	Requests   *int64
	mayBeSlow  bool // slow RPCs may be warned of, although all is healthy
	mayBeNotes bool // what must be told may be a note
	Unanswered *int64
}

// notYet has the captures whose first problem is not found yet, with the reason.
var notYet = map[string]string{}

// TestTruth compares the problems of captures whose truth was established by hand, if they are there.
func TestTruth(t *testing.T) {
	folder := root + "../shared/cases/problems/"
	data, err := os.ReadFile(folder + "truth.json")
	if err != nil {
		t.Skip("the captures are not part of the repository")
	}
	var list []truth
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for _, want := range list {
		t.Run(filepath.Base(want.File), func(t *testing.T) {
			if why := notYet[want.File]; why != "" {
				t.Skip(why)
			}
			c, problems := diagnose(t, testkit.Open(t, folder+want.File))
			checkTruth(t, c, &want, problems)
			checkClaims(t, c, problems)
		})
	}
}

// checkTruth compares problems with the truth.
func checkTruth(t *testing.T, c *Collector, want *truth, problems []*record.Problem) {
	t.Helper()
	ids := []string{}
	var unanswered int64
	for _, p := range problems {
		ids = append(ids, p.ID)
		unanswered += p.Unanswered
	}
	if got := first(problems); want.Healthy != (got == "OK") && !(want.Healthy && want.mayBeSlow && problems[0].ID == "slow-rpc") && !(got == "OK" && want.mayBeNotes) {
		t.Errorf("first problem %q, healthy %v", got, want.Healthy)
	}
	if len(want.First) > 0 && len(problems) > 0 && first(problems) != "OK" && !slices.Contains(want.First, problems[0].ID) {
		t.Errorf("first problem %s, want %v", problems[0].ID, want.First)
	}
	if len(want.Places) > 0 && len(problems) > 0 {
		places := []string{}
		for _, p := range problems[0].Places {
			places = append(places, string(p))
		}
		if !slices.ContainsFunc(want.Places, func(list []string) bool { slices.Sort(list); return slices.Equal(list, places) }) {
			t.Errorf("places %v, want one of %v", places, want.Places)
		}
	}
	for _, m := range want.Must {
		var blocked, most, from float64
		var xids []record.Hex32
		found := false
		for _, p := range problems {
			if slices.Contains(m.ID, p.ID) {
				at := float64(p.From.Or(0).Sub(c.f.first)) / 1e9
				if blocked += float64(p.BlockedNS) / 1e9; !found || at < from {
					from = at
				}
				most = max(most, float64(p.BlockedNS)/1e9)
				found, xids = true, append(xids, p.XIDs...)
			}
		}
		if !found {
			t.Errorf("no problem %v: %v", m.ID, ids)
			continue
		}
		if b := m.Blocked; b != nil && (blocked < b[0] || blocked > b[1]) && (most < b[0] || most > b[1]) {
			t.Errorf("%v blocked tasks for %.2f s, want %v", m.ID, blocked, b)
		}
		if b := m.From; b != nil && (from < b[0] || from > b[1]) {
			t.Errorf("%v from %.2f s, want %v", m.ID, from, b)
		}
		for _, xid := range m.XIDs {
			if !slices.Contains(xids, xid) {
				t.Errorf("%v are not about %s: %s", m.ID, xid, xids)
			}
		}
	}
	for _, id := range want.Never {
		if slices.Contains(ids, id) {
			t.Errorf("problem %s", id)
		}
	}
	if want.Requests != nil && c.f.totals.requests != *want.Requests {
		t.Errorf("%d requests, want %d", c.f.totals.requests, *want.Requests)
	}
	if want.Unanswered != nil && unanswered != *want.Unanswered {
		t.Errorf("%d unanswered, want %d", unanswered, *want.Unanswered)
	}
}

// TestSoFar: while a capture goes on, its problems are told when they are there, and for a minute after; what was told before changes nothing
// at the end.
func TestSoFar(t *testing.T) {
	for file, want := range map[string]string{
		"samples/rocev2-lostlink41.pcap.zst": "0 s:; 21 s: outage!; 53 s: outage; 74 s: outage capture-gap",
	} {
		c := &Collector{}
		c.Endless()
		d := dissect.New(dissect.Handler{
			Transaction: func(r *record.Transaction) error { c.Transaction(r); return nil },
			Task:        func(r *record.Task) error { c.Task(r); return nil },
			Connection:  func(r *record.Connection) error { c.Connection(r); return nil },
			Finding:     func(r *record.Finding) error { c.Finding(r); return nil },
		}, dissect.Options{Files: true, Live: true, Linger: 40e6})
		var told []string
		frames, _ := testkit.Frames(t, root+file)
		for i, next := 0, frames[0].Time; i < len(frames); i++ {
			for ; frames[i].Time > next; next += 1e9 {
				text := ""
				for _, p := range c.SoFar(d.Summary(), d.Open) {
					if p.Severity != record.Note {
						text += " " + p.ID + map[bool]string{true: "!"}[p.Ongoing]
					}
				}
				if len(told) == 0 || !strings.HasSuffix(told[len(told)-1], " s:"+text) {
					told = append(told, fmt.Sprintf("%d s:%s", (next-frames[0].Time)/1e9, text))
				}
			}
			d.Frame(&frames[i])
		}
		if got := strings.Join(told, "; "); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
		s, _ := d.Finish()
		_, all := diagnose(t, testkit.Open(t, root+file))
		if got := c.Problems(s); first(got) != first(all) || len(got) != len(all) {
			t.Errorf("%s: at the end %d problems, the first %s; want %d, %s", file, len(got), first(got), len(all), first(all))
		}
	}
}

// TestRemoved: removing packets from a capture without trouble never adds a problem of a side.
func TestRemoved(t *testing.T) {
	for _, file := range []string{"samples/rocev2-callback41.pcap", "testdata/captures/lab-iwarpcallback41.pcap.zst"} {
		frames, _ := testkit.Frames(t, root+file)
		for seed := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, 1))
			from := r.IntN(len(frames))
			to := from + 1 + r.IntN(20)
			kept := slices.DeleteFunc(slices.Clone(frames), func(f capture.Frame) bool {
				if seed%2 == 0 {
					return r.IntN(50) == 0
				}
				return f.Number > int64(from) && f.Number <= int64(to)
			})
			source, err := capture.NewFile("removed", bytes.NewReader(testkit.Pcapng(kept, 9)))
			if err != nil {
				t.Fatal(err)
			}
			_, list := diagnose(t, source)
			for _, p := range list {
				if p.Severity != record.Note && !slices.Contains(p.Places, record.InCapture) {
					t.Errorf("%s without frames (seed %d): %s %v %s", file, seed, p.ID, p.Places, p.Headline)
				}
			}
			source.Close()
		}
	}
}

// TestPages: each kind has a page, and each page a kind.
func TestPages(t *testing.T) {
	for _, id := range IDs() {
		page := Page(id)
		for _, part := range []string{"# " + id + "\n", "## What proves it", "## Usual causes", "## What to look at"} {
			if !strings.Contains(page, part) {
				t.Errorf("the page of %s has no %q", id, part)
			}
		}
	}
	files, err := filepath.Glob(root + "docs/problems/*.md")
	if err != nil || len(files) != len(IDs()) {
		t.Errorf("%d pages for %d kinds (%v)", len(files), len(IDs()), err)
	}
}

// TestWords: what ordinal numbers and numbers of things are called.
func TestWords(t *testing.T) {
	if got := fmt.Sprint(number(1038, "Reply"), number(1, "RPC"), record.Ordinal(13), record.Ordinal(22)); got != "1,038 Replies1 RPC13th22nd" {
		t.Error(got)
	}
}

// TestDeeds: each rule that a problem may be made of has words, and no other.
func TestDeeds(t *testing.T) {
	for _, r := range rule.All {
		if deeds[r.ID] == "" && !told[r.ID] && !aboutEnd[r.ID] && r.ID != "retransmission-timeout" {
			t.Errorf("no words for %s", r.ID)
		}
	}
	for id, text := range deeds {
		if !slices.ContainsFunc(rule.All, func(r *rule.Rule) bool { return r.ID == id }) || len(strings.Fields(text)) > 10 {
			t.Errorf("%s: %s", id, text)
		}
	}
}

// TestAcknowledgedCopies: packets that were sent again although the capture has their ACKs were not lost on the way to their receiver.
func TestAcknowledgedCopies(t *testing.T) {
	_, list := diagnose(t, testkit.Open(t, root+"testdata/documents/rt-acked-copies.roce.pcap"))
	i := slices.IndexFunc(list, func(p *record.Problem) bool { return p.ID == "retransmission" })
	if i < 0 || list[i].Headline != "6 of 21 packets repeated, though acknowledged" || fmt.Sprint(list[i].Places) != "[client network]" {
		t.Errorf("the problems are %+v", list)
	}
}

// TestPerhapsWaited: an RPC of which the capture does not prove which copy of its Reply was accepted has perhaps not waited for the timer. Its wait
// has a sign, and is no warning.
func TestPerhapsWaited(t *testing.T) {
	for _, test := range []struct {
		least    int64 // latency that the capture proves, in nanoseconds
		severity record.Severity
		want     string
	}{
		{548e6, record.Warning, "WRITE /a waited 546 ms for a retransmission timer"},
		{2e6, record.Note, "WRITE /a waited <= 546 ms for a retransmission timer"},
	} {
		var c Collector
		c.Transaction(&record.Transaction{
			ID: 1, Request: 1, Attempt: 1, Direction: record.Forward, Status: record.Complete, ProgramName: record.Some("NFS"), Operation: record.Some("WRITE"),
			File: record.Some("/a"), Call: &record.Message{Packet: 1}, Reply: &record.Message{Time: 548e6, Packet: 3},
			LatencyNS: record.Some[int64](548e6), LatencyMinNS: record.SomeIf(test.least, test.least < 548e6),
			Waits: []record.Wait{{From: 2e6, To: 548e6, NS: 546e6, Waiting: record.Server, Reason: record.RetransmitTimeout}},
		})
		list := c.Problems(nil)
		if len(list) == 0 || list[0].ID != "retransmission" || list[0].Severity != test.severity || list[0].Headline != test.want {
			t.Errorf("%+v, want %s: %s", list, test.severity, test.want)
		}
	}
}

// TestSlowOnTheWay: captures at both ends show that an RPC spent its time between them; one point does not tell that time from the server's adapter.
func TestSlowOnTheWay(t *testing.T) {
	for _, test := range []struct {
		point   record.Place
		network int64 // in nanoseconds
		want    string
	}{
		{record.AtBothEnds, 1900e6, "network"},
		{record.AtBothEnds, 900e6, "network server"},
		{record.AtClient, 1900e6, "network server"},
	} {
		var c Collector
		for id, network := range []int64{1950e6, test.network} {
			server := 2000e6 - network
			c.Transaction(&record.Transaction{
				ID: int64(id + 1), Request: int64(id + 1), Attempt: 1, Direction: record.Forward, Status: record.Complete, ProgramName: record.Some("NFS"), Operation: record.Some("READ"),
				Call: &record.Message{Packet: 1}, Reply: &record.Message{Time: 2000e6, Packet: 2}, LatencyNS: record.Some[int64](2000e6),
				Shares: record.Some(record.Shares{ServerNS: record.Bounds{Min: server, Max: server}, NetworkNS: record.Bounds{Min: network, Max: network}, Point: test.point}),
			})
		}
		if got := first(c.Problems(nil)); got != "slow-rpc "+test.want {
			t.Errorf("%s, %d ms on the way: %s", test.point, test.network/1e6, got)
		}
	}
}

// TestFaultBesidePromise: a fault of the backchannel that shows for a moment is told beside a COPY that was never completed, and not without one.
func TestFaultBesidePromise(t *testing.T) {
	for _, promised := range []bool{true, false} {
		var c Collector
		for id, flags := range []record.Hex32{0, 0x400, 0x400, 0} {
			at := record.Time(1e9 + id*2e8)
			c.Transaction(&record.Transaction{
				ID: int64(id + 1), Request: int64(id + 1), Attempt: 1, Direction: record.Forward, Status: record.Complete, ProgramName: record.Some("NFS"), Operation: record.Some("COPY"),
				Operations: []string{"SEQUENCE", "PUTFH", "COPY"}, CopyPromised: promised && id == 0, SequenceFlags: flags,
				Call: &record.Message{Time: at, Packet: int64(2 * id), LastPacket: int64(2 * id)}, Reply: &record.Message{Time: at, Packet: int64(2*id + 1), LastPacket: int64(2*id + 1)},
			})
		}
		var got []string
		for _, p := range c.Problems(&record.Summary{RDMA: 1, First: record.Some(record.Time(1e9)), Last: record.Some(record.Time(60e9))}) {
			got = append(got, fmt.Sprintf("%s: %s; %s; beside %v", p.Severity, p.Headline, p.Effect, p.Beside))
		}
		want := []string{
			"warning: never completed a COPY of 59.0 s (no CB_OFFLOAD); the application waits to the end of the capture; beside []",
			"warning: callbacks do not arrive: the server says that their channel is broken; 2 Replies of BACKCHANNEL_FAULT, 0.20 s to 0.40 s; beside [1]",
		}
		if !promised {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("promised %t: %q, want %q", promised, got, want)
		}
	}
}

// TestLostTogether: connections that the same side closed in the same way are one problem, whatever came before: which packet that was depends on
// the packets that the capture lacks.
func TestLostTogether(t *testing.T) {
	_, list := diagnose(t, testkit.Open(t, root+"testdata/ends/roce-burst41-client.pcap.zst"))
	var got []string
	for _, p := range list {
		if p.ID == "connection-lost" {
			got = append(got, p.Headline+"; "+p.Effect)
		}
	}
	want := []string{"closed 2 of 4 connections after a NAK or after a retransmission timeout; 12 Calls in flight, worst: READ /d4 took 4.93 s in 2 tries"}
	if !slices.Equal(got, want) {
		t.Errorf("the problems are %q, want %q", got, want)
	}
}

// TestLateAttempt: an attempt that is seen late, because the capture lacks a packet before it, is not the last one of its request: that was answered.
func TestLateAttempt(t *testing.T) {
	c, list := diagnose(t, testkit.Open(t, root+"testdata/ends/roce-burst41-server.pcap.zst"))
	late := slices.IndexFunc(c.f.rpcs, func(r *rpc) bool { return r.before != nil && r.id < r.before.id })
	if late < 0 {
		t.Fatal("no attempt is late")
	}
	if outcome := c.f.outcomes[c.f.rpcs[late].first().id]; outcome != record.OutcomeOK {
		t.Errorf("the task is %q", outcome)
	}
	for _, p := range list {
		if p.Unanswered > 0 || strings.Contains(p.Headline+p.Effect, "never answered") {
			t.Errorf("%s: %s; %s", p.ID, p.Headline, p.Effect)
		}
	}
}

// without returns frames that lack those with some numbers.
func without(from, to int) func([]capture.Frame) []capture.Frame {
	return func(f []capture.Frame) []capture.Frame { return slices.Delete(f, from-1, to) }
}

// thinned returns frames that lack runs of some length, of which a frame begins one with a likelihood.
func thinned(likely float64, length int, seed uint64) func([]capture.Frame) []capture.Frame {
	return func(all []capture.Frame) (list []capture.Frame) {
		r, left := rand.New(rand.NewPCG(seed, 5)), 0
		for _, f := range all {
			if left == 0 && r.Float64() < likely {
				left = length
			}
			if left > 0 {
				left--
				continue
			}
			list = append(list, f)
		}
		return list
	}
}

// snapped returns frames of which a number of bytes was captured.
func snapped(n int) func([]capture.Frame) []capture.Frame {
	return func(f []capture.Frame) []capture.Frame {
		for i := range f {
			f[i].Data = f[i].Data[:min(n, len(f[i].Data))]
		}
		return f
	}
}

// TestUnproven: what a capture does not prove, because it has not all bytes or not all packets, accuses nobody.
func TestUnproven(t *testing.T) {
	for _, c := range []struct {
		file  string
		harm  func([]capture.Frame) []capture.Frame
		drops uint64 // that the capture declares
		want  string // errors, warnings, and what the capture lacks, with how often each is told
	}{
		{"testdata/captures/rocev2-chimera-overrun42.pcap.zst", snapped(512), 0, "1 server-gone server, 11 terminate client server"},
		{"testdata/captures/rocev2-chimera-overrun42.pcap.zst", snapped(128), 0, "1 server-gone server, 11 terminate client server"},
		{"testdata/captures/rocev2-data42.pcap.zst", without(448, 516), 0, "1 capture-gap capture"},
		{"testdata/captures/rocev2-data42.pcap.zst", without(448, 516), 69, "1 capture-gap capture"},
		{"samples/rocev2-callback41.pcap", without(130, 161), 0, "1 capture-gap capture"},
		{"testdata/captures/rocev2-nfs3.pcap.zst", without(1104, 1379), 0, "1 capture-gap capture"},
		{"testdata/captures/lab-krb5.pcap.zst", without(785, 885), 0, "1 capture-gap capture"},
		{"testdata/captures/lab-krb5.pcap.zst", without(946, 1231), 0, "1 capture-gap capture"},
		{"testdata/captures/lab-iwarpdata3.pcap.zst", without(732, 1117), 0, "1 capture-gap capture"},
		{"testdata/captures/lab-iwarpdata3.pcap.zst", snapped(100), 0, ""},
		{"testdata/stories/unopened/s01-frozen40/server.pcap.zst", thinned(.01, 10, 1), 400, "1 capture-gap capture, 1 slow-rpc client network server"},
		{"testdata/stories/rec/s06-recallheld/server.pcap.zst", thinned(.01, 1, 8), 9, "1 capture-gap capture, 1 promise-broken client network server, 1 put-off client network server, 1 recall client, 1 slow-rpc network server"},
		{"testdata/stories/rec/s24-nconnect/client.pcap.zst", thinned(.001, 10, 12), 30, "1 capture-gap capture, 1 quirk capture server"},
		{"testdata/stories/rec/s10-bursts/server.pcap.zst", thinned(.02, 1, 4), 100, "1 capture-gap capture, 1 retransmission network, 1 slow-rpc client network server"},
		{"testdata/other/lab-tcprecall40.pcap.zst", without(70, 170), 0, "1 capture-gap capture, 2 recall client"},
		{"testdata/captures/ends-twoclock42-client.pcap.zst", without(441, 841), 0, "1 capture-gap capture, 1 grace-period server"},
		{"testdata/captures/ends-stormall42-server.pcap.zst", without(1026, 1329), 0, "1 capture-gap capture, 1 corruption network, 1 retransmission network"},
	} {
		frames, _ := testkit.Frames(t, root+c.file)
		var source capture.Source
		source, err := capture.NewFile(c.file, bytes.NewReader(testkit.Pcapng(c.harm(frames), 9)))
		if err != nil {
			t.Fatal(err)
		}
		if c.drops > 0 {
			source = dropping{source, c.drops}
		}
		_, list := diagnose(t, source)
		told, texts := map[string]int{}, []string(nil)
		for _, p := range list {
			if p.Severity != record.Note || p.ID == "capture-gap" || p.ID == "unanswered" || strings.HasPrefix(p.Headline, deeds["reply-without-call"]) {
				told[p.ID+" "+places(p)]++
				texts = append(texts, fmt.Sprintf("%s %s: %s; %s", p.Severity, p.ID, p.Headline, p.Effect))
			}
		}
		var got []string
		for id, n := range told {
			got = append(got, fmt.Sprintf("%d %s", n, id))
		}
		if slices.Sort(got); strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q:\n%s", c.file, got, c.want, strings.Join(texts, "\n"))
		}
	}
}
