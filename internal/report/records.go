package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// This file puts records into the page, and reads them back: the complete records of the RPCs with
// ladder diagrams, of the connections and of the first findings, and the summary, as JSON lines that
// are compressed with gzip and encoded with base64.

// maxFound is the number of findings whose records the page contains.
const maxFound = 1000

// recordsMark is the end of the tag before the records. No other part of a page contains it, because
// quotation marks in text are escaped.
const recordsMark = ` id="records">`

// embed adds the records if there is space for them. A redacted page has none, because they contain
// addresses.
func (v *page) embed(drawn []chosen) {
	if v.hide != nil {
		return
	}
	slices.SortFunc(drawn, func(a, b chosen) int { return cmp.Compare(a.r.ID, b.r.ID) })
	var packed bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &packed)
	z := gzip.NewWriter(text)
	for _, c := range drawn {
		c.r.RPC = nil                                                 // arguments and results, which no page contains
		z.Write(render.AppendJSON(nil, record.Unnamed(c.r, v.Hosts))) // writing to memory never fails
	}
	for _, f := range v.found {
		z.Write(render.AppendJSON(nil, record.Unnamed(f, v.Hosts)))
	}
	for _, c := range v.all {
		z.Write(render.AppendJSON(nil, record.Unnamed(c, v.Hosts)))
	}
	z.Write(render.AppendJSON(nil, record.Unnamed(v.summary, v.Hosts)))
	z.Close()
	text.Close()
	block := `<script type="application/octet-stream"` + recordsMark + packed.String() + "</script>\n"
	if int64(len(block)) > v.left {
		v.omit("The records of the RPCs with diagrams, of the connections and of the findings are left out because of the size of the page.")
		return
	}
	v.left -= int64(len(block))
	v.parts["records"] = []byte(block)
}

// keep keeps the record of a finding for embed.
func (p *Report) keep(r *record.Finding) {
	if len(p.found) < maxFound {
		p.found = append(p.found, r.Clone())
	}
}

// errNoRecords is the error for a page without records.
var errNoRecords = errors.New("the page contains no records of rdmadump; pages of rdmadump report do, unless they were written with --redact")

// Records returns the JSON lines in a page.
func Records(page io.Reader) (io.Reader, error) {
	r := bufio.NewReaderSize(page, 1<<16)
	for {
		text, err := r.ReadSlice('>')
		switch {
		case bytes.HasSuffix(text, []byte(recordsMark)):
			lines, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, &untilTag{r}))
			if err != nil {
				return nil, errors.New("the records in the page are damaged: " + strings.TrimPrefix(err.Error(), "gzip: "))
			}
			return lines, nil
		case err == io.EOF:
			return nil, errNoRecords
		case err != nil && err != bufio.ErrBufferFull:
			return nil, err
		}
	}
}

// untilTag reads until the next tag.
type untilTag struct{ r *bufio.Reader }

// Read reads.
func (u *untilTag) Read(p []byte) (int, error) {
	if _, err := u.r.Peek(1); err != nil {
		return 0, err
	}
	have, _ := u.r.Peek(min(u.r.Buffered(), len(p)))
	end := bytes.IndexByte(have, '<')
	if end == 0 {
		return 0, io.EOF
	} else if end > 0 {
		have = have[:end]
	}
	n := copy(p, have)
	u.r.Discard(n)
	return n, nil
}
