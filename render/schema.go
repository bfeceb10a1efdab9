package render

import "embed"

// Schemas contains a JSON Schema for each type of record. The name of a file is the type
// and ".json". A test generates the files from the tags of the records and the tables of
// headers.
//
//go:generate go test . -run TestSchemaFiles -update
//go:embed schema/*.json
var Schemas embed.FS
