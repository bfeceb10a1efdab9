package capture

import "errors"

// LiveOptions holds the options of a live capture.
type LiveOptions struct {
	Promiscuous bool
}

// ErrNoPermission is wrapped by the error of OpenLive if the process lacks the right to capture.
var ErrNoPermission = errors.New("no permission")
