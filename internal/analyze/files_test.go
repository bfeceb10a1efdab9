package analyze

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// rpc returns a transaction that used files.
func rpc(id int64, latency int64, uses ...record.FileUse) *record.Transaction {
	return &record.Transaction{
		ID: id, Status: record.Complete, Call: &record.Message{Time: record.Time(id)}, Client: record.Some("c"), Server: record.Some("s"),
		UID: record.Some(uint32(100 + id)), LatencyNS: record.Some(latency), FileUses: uses,
	}
}

// TestFiles: RPCs are summed up by file, a file whose handle becomes known keeps its sums, and
// changes of names have their time and user.
func TestFiles(t *testing.T) {
	table := NewFiles(0)
	for i, uses := range [][]record.FileUse{
		{{File: "/a", Handle: "aa", Change: record.FileCreated}},
		{{File: "/a", Handle: "aa", WrittenBytes: 7}},
		{{File: "/b", From: "/a", Handle: "aa", Change: record.FileRenamed}},
		{{File: "/dir"}},
		{{File: "/dir", Handle: "dd"}},
		{{File: "/b", Handle: "aa", Change: record.FileRemoved}, {File: "/c", Handle: "cc", ReadBytes: 3}},
		nil,
	} {
		table.Add(rpc(int64(i+1), 10, uses...))
	}
	var got []string
	for _, f := range table.Rows() {
		got = append(got, fmt.Sprint(f.FileText(), f.FileHandle.Or("-"), f.Operations, f.BytesRead, f.BytesWritten, f.TotalNS, at(f.Created), at(f.Renamed), at(f.Removed), int64(f.First), int64(f.Last)))
	}
	want := []string{
		"/baa4 0 7 40 [1 101 /a] [3 103 /b /a] [6 106 /b] 1 6", "/dirdd2 0 0 20 [] [] [] 4 5", "/ccc1 3 0 10 [] [] [] 6 6",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want\n%q", got, want)
	}
}

// at returns the facts of a change.
func at(o record.Opt[FileChange]) []string {
	c, known := o.Get()
	if !known {
		return nil
	}
	return strings.Fields(fmt.Sprint(int64(c.Time), c.UID.Or(0), " ", c.File.Or(""), " ", c.From.Or("")))
}

// TestManyFiles: files for which there is no memory are summed up as others, and latencies for which
// there is none have no quantiles.
func TestManyFiles(t *testing.T) {
	table := NewFiles(0)
	table.maxBytes, table.exact.most = 4*fileCost-1, 10
	for i := range int64(30) {
		table.Add(rpc(i+1, i, record.FileUse{Handle: fmt.Sprintf("%02x", i%10), Change: record.FileRemoved}))
	}
	rows := table.Rows()
	last := rows[len(rows)-1]
	if len(rows) != 4 || last.FileText() != Others || last.Operations != 21 || last.Others != 21 || last.Removed.Known() {
		t.Fatalf("there are %d rows, and the last is %s with %d operations, %d of other files; want 4, others, 21, 21, and no removal", len(rows), last.FileText(), last.Operations, last.Others)
	}
	if !last.Latency.Estimated || rows[0].Operations != 3 {
		t.Errorf("the latency of others is exact: %t, and the first file has %d operations; want an estimate, and 3", !last.Latency.Estimated, rows[0].Operations)
	}
	var d durations
	l := exactLimit{most: 1, coarse: maxCoarse}
	for ns := range int64(3) {
		l.add(&d, ns, func(func(string, *durations) bool) {})
	}
	if q := d.quantiles(); q.P50.Known() || q.Max.Known() || l.exact != 0 {
		t.Errorf("%+v with %d single latencies", q, l.exact)
	}
}

// TestReusedHandle: a file that is created after another one was removed is another file, although it has the same
// handle, or the same path and no handle.
func TestReusedHandle(t *testing.T) {
	for _, handle := range []string{"aa", ""} {
		table := NewFiles(0)
		for i, use := range []record.FileUse{
			{File: "/a", Handle: handle, Change: record.FileCreated},
			{File: "/a", Handle: handle, Change: record.FileRemoved},
			{File: "/a", Handle: handle, Change: record.FileCreated},
			{File: "/a", Handle: handle, ReadBytes: 5},
		} {
			table.Add(rpc(int64(i+1), 10, use))
		}
		var got []string
		for _, f := range table.Rows() {
			got = append(got, fmt.Sprint(f.FileText(), f.Operations, " ", f.BytesRead, at(f.Created), at(f.Removed)))
		}
		if text := strings.Join(got, "; "); text != "/a2 0 [1 101 /a] [2 102 /a]; /a2 5 [3 103 /a] []" {
			t.Errorf("with the handle %q: %s", handle, text)
		}
	}
}

// TestLongPaths: the memory of paths is limited, of those that are long from the beginning and of those that become
// long later. What is summed up as others is counted once.
func TestLongPaths(t *testing.T) {
	long := strings.Repeat("x", 4000)
	for _, first := range []string{"/", long} {
		table := NewFiles(0)
		for _, directory := range []string{first, long} {
			for i := range int64(1000) {
				name := fmt.Sprint(directory, i)
				table.Add(rpc(i+1, i, record.FileUse{File: name, Handle: fmt.Sprintf("%04x", i), Change: record.FileRenamed, From: name, ReadBytes: 2}))
			}
		}
		if table.bytes > table.maxBytes {
			t.Errorf("%d bytes, %d are allowed", table.bytes, table.maxBytes)
		}
		operations, bytes, charged, latencies := 0, int64(0), int64(0), 0
		rows := table.Rows()
		for _, f := range rows {
			operations += f.Operations
			bytes += f.BytesRead
			charged += f.cost
			latencies += f.latencies.count()
		}
		others := rows[len(rows)-1]
		if operations != 2000 || bytes != 4000 || charged-others.cost != table.bytes || latencies != 2000 || others.FileText() != Others || others.Others != others.Operations || others.Renamed.Known() {
			t.Errorf("%d operations, %d bytes, %d latencies, %d charged of %d, others: %+v", operations, bytes, latencies, charged, table.bytes, others)
		}
	}
}

// TestFileAttempts: a request counts once in the row of its file, with the outcome of its attempts, whichever record comes first.
func TestFileAttempts(t *testing.T) {
	file := record.FileUse{File: "/a", Handle: "aa"}
	attempt := func(number int, status record.Status, uses ...record.FileUse) *record.Transaction {
		return &record.Transaction{
			ID: int64(number), Request: 1, Attempt: number, Status: status, Direction: record.Forward, Call: &record.Message{}, Operation: record.Some("WRITE"),
			FileUses: append([]record.FileUse{file}, uses...),
		}
	}
	const ok, none = record.Complete, record.NoReply
	failed := attempt(2, ok)
	failed.NFSStatus = record.Some("NFS3ERR_IO")
	other := attempt(2, ok)
	other.Request = 2
	other.Attempt = 1
	for _, test := range []struct {
		name string
		rpcs []*record.Transaction
		want string // requests, attempts, errors, and requests without a Reply
	}{
		{"never answered", []*record.Transaction{attempt(1, none)}, "1 1 0 1"},
		{"answered on another connection", []*record.Transaction{attempt(1, none), attempt(2, ok)}, "1 2 0 0"},
		{"answered on the third", []*record.Transaction{attempt(1, none), attempt(2, none), attempt(3, ok)}, "1 3 0 0"},
		{"never answered on three", []*record.Transaction{attempt(1, none), attempt(2, none), attempt(3, none)}, "1 3 0 1"},
		{"the last record first", []*record.Transaction{attempt(2, ok), attempt(1, none)}, "1 2 0 0"},
		{"the last record first, without a Reply", []*record.Transaction{attempt(2, none), attempt(1, none)}, "1 2 0 1"},
		{"answered with an error", []*record.Transaction{attempt(1, none), failed}, "1 2 1 0"},
		{"asked again after a Reply", []*record.Transaction{attempt(1, ok), attempt(2, none)}, "1 2 0 0"},
		{"two requests", []*record.Transaction{attempt(1, none), other}, "2 2 0 1"},
		{"two uses of the file", []*record.Transaction{attempt(1, none), attempt(2, ok, file)}, "2 3 0 0"},
	} {
		table := NewFiles(0)
		for _, r := range test.rpcs {
			table.Add(r)
		}
		rows := table.Rows()
		if got := fmt.Sprint(rows[0].Operations, rows[0].Attempts, rows[0].Errors, rows[0].NoReply); len(rows) != 1 || got != test.want {
			t.Errorf("%s: %s in %d rows, want %s", test.name, got, len(rows), test.want)
		}
	}
}
