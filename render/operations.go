package render

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// What a Call asks and its Reply says, a line an operation.

// The bounds of what is said of them.
const (
	mostOperations = 12  // lines of one message
	mostLine       = 200 // characters from which on a line takes no more values
	mostHex        = 32  // bytes that are shown whole: handles of one server differ somewhere in the middle
	mostEnds       = 12  // of longer ones, at each end
	mostName       = 40  // bytes of a name
	mostBits       = 6   // names of bits
)

// foremost are the values that say most, in the order in which they are told. The
// others follow as they came.
var foremost = []string{
	"name", "to_name", "target", "path", "slotid", "sequenceid", "offset", "count", "length", "data", "eof", "fh", "dir_fh", "to_dir_fh", "object_fh", "stateid",
}

// operationLines are the lines of one half of a transaction, safe to print.
func operationLines(h record.Half) (lines []string) {
	m := h.Message
	if m == nil {
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

// valuesOf are the values of an operation, as far as they fit, with a space before
// each. What is in lists is counted.
func valuesOf(values []nfs.Value) string {
	var b strings.Builder
	told := make([]bool, min(len(values), mostLine))
	values = values[:len(told)]
	for _, name := range foremost {
		for i := range values {
			if v := &values[i]; v.Name == name && v.Depth == 0 && !told[i] && v.Kind != nfs.Group {
				b.WriteString(shortValue(v))
				told[i] = true
			}
		}
	}
	for i := 0; i < len(values) && b.Len() < mostLine; i++ {
		v := &values[i]
		empty := v.Kind == nfs.Group && (i+1 == len(values) || values[i+1].Depth <= v.Depth)
		if !told[i] && !empty {
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

// shortValue is a value with its name, shortened, and a space before it: of a flag
// its name when it is set, of file data how much it is.
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
			return fmt.Sprintf("%s %s.. (%d bytes)", name, strconv.Quote(string(v.Bytes[:mostName])), len(v.Bytes))
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
