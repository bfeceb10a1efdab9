package input

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/rdmadump/rdmadump/internal/command"
)

// progress draws a progress bar on standard error, if that is a terminal and the records
// go elsewhere.
type progress struct {
	bar    *progressbar.ProgressBar
	source Source
	began  time.Time
	w      io.Writer
	total  int64
}

// NewProgress returns the progress of a source; it draws nothing if it is not wanted, or if there
// is no source.
func NewProgress(source Source, w io.Writer, wanted bool) *progress {
	if source == nil {
		return &progress{}
	}
	_, total := source.Progress()
	if !wanted || total == 0 || command.TerminalWidth(w) == 0 {
		return &progress{}
	}
	return &progress{source: source, began: time.Now(), w: w, total: total}
}

// Update draws the progress bar if reading has taken a second.
func (p *progress) Update() {
	if p.source == nil || time.Since(p.began) < time.Second {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(p.total,
			progressbar.OptionSetWriter(p.w), progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription("reading"),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(false))
	}
	read, _ := p.source.Progress()
	p.bar.Set64(read)
}

// Finish removes the progress bar.
func (p *progress) Finish() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
