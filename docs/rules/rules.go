// Package rules holds the Markdown pages that explain the rules of rdmadump, one for
// each rule. Package dissect/rule reads them.
package rules

import "embed"

// Pages contains one file for each rule; its name is the rule's id with ".md".
//
//go:embed *.md
var Pages embed.FS
