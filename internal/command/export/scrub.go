package export

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/export"
	"github.com/rdmadump/rdmadump/internal/export/scrub"
	"github.com/rdmadump/rdmadump/internal/query"
)

// scrubbed holds the flags --scrub and --key.
type scrubbed struct {
	enabled bool
	key     string // path of the file that holds the key

	secret []byte
	reopen func() (input.Source, error) // opens the captures for the second run
}

func (s *scrubbed) define(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.enabled, "scrub", false, "write packets that can be shared: pseudonyms replace data, names, handles, credentials and addresses")
	cmd.Flags().StringVar(&s.key, "key", "", "with --scrub: derive pseudonyms from the contents of this `file`, so that several captures get the same pseudonyms; without it the key is random")
}

// kind returns the exporter for --scrub, or nil if the flag is not given. keyed
// reports whether --key was given, even with an empty name.
func (s *scrubbed) kind(to string, keyed bool) (*exporter, error) {
	switch {
	case keyed && s.key == "":
		return nil, errors.New(`--key "": the name of the file is empty`)
	case !s.enabled && keyed:
		return nil, errors.New("--key can only be used with --scrub")
	case !s.enabled && to == "":
		return nil, errors.New("say what to write: --format FORMAT or --scrub; see rdmadump export --help")
	case !s.enabled:
		return nil, nil
	case to != "" && to != "pcapng":
		return nil, fmt.Errorf("--scrub writes packets, as --format pcapng does, and cannot be used with --format %s; scrub the capture first, then export the scrubbed file", to)
	}
	return &exporter{Format: "pcapng", fields: query.Packets, run: s.run}, nil
}

// scrub writes a scrubbed capture. It reads the captures twice, so it copies inputs
// that are not files to temporary files first.
func (x *exporting) scrub(cmd *cobra.Command, kind *exporter, paths []string) error {
	s := &x.scrubbed
	s.secret = make([]byte, 32)
	rand.Read(s.secret) // rand.Read never fails
	if s.key != "" {
		var err error
		if s.secret, err = os.ReadFile(s.key); err != nil {
			return fmt.Errorf("--key: %w", err)
		}
		if len(s.secret) == 0 {
			return fmt.Errorf("--key %s: the file is empty", s.key)
		}
		key, err := os.Stat(s.key)
		if out, failed := os.Stat(x.path); err == nil && failed == nil && os.SameFile(key, out) {
			return fmt.Errorf("-w %s: the file is that of --key", x.path)
		}
	}
	if x.path != "-" {
		if err := command.RefuseInput("-w", x.path, paths, x.stdout); err != nil { // The copies of inputs do not show it.
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
	return x.export(cmd, kind, paths)
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
	w := scrub.New(s.secret, learned)
	r.onlyRDMA = true // scrub replaces all bytes of RPC over TCP and UDP
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
	e := export.NewPackets(r.out, "rdmadump "+command.Version())
	e.Wants, e.Rewrite, e.HideXID = r.wantsPacket, w.Frame, w.HidesXID
	r.withCopies(e)
	if err := r.Feed(e.Handler(), false); err != nil {
		return "", err
	}
	return w.Report.String(), e.Flush()
}
