package capture

import "errors"

// LiveOptions say how to capture.
type LiveOptions struct {
	Promiscuous bool
}

// ErrNoPermission is wrapped by errors of capturing without the right to.
var ErrNoPermission = errors.New("no permission")
