package analyze

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// File sums up the RPCs that acted on one file or directory.
type File struct {
	Type         string                 `json:"type" doc:"The record's type, always \"file\"." values:"file"`
	Server       record.Opt[string]     `json:"server" doc:"Address of the server that has the file; null if the capture does not show it."`
	File         record.Opt[string]     `json:"file" doc:"Path of the file after the last RPC that acted on it. If the capture shows only the last directories of the path, it begins with the short form of the handle of the topmost one, such as fh:0x62d40c52/notes.txt; null if the capture shows no name, and for the record that sums up the files for which the memory limit leaves no space." alias:"nfs.full_name"`
	FileHandle   record.Opt[string]     `json:"file_handle" doc:"Handle of the file in hex; null if the capture does not show it."`
	Others       int                    `json:"others,omitzero" doc:"Present in the record that sums up the files for which the memory limit leaves no space: the number of times that RPCs acted on them."`
	Operations   int                    `json:"requests" doc:"Number of requests that acted on the file: of what clients asked for once."`
	Attempts     int                    `json:"attempts" doc:"Number of transactions: of Calls of these requests, which a client sends again, usually on another connection, if their Reply does not come."`
	Errors       int                    `json:"failed" doc:"Number of these requests that failed: the Call was answered with RDMA_ERROR, or the Reply has an RPC or NFS error status."`
	NoReply      int                    `json:"no_reply" doc:"Number of these requests without a Reply (status no_reply of all attempts); they do not count as errors, because it may have been sent later, or not captured."`
	BytesRead    int64                  `json:"bytes_read" doc:"Number of bytes of the file that the Replies to READ returned."`
	BytesWritten int64                  `json:"bytes_written" doc:"Number of bytes that were written to the file, according to the Replies to WRITE."`
	Latency      Quantiles              `json:"latency" doc:"Distribution of the latencies of the RPCs."`
	TotalNS      int64                  `json:"total_ns" doc:"Sum of all latencies, in nanoseconds."`
	First        record.Time            `json:"first" doc:"Time of the first of the RPCs."`
	Last         record.Time            `json:"last" doc:"Time of the last of the RPCs."`
	Created      record.Opt[FileChange] `json:"created" doc:"Client and user that created the file, and when; null if the capture does not prove that an RPC created it."`
	Renamed      record.Opt[FileChange] `json:"renamed" doc:"Client and user that renamed the file last, and when; null if the capture shows no successful RENAME."`
	Removed      record.Opt[FileChange] `json:"removed" doc:"Client and user that removed a name of the file last, and when; null if the capture shows no successful REMOVE or RMDIR."`

	// NoHandle is about the RPCs that named the file before a Reply showed its handle: their path, and
	// the time of the last one. It is unknown if there were none.
	NoHandle record.Opt[NamedUntil] `json:"-"`

	// FirstName is the first path of the file if it got another one, by a link or a RENAME.
	FirstName string `json:"-"`

	latencies durations
	cost      int64 // memory that is counted in Files.bytes
}

// NamedUntil is a path, and the time of the last RPC that used it.
type NamedUntil struct {
	Path string
	Last record.Time
}

// FileChange says who changed the name of a file, and when.
type FileChange struct {
	Time        record.Time        `json:"time" doc:"Time of the Call."`
	Client      record.Opt[string] `json:"client" doc:"Address of the client; null if the capture does not show it."`
	UID         record.Opt[uint32] `json:"uid" doc:"User ID in the Call's AUTH_SYS credential; null if the Call has another credential."`
	Principal   record.Opt[string] `json:"principal" doc:"Name of the RPCSEC_GSS principal that made the Call; null if the capture does not show it."`
	Transaction int64              `json:"transaction" doc:"Transaction number (id): the RPC."`
	File        record.Opt[string] `json:"file" doc:"Path that was created or removed, or the path after RENAME; null if the capture shows no name."`
	From        record.Opt[string] `json:"from" doc:"Path before RENAME; null for other RPCs."`
}

// fileCost is the memory for a file in bytes, without its paths, handle and latencies.
const fileCost = 1200

// Files sums up transactions by the files that they acted on.
type Files struct {
	rows     map[fileKey]*File
	ended    []*File // files whose handle or path another file has now
	others   *File
	bytes    int64 // memory of the rows
	maxBytes int64 // maximum of bytes
	exact    exactLimit
	asked    map[int64]asked // by request
	uses     []*File         // that the current transaction used
	keys     []fileKey       // of these
}

// asked is a request of which an attempt got no Reply, or that had several.
type asked struct {
	rows     []*File // that its attempts used
	counted  int     // how many of these count it
	first    bool    // the first attempt was added
	answered bool
}

// maxAsked is the maximum number of such requests.
const maxAsked = 1 << 14

// count counts an attempt, which used the files of these rows. Each use of a file counts, once for all attempts.
func (t *Files) count(r *record.Transaction, uses []*File) {
	q, several := t.asked[r.Request]
	if !several && r.Attempt <= 1 && r.Status != record.NoReply {
		for _, f := range uses {
			f.Operations++
		}
		return
	}
	if !q.answered && r.Status != record.NoReply {
		q.answered = true
		for _, f := range q.rows[:q.counted] {
			f.NoReply--
		}
	}
	known := slices.Clone(q.rows)
	for _, f := range uses {
		if i := slices.Index(known, f); i >= 0 {
			known = slices.Delete(known, i, i+1)
		} else {
			q.rows = append(q.rows, f)
		}
	}
	if q.first = q.first || r.Attempt <= 1; q.first {
		for _, f := range q.rows[q.counted:] {
			if f.Operations++; !q.answered {
				f.NoReply++
			}
		}
		q.counted = len(q.rows)
	}
	if several || len(t.asked) < maxAsked {
		t.asked[r.Request] = q
	}
}

// fileKey identifies a file: by its handle or, if that is unknown, by its path.
type fileKey struct{ server, handle, path string }

// NewFiles returns an empty table for as many files as fit into a number of bytes.
func NewFiles(bytes int64) *Files {
	return &Files{rows: map[fileKey]*File{}, maxBytes: max(maxRows*fileCost, bytes), exact: exactLimit{most: maxExact}, asked: map[int64]asked{}}
}

// key returns the key of a file. If its handle was unknown before, its row gets the handle.
func (t *Files) key(r *record.Transaction, u *record.FileUse) fileKey {
	byName := fileKey{server: r.Server.Or(""), path: u.File}
	if u.Handle == "" {
		return byName
	}
	key := fileKey{server: byName.server, handle: u.Handle}
	if f := t.rows[byName]; f != nil && t.rows[key] == nil && !f.Removed.Known() {
		delete(t.rows, byName)
		f.NoHandle = record.Some(NamedUntil{u.File, f.Last})
		t.rows[key] = f
	}
	return key
}

// at returns the row with a key, and adds it if necessary. A server may give a new file the handle of one that was
// removed before: they are two files.
func (t *Files) at(key fileKey, r *record.Transaction, u *record.FileUse) *File {
	f := t.rows[key]
	if f != nil && f.Removed.Known() && u.Change == record.FileCreated {
		t.ended, f = append(t.ended, f), nil
		delete(t.rows, key)
	}
	if f == nil {
		if t.bytes+fileCost > t.maxBytes {
			return t.sum(r)
		}
		f = &File{Type: "file", Server: r.Server, First: r.Start()}
		t.rows[key] = f
	}
	if old := f.File.Or("/"); f.FirstName == "" && old[0] == '/' && u.File != "" && old != u.File && f.File.Known() {
		f.FirstName = old
	}
	f.File, f.FileHandle = record.SomeIf(u.File, u.File != ""), record.SomeIf(u.Handle, u.Handle != "")
	return f
}

// sum returns the row that sums up the files for which there is no memory.
func (t *Files) sum(r *record.Transaction) *File {
	if t.others == nil {
		t.others = &File{Type: "file", First: r.Start()}
	}
	return t.others
}

// charge counts the memory of a row. If there is not enough, because paths have become longer, the row is added to
// those that are summed up.
func (t *Files) charge(key fileKey, f *File, r *record.Transaction) {
	cost := fileCost + int64(len(key.path)+len(f.FirstName)+len(f.File.Or(""))+len(f.FileHandle.Or("")))
	for _, c := range []*record.Opt[FileChange]{&f.Created, &f.Renamed, &f.Removed} {
		if v, known := c.Get(); known {
			cost += int64(len(v.File.Or("")) + len(v.From.Or("")))
		}
	}
	t.bytes += cost - f.cost
	if f.cost = cost; t.bytes <= t.maxBytes {
		return
	}
	t.bytes -= f.cost
	delete(t.rows, key)
	all := t.sum(r)
	all.Others += f.Operations
	all.Operations += f.Operations
	all.Attempts += f.Attempts
	all.Errors += f.Errors
	all.NoReply += f.NoReply
	all.BytesRead += f.BytesRead
	all.BytesWritten += f.BytesWritten
	all.TotalNS += f.TotalNS
	all.First, all.Last = min(all.First, f.First), max(all.Last, f.Last)
	single := len(all.latencies.exact) + len(f.latencies.exact)
	all.latencies.merge(&f.latencies)
	all.Latency.mergeBounds(&f.Latency)
	t.exact.exact -= single - len(all.latencies.exact)
}

// Add adds a transaction. It does not keep r. A Call of the server, such as CB_RECALL, does not use the file that it is about.
func (t *Files) Add(r *record.Transaction) {
	if r.Direction == record.Backward {
		return
	}
	t.uses, t.keys = t.uses[:0], t.keys[:0]
	for i := range r.FileUses {
		u := &r.FileUses[i]
		key := t.key(r, u)
		f := t.at(key, r, u)
		t.uses, t.keys = append(t.uses, f), append(t.keys, key)
		if f.Attempts++; r.Failed() {
			f.Errors++
		}
		f.BytesRead += u.ReadBytes
		f.BytesWritten += u.WrittenBytes
		f.Last = max(f.Last, r.Start())
		f.First = min(f.First, r.Start())
		if ns, known := r.LatencyNS.Get(); known {
			f.TotalNS += ns
			t.exact.add(&f.latencies, ns, t.latencies)
			f.Latency.bound(r)
		}
		if f == t.others {
			f.Others++
			continue
		}
		f.change(r, u)
	}
	t.count(r, t.uses)
	for i, key := range t.keys {
		if f := t.uses[i]; t.rows[key] == f {
			t.charge(key, f, r)
		}
	}
}

// latencies are the latencies of all rows, with their names.
func (t *Files) latencies(yield func(string, *durations) bool) {
	for key, f := range t.rows {
		if !yield(key.server+" "+key.handle+" "+key.path, &f.latencies) {
			return
		}
	}
	for i, f := range t.ended {
		if !yield(strconv.Itoa(i), &f.latencies) {
			return
		}
	}
	if t.others != nil {
		yield(Others, &t.others.latencies)
	}
}

// change records who changed the name of a file.
func (f *File) change(r *record.Transaction, u *record.FileUse) {
	c := record.Some(FileChange{
		Time: r.Start(), Client: r.Client, UID: r.UID, Principal: r.Principal, Transaction: r.ID,
		File: record.SomeIf(u.File, u.File != ""), From: record.SomeIf(u.From, u.From != ""),
	})
	switch u.Change {
	case record.FileCreated:
		f.Created = c
	case record.FileRenamed:
		f.Renamed = c
	case record.FileRemoved:
		f.Removed = c
	}
}

// Rows returns the rows, those with the largest sum of latencies first, and the one that sums up
// the others at the end.
func (t *Files) Rows() []*File {
	rows := append(slices.Collect(maps.Values(t.rows)), t.ended...)
	slices.SortFunc(rows, func(a, b *File) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.File.Or(""), b.File.Or("")), cmp.Compare(a.FileHandle.Or(""), b.FileHandle.Or("")),
			cmp.Compare(a.Server.Or(""), b.Server.Or("")), cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	if t.others != nil {
		rows = append(rows, t.others)
	}
	for _, f := range rows {
		f.Latency = f.Latency.withBounds(f.latencies.quantiles())
	}
	return rows
}

// FileText returns the path of the file, the short form of its handle, or the name of the row that
// sums up other files.
func (f *File) FileText() string {
	switch path, known := f.File.Get(); {
	case known:
		return path
	case f.Others > 0:
		return Others
	}
	return record.ShortHex(f.FileHandle.Or(""))
}
