package browse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// packetLines returns the heading and the lines that the command packets writes for a capture.
func packetLines(t *testing.T, path, filter string, width int) (lines []string) {
	t.Helper()
	var out strings.Builder
	r := render.NewPackets(&out, theme(plainLook), width)
	var f *query.Filter
	if filter != "" {
		var err error
		if f, err = query.Compile(filter, query.Packets); err != nil {
			t.Fatal(err)
		}
	}
	dissect.New(dissect.Handler{
		Begin: func(at record.Time) error { r.Start(at); return nil },
		Packet: func(p *record.Packet) error {
			if f != nil {
				if hit, err := f.Match(p); err != nil || !hit {
					return err
				}
			}
			return r.Packet(p)
		},
	}, dissect.Options{Files: true, Tree: true}).Run(t.Context(), testkit.Open(t, path)) // Damaged captures have lines, too.
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// TestPacketList: list 7 has the lines of the command packets, with any filter that it takes, and with damaged captures.
func TestPacketList(t *testing.T) {
	for _, test := range []struct {
		path, filter string
		count        int
	}{
		{sample, "", 322},
		{sample, "transaction == 2", 6},
		{sample, "bth.psn > 9068690 and aeth.syndrome == null", 129},
		{sample, `nfs.tag == ""`, 113},
		{sample, "number < 0", 0},
		{"../../samples/rocev2-errors.pcap", "", 197},
		{"../../testdata/captures/iwarp-nfs41.pcap.zst", "", 2185},
		{"../../testdata/captures/derived-cut-callback41.pcap.zst", "", 240},
		{lossy, "marks == retransmitted", 12603},
	} {
		m := modelOf(t, test.path, plainLook)
		m.resize(140, 60)
		press(t, m, "7&"+test.filter+"<enter>")
		want := packetLines(t, test.path, test.filter, 138)
		l := m.searched()
		var got []string
		if p := l.printer(138); l.count() > 0 {
			got = append(got, p.heading)
			for n := range l.count() {
				got = append(got, l.row(p, n))
			}
		}
		m.Lines()
		verify(t, m)
		if int(l.count()) != test.count || test.count > 0 && !slices.Equal(got, want) {
			t.Errorf("%s with the filter %q has %d packets, want %d: %s", test.path, test.filter, l.count(), test.count, difference(strings.Join(want, "\n"), strings.Join(got, "\n")))
		}
		if _, spilled := l.get(m.reader, l.count()); spilled != nil {
			t.Errorf("the packet after the last is an error: %v", spilled)
		}
	}
}

// TestPacketKeys: Enter shows the fields of the packet with the cursor, n those of the next ones of the list, also those that
// were not read with the first, and the other keys go where they say.
func TestPacketKeys(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	m.resize(140, 40)
	shown := func(keys string, number int64, at string) {
		t.Helper()
		press(t, m, keys)
		m.Lines()
		p, is := m.top().(*packet)
		if !is || p.packets[p.i].Number != number || !strings.Contains(p.lines[0].Text, fmt.Sprintf("%6d ", number)) || !strings.Contains(secondLine(m), at) {
			t.Errorf("after %q, the screen is\n%s", keys, m.Screen())
		}
		verify(t, m)
	}
	shown("7G<enter>", 322, "packet 322, 322 of 322")
	if press(t, m, "n"); !strings.Contains(m.Screen(), "the list has no more packets") {
		t.Errorf("after the last packet:\n%s", m.Screen())
	}
	shown(strings.Repeat("N", packetsBefore+1), 322-packetsBefore-1, fmt.Sprintf("packet %d, %[1]d of 322", 322-packetsBefore-1))
	shown("q:100<enter><enter>", 100, "packet 100, 100 of 322")
	shown(strings.Repeat("n", packetsAfter+1), 201, "packet 201, 201 of 322")
	shown("q&transaction == 2<enter>G<enter>", 35, "packet 35, 6 of 6")
	shown("N", 34, "packet 34, 5 of 6")
	press(t, m, "r")
	if l, is := m.top().(*ladder); !is || l.rpc.ID != 2 {
		t.Errorf("after r, the screen is\n%s", m.Screen())
	}
	press(t, m, "qq&<enter>")
	if l := m.searched(); l.count() != 322 || l.cursor != 33 {
		t.Errorf("without the filter, the cursor is at %d of %d", l.cursor, l.count())
	}
	press(t, m, "gr")
	if !strings.Contains(m.Screen(), "packet 1 belongs to no RPC") {
		t.Errorf("after r on the first packet:\n%s", m.Screen())
	}
	press(t, m, ":31<enter>yc")
	if want := "rdmadump packets " + m.options.Typed + "\n"; m.copied[len(m.copied)-1] != want || m.searched().cursor != 30 {
		t.Errorf("yc copies %q, want %q", m.copied[len(m.copied)-1], want)
	}
	press(t, m, "/EXCHANGE_ID<enter>")
	if l := m.searched(); l.cursor != 35 { // The summary of packet 36 is too long for the screen.
		t.Errorf("/ puts the cursor on packet %d", l.cursor+1)
	}
	for _, test := range []struct{ keys, want string }{
		{">", "packets are in the order of the capture"},
		{":sort length<enter>", "packets are in the order of the capture"},
		{"<esc>:999<enter>", "no packet 999"},
		{"&nonsense ==<enter>", "nonsense"},
		{"<esc>yj", "nothing of that kind"},
		{"e", "no later packet has a mark"},
	} {
		if press(t, m, test.keys); !strings.Contains(m.Screen(), test.want) {
			t.Errorf("after %q, the screen does not say %q:\n%s", test.keys, test.want, m.Screen())
		}
	}
	lost := modelOf(t, lossy, plainLook)
	press(t, lost, "7e")
	l := lost.searched()
	if r, _ := l.get(lost.reader, l.cursor); r.(*record.Packet).Marks == 0 || l.cursor == 0 {
		t.Errorf("e goes to packet %d, which has no mark", l.cursor+1)
	}
}

// TestPacketPoints: in captures of two points, Enter shows the packet of the point that the line names.
func TestPacketPoints(t *testing.T) {
	m, _ := modelOfPoints(t, "roce-outage41")
	m.resize(160, 40)
	press(t, m, "7")
	l := m.searched()
	points := map[string]int{}
	for at := int64(0); at < l.count(); at += l.count()/20 + 1 {
		r, err := l.get(m.reader, at)
		if err != nil || r == nil {
			t.Fatal(err)
		}
		row := r.(*record.Packet)
		l.cursor = at
		press(t, m, "<enter>")
		p, is := m.top().(*packet)
		if !is || !p.packets[p.i].Is(record.PacketRef{Packet: row.Number, Point: row.Path.Point}) || p.packets[p.i].Time != row.Time {
			t.Fatalf("Enter on packet %d of %s shows\n%s", row.Number, row.Path.Point, m.Screen())
		}
		points[row.Path.Point]++
		press(t, m, "q")
	}
	if points["client"] == 0 || points["server"] == 0 {
		t.Errorf("the list has packets of %v", points)
	}
}

// TestLostPackets: the line of the overview about packets that were lost between capture points opens the list of them.
func TestLostPackets(t *testing.T) {
	m, _ := modelOfPoints(t, "roce-outage41")
	m.follows("network FILE --lost")
	settle(t, m)
	l := m.searched()
	if l == nil || l.pass == nil || l.count() == 0 {
		t.Fatalf("the list of lost packets is\n%s", m.Screen())
	}
	for n := range l.count() {
		if r, err := l.get(m.reader, n); err != nil || r.(*record.Packet).Marks&(record.LostOnPath|record.DamagedOnPath) == 0 {
			t.Errorf("packet %+v was not lost: %v", r, err)
		}
	}
	m.follows("network FILE")
	if !strings.Contains(m.Screen(), "rdmadump network") {
		t.Errorf("the screen does not name the command:\n%s", m.Screen())
	}
}

// TestNetworkScreen: what the overview says of the network between two capture points opens the screen with their delays, losses
// and damaged packets over time, as the command network and the report draw them; Enter lists these packets, and q goes back.
func TestNetworkScreen(t *testing.T) {
	m, _ := modelOfPoints(t, "roce-outage41")
	var course []record.NetworkInterval
	for i := range int64(100) {
		course = append(course, record.NetworkInterval{Start: record.Time(i) * 1e9, Packets: 3, Lost: i % 50 / 49, Corrupted: i % 25 / 24, MaxNS: record.Some(i * 1000)})
	}
	m.options.Network = func() ([]*record.Point, []*record.Network) {
		return []*record.Point{{Name: "client"}, {Name: "server"}}, []*record.Network{{From: "client", To: "server", Packets: 300, Lost: 2, Corrupted: 4, Course: course}}
	}
	press(t, m, "0")
	m.follows("network FILE")
	for _, width := range []int{80, 140} {
		m.resize(width, 24)
		screen := m.Screen()
		for _, want := range []string{"DAMAGED", "longest delay", "lost packets", "damaged packets"} {
			if !strings.Contains(screen, want) {
				t.Errorf("%d columns: %q is not on the screen:\n%s", width, want, screen)
			}
		}
		for line := range strings.Lines(screen) {
			if (strings.Contains(line, "lost packets ") || strings.Contains(line, "damaged packets|")) && !strings.Contains(line, "| # = ") {
				t.Errorf("%d columns: the scale is cut: %s", width, line)
			}
		}
		verify(t, m)
	}
	press(t, m, "<enter>")
	if l := m.searched(); l == nil || l.pass == nil {
		t.Errorf("Enter shows\n%s", m.Screen())
	}
	if press(t, m, "q"); m.top().title() != "capture points" {
		t.Errorf("q goes back to\n%s", m.Screen())
	}
}

// TestNoPackets: without packets, the list says why there are none.
func TestNoPackets(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	m.options.Open, m.options.Closed = nil, "records have no packets"
	if press(t, m, "7"); !strings.Contains(m.Screen(), "records have no packets") {
		t.Errorf("list 7 shows\n%s", m.Screen())
	}
	press(t, m, "<enter>jG/x<enter>nre&number == 1<enter>&<enter>")
	verify(t, m)
}
