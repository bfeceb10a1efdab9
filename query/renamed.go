package query

import (
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Some fields and values had other names before the first release. Old names of
// fields are accepted wherever names are, except the few that mean something else
// now; old values, and old names in jq programs, are answered with the new ones.

// renamedValues has the old and the new values of renamed enumerations, by the
// last part of the field's path.
var renamedValues = map[string]map[string]string{
	"marks":                 {"repeated": string(markRetransmitted)},
	"no_transaction_reason": {"dropped": string(record.ReceiverDropped)},
	"reason": {
		"repeat after timeout": string(record.RetransmitTimeout), "repeat after gap": string(record.RetransmitGap),
		"repeat after NAK": string(record.RetransmitNak), "RNR": string(record.RNRNak),
		"behind another transaction": string(record.HeadOfLine), "out of credits": string(record.CreditLimit),
	},
}

// markRetransmitted is the mark's name.
const markRetransmitted = "retransmitted"

// formerPaths returns the paths that a field had before the first release, and
// notes which path replaces them.
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

func (f *recordFields) Renamed() map[string]string { return f.made().renamed }
func (f *packetFields) Renamed() map[string]string { return renamedOfPackets }

// renamedOfPackets has the old and the new names of a packet's own fields.
var renamedOfPackets = map[string]string{"mark": "marks", "nobodys": "no_transaction_reason", "operation": "rdma_operation"}

// renamedValue returns the new name of an old value, or "".
func renamedValue(path, old string) string {
	return renamedValues[path[strings.LastIndexByte(path, '.')+1:]][old]
}

// inProgram finds names and texts in a jq program.
var inProgram = pattern(`\.\s*"?([A-Za-z_][A-Za-z0-9_]*)|"((?:[^"\\]|\\.)*)"`)

// RenamedIn lists the old names and values that a jq program uses for records of
// this kind, each with the name that replaced it, such as "lost is now
// not_captured".
func RenamedIn(program string, fields Fields) (notes []string) {
	last := func(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
	now, current := map[string]string{}, map[string]bool{}
	for _, name := range fields.Names() {
		current[last(name)] = true
	}
	for old, path := range fields.Renamed() {
		if !current[last(old)] {
			now[last(old)] = last(path)
			if strings.HasPrefix(path, old) { // such as ended.how for close_reason
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
