package export

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/export"
	"github.com/rdmadump/rdmadump/internal/export/scrub"
	"github.com/rdmadump/rdmadump/internal/query"
)

// scrubbed is what --scrub needs in addition to the captures.
type scrubbed struct {
	secret []byte
	reopen func() (input.Source, error) // opens the captures for the second run
}

// scrub writes a scrubbed capture. It reads the captures twice, so it copies inputs
// that are not files to temporary files first.
func (x *exporting) scrub(cmd *cobra.Command, secret []byte, paths []string) error {
	if x.Format != "" && x.Format != "pcapng" {
		return fmt.Errorf("--scrub writes packets, as --format pcapng does, and cannot be used with --format %s; scrub the capture first, then export the scrubbed file", x.Format)
	}
	paths, err := input.Expand(&x.Typed, paths)
	if err != nil {
		return err
	}
	s := &x.scrubbed
	if s.secret = secret; secret == nil {
		s.secret = make([]byte, 32)
		rand.Read(s.secret) // rand.Read never fails
	}
	if x.Write != "-" {
		if err := command.RefuseInput("-w", x.Write, paths, x.stdout); err != nil { // The copies of inputs do not show it.
			return err
		}
	}
	paths, called, remove, err := input.OnlyFiles(cmd, paths)
	defer remove()
	if err != nil {
		return err
	}
	x.Called = called
	s.reopen = func() (input.Source, error) {
		source, _, err := input.OpenNamed(cmd, &x.Typed, paths, io.Discard)
		return source, err
	}
	return x.export(cmd, exporter{query.Packets, s.run}, paths)
}

// again opens the captures of a run once more.
func (s *scrubbed) again(r *Run) error {
	if r.Joined == nil {
		source, err := s.reopen()
		r.Source = source
		return err
	}
	joined, err := r.Joined.Again(r.Ctx)
	r.Source, r.Joined = joined, joined
	return err
}

// run reads the captures once to learn the contents of each packet, and a second
// time to write the packets.
func (s *scrubbed) run(r *Run) (string, error) {
	learned, err := os.CreateTemp(r.folder, ".rdmadump-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(learned.Name())
	defer learned.Close()
	w := scrub.New(s.secret, learned, r.Tunnels...)
	if err := r.Feed(w.Learn(), false); err != nil {
		return "", err
	}
	if err := w.Learned(); err != nil {
		return "", err
	}
	if err := r.Ctx.Err(); err != nil { // nothing has been written yet
		return "", r.Err
	}
	r.Source.Close()
	if err := s.again(r); err != nil {
		return "", err
	}
	e := export.NewPackets(r.out, "rdmadump "+command.Version()+capture.Scrubbed)
	e.Wants, e.Rewrite, e.HideXID = r.wantsPacket, w.Frame, w.HidesXID
	r.withCopies(e)
	if err := r.Feed(e.Handler(), false); err != nil {
		return "", err
	}
	return w.Report.String(), e.Flush()
}
