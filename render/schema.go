package render

import "embed"

// Schemas are the JSON Schemas of the records, by file name: the record's type
// and ".json". A test makes them of the records' tags and the tables of headers.
//
//go:generate go test . -run TestSchemaFiles -update
//go:embed schema/*.json
var Schemas embed.FS
