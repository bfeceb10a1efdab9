package query

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Expressions can name the arguments and results of NFS as package nfs does: nfs.offset
// stands for every value with that name, in any operation of the Call or the Reply. Records
// contain these values only if they were decoded; see [Decoded].

// nfsField describes how the values of a field are found, and which values it can have.
type nfsField struct {
	kinds []nfs.Kind
	words []string // names of the values of an Enum or Flags
	each  func(m *nfs.Message, found func(*nfs.Value))
	none  func(r any, found func(*nfs.Value)) // finds the values of records without a decoded message; nil for none
}

// nfsPrefix begins the paths of the fields of arguments and results.
const nfsPrefix = "nfs."

// Decoded reports whether records have a field only if arguments, results and credentials are
// decoded, with the Decode or Tree of package dissect's Options.
func Decoded(path string) bool {
	return slices.ContainsFunc([]string{nfsPrefix, "auth_sys.", "rpcsec_gss.", "gss_body."}, func(p string) bool { return strings.HasPrefix(path, p) })
}

// InTables reports whether a field is one of arguments and results, which both transactions
// and packets have.
func InTables(path string) bool { return strings.HasPrefix(path, nfsPrefix) }

// wiresharkNFS maps names of arguments and results to those of Wireshark.
var wiresharkNFS = map[string][]string{
	"offset":                {"offset3", "offset4", "read.offset", "write.offset"},
	"count":                 {"count3", "count4", "read.count", "io_count"},
	"name":                  {"pathname.component", "readdir.entry.name", "readdir.entry3.name", "readdirplus.entry.name"},
	"length":                {"length4"},
	"minlength":             {"minlength4"},
	"sessionid":             {"session_id4"},
	"highest_slotid":        {"high_slotid"},
	"target_highest_slotid": {"target_high_slotid"},
	"stable":                {"stable_how4", "write.stable"},
	"cookie":                {"cookie3", "cookie4"},
	"cookieverf":            {"cookie_verf4"},
	"verifier":              {"verifier4"},
	"maxcount":              {"count3_maxcount"},
	"dircount":              {"count3_dircount"},
	"size":                  {"fattr.size", "fattr3.size", "fattr4.size"},
	"fileid":                {"fattr.fileid", "fattr3.fileid", "fattr4.fileid"},
	"uid":                   {"fattr.uid", "fattr3.uid"},
	"gid":                   {"fattr.gid", "fattr3.gid"},
	"nlink":                 {"fattr.nlink", "fattr3.nlink"},
	"numlinks":              {"fattr4.numlinks"},
	"mode":                  {"mode3"},
	"owner_group":           {"fattr4_owner_group"},
	"target":                {"symlink.linktext", "symlink.to"},
	"eof":                   {"read.eof", "readdir.eof", "dirlist4.eof"},
	"share_access":          {"open4.share_access"},
	"share_deny":            {"open4.share_deny"},
	"createmode":            {"createmode4"},
	"opentype":              {"open.opentype"},
	"claim":                 {"open.claim_type"},
	"delegation":            {"open.delegation_type"},
	"locktype":              {"locktype4"},
	"fhandle":               {},
	"status":                {"nfsstat4", "nfsstat3", "status2", "status3"},
	"opcode":                {"main_opcode"},
}

// nfsSpecial lists the fields that do not stand for the values of one name.
var nfsSpecial = []struct {
	name, doc string
	nfsField
}{
	{"operation", "Name of the operation of a COMPOUND, or of the procedure.", nfsField{kinds: []nfs.Kind{nfs.String}, each: func(m *nfs.Message, found func(*nfs.Value)) {
		for i := range m.Ops {
			found(textValue(m.Ops[i].Name))
		}
	}}},
	{"opcode", "Number of the operation of a COMPOUND.", nfsField{kinds: []nfs.Kind{nfs.Enum}, each: func(m *nfs.Message, found func(*nfs.Value)) {
		for i := range m.Ops {
			if nfs.IsCompound(m.Program, m.Version, m.Procedure) {
				found(&nfs.Value{Kind: nfs.Enum, Uint: uint64(m.Ops[i].Number), Text: m.Ops[i].Name})
			}
		}
	}}},
	{"status", "Status in the results of an operation.", nfsField{kinds: []nfs.Kind{nfs.Enum}, each: func(m *nfs.Message, found func(*nfs.Value)) {
		for i := range m.Ops {
			if m.Ops[i].HasStatus {
				found(&nfs.Value{Kind: nfs.Enum, Uint: uint64(m.Ops[i].Status), Text: m.StatusName(i)})
			}
		}
		named("status")(m, found)
	}}},
	{"name", "Name of a file or other object that an operation names; both names for RENAME.", nfsField{kinds: []nfs.Kind{nfs.String}, each: named("name", "to_name")}},
	{"seqid", "Sequence number of an owner or of a slot; nfs.sequenceid is only that of a slot.", nfsField{kinds: []nfs.Kind{nfs.Uint}, each: named("seqid", "sequenceid", "open_seqid")}},
	{"stateid", "Every stateid, under any name.", nfsField{kinds: []nfs.Kind{nfs.Stateid}, each: ofKind(nfs.Stateid, func(v *nfs.Value) *nfs.Value { return v })}},
	{"stateid.seqid", "Sequence number of a stateid, which is its first word.", nfsField{kinds: []nfs.Kind{nfs.Uint}, each: ofKind(nfs.Stateid, func(v *nfs.Value) *nfs.Value {
		return &nfs.Value{Kind: nfs.Uint, Uint: v.Uint}
	})}},
	{"stateid.other", "The 12 bytes of a stateid that follow its sequence number.", nfsField{kinds: []nfs.Kind{nfs.Opaque}, each: ofKind(nfs.Stateid, func(v *nfs.Value) *nfs.Value {
		return &nfs.Value{Kind: nfs.Opaque, Uint: uint64(len(v.Bytes[4:])), Bytes: v.Bytes[4:]}
	})}},
	{"fhandle", "Every file handle, under any name.", nfsField{kinds: []nfs.Kind{nfs.Handle}, each: ofKind(nfs.Handle, func(v *nfs.Value) *nfs.Value { return v })}},
	{"error", "Reason why an argument or result could not be decoded.", nfsField{kinds: []nfs.Kind{nfs.String}, each: func(m *nfs.Message, found func(*nfs.Value)) {
		if m.Err != nil {
			found(textValue(m.Err.Error()))
		}
	}, none: unread}},
}

// named returns a function that finds the values with these names.
func named(names ...string) func(*nfs.Message, func(*nfs.Value)) {
	return func(m *nfs.Message, found func(*nfs.Value)) {
		for i := range m.Values {
			if v := &m.Values[i]; slices.Contains(names, v.Name) {
				found(v)
			}
		}
	}
}

// ofKind returns a function that finds the values of a kind, converted by of.
func ofKind(kind nfs.Kind, of func(*nfs.Value) *nfs.Value) func(*nfs.Message, func(*nfs.Value)) {
	return func(m *nfs.Message, found func(*nfs.Value)) {
		for i := range m.Values {
			if v := &m.Values[i]; v.Kind == kind {
				found(of(v))
			}
		}
	}
}

// nfsFields returns the fields of arguments and results.
var nfsFields = sync.OnceValue(func() (list []Field) {
	add := func(name, doc string, n nfsField) {
		f := Field{Path: nfsPrefix + name, List: true, Drawn: true, Doc: doc, nfs: &n}
		for _, alias := range wiresharkNFS[name] {
			f.Aliases = append(f.Aliases, nfsPrefix+alias)
		}
		f.Type = n.word()
		if n.words != nil { // This allows comparisons with words.
			f.shown = func(any) any { return nil }
		}
		if len(n.words) <= 8 && !slices.ContainsFunc(n.kinds, func(k nfs.Kind) bool { return k != nfs.Enum }) {
			f.Values = n.words
		} else {
			f.Doc += valueNames(n.words)
		}
		list = append(list, f)
	}
	special := map[string]bool{}
	for _, s := range nfsSpecial {
		special[s.name] = true
		switch s.name {
		case "opcode":
			s.words = nfs.OperationWords()
		case "status":
			for version := uint32(2); version <= 4; version++ {
				s.words = append(s.words, nfs.StatusWords(version)...)
			}
			s.words = append(s.words, nfs.MountStatusWords()...)
		}
		add(s.name, s.doc, s.nfsField)
	}
	for _, n := range nfs.Names() {
		kinds := slices.DeleteFunc(slices.Clone(n.Kinds), func(k nfs.Kind) bool { return k == nfs.Group || k == nfs.List && len(n.Kinds) > 1 })
		if len(kinds) == 0 {
			if kinds = []nfs.Kind{nfs.List}; !slices.Contains(n.Kinds, nfs.List) {
				continue // A group has no value.
			}
		}
		if special[n.Name] {
			continue
		}
		doc := fmt.Sprintf("Value of %s in %s.", n.Name, inWords(n.Of))
		if kinds[0] == nfs.List {
			doc = fmt.Sprintf("Number of elements in the list %s in %s.", n.Name, inWords(n.Of))
		}
		each := named(n.Name)
		add(n.Name, doc, nfsField{kinds: kinds, words: n.Words, each: func(m *nfs.Message, found func(*nfs.Value)) {
			each(m, func(v *nfs.Value) {
				if slices.Contains(kinds, v.Kind) {
					found(v)
				}
			})
		}})
	}
	return list
})

// maxNamed limits the operations that the description of a field names.
const maxNamed = 8

// inWords returns the operations and procedures that have a value, for the description of a
// field. If there are many, it names the first ones and counts the others.
func inWords(of []string) string {
	names := slices.DeleteFunc(slices.Clone(of), func(name string) bool { return name == "attributes" })
	others := ""
	if len(names) > maxNamed {
		others = fmt.Sprintf("%d other operations", len(names)-maxNamed+1)
		names = names[:maxNamed-1]
	}
	if others != "" {
		names = append(names, others)
	}
	if slices.Contains(of, "attributes") {
		names = append(names, "the attributes of NFSv4")
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// valueNames returns a sentence with the names of the values of an Enum or Flags, after a
// space, or "" if the values have no names. If there are many, the sentence has only the first
// three.
func valueNames(words []string) string {
	switch {
	case len(words) == 0:
		return ""
	case len(words) > 16:
		return fmt.Sprintf(" Values have %d names, such as %s.", len(words), strings.Join(words[:3], ", "))
	}
	return " Names of values: " + strings.Join(words, ", ") + "."
}

// ofTables returns the fields of arguments and results for transactions.
func ofTables() (list []drawnField) {
	for _, f := range nfsFields() {
		f.Aliases = slices.Clone(f.Aliases)
		list = append(list, drawnField{f, f.nfs.plain})
	}
	return list
}

// word returns the name of the type of the values, for Field.Type. If the values are of
// several kinds, it is the type that can represent the most values.
func (n *nfsField) word() string {
	is := func(kinds ...nfs.Kind) bool {
		return slices.ContainsFunc(kinds, func(k nfs.Kind) bool { return slices.Contains(n.kinds, k) })
	}
	switch {
	case is(nfs.String, nfs.Bitmap, nfs.Operations, nfs.Bits):
		return "text"
	case is(nfs.Uint, nfs.Octal, nfs.Enum, nfs.Flags, nfs.Data, nfs.List):
		return "number"
	case is(nfs.Hex):
		return "hex"
	case is(nfs.Time):
		return "time"
	case is(nfs.Bool):
		return "bool"
	}
	return "bytes"
}

// eachMessage calls visit for the decoded messages of a record.
func eachMessage(r any, visit func(*nfs.Message)) {
	var contents []record.Content
	switch r := r.(type) {
	case *record.Transaction:
		contents = []record.Content{r.Decoded.Call.Message, r.Decoded.Reply.Message}
	case *record.Packet:
		contents = r.Messages
	}
	for _, c := range contents {
		if m, ok := c.(*nfs.Message); ok {
			visit(m)
		}
	}
}

// list returns all values of a record, converted by of, or nil if there are none.
func (n *nfsField) list(r any, of func(*nfs.Value) any) any {
	var all []any
	eachMessage(r, func(m *nfs.Message) {
		n.each(m, func(v *nfs.Value) { all = append(all, of(v)) })
	})
	if n.none != nil {
		n.none(r, func(v *nfs.Value) { all = append(all, of(v)) })
	}
	if all == nil {
		return nil
	}
	return all
}

// unread finds the reasons why messages could not be decoded at all.
func unread(r any, found func(*nfs.Value)) {
	switch r := r.(type) {
	case *record.Transaction:
		for _, h := range []*record.Half{&r.Decoded.Call, &r.Decoded.Reply} {
			if h.Unread != "" {
				found(textValue(h.Unread))
			}
		}
	case *record.Packet:
		for i := range r.Nodes {
			if n := &r.Nodes[i]; n.Name == "unreadable" && n.Kind == record.NodeText {
				found(textValue(n.Text))
			}
		}
	}
}

// textValue returns text as a value.
func textValue(s string) *nfs.Value {
	return &nfs.Value{Kind: nfs.String, Bytes: []byte(s), Uint: uint64(len(s))}
}

// plain returns the values of a record as expressions use them.
func (n *nfsField) plain(r any) any {
	return n.list(r, func(v *nfs.Value) any { return plainNFS(v) })
}

// plainNFS returns an NFS value as expressions use it. It returns any other value unchanged.
func plainNFS(value any) any {
	v, ok := value.(*nfs.Value)
	if !ok {
		return value
	}
	switch v.Kind {
	case nfs.Uint, nfs.Hex, nfs.Octal, nfs.Enum, nfs.Flags, nfs.Data, nfs.List:
		return integer(v.Uint)
	case nfs.Bool:
		return v.Uint != 0
	case nfs.Time:
		return v.Time()
	}
	return nfsText(v)
}

// raw returns the values of a record as text.
func (n *nfsField) raw(r any) any { return n.list(r, func(v *nfs.Value) any { return nfsText(v) }) }

// whole returns the values of a record unchanged.
func (n *nfsField) whole(r any) any { return n.list(r, func(v *nfs.Value) any { return v }) }

// nfsText returns a value as text. A string is returned without quotes.
func nfsText(v *nfs.Value) string {
	if v.Kind == nfs.String {
		return string(v.Bytes)
	}
	return v.String()
}

// wanted has all values that a literal can stand for.
type wanted struct {
	number, octal any // nil if it is no number
	text          string
	bytes         []byte // nil if it is not in hex
	stateid       string // in the form 1:61207374..., or empty
	at            any    // nil if it is no time
	truth, isBool bool
}

var (
	hexWord     = pattern(`^(?:0[xX])?(?:[0-9a-fA-F]{2})+$`)
	stateidForm = pattern(`^\d{1,10}:[0-9a-fA-F]{24}\b`)
	octalForm   = pattern(`^0[oO]?[0-7]+$`)
)

// parseHex parses bytes in hex, with or without 0x, and with or without colons. It returns
// nil if s is not in hex.
func parseHex(s string) []byte {
	s = strings.ReplaceAll(s, ":", "")
	if !hexWord().MatchString(s) {
		return nil
	}
	s = strings.TrimPrefix(strings.ToLower(s), "0x")
	b, err := hex.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}

// wantedOf returns the values that a literal can stand for. Typed is the literal in the
// source.
func wantedOf(lit *literal, typed string) (w wanted) {
	if lit.kind == isText {
		typed = lit.text
	}
	w.text = typed
	switch lit.kind {
	case isNumber, isSize:
		w.number = lit.value
	case isText, isWord:
		if n, ok := parseNumber(typed); ok {
			w.number = n
		}
	case isTime:
		w.at = lit.value
	}
	if lit.kind == isText {
		w.at, _ = parseTime(typed)
	}
	if octalForm().MatchString(typed) {
		if n, ok := parseNumber("0o" + strings.TrimLeft(typed, "0oO")); ok {
			w.octal = n
		}
	}
	if stateidForm().MatchString(typed) {
		w.stateid = strings.ToLower(typed)
	} else {
		w.bytes = parseHex(typed)
	}
	switch strings.ToLower(typed) {
	case "true", "yes", "1":
		w.truth, w.isBool = true, true
	case "false", "no", "0":
		w.isBool = true
	}
	return w
}

// known reports whether a word is the name of a value.
func (n *nfsField) known(word string) bool {
	return slices.ContainsFunc(n.words, func(w string) bool { return strings.EqualFold(w, word) })
}

// can reports whether values of a kind can be compared with the literal.
func (w *wanted) can(k nfs.Kind, n *nfsField, op string) bool {
	same := op == "==" || op == "!="
	switch k {
	case nfs.Uint, nfs.Hex, nfs.Data, nfs.List:
		return w.number != nil
	case nfs.Octal:
		return w.number != nil || w.octal != nil
	case nfs.Enum, nfs.Flags:
		return w.number != nil || same && n.known(w.text)
	case nfs.Bool:
		return w.isBool && same
	case nfs.Time:
		return w.at != nil
	case nfs.String:
		return true
	case nfs.Bitmap, nfs.Operations, nfs.Bits:
		return same
	case nfs.Stateid:
		return same && (w.stateid != "" || len(w.bytes) == 12 || len(w.bytes) == 16)
	}
	return same && w.bytes != nil
}

// holds reports whether the order of a value and the literal meets the condition ordered.
func (w *wanted) holds(v *nfs.Value, ordered func(int) bool) bool {
	number := func(n any) bool {
		order, ok := compareNumbers(integer(v.Uint), n)
		return n != nil && ok && ordered(order)
	}
	switch v.Kind {
	case nfs.Uint, nfs.Hex, nfs.Data, nfs.List:
		return number(w.number)
	case nfs.Octal:
		if w.octal != nil {
			return number(w.octal)
		}
		return number(w.number)
	case nfs.Enum:
		return number(w.number) || w.number == nil && v.Text != "" && strings.EqualFold(v.Text, w.text) && ordered(0)
	case nfs.Flags:
		return number(w.number) || w.number == nil && slices.ContainsFunc(strings.Split(v.String(), "|"), func(f string) bool { return strings.EqualFold(f, w.text) }) && ordered(0)
	case nfs.Bool:
		return w.isBool && (v.Uint != 0) == w.truth
	case nfs.Time:
		seconds := int64(v.Uint)
		order, ok := compareOne(v.Time(), w.at)
		return ok && seconds > math.MinInt64/int64(time.Second) && seconds < math.MaxInt64/int64(time.Second) && ordered(order)
	case nfs.String:
		return (v.Bytes != nil || v.Uint == 0) && ordered(strings.Compare(string(v.Bytes), w.text))
	case nfs.Bitmap, nfs.Operations, nfs.Bits:
		return slices.Contains(v.Names(), strings.ToLower(w.text)) || slices.Contains(v.Names(), w.text)
	case nfs.Stateid:
		return w.stateid != "" && v.String() == w.stateid || len(w.bytes) == 16 && bytes.Equal(v.Bytes, w.bytes) || len(w.bytes) == 12 && len(v.Bytes) == 16 && bytes.Equal(v.Bytes[4:], w.bytes)
	}
	return w.bytes != nil && v.Bytes != nil && bytes.Equal(v.Bytes, w.bytes)
}

// acceptsNFS returns the test of a single NFS value.
func (c *compiler) acceptsNFS(o *operand, op string, lit *literal) func(any) bool {
	n := o.field.nfs
	if holds := textTests[op]; holds != nil || op == "matches" {
		text := lit.text
		if lit.kind != isText {
			text = string(c.source[lit.from:lit.to])
		}
		if op == "matches" {
			p := c.pattern(lit)
			holds = func(of, _ string) bool { return p.MatchString(of) }
		}
		return func(v any) bool {
			value, ok := v.(*nfs.Value)
			return ok && (holds(nfsText(value), text) || value.Kind == nfs.Opaque && holds(string(value.Bytes), text)) // Owners and tags are usually text.
		}
	}
	w := wantedOf(lit, string(c.source[lit.from:lit.to]))
	if !slices.ContainsFunc(n.kinds, func(k nfs.Kind) bool { return w.can(k, n, op) }) {
		panic(c.wrong(lit.from, lit.to, "%s", n.wrong(o.path, w.text, op)))
	}
	ordered := orders[op]
	return func(v any) bool {
		value, ok := v.(*nfs.Value)
		return ok && w.can(value.Kind, n, op) && w.holds(value, ordered)
	}
}

// wrong returns the message for a comparison of a field with a value that it cannot have.
func (n *nfsField) wrong(path, word, op string) string {
	is := map[string]string{
		"number": "a number, such as 42 or 1GiB", "hex": "a number, such as 0x1f", "bytes": "bytes in hex, such as 0x8f3a2c", "time": "a time, such as 2026-11-21T05:20:00Z",
		"bool": "true or false", "text": "text",
	}[n.word()]
	switch {
	case slices.Contains(n.kinds, nfs.Stateid):
		is = "16 bytes in hex, or the last 12 of them, or the form that rdmadump shows, such as 1:8f3a2c8f3a2c8f3a2c8f3a2c"
	case n.words != nil && (op == "==" || op == "!="):
		is = "a number or a name" + similar(near(word, n.words))
	}
	if op != "==" && op != "!=" && n.word() == "bytes" {
		return fmt.Sprintf("%s can be compared with ==, !=, in and the operators for text, not with %s", path, op)
	}
	return fmt.Sprintf("%s cannot be %s: it is %s", path, visible(word), is)
}
