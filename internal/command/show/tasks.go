package show

import (
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// tasks shows a row for each task that was put off or repeated.
func tasks(s *sink) (dissect.Handler, func()) {
	show := func(r any) error { return s.text.Task(r.(*record.Task)) }
	return dissect.Handler{Task: func(r *record.Task) error {
		if s.WantsTask(r) && s.Within(r.From) {
			s.take(r, show)
		}
		return s.status()
	}}, nil
}
