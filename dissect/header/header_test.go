package header_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
)

// TestTables checks that fields are within their header, do not overlap and have unique names, and
// that the bits that belong to no field are known.
func TestTables(t *testing.T) {
	for _, h := range header.All {
		end, names := 0, map[string]bool{}
		for _, f := range h.Fields {
			bits := f.Bits
			if f.Bit < end || f.Bit+bits > h.Length*8 || bits == 0 {
				t.Errorf("%s.%s: bits %d to %d, after %d, of %d", h.Label, f.Name, f.Bit, f.Bit+bits, end, h.Length*8)
			}
			if names[f.Name] {
				t.Errorf("%s.%s is listed twice", h.Label, f.Name)
			}
			if f.Label == "" || f.Format == field.Enum && f.Names == nil {
				t.Errorf("%s.%s lacks a label or names", h.Label, f.Name)
			}
			end, names[f.Name] = f.Bit+bits, true
		}
	}
}
