package render

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestSheetOf: a sheet has the texts of the table, and the numbers of the records that they stand for.
func TestSheetOf(t *testing.T) {
	list := []*record.Connection{
		{
			ID: 3, Transport: "RoCEv2", UpperLayer: "rpcrdma", Packets: 12345, Retransmitted: 4, OutOfOrder: 5, NotCaptured: 6, Naks: 7, RNRNaks: 8, PathMTU: record.Some(4096),
			Client:          record.Endpoint{Address: record.Some("192.0.2.1"), Port: record.Some[uint16](20049)},
			InlineThreshold: record.Some(record.InlineThresholds{ClientToServer: 4096, ServerToClient: 1024}),
			Credits:         record.Some(record.CreditPair{Forward: record.Credits{Granted: record.Some[uint32](32), PeakInFlight: record.Some(9)}}),
		},
		{ID: 4, Transport: "iWARP", UpperLayer: "iser"},
	}
	s, err := SheetOf("connections", list, func(theme *Theme) error {
		text := NewText(io.Discard, theme, 0)
		for _, c := range list {
			if err := text.Connection(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]SheetCell{
		"CONN":                      {{"3", "3"}, {"4", "4"}},
		"TRANSPORT":                 {{"RoCEv2", ""}, {"iWARP", ""}},
		"CLIENT":                    {{"192.0.2.1", ""}, {"?", ""}},
		"CREDITS USED":              {{"9 of 32", "9"}, {"", ""}},
		"PACKETS":                   {{"12345", "12345"}, {"0", "0"}},
		"REPEATED":                  {{"4", "4"}, {"0", "0"}},
		"OUT OF ORDER":              {{"5", "5"}, {"0", "0"}},
		"NOT CAPTURED":              {{"6", "6"}, {"0", "0"}},
		"NAKS":                      {{"7", "7"}, {"0", "0"}},
		"RNR NAKS":                  {{"8", "8"}, {"0", "0"}},
		"CLOSED":                    {{"open", ""}, {"open", ""}},
		"MTU":                       {{"4096", "4096"}, {"", ""}},
		"INLINE TO SERVER":          {{"4096", "4096"}, {"", ""}},
		"TO CLIENT":                 {{"1024", "1024"}, {"", ""}},
		"INVALIDATION ANNOUNCED BY": {{"?", ""}, {"", ""}},
	} {
		at := slices.IndexFunc(s.Columns, func(c SheetColumn) bool { return c.Name == name })
		if at < 0 {
			t.Errorf("there is no column %s", name)
			continue
		}
		if got := [2]SheetCell{s.Rows[0][at], s.Rows[1][at]}; got != want {
			t.Errorf("column %s is %+v, want %+v", name, got, want)
		}
	}
	at := slices.IndexFunc(s.Columns, func(c SheetColumn) bool { return c.Name == "TO CLIENT" })
	if c := s.Columns[at]; !c.Number || !strings.HasPrefix(c.Explain, "Inline thresholds in bytes: ") {
		t.Errorf("the column TO CLIENT is a number: %t, and means %q", c.Number, c.Explain)
	}
}

// TestSheetOfNone: a sheet without rows has the columns of the table.
func TestSheetOfNone(t *testing.T) {
	s, err := SheetOf[*record.Transaction]("transactions", nil, nil)
	if err != nil || len(s.Rows) != 0 || len(s.Columns) != len(transactionColumns)+1 || s.Columns[3].Name != "XID" { // one heading has a slash
		t.Errorf("a sheet without rows has %d rows and %d columns, want 0 and %d; error %v", len(s.Rows), len(s.Columns), len(transactionColumns)+1, err)
	}
}
