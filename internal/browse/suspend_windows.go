package browse

import "errors"

// Run returns an error, because Windows cannot suspend a process for the shell.
func (s *suspension) Run() error { return errors.New("browse cannot be suspended on Windows") }
