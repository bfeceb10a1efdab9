// Package problems holds the Markdown pages that explain the kinds of problems of rdmadump, one for each kind. Package
// internal/diagnose reads them.
package problems

import "embed"

// Pages contains one file for each kind; its name is the id of the kind with ".md".
//
//go:embed *.md
var Pages embed.FS
