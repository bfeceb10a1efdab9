package report

import (
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// problemView is a problem, as overview shows it.
type problemView struct {
	Class, Word, Place, Headline, Effect, Evidence, Command string
	Link                                                    string // anchor of the place with more; empty if there is none
}

// severityClasses are the classes of the severities.
var severityClasses = map[record.Severity]string{record.Error: "bad", record.Warning: "warn", record.Note: "note"}

// maxProblems is the number of problems on a page.
const maxProblems = 50

// problems returns the problems of the capture, the worst first, or that there are none.
func (v *page) problems() (list []problemView) {
	files := render.Captures{Typed: v.about.Typed}
	failing := false
	for _, p := range v.worst {
		if p.ID == record.Quirk {
			continue
		}
		failing = failing || p.Severity != record.Note
		list = append(list, problemView{
			Class: severityClasses[p.Severity], Word: render.SeverityWord(p.Severity), Place: render.PlaceText(p, len(v.about.Points) > 1), Headline: render.Clean(p.Headline),
			Effect: render.Clean(p.Effect), Evidence: render.EvidenceText(p), Command: render.Clean(files.Command(p.Command)), Link: v.linkOf(p),
		})
	}
	if n := len(list) - maxProblems; n > 0 {
		v.omit("%s are left out. %s lists them.", record.Plural(int64(n), "problem"), files.Command([]string{"problems"}))
		list = list[:maxProblems]
	}
	if !failing {
		calm := problemView{Class: "good", Word: "OK"}
		text, is := render.Calm(render.NewTheme(false), render.Story{Overview: v.o, Summary: v.summary})
		if calm.Headline = render.Clean(text); !is {
			calm.Class, calm.Word = "note", ""
		}
		list = append([]problemView{calm}, list...)
	}
	return list
}

// linkOf returns the anchor of what the page shows about a problem: the ladder of its worst RPC, or its rule, or its worst connection.
func (v *page) linkOf(p *record.Problem) string {
	for _, id := range p.Requests {
		if v.ladders[id] {
			return rpcAnchor(id)
		}
	}
	for _, id := range p.Rules {
		if sum := v.rules[id]; sum != nil && sum.first != nil {
			return ruleAnchor(id)
		}
	}
	for _, id := range p.Connections {
		if v.known[id] {
			return connAnchor(id)
		}
	}
	return ""
}
