package rule

// Scope returns a filter for the RPCs of which the rule can be violated, and for which a capture can show it. It is empty for
// all RPCs whose Call is in the capture.
func (r *Rule) Scope() string { return scopes[r.ID] }

// scopes has the scopes of rules that are not about all RPCs.
var scopes = map[string]string{}
