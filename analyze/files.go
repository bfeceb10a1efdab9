package analyze

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// File sums up the RPCs that acted on one file or directory.
type File struct {
	Type         string                 `json:"type" doc:"The record's type, always \"file\"." values:"file"`
	Server       record.Opt[string]     `json:"server" doc:"Address of the server that has the file; null if the capture does not show it."`
	File         record.Opt[string]     `json:"file" doc:"Path of the file after the last RPC that acted on it. If the capture shows only the last directories of the path, it begins with the short form of the handle of the topmost one, such as fh:0x62d40c52/notes.txt; null if the capture shows no name, and for the record that sums up the files for which the memory limit leaves no space." alias:"nfs.full_name"`
	FileHandle   record.Opt[string]     `json:"file_handle" doc:"Handle of the file in hex; null if the capture does not show it."`
	Others       int                    `json:"others,omitzero" doc:"Present in the record that sums up the files for which the memory limit leaves no space: the number of times that RPCs acted on them."`
	Operations   int                    `json:"operations" doc:"Number of RPCs that acted on the file."`
	Errors       int                    `json:"errors" doc:"Number of these RPCs that failed: the capture contains no Call or no Reply, the Call was answered with RDMA_ERROR, or the Reply has an RPC or NFS error status."`
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

	latencies durations
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

// fileCost is the memory for a file in bytes, with paths of a usual length and without its latencies.
const fileCost = 1600

// Files sums up transactions by the files that they acted on.
type Files struct {
	rows    map[fileKey]*File
	others  *File
	maxRows int
	exact   exactLimit
}

// fileKey identifies a file: by its handle or, if that is unknown, by its path.
type fileKey struct{ server, handle, path string }

// NewFiles returns an empty table for as many files as fit into a number of bytes.
func NewFiles(bytes int64) *Files {
	return &Files{rows: map[fileKey]*File{}, maxRows: max(maxRows, int(bytes/fileCost)), exact: exactLimit{most: maxExact}}
}

// row returns the row of a file, and adds it if necessary.
func (t *Files) row(r *record.Transaction, u *record.FileUse) *File {
	byName := fileKey{server: r.Server.Or(""), path: u.File}
	if u.Handle == "" {
		return t.at(byName, r, u)
	}
	key := fileKey{server: byName.server, handle: u.Handle}
	if f := t.rows[byName]; f != nil && t.rows[key] == nil && !f.Removed.Known() { // its handle was unknown before
		delete(t.rows, byName)
		f.NoHandle = record.Some(NamedUntil{u.File, f.Last})
		t.rows[key] = f
	}
	return t.at(key, r, u)
}

// at returns the row with a key, and adds it if necessary.
func (t *Files) at(key fileKey, r *record.Transaction, u *record.FileUse) *File {
	f := t.rows[key]
	switch {
	case f != nil:
	case len(t.rows) >= t.maxRows:
		if t.others == nil {
			t.others = &File{Type: "file", First: r.Start()}
		}
		return t.others
	default:
		f = &File{Type: "file", Server: r.Server, First: r.Start()}
		t.rows[key] = f
	}
	f.File, f.FileHandle = record.SomeIf(u.File, u.File != ""), record.SomeIf(u.Handle, u.Handle != "")
	return f
}

// Add adds a transaction. It does not keep r.
func (t *Files) Add(r *record.Transaction) {
	for i := range r.FileUses {
		u := &r.FileUses[i]
		f := t.row(r, u)
		f.Operations++
		f.BytesRead += u.ReadBytes
		f.BytesWritten += u.WrittenBytes
		if r.Failed() {
			f.Errors++
		}
		f.Last = max(f.Last, r.Start())
		f.First = min(f.First, r.Start())
		if ns, known := r.LatencyNS.Get(); known {
			f.TotalNS += ns
			t.exact.add(&f.latencies, ns, t.latencies)
		}
		if f == t.others {
			f.Others++
			continue
		}
		f.change(r, u)
	}
}

// latencies are the latencies of all rows, with their names.
func (t *Files) latencies(yield func(string, *durations) bool) {
	for key, f := range t.rows {
		if !yield(key.server+" "+key.handle+" "+key.path, &f.latencies) {
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
	rows := slices.Collect(maps.Values(t.rows))
	slices.SortFunc(rows, func(a, b *File) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.File.Or(""), b.File.Or("")), cmp.Compare(a.FileHandle.Or(""), b.FileHandle.Or("")), cmp.Compare(a.Server.Or(""), b.Server.Or("")))
	})
	if t.others != nil {
		rows = append(rows, t.others)
	}
	for _, f := range rows {
		f.Latency = f.latencies.quantiles()
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
