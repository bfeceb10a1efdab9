package query

import (
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Some fields and values had other names before the first release. Expressions accept the
// old names of fields, except for the few names that mean something else now. An old value
// is an error, and an old name or value in a jq program is a warning; both give the new
// name.

// renamedValues maps the old values of fields to the new ones, by the last part of the
// field's path.
var renamedValues = map[string]map[string]string{
	"marks":                 {"repeated": string(markRetransmitted)},
	"no_transaction_reason": {"dropped": string(record.ReceiverDropped)},
	"rule":                  rule.Renamed,
	"findings":              rule.Renamed,
	"reason": {
		"repeat after timeout": string(record.RetransmitTimeout), "repeat after gap": string(record.RetransmitGap),
		"repeat after NAK": string(record.RetransmitNak), "RNR": string(record.RNRNak),
		"behind another transaction": string(record.HeadOfLine), "out of credits": string(record.CreditLimit),
	},
}

// markRetransmitted is the name of record.Retransmitted.
const markRetransmitted = "retransmitted"

// formerPaths returns the paths that a field had before the first release, and records in
// f.renamed the path that replaces each.
func (f *recordFields) formerPaths(field *record.Field, prefix string, before []string) (former []string) {
	for _, parent := range append([]string{strings.TrimSuffix(prefix, ".")}, before...) {
		if parent != "" {
			parent += "."
		}
		names := field.Was
		if parent != prefix {
			names = append([]string{field.Name}, names...)
		}
		for _, old := range names {
			old, below, _ := strings.Cut(old, "=")
			path := prefix + field.Name
			if below != "" {
				path += "." + below
				f.renamed[parent+old] = path
				f.aliases[parent+old] = path
				continue
			}
			f.renamed[parent+old] = path
			former = append(former, parent+old)
		}
	}
	if field.Reused != "" {
		f.renamed[prefix+field.Reused] = prefix + field.Name
	}
	return former
}

// Renamed returns the old names and the paths that replaced them.
func (f *recordFields) Renamed() map[string]string { return f.made().renamed }

// Renamed returns the old names and the paths that replaced them.
func (f *packetFields) Renamed() map[string]string { return renamedOfPackets }

// renamedOfPackets maps the old names of fields of packets to the new ones.
var renamedOfPackets = map[string]string{"mark": "marks", "nobodys": "no_transaction_reason", "operation": "rdma_operation"}

// RenamedValues returns the old values of fields and the new ones, by the last part of the
// field's path. The caller must not change the maps.
func RenamedValues() map[string]map[string]string { return renamedValues }

// RenamedValue returns the new name of an old value of a field, or "" if it is not an old
// value.
func RenamedValue(path, old string) string {
	return renamedValues[path[strings.LastIndexByte(path, '.')+1:]][old]
}

// inProgram matches the names and the strings in a jq program.
var inProgram = pattern(`\.\s*"?([A-Za-z_][A-Za-z0-9_]*)|"((?:[^"\\]|\\.)*)"`)

// RenamedIn returns a message for each old name and value in a jq program for records of
// this type, such as "lost is now called not_captured".
func RenamedIn(program string, fields Fields) (notes []string) {
	last := func(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
	now, current := map[string]string{}, map[string]bool{}
	for _, name := range fields.Names() {
		current[last(name)] = true
	}
	for old, path := range fields.Renamed() {
		if !current[last(old)] {
			now[last(old)] = last(path)
			if strings.Count(path, ".") != strings.Count(old, ".") { // The field has moved, such as close_reason to ended.how.
				now[last(old)] = path
			}
		}
	}
	for field, values := range renamedValues {
		if current[field] {
			for old, value := range values {
				now[`"`+old+`"`] = `"` + value + `"`
			}
		}
	}
	for _, m := range inProgram().FindAllStringSubmatch(program, -1) {
		name := m[1]
		if m[2] != "" {
			name = `"` + m[2] + `"`
		}
		note := name + " is now called " + now[name]
		if now[name] != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}
