package report

import (
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/render"
)

// opName returns the name of a transaction's operation, as in the table of operations.
func opName(r *record.Transaction) string { return analyze.Name(r, analyze.ByOperation) }

// callerFields are the fields that the table of callers is grouped by.
const callerFields = "client,machine,uid,principal"

// caller appends the values of these fields.
func caller(values []string, r *record.Transaction) []string {
	uid := unknown
	if v, known := r.UID.Get(); known {
		uid = strconv.FormatUint(uint64(v), 10)
	}
	return append(values, shown(r.Client), shown(r.Machine), uid, shown(r.Principal))
}

// fileField is the field whose values group RPCs by file, if the input does not say what they did to files.
const fileField = "file"

// file appends what columns show of this field.
func file(values []string, r *record.Transaction) []string {
	return append(values, shown(record.Some(r.FileText())))
}

// shown returns a value as columns show it.
func shown(v record.Opt[string]) string {
	if text, known := v.Get(); known && text != "" {
		return string(render.AppendValue(nil, text))
	}
	return unknown
}

// unknown stands for a value that the capture does not show.
const unknown = "-"

// percent returns a part of a whole.
func percent(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return strconv.FormatFloat(float64(part)*100/float64(whole), 'f', 1, 64) + "%"
}

// rpcAnchor and connAnchor return the names of places on the page.
func rpcAnchor(id int64) string   { return "rpc-" + strconv.FormatInt(id, 10) }
func connAnchor(id int) string    { return "conn-" + strconv.Itoa(id) }
func ruleAnchor(id string) string { return "rule-" + id }
