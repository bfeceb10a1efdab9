package diagnose

import "github.com/rdmadump/rdmadump/docs/problems"

// kind is a kind of problem.
type kind struct {
	id   string
	says string // what the headlines of the kind say, for lists
	find func(*diagnosis)
}

// kinds lists the kinds in the order of causes. They run in this order; each claims what it explains, and later kinds see only what is left.
// Those that observe look at everything, claim what is free, and name the problems that have the rest.
// To add one, see the package.
var kinds = []kind{
	{"capture-gap", "the capture lacks packets", captureGap},
	{"grace-period", "the server waits for clients to reclaim their state, and puts others off", gracePeriod},
	{"put-off", "the server asked to try again, at once or later", putOffOtherwise},
	{"unanswered", "RPCs were never answered", unanswered},
}

// IDs returns the ids of all kinds, in the order of causes.
func IDs() (ids []string) {
	for _, k := range kinds {
		ids = append(ids, k.id)
	}
	return ids
}

// Says returns what the headlines of a kind say, in general. It returns nothing for an unknown id.
func Says(id string) string {
	for _, k := range kinds {
		if k.id == id {
			return k.says
		}
	}
	return ""
}

// Page returns the page of a kind, as Markdown: what it means, what proves it, usual causes, and what to look at. It returns nothing for an
// unknown id.
func Page(id string) string {
	page, err := problems.Pages.ReadFile(id + ".md")
	if err != nil {
		return ""
	}
	return string(page)
}
