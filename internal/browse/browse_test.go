package browse

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

var update = flag.Bool("update", false, "write the golden files")

const sample = "../../samples/rocev2-callback41.pcap"

// plainLook is a terminal without colours that uses UTF-8.
var plainLook = render.Look{Unicode: true}

// user is somebody who presses keys, and looks at the screen when all commands have ended.
type user struct {
	t      testing.TB
	m      *Model
	quit   bool
	copied string
}

// options returns the options for a capture that was read.
func options(t testing.TB, path string, look render.Look) Options {
	t.Helper()
	r := NewReading(0, 0)
	t.Cleanup(r.Close)
	o := dissect.Options{Files: true, OtherOperations: true}
	r.Run(context.Background(), testkit.Open(t, path), o) // Damaged captures are shown as far as they can be read.
	return Options{Reading: r, Name: filepath.Base(path), Typed: filepath.Base(path), Look: look, Dissect: o, Open: func(context.Context) (Source, error) {
		return capture.Open(path)
	}}
}

func userOf(t testing.TB, o Options, width, height int) *user {
	t.Helper()
	u := &user{t: t, m: New(t.Context(), o)}
	u.do(u.m.Init())
	u.send(tea.WindowSizeMsg{Width: width, Height: height})
	return u
}

// do runs a command, and those that follow from it, until none is left.
func (u *user) do(first tea.Cmd) {
	for waiting := []tea.Cmd{first}; len(waiting) > 0; waiting = waiting[1:] {
		if waiting[0] == nil {
			continue
		}
		switch msg := waiting[0]().(type) {
		case nil:
		case tea.BatchMsg:
			waiting = append(waiting, msg...)
		case tea.QuitMsg:
			u.quit = true
		default:
			if text := fmt.Sprint(msg); strings.HasPrefix(fmt.Sprintf("%T", msg), "tea.setClipboard") {
				u.copied = text
			}
			_, next := u.m.Update(msg)
			waiting = append(waiting, next)
		}
	}
}

func (u *user) send(msg tea.Msg) {
	_, next := u.m.Update(msg)
	u.do(next)
}

// press presses keys: single characters, and names in angle brackets such as <enter>.
func (u *user) press(keys string) {
	u.t.Helper()
	named := map[string]rune{"<enter>": tea.KeyEnter, "<esc>": tea.KeyEscape, "<tab>": tea.KeyTab, "<down>": tea.KeyDown, "<up>": tea.KeyUp, "<pgdown>": tea.KeyPgDown, "<backspace>": tea.KeyBackspace}
	for _, k := range regexp.MustCompile(`<[a-z]+>|.`).FindAllString(keys, -1) {
		if code := named[k]; code != 0 {
			u.send(tea.KeyPressMsg{Code: code})
		} else {
			u.send(tea.KeyPressMsg{Code: []rune(k)[0], Text: k})
		}
	}
}

// screen returns what is shown, after it has checked its size.
func (u *user) screen() string {
	u.t.Helper()
	lines := strings.Split(u.m.View().Content, "\n")
	if len(lines) != u.m.height {
		u.t.Errorf("the screen has %d lines, want %d", len(lines), u.m.height)
	}
	for i, line := range lines {
		if n := ansi.StringWidth(line); n > u.m.width {
			u.t.Errorf("line %d has %d columns of %d: %q", i+1, n, u.m.width, line)
		}
		lines[i] = strings.TrimRight(ansi.Strip(line), " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// see fails the test if the screen does not match a pattern.
func (u *user) see(pattern string) {
	u.t.Helper()
	if text := u.screen(); !regexp.MustCompile(pattern).MatchString(text) {
		u.t.Errorf("the screen does not match %s:\n%s", pattern, text)
	}
}

// TestScreens compares screens with golden files.
func TestScreens(t *testing.T) {
	for _, test := range []struct {
		name, path    string
		look          render.Look
		width, height int
		steps         []string
	}{
		{"callback-80x24", sample, plainLook, 80, 24, []string{"", "2", "j", "<enter>", "<enter>", "jjjjj", "<esc><esc>3", "<enter>", "4", "5", "?"}},
		{"errors-140x45", "../../samples/rocev2-errors.pcap", plainLook, 140, 45, []string{"", "2", "<enter>"}},
		{"ascii-60x12", "../../samples/rocev2-errors.pcap", render.Look{}, 60, 12, []string{"", "2", "<enter>", "4"}},
		{"cut-80x24", "../../testdata/captures/derived-cut-callback41.pcap.zst", plainLook, 80, 24, []string{"2G"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := userOf(t, options(t, test.path, test.look), test.width, test.height)
			var b strings.Builder
			for _, step := range test.steps {
				u.press(step)
				fmt.Fprintf(&b, "== %s\n%s", step, u.screen())
			}
			golden := filepath.Join("testdata", test.name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != string(want) {
				t.Errorf("%s differs; go test -update writes it anew:\n%s\nwant\n%s", golden, got, want)
			}
		})
	}
}

// TestKeys does what a user does: filters, searches, sorts, follows links and copies.
func TestKeys(t *testing.T) {
	u := userOf(t, options(t, sample, plainLook), 100, 30)
	u.press("2")
	u.see(`RPC 1 of 64\b.*Enter: its ladder`)
	u.press(":latency > 5ms<enter>")
	u.see(`RPC 1 of 12 with latency > 5ms`)
	u.press("y")
	u.see(`to the clipboard: rdmadump rocev2-callback41.pcap -Y 'latency > 5ms'`)
	if want := `rdmadump rocev2-callback41.pcap -Y 'latency > 5ms'`; u.copied != want {
		t.Errorf("copied %q, want %q", u.copied, want)
	}
	u.press("s")
	u.see(`RPC 1 of 12 with latency > 5ms, sorted by latency_ns[\s\S]*`)
	u.see(`(?m)^> .* 124 ms`)
	u.press("ssss")
	u.see(`RPC 1 of 12 with latency > 5ms, \d`)
	u.press("<esc>")
	u.see(`RPC 1 of 64\b`)
	u.press("/deleg2<enter>")
	u.see(`(?m)^> .*/deleg2`)
	first := u.m.tabs[tabRPCs].(*list).cursor
	u.press("n")
	second := u.m.tabs[tabRPCs].(*list).cursor
	if u.press("N"); second <= first || u.m.tabs[tabRPCs].(*list).cursor != first {
		t.Errorf("n and N go from row %d to %d to %d", first, second, u.m.tabs[tabRPCs].(*list).cursor)
	}
	u.press("/nowhere at all<enter>")
	u.see(`no row contains nowhere at all`)
	u.press(":latency ><enter>")
	u.see(`something is missing at the end\n:latency >`)
	u.press("<esc>4")
	u.see(`Enter: its RPCs`)
	u.press("/deleg1<enter><enter>")
	u.see(`RPC 1 of 10 with file == "/deleg1"`)
	u.press("<esc>")
	u.see(`\[4 Files[^$]*> /deleg1`) // where the cursor was
	u.press("5<enter>")
	u.see(`RPC 1 of 2 with program_name == "NFS" and version == 4 and operation == "DESTROY_CLIENTID"`)
	u.press("3<enter>")
	u.see(`connection \d  Enter: its RPCs`)
	u.press("<enter>")
	u.see(`RPC 1 of \d+ with connection == \d`)
	u.press("<esc>")
	u.see(`connection \d  Enter: its RPCs`)
	u.press("2s")
	u.see(`sorted by latency_ns`)
	u.press("y")
	u.see(`--sort -latency_ns`)
	u.press("ssssg<enter>")
	u.see(`0x3da94e54 of connection 0  Enter: its packet`)
	u.press("n")
	u.see(`0x3ea94e54 of connection 0`)
	u.see(`EXCHANGE_ID verifier`) // decoded arguments
	u.press("y")
	u.see(`to the clipboard: rdmadump rocev2-callback41.pcap --conn 0 --xid 0x3ea94e54`)
	u.press("<enter>")
	u.see(`packet 30, 1 of \d+ of RPC \d+`)
	u.see(`0000 +52 54 00 77`)
	u.press("n")
	u.see(`packet 31, 2 of`)
	u.press("?")
	u.see(`copy the command line`)
	u.press("<esc><esc><esc>")
	u.see(`RPC 2 of 64`)
	u.send(tea.MouseClickMsg{X: 5, Y: 6})
	u.see(`RPC 5 of 64`)
	u.send(tea.MouseClickMsg{X: 5, Y: 6})
	u.see(`Enter: its packet`)
	u.send(tea.MouseClickMsg{X: 2, Y: 0})
	u.see(`^ ?\[1 Problems`)
	u.press("2")
	u.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	u.see(`RPC 8 of 64`)
	if u.press("q"); !u.quit {
		t.Error("q does not quit")
	}
}

// TestEvidence: Enter on a problem that is about no RPC shows the packets that prove it.
func TestEvidence(t *testing.T) {
	u := userOf(t, options(t, "../../testdata/captures/rocev2-storm41.pcap.zst", plainLook), 120, 40)
	u.press("/damaged<enter><enter>")
	u.see(`packet 111, 1 of 3 of those that prove it`)
	u.press("nn")
	u.see(`3 of 3 of those that prove it`)
	u.press("n")
	u.see(`there are no more packets of those that prove it`)
	u.press("<esc>")
	u.see(`Enter: the packets that prove it`)
}

// TestSizes: whatever the size and the screen, there are as many lines as the terminal has, and none is too wide.
func TestSizes(t *testing.T) {
	for _, path := range []string{sample, "../../samples/rocev2-errors.pcap"} {
		for _, size := range [][2]int{{1, 1}, {40, 8}, {60, 12}, {80, 24}, {140, 45}, {200, 60}} {
			u := userOf(t, options(t, path, render.Look{Colour: true, Unicode: true}), size[0], size[1])
			for _, keys := range []string{"1", "<enter>", "<esc>2G", "<enter>", "<enter>", "G", "3G<enter>", "4G", "5G", "?", "<esc>:latency", "<esc>/x"} {
				u.press(keys)
				if size[0] >= leastWidth {
					u.screen()
				}
			}
		}
	}
}

// TestGrowing: rows of a capture that is being read appear, the cursor stays on its record, and on the last row it follows.
func TestGrowing(t *testing.T) {
	r := NewReading(1<<10, 0) // Nearly all is in the temporary file.
	t.Cleanup(r.Close)
	var all []*record.Transaction
	d := dissect.New(dissect.Handler{Transaction: func(t *record.Transaction) error { all = append(all, t.Clone()); return nil }}, dissect.Options{Files: true})
	if _, err := d.Run(t.Context(), testkit.Open(t, sample)); err != nil {
		t.Fatal(err)
	}
	h := r.Handler()
	h.Begin(all[0].Start())
	add := func(n int) {
		for range n {
			one := all[len(r.ids)%len(all)].Clone()
			one.ID = int64(len(r.ids))
			h.Transaction(one)
		}
	}
	add(10)
	u := &user{t: t, m: New(t.Context(), Options{Reading: r, Name: "live", Look: plainLook, Live: true, Closed: "packets are not kept"})}
	u.m.width, u.m.height = 100, 24
	u.m.take()
	u.press("2G")
	u.see(`RPC 10 of 10`)
	add(300)
	u.m.ticking = false
	u.m.take()
	u.see(`RPC 310 of 310`)
	u.press("g")
	add(5)
	u.m.take()
	u.see(`RPC 1 of 315`)
	u.press("<enter><enter>")
	u.see(`packets are not kept|nothing is behind`)
	r.Finish(&record.Summary{}, nil)
	u.m.take()
	u.see(`^ `)
}

// TestKeep: a live capture keeps the newest RPCs.
func TestKeep(t *testing.T) {
	r := NewReading(0, 1000)
	t.Cleanup(r.Close)
	h := r.Handler()
	one := record.Transaction{Type: "transaction", Call: &record.Message{}}
	for i := range int64(20_000) {
		one.ID = i
		h.Transaction(&one)
	}
	from, to := r.rpcs.bounds()
	if kept := to - from; to != 20_000 || kept < 1000 || kept > 1000+4096+perBlock || int64(len(r.ids)) != kept || r.ids[0] != from {
		t.Errorf("kept %d to %d, ids of %d from %d on", from, to, len(r.ids), r.ids[0])
	}
	read := r.rpcs.reader()
	defer read.close()
	for _, n := range []int64{from - 1, from, to - 1, to} {
		got, err := read.get(n)
		if err != nil || (got != nil) != (n >= from && n < to) || got != nil && got.(*record.Transaction).ID != n {
			t.Errorf("record %d: %v, %v", n, got, err)
		}
	}
}

// TestStore: every record of captures comes back as it was, from memory and from the temporary file.
func TestStore(t *testing.T) {
	for _, path := range []string{sample, "../../samples/rocev2-errors.pcap", "../../testdata/captures/iwarp-nfs41.pcap.zst"} {
		for _, memory := range []int64{0, 1} {
			s := newStore(&space{limit: memory << 30})
			var want []string
			d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
				want = append(want, string(render.AppendJSON(nil, r)))
				s.add(r)
				return nil
			}}, dissect.Options{Files: true})
			d.Run(t.Context(), testkit.Open(t, path))
			read := s.reader()
			order := make([]int64, len(want))
			for i := range order {
				order[i] = int64(i)
			}
			slices.Reverse(order)
			for _, n := range order {
				got, err := read.get(n)
				if err != nil {
					t.Fatal(err)
				}
				if text := string(render.AppendJSON(nil, got)); text != want[n] {
					t.Fatalf("record %d is\n%s, want\n%s", n, text, want[n])
				}
			}
			read.close()
			s.space.close()
		}
	}
}
