// Package page has the command report, which writes one HTML page about a capture.
package page

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/export"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/export/scrub"
	"github.com/rdmadump/rdmadump/internal/report"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/render"
)

// reporting holds the flags of report.
type reporting struct {
	flags.Typed
	stdout, stderr io.Writer
}

// New returns the command report.
func New(stdout, stderr io.Writer) *cobra.Command {
	x := &reporting{stdout: stdout, stderr: stderr}
	cmd := &cobra.Command{
		Use: "report FILE... -w OUT", Short: "Write a report about a capture: one HTML page for a ticket",
		Long: `report writes one HTML page about a capture, for a ticket or a mail: the
problems with their evidence, one timeline, the operations with their latencies,
ladder diagrams of the RPCs that the problems name, the connections, the findings with
the text of each rule, what was not judged, and how the page was made. Below each part
is the command that shows more in a terminal.

The page needs no script, no other file and no network. It contains no payload, but
addresses, paths, users and machine names. --scrub replaces these by pseudonyms;
with --key, by those of a capture that export --scrub wrote with this key. The same
input gives the same page.

--xid, --conn, --from, --to and -Y select the RPCs that the page is about. With OUT -,
report writes to standard output.`,
		Example: `  rdmadump report nfs.pcap -w report.html
  rdmadump report nfs.pcap --from 60 --to 90s -w stall.html
  rdmadump report client.pcap server.pcap -w both.html
  rdmadump report --scrub nfs.pcap -w public.html`,
		RunE: func(cmd *cobra.Command, args []string) error { return x.write(cmd, args) },
	}
	x.DefineCommand(cmd, flags.ReportView)
	return cmd
}

// write reads captures and writes the page.
func (x *reporting) write(cmd *cobra.Command, paths []string) error {
	secret, err := x.Secret(cmd)
	if err != nil {
		return err
	}
	given := paths
	if paths, err = input.Expand(&x.Typed, paths); err != nil {
		return err
	}
	inputs := slices.Clone(paths)
	paths, called, remove, err := input.OnlyFiles(cmd, paths)
	defer remove()
	if err != nil {
		return err
	}
	x.Called = called
	set, err := x.Parse(cmd.Context(), flags.ReportView, true)
	if err != nil {
		return err
	}
	source, text, openErr, err := input.OpenRecords(cmd, &x.Typed, paths, x.stderr)
	if err != nil {
		return err
	}
	r := &export.Run{Times: flags.Times{Settings: set}, Ctx: cmd.Context(), Stderr: x.stderr, OpenErr: openErr}
	var read []string
	links := &linkTypes{seen: map[capture.LinkType]bool{}}
	if text != nil {
		defer text.Close()
		read = text.Paths
	} else {
		read = source.Paths()
		if links.Source, r.Joined, err = input.Join(cmd.Context(), &x.Typed, source, set, x.stderr); err != nil {
			return err
		}
		defer links.Close()
		r.Source = links
	}
	digests := digestsOf(cmd.Context(), read, called)
	pseudonyms := x.pseudonyms(secret, digests, set.AtPoints)
	var hide record.Pseudonyms // nil without --scrub
	if pseudonyms != nil {
		hide = pseudonyms
	}
	page := report.New(selector(r), hide)
	page.Hosts = set.Hosts
	h := set.Naming(page.Handler())
	if text != nil {
		if err := text.Check(set, &h); err != nil {
			return err
		}
	}
	out, err := command.Create(cmd.Context(), x.Write, inputs, x.stdout)
	if err != nil {
		return err
	}
	if text != nil {
		r.BeginWith(&h)
		r.Summary, err = text.Read(r.Ctx, h)
		err = r.ReadUntil(err)
	} else {
		err = r.Feed(h, false)
	}
	if err != nil {
		return out.Done(err)
	}
	files := <-digests
	about := report.About{
		Version: command.Version(), Command: typedLine(cmd, given), Files: files.list, LinkTypes: links.names(), Selection: x.selection(),
		Points: input.PointRecords(r.Joined), Network: input.NetworkRecords(r.Joined),
	}
	for _, path := range given {
		if about.Typed += input.NamesOf(nil, []string{path}, nil).Typed; path != given[len(given)-1] {
			about.Typed += " "
		}
	}
	if about.Selection != nil {
		about.Selected = "the page is about the RPCs that these flags select: " + strings.Join(about.Selection, " ")
	}
	if r.Err != nil {
		about.Error = command.Describe(r.Err) + "; the page is about everything before that."
	}
	if text != nil {
		about.Records = "The input is records that rdmadump wrote, not a capture."
		if missing := text.Partial(&h); missing != "" {
			about.Error = missing + "."
		}
	}
	if x.Scrub {
		r.Summary = x.hide(&about, r.Summary, given, pseudonyms)
	} else {
		r.Summary = record.Named(r.Summary, set.Hosts)
		for i, point := range about.Points {
			about.Points[i] = record.Named(point, set.Hosts)
		}
	}
	if err := out.Done(page.Write(out, r.Summary, about)); err != nil {
		return err
	}
	if !x.Quiet {
		command.Say(x.stderr, "%s: %s on %s", render.Clean(x.Write), record.Plural(r.Summary.Requests, "RPC"), record.Plural(r.Summary.Connections, "connection"))
	}
	return r.Ended()
}

// selection returns the flags that select RPCs, quoted for a shell.
func (x *reporting) selection() (words []string) {
	for _, conn := range x.Conns {
		words = append(words, "--conn", fmt.Sprint(conn))
	}
	for _, flag := range []struct{ name, value string }{{"--xid", strings.Join(x.XIDs, ",")}, {"--from", x.From}, {"--to", x.To}, {"-Y", x.Filter}} {
		if flag.value != "" {
			words = append(words, flag.name, shell.File(flag.value))
		}
	}
	return words
}

// pseudonyms returns the pseudonyms of --scrub, or nil without that flag. If there is no secret, they depend on the
// checksums of the captures. Points are the names of the capture points, as far as they are known.
func (x *reporting) pseudonyms(secret []byte, of chan digests, points []string) *redaction {
	if !x.Scrub {
		return nil
	}
	if secret == nil {
		d := <-of
		secret = d.secret
		of <- d
	}
	p := &redaction{scrub.NewRecordPseudonyms(secret), map[string]string{}, nil}
	for _, name := range points {
		p.Text(record.SecretPoint, name)
	}
	return p
}

// redaction has the pseudonyms of --scrub.
type redaction struct {
	*scrub.RecordPseudonyms
	points   map[string]string // by name
	captures *strings.Replacer // replaces the names of captures in sentences; nil until all are known, and then sentences are left out
}

// Text returns the pseudonym of a text. A capture point has one with a number. Records can name points that were not known
// before.
func (p *redaction) Text(what record.Secret, text string) string {
	switch what {
	case record.SecretPoint:
		if p.points[text] == "" {
			p.points[text] = fmt.Sprintf("point-%d", len(p.points)+1)
		}
		return p.points[text]
	case record.SecretSentence:
		if p.captures == nil { // The names are not known yet. The page makes sentences about RPCs itself.
			return ""
		}
		return p.captures.Replace(text)
	}
	return p.RecordPseudonyms.Text(what, text)
}

// hide removes names from what the page is about, and returns the summary without them. The names of captures and of
// capture points become numbers, and a filter becomes three dots, because it may contain anything.
func (x *reporting) hide(about *report.About, summary *record.Summary, given []string, p *redaction) *record.Summary {
	names := map[string]string{}
	var typed, inSentences []string
	for i, path := range given {
		if names[path] == "" {
			names[path] = fmt.Sprintf("capture-%d", i+1)
		}
		typed = append(typed, names[path])
	}
	about.Typed = strings.Join(typed, " ")
	for i := range about.Files {
		file := &about.Files[i]
		name := fmt.Sprintf("capture-%d", i+1)
		inSentences = append(inSentences, file.Name, name, filepath.Base(file.Name), name)
		file.Name = name
	}
	p.captures = strings.NewReplacer(inSentences...)
	about.Error = p.captures.Replace(about.Error)
	for i, one := range about.Points {
		about.Points[i] = record.Hidden(one, p)
	}
	for i, n := range about.Network {
		about.Network[i] = record.Hidden(n, p)
	}
	for i, word := range about.Command {
		if name := names[word]; name != "" {
			about.Command[i] = name
		}
		if i > 0 && slices.Contains([]string{"--filter", "--key", "--clock", "--hosts"}, about.Command[i-1]) {
			about.Command[i] = "..."
		}
	}
	for i, word := range about.Selection {
		if word == "-Y" {
			about.Selection[i+1] = "..."
		}
	}
	if about.Selection != nil {
		about.Selected = "the page is about the RPCs that these flags select: " + strings.Join(about.Selection, " ")
	}
	return record.Hidden(summary, p)
}

// typedLine returns the command line without -w: the name of the command, the captures, and the flags
// that were given.
func typedLine(cmd *cobra.Command, paths []string) []string {
	return append(append([]string{cmd.Name()}, paths...), flags.Words(cmd.Flags(), func(name string) bool { return name != "write" && name != "quiet" })...)
}

// selector returns the functions that select the records of a page.
func selector(r *export.Run) report.Selector {
	overlaps := r.Overlaps
	if !r.From.Set && !r.To.Set {
		overlaps = nil
	}
	return report.Selector{
		Transaction: r.Selects,
		Connection:  func(c *record.Connection) bool { return r.WantsConnection(c.ID) && r.Overlaps(c.First, c.Last) },
		Operation:   func(o *record.RDMAOperation) bool { return r.WantsConnection(o.Connection) && r.Within(o.Sent) },
		Finding:     r.WantsFinding,
		Overlaps:    overlaps,
	}
}

// linkTypes notes the link types of the frames of a source.
type linkTypes struct {
	input.Source
	seen map[capture.LinkType]bool
	last capture.LinkType
}

// ReadBatch reads a batch.
func (l *linkTypes) ReadBatch(ctx context.Context, b *capture.Batch) error {
	err := l.Source.ReadBatch(ctx, b)
	for i := range b.Frames {
		if t := b.Frames[i].LinkType; t != l.last || i == 0 {
			l.seen[t], l.last = true, t
		}
	}
	return err
}

// names returns the names of the link types.
func (l *linkTypes) names() []string {
	var names []string
	for t := range l.seen {
		if name := t.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// digests are what the contents of the captures determine.
type digests struct {
	list   []report.File
	secret []byte // of the pseudonyms
}

// secretKey is the key of the hash whose result is the secret of the pseudonyms. A reader of the page
// knows the checksums of the captures, but cannot compute this hash without the captures.
const secretKey = "rdmadump report --scrub"

// digestsOf computes the checksums of files in a goroutine. A file that cannot be read has none.
func digestsOf(ctx context.Context, paths []string, called map[string]string) chan digests {
	done := make(chan digests, 1)
	go func() {
		var d digests
		mac := hmac.New(sha256.New, []byte(secretKey))
		for _, path := range paths {
			sum, hidden := sha256.New(), hmac.New(sha256.New, []byte(secretKey))
			file := report.File{Name: path}
			if name := called[path]; name != "" {
				file.Name = name
			}
			if f, err := os.Open(path); err == nil {
				file.Size, err = io.Copy(io.MultiWriter(sum, hidden), &interruptible{f, ctx})
				if f.Close(); err == nil {
					file.SHA256 = hex.EncodeToString(sum.Sum(nil))
				}
			}
			mac.Write(hidden.Sum(nil))
			d.list = append(d.list, file)
		}
		d.secret = mac.Sum(nil)
		done <- d
	}()
	return done
}

// interruptible ends reading when ctx ends.
type interruptible struct {
	io.Reader
	ctx context.Context
}

// Read reads.
func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
