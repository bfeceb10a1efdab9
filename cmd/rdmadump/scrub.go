package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/export"
	"github.com/rdmadump/rdmadump/export/scrub"
	"github.com/rdmadump/rdmadump/query"
)

// scrubbed are the flags of an export that may be shared.
type scrubbed struct {
	asked bool
	key   string // the file that has it

	secret []byte
	again  func() (input, error) // opens the captures once more
}

func (s *scrubbed) define(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.asked, "scrub", false, "write packets that may be shared: pseudonyms for data, names, handles, credentials and addresses")
	cmd.Flags().StringVar(&s.key, "key", "", "with --scrub: take what pseudonyms depend on from this `file`, of any content, so that several captures get the same; else it is random")
}

// kind is how to export what is scrubbed; nil for what is not to be. Keyed says that
// a key was named, be it without a name.
func (s *scrubbed) kind(to string, keyed bool) (*exporter, error) {
	switch {
	case keyed && s.key == "":
		return nil, errors.New(`--key "": no file is named`)
	case !s.asked && keyed:
		return nil, errors.New("--key goes with --scrub")
	case !s.asked && to == "":
		return nil, errors.New(`required flag(s) "format" not set, nor --scrub`)
	case !s.asked:
		return nil, nil
	case to != "" && to != "pcapng":
		return nil, fmt.Errorf("--scrub writes packets, as --format pcapng does: it does not go with --format %s; scrub first, and export what that wrote", to)
	}
	return &exporter{format: "pcapng", fields: query.Packets, run: s.run}, nil
}

// scrub exports what is scrubbed. It reads captures twice, so that they have to be
// files.
func (x *exporting) scrub(cmd *cobra.Command, kind *exporter, paths []string) error {
	s := &x.scrubbed
	s.secret = make([]byte, 32)
	rand.Read(s.secret) // it never fails
	if s.key != "" {
		var err error
		if s.secret, err = os.ReadFile(s.key); err != nil {
			return fmt.Errorf("--key: %w", err)
		}
		if len(s.secret) == 0 {
			return fmt.Errorf("--key %s: it is empty", s.key)
		}
		key, err := os.Stat(s.key)
		if out, failed := os.Stat(x.path); err == nil && failed == nil && os.SameFile(key, out) {
			return fmt.Errorf("-w %s: it is the file of --key", x.path)
		}
	}
	asked, paths := paths, slices.Clone(paths)
	x.called = map[string]string{}
	for i, name := range paths {
		info, err := os.Stat(name)
		if name != "-" && (err != nil || info.Mode().IsRegular() || info.IsDir()) {
			continue // what cannot be opened is told of later
		}
		if at := slices.Index(asked, name); at < i { // which openNamed says
			paths[i] = paths[at]
			continue
		}
		if name == "-" {
			name = "standard input"
		}
		spooled, err := spool(cmd.Context(), func() (io.ReadCloser, error) {
			if paths[i] == "-" {
				return io.NopCloser(cmd.InOrStdin()), nil
			}
			return os.Open(paths[i])
		})
		if err != nil {
			return fmt.Errorf("%s: %w", printable(name), err)
		}
		defer os.Remove(spooled)
		paths[i], x.called[spooled] = spooled, name
	}
	s.again = func() (input, error) {
		source, _, err := x.openNamed(cmd, paths, io.Discard)
		return source, err
	}
	return x.export(cmd, kind, paths)
}

// spool copies what can be read only once to a temporary file, and leaves none when
// ctx ends first.
func spool(ctx context.Context, open func() (io.ReadCloser, error)) (path string, err error) {
	out, err := os.CreateTemp("", "rdmadump-*")
	if err != nil {
		return "", err
	}
	copied := make(chan error, 1)
	go func() { // it may wait for bytes, or for who writes a pipe, without an end
		in, err := open()
		if err == nil {
			_, err = io.Copy(out, in)
			in.Close()
		}
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		err = errors.New("interrupted")
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(out.Name())
	}
	return out.Name(), err
}

// run reads the captures once to learn, and once more to write.
func (s *scrubbed) run(r *exportRun) (string, error) {
	wait, err := os.CreateTemp(r.folder, ".rdmadump-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(wait.Name())
	defer wait.Close()
	w := scrub.New(s.secret, wait)
	if err := r.feed(w.Learn(), false); err != nil {
		return "", err
	}
	if err := w.Learned(); err != nil {
		return "", err
	}
	if err := r.ctx.Err(); err != nil { // nothing is written yet
		return "", r.err
	}
	r.source.Close()
	if r.source, err = s.again(); err != nil {
		return "", err
	}
	e := export.NewPackets(r.out, "rdmadump "+version())
	e.Wants = r.wantsPacket
	e.Rewrite = w.Frame
	if err := r.feed(e.Handler(), false); err != nil {
		return "", err
	}
	return w.Report.String(), e.Flush()
}
