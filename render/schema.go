package render

import "embed"

// Schemas are the JSON Schemas of the records, by file name: the record's type
// and ".json".
//
//go:embed schema/*.json
var Schemas embed.FS
