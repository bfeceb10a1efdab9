package render

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// This file draws the decoded arguments and results of an RPC, one line for each operation.

// These limits keep the lines short.
const (
	mostOperations = 12  // number of operations of one message
	mostLine       = 200 // number of characters after which a line takes no more values
	mostHex        = 32  // number of bytes that are shown completely: handles of one server often differ only in the middle
	mostEnds       = 12  // number of bytes at each end of longer values
	mostName       = 40  // number of bytes of a name
	mostBits       = 6   // number of names of bits
)

// foremost lists the most useful values, in the order in which they are shown. The other
// values follow in the order of the message.
var foremost = []string{
	"name", "to_name", "target", "path", "slotid", "sequenceid", "offset", "count", "length", "data", "eof", "fh", "dir_fh", "to_dir_fh", "object_fh", "stateid",
}

// operationLines returns the lines for a Call or a Reply. They are safe to print.
func operationLines(h record.Half) (lines []string) {
	m, decoded := h.Message.(*nfs.Message)
	if !decoded {
		if h.Unread != "" {
			lines = append(lines, clean(h.Unread))
		}
		return lines
	}
	for i := range m.Ops {
		if i == mostOperations-1 && len(m.Ops) > mostOperations {
			lines = append(lines, fmt.Sprintf("... %d more operations", len(m.Ops)-i))
			break
		}
		line := m.Ops[i].Name
		if m.Ops[i].HasStatus {
			line += " " + m.StatusName(i)
		}
		lines = append(lines, clean(line+valuesOf(m.In(i))))
	}
	if m.Err != nil {
		lines = append(lines, clean(m.Err.Error()))
	}
	return lines
}

// valuesOf returns the values of an operation, each after a space, until the line is long
// enough. Of a list it returns the number of elements.
func valuesOf(values []nfs.Value) string {
	var b strings.Builder
	shown := make([]bool, min(len(values), mostLine))
	values = values[:len(shown)]
	for _, name := range foremost {
		for i := range values {
			if v := &values[i]; v.Name == name && v.Depth == 0 && !shown[i] && v.Kind != nfs.Group {
				b.WriteString(shortValue(v))
				shown[i] = true
			}
		}
	}
	for i := 0; i < len(values) && b.Len() < mostLine; i++ {
		v := &values[i]
		empty := v.Kind == nfs.Group && (i+1 == len(values) || values[i+1].Depth <= v.Depth)
		if !shown[i] && !empty {
			b.WriteString(shortValue(v))
		}
		if v.Kind == nfs.List {
			for i+1 < len(values) && values[i+1].Depth > v.Depth {
				i++
			}
		}
	}
	return b.String()
}

// shortValue returns a space, the name of a value and the value, shortened if it is long. Of
// a flag it returns only the name, and only if it is set; of file data it returns the size.
func shortValue(v *nfs.Value) string {
	name := " " + v.Name
	switch v.Kind {
	case nfs.Bool:
		if v.Uint == 0 {
			return ""
		}
		return name
	case nfs.Group:
		return name
	case nfs.List:
		return fmt.Sprintf(" %d %s", v.Uint, v.Name)
	case nfs.Data:
		return " " + v.String()
	case nfs.Handle, nfs.Opaque, nfs.Session:
		if n := len(v.Bytes); n > mostHex {
			return fmt.Sprintf("%s %x..%x (%d bytes)", name, v.Bytes[:mostEnds], v.Bytes[n-mostEnds:], n)
		}
		if v.Bytes != nil {
			return name + " " + hex.EncodeToString(v.Bytes)
		}
	case nfs.String:
		if len(v.Bytes) > mostName {
			end := mostName
			for end > mostName-utf8.UTFMax && !utf8.RuneStart(v.Bytes[end]) {
				end--
			}
			return fmt.Sprintf("%s %s.. (%d bytes)", name, strconv.Quote(string(v.Bytes[:end])), len(v.Bytes))
		}
	case nfs.Bitmap, nfs.Operations, nfs.Bits:
		bits := v.Names()
		if n := len(bits); n > mostBits {
			bits = append(slices.Clip(bits[:mostBits]), fmt.Sprintf("and %d more", n-mostBits))
		}
		return name + " " + strings.Join(bits, ",")
	}
	return name + " " + v.String()
}
