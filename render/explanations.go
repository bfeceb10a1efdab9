package render

// Explanation explains one heading or symbol of a view.
type Explanation struct {
	View    string // name of the view, such as "transactions"
	Name    string // the heading or symbol as it is shown
	Meaning string // in full sentences
}

// Explanations lists the headings and symbols of all views, in the order in which the
// views show them.
func Explanations() []Explanation { return explanations }

var explanations = []Explanation{
	{"transactions", "#", "Number of the transaction. Transactions are counted from 1, in the order of their Calls; rows appear in the order in which transactions end."},
}
