package show

import (
	"fmt"
	"io"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/owenrumney/go-sarif/v2/sarif"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// This file writes findings for other programs: SARIF for code scanning, JUnit for CI.

// levels are the names of the severities in SARIF.
var levels = map[record.Severity]string{record.Error: "error", record.Warning: "warning", record.Note: "note"}

// located returns the message of a finding with its packet, connection, XID and section.
func located(r *record.Finding) string {
	text := r.Message
	if packet, known := r.Packet.Get(); known {
		text += fmt.Sprintf("; packet %d", packet)
	}
	if connection, known := r.Connection.Get(); known {
		text += fmt.Sprintf(", connection %d", connection)
	}
	if xid, known := r.XID.Get(); known {
		text += fmt.Sprintf(", XID %v", xid)
	}
	if side, known := r.AtFault.Get(); known {
		text += ", at fault: " + string(side)
	}
	return fmt.Sprintf("%s (%s)", text, r.Section)
}

// sarif writes the findings as SARIF 2.1.0. The number of a packet is the line number of
// its finding.
func (c *results) sarif(w io.Writer, shown string) error {
	report, err := sarif.New(sarif.Version210)
	if err != nil {
		return err
	}
	run := sarif.NewRunWithInformationURI("rdmadump", "https://github.com/rdmadump/rdmadump")
	for _, r := range rule.All {
		run.AddRule(r.ID).WithDescription(r.Title()).WithMarkdownHelp(r.Markdown())
	}
	for _, r := range c.all {
		place := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewSimpleArtifactLocation(shown))
		if packet, known := r.Packet.Get(); known {
			place = place.WithRegion(sarif.NewRegion().WithStartLine(int(packet)))
		}
		run.CreateResultForRule(r.Rule).WithLevel(levels[r.Severity]).WithMessage(sarif.NewTextMessage(located(r))).
			AddLocation(sarif.NewLocationWithPhysicalLocation(place))
	}
	report.AddRun(run)
	return report.PrettyWrite(w)
}

// junit writes a test case for each rule. It is a failure if there are findings of the rule.
func (c *results) junit(w io.Writer, shown string) error {
	suite := junit.Testsuite{Name: "rdmadump check " + shown}
	for _, r := range rule.All {
		test := junit.Testcase{Name: r.ID, Classname: "rdmadump", Time: "0"}
		n, data := 0, ""
		for _, f := range c.all {
			if f.Rule == r.ID {
				n++
				data += fmt.Sprintf("%s: %s\n", f.Severity, located(f))
			}
		}
		if n > 0 {
			test.Failure = &junit.Result{Message: fmt.Sprintf("%s: %d findings", r.Title(), n), Type: string(r.Severity), Data: data}
		}
		suite.AddTestcase(test)
	}
	var all junit.Testsuites
	all.AddSuite(suite)
	return all.WriteXML(w)
}
