package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/render"
)

// PointRecords returns the records of the capture points; there are none if joined is nil.
func PointRecords(joined *points.Source) (list []*record.Point) {
	if joined == nil {
		return nil
	}
	for i, p := range joined.Points() {
		r := &record.Point{
			Matched: record.SomeIf(joined.Matched(i), !p.Reference),
			Type:    "point", Name: p.Name, Address: record.SomeIf(p.Address, p.Address != ""), Packets: p.Packets, Steps: []record.ClockStep{},
			OffsetNS: record.SomeIf(p.Offset, p.Known), DriftPPM: record.SomeIf(p.Drift, p.DriftKnown), ErrorNS: record.SomeIf(p.Error, p.Known),
			DriftErrorPPM: record.SomeIf(p.DriftError, p.Known && p.DriftError > 0),
		}
		for _, step := range p.Steps {
			r.Steps = append(r.Steps, record.ClockStep{Packet: step.Packet, Time: record.Time(step.Time), NS: step.By})
		}
		list = append(list, r)
	}
	return list
}

// NetworkRecords returns what happened between the capture points.
func NetworkRecords(joined *points.Source) (list []*record.Network) {
	if joined == nil {
		return nil
	}
	all := joined.Points()
	for _, h := range joined.Hops() {
		list = append(list, networkRecord(h, all))
	}
	return list
}

func networkRecord(h *points.Hop, all []points.Point) *record.Network {
	d := h.Delay()
	r := &record.Network{
		Type: "network", From: all[h.From].Name, To: all[h.To].Name, Packets: h.Packets, Lost: h.Lost, NotCaptured: h.NotCaptured, Unknown: h.Unknown,
		Reordered: h.Reordered, Corrupted: h.Corrupted, Changed: h.Changed, Duplicated: h.Duplicated, MirrorDuplicates: h.MirrorDuplicates,
		Bytes: record.SomeIf(h.Bytes, h.Bytes > 0), BytesLost: record.SomeIf(h.BytesLost, h.Bytes > 0), BytesDuplicated: record.SomeIf(h.BytesDuplicated, h.Bytes > 0),
		Delay:  record.SomeIf(record.DelayQuantiles{MinNS: d.Min, P50NS: d.P50, P90NS: d.P90, P99NS: d.P99, MaxNS: d.Max}, d.Count > 0),
		Course: []record.NetworkInterval{},
	}
	for _, q := range h.Quiet() {
		r.Quiet = append(r.Quiet, record.QuietTime{From: record.Time(q.From), To: record.Time(q.To), Lost: q.Lost})
	}
	for _, i := range h.Course() {
		r.Course = append(r.Course, record.NetworkInterval{
			Start: record.Time(i.Start), Packets: i.Packets, Lost: i.Lost, Corrupted: i.Damaged,
			P50NS: record.SomeIf(i.Delay.P50, i.Delay.Count > 0), MaxNS: record.SomeIf(i.Delay.Max, i.Delay.Count > 0),
		})
	}
	return r
}

// joinedMemory is the part of --memory that finding capture points may use.
const joinedMemory = 4

// standardInput is the name of standard input in messages, and of its capture point.
const standardInput = "standard input"

// isPipe reports whether an input can be read only once.
func isPipe(path string) bool {
	if path == "-" {
		return !command.Regular(os.Stdin)
	}
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// Join recognizes files of several capture points. It returns the source to read: if there are several points, the one
// that has the packets of all of them, which is then joined, too; otherwise the merged files. The caller closes it, which says
// what is wrong with the times of the packets that were read. An error closes the merged files.
func Join(ctx context.Context, f *flags.Typed, merged *capture.Merged, s *flags.Settings, stderr io.Writer) (in Source, joined *points.Source, err error) {
	if err := resolve(ctx, merged.Paths(), s); err != nil {
		merged.Close()
		return nil, nil, err
	}
	joined, err = recognize(ctx, f, merged, s, stderr)
	if s.AtPoints = pointNames(joined); joined == nil && err == nil {
		return &mergedSource{merged, &teller{f: f, stderr: stderr}}, nil, nil
	}
	if merged.Close(); err != nil {
		return nil, nil, err
	}
	return &joinedSource{joined, &teller{f: f, stderr: stderr}}, joined, nil
}

// mergedSource and joinedSource say which times do not fit when they are closed.
type (
	mergedSource struct {
		*capture.Merged
		*teller
	}
	joinedSource struct {
		*points.Source
		*teller
	}
)

// Close closes the files.
func (s *mergedSource) Close() error {
	s.tell(s.Beyond())
	return s.Merged.Close()
}

// Close closes the files.
func (s *joinedSource) Close() error {
	s.tell(s.Beyond())
	return s.Source.Close()
}

// teller says once for each file that it has times that do not fit.
type teller struct {
	f      *flags.Typed
	stderr io.Writer
	told   bool
}

func (t *teller) tell(list []capture.Beyond) {
	if t.told || t.f.Quiet {
		return
	}
	t.told = true
	var lines []string
	for _, b := range list {
		which, nearest, beside := "after the year 2262", "last", "it is"
		if b.Time < 0 {
			which, nearest = "before the year 1678", "first"
		}
		if b.Frames > 1 {
			beside = fmt.Sprintf("it and the times of %s are", record.Plural(b.Frames-1, "further packet"))
		}
		lines = append(lines, fmt.Sprintf("%s: the time of packet %d is %s; %s shown as the %s time that fits, so durations and rates that are computed from it mean nothing", b.Name, b.Number, which, beside, nearest))
	}
	for _, line := range few(lines) {
		command.Say(t.stderr, "%s", line)
	}
}

// resolve determines the times of --from and --to that depend on when the captures begin and end.
func resolve(ctx context.Context, paths []string, s *flags.Settings) error {
	needs, needsEnd := s.NeedsSpan()
	if !needs {
		return nil
	}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, path := range paths {
		span, known := capture.SpanOf(path)
		if !known && !isPipe(path) {
			span, known = capture.ReadSpan(ctx, path)
		}
		if !known && needsEnd {
			return fmt.Errorf("%s has no end that is known before it was read, from which --from or --to counts; save it to a file first", render.Clean(path))
		}
		if known {
			first, last = min(first, span.First), max(last, span.Last)
		}
	}
	if first > last {
		return nil
	}
	return s.Resolve(record.Time(first), record.Time(last))
}

// Spooled copies inputs that can be read only once to temporary files if there are several inputs, because points are
// recognized by reading all of them twice. The caller calls remove in any case.
func Spooled(cmd *cobra.Command, f *flags.Typed, paths []string, stderr io.Writer) (files []string, remove func(), err error) {
	pipe := slices.IndexFunc(paths, isPipe)
	if len(paths) < 2 || pipe < 0 || f.Points == "off" {
		return paths, func() {}, nil
	}
	if name := paths[pipe]; !f.Quiet {
		if name == "-" {
			name = standardInput
		}
		command.Say(stderr, "%s is stored in a temporary file until it ends, to compare capture points; --points off reads it at once", render.Clean(name))
	}
	files, f.Called, remove, err = OnlyFiles(cmd, paths)
	return files, remove, err
}

// recognize returns the source of several capture points. It returns nil if the files are one capture. It looks for
// points in a single file only if the file describes several interfaces, or if the view is network.
func recognize(ctx context.Context, f *flags.Typed, source *capture.Merged, s *flags.Settings, stderr io.Writer) (*points.Source, error) {
	told, always := f.Points == "on", s.View.Name == "network"
	if always && f.Points == "off" {
		return nil, errors.New("network compares capture points, of which --points off makes one capture; leave it out")
	}
	if f.Points == "off" || !told && !always && !source.MayHavePoints() {
		return nil, refuseClock(f, 0)
	}
	if !told && source.OneSeries(ctx) {
		return nil, refuseClock(f, 0)
	}
	var files []points.File
	for _, path := range source.Paths() {
		info, err := os.Stat(path)
		if path == "-" || err != nil || !info.Mode().IsRegular() {
			name := path
			if name == "-" {
				name = standardInput
			}
			if told {
				return nil, fmt.Errorf("--points on: %s can be read only once; save it to a file", render.Clean(name))
			}
			if source.MayHavePoints() && !f.Quiet {
				merged := "its interfaces"
				if len(source.Paths()) > 1 {
					merged = "the files"
				}
				command.Say(stderr, "%s can be read only once, so %s are merged by their own times; save it to a file to compare capture points", render.Clean(name), merged)
			}
			return nil, refuseClock(f, 0)
		}
		name := path
		if other, is := f.Called[path]; is {
			name = other
		}
		files = append(files, points.File{Path: path, Name: name})
	}
	plan, err := points.Recognize(ctx, files, points.Options{Points: told, Clock: clocks(f.Clock, source.Paths()), Memory: int64(f.Memory) / joinedMemory, Tunnels: s.Tunnels})
	if err != nil {
		return nil, err
	}
	if told && len(plan.Points) < 2 {
		return nil, fmt.Errorf("--points on: %s", render.Clean(plan.Unmatched()))
	}
	if !f.Quiet {
		for _, note := range few(plan.Notes) {
			command.Say(stderr, "%s", render.Clean(note))
		}
	}
	if !plan.Joined() {
		return nil, refuseClock(f, 0)
	}
	if err := refuseClock(f, plan.Clocks()); err != nil {
		return nil, err
	}
	return plan.Open(ctx)
}

// clocks returns the paths that --clock selects: a folder stands for the captures in it.
func clocks(name string, paths []string) (selected []string) {
	switch {
	case name == "":
		return nil
	case !isFolder(name):
		return []string{name}
	}
	const separator = string(filepath.Separator)
	folder := strings.TrimSuffix(real(name), separator) + separator
	for _, path := range paths {
		if strings.HasPrefix(real(filepath.Dir(path))+separator, folder) {
			selected = append(selected, path)
		}
	}
	return selected
}

// real returns an absolute path without symbolic links, or the path itself if it has none.
func real(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return path
}

// refuseClock returns an error if --clock does not name files of one capture point. Named is the number of points whose files it names.
func refuseClock(f *flags.Typed, named int) error {
	switch {
	case f.Clock == "" || named == 1:
		return nil
	case named > 1 && isFolder(f.Clock):
		return fmt.Errorf("--clock %s: the folder has files of %d capture points; name one of the files", render.Clean(f.Clock), named)
	case named > 1:
		return nil
	}
	return fmt.Errorf("--clock %s: this is not one of several capture points; name one of the files, or a folder of one point", render.Clean(f.Clock))
}

// pointNames returns the names of the capture points; it is nil if there is only one.
func pointNames(s *points.Source) (names []string) {
	if s == nil {
		return nil
	}
	for _, p := range s.Points() {
		names = append(names, p.Name)
	}
	return names
}
