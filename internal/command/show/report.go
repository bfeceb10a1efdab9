package show

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// This file writes findings for other programs: SARIF for code scanning, JUnit for CI.

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

// sarif writes the findings as SARIF 2.1.0. The number of a packet is the line number of its finding.
func (c *results) sarif(w io.Writer, shown string) error {
	type object map[string]any
	var rules []object
	indexes := map[string]int{}
	for i, r := range rule.All {
		indexes[r.ID] = i
		help := r.Markdown()
		rules = append(rules, object{"id": r.ID, "shortDescription": object{"text": r.Title()}, "help": object{"text": help, "markdown": help}})
	}
	file := (&url.URL{Path: shown}).String()
	found := []object{}
	for _, r := range c.all {
		place := object{"artifactLocation": object{"uri": file}}
		if packet, known := r.Packet.Get(); known {
			place["region"] = object{"startLine": packet}
		}
		found = append(found, object{
			"ruleId": r.Rule, "ruleIndex": indexes[r.Rule], "level": r.Severity, "message": object{"text": located(r)},
			"locations": []object{{"physicalLocation": place}},
		})
	}
	driver := object{"name": "rdmadump", "informationUri": "https://github.com/rdmadump/rdmadump", "rules": rules}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(object{
		"$schema": "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/main/sarif-2.1/schema/sarif-schema-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": driver}, "results": found}},
	})
}

// These are the elements of a JUnit file, as CI servers read them.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		ID       int         `xml:"id,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
		Output  *junitText    `xml:"system-out"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Data    string `xml:",chardata"`
	}
	junitText struct {
		Data string `xml:",chardata"`
	}
)

// junit writes a test case for each rule. It is a failure if one of its findings is at least as
// severe as failOn, as for the exit status. Other findings are the output of their test case.
func (c *results) junit(w io.Writer, shown string, failOn record.Severity) error {
	suite := junitSuite{Name: "rdmadump check " + shown, Tests: len(rule.All), Time: "0"}
	for _, r := range rule.All {
		test := junitCase{Name: r.ID, Class: "rdmadump", Time: "0"}
		n, data, worst := 0, "", record.Severity("")
		for _, f := range c.all {
			if f.Rule == r.ID {
				n++
				data += fmt.Sprintf("%s: %s\n", f.Severity, located(f))
				if n == 1 || f.Severity.Rank() < worst.Rank() {
					worst = f.Severity
				}
			}
		}
		switch {
		case n > 0 && worst.Rank() <= failOn.Rank():
			suite.Failures++
			test.Failure = &junitFailure{fmt.Sprintf("%s: %s", r.Title(), record.Plural(n, "finding")), string(worst), data}
		case n > 0:
			test.Output = &junitText{data}
		}
		suite.Cases = append(suite.Cases, test)
	}
	text, err := xml.MarshalIndent(junitSuites{Tests: suite.Tests, Failures: suite.Failures, Suites: []junitSuite{suite}}, "", "\t")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	}
	return err
}
