package rule

import (
	"fmt"
	"strings"
)

// Need is what a capture has to have for a rule to be judged.
type Need uint8

// The needs.
const (
	Handshake Need = 1 << iota // of the connection
	Lossless                   // no packet of it missing so far
	Uncut                      // messages captured to their ends
)

// needs are those of each rule; one that is not here only needs what it is about.
var needs = map[string]Need{
	"inline-threshold-exceeded": Handshake, "invalidation-not-negotiated": Handshake, "invalidated-handle-used": Handshake | Lossless | Uncut,
	"credit-limit-exceeded": Lossless, "receive-not-posted": Handshake | Lossless, "receive-too-small": Handshake,
	"invalidated-unexposed-handle": Uncut, "rdma-outside-exposed-memory": Handshake | Lossless | Uncut, "rdma-wrong-direction": Handshake | Lossless | Uncut,
	"reply-before-reads-done": Handshake | Lossless, "returned-bytes-not-seen": Handshake | Lossless,
	"header-truncated": Uncut, "rpc-header-malformed": Uncut, "read-position-invalid": Uncut, "long-call-position": Uncut, "chunk-length-mismatch": Uncut,
	"reduced-pad-left": Uncut, "pad-written": Uncut, "write-chunk-unused": Uncut, "write-chunk-too-short": Uncut, "write-chunk-room-for-pad": Uncut,
	"reply-chunk-missing": Handshake | Uncut, "reduced-ineligible-item": Uncut, "reduced-under-gss": Uncut,
	"error-not-answered": Handshake | Lossless, "error-unknown-xid": Handshake | Lossless, "call-not-answered": Handshake | Lossless,
	"reply-without-call": Handshake | Lossless, "xid-in-use": Lossless,
	"backward-with-chunks": Handshake, "backward-not-msg": Handshake, "backward-unexpected": Handshake | Lossless | Uncut, "path-mtu-unused": Handshake,
}

// Needing are the ids of the rules that need something, in the order of the table.
func Needing(n Need) (ids []string) {
	for _, r := range All {
		if needs[r.ID]&n != 0 {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Markdown is the page of a rule, as docs/rules has it and check --explain prints
// it.
func (r *Rule) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s: %s (%s)\n\n%s\n", r.ID, r.Severity, r.Title, r.Section, r.Text)
	if r.Quote != "" {
		fmt.Fprintf(&b, "\n%s:\n\n> %s\n", r.Section, r.Quote)
	}
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n- %s\n", title, strings.Join(lines, "\n- "))
		}
	}
	list("Usual causes", r.Causes)
	list("Look at", r.Next)
	var lacking []string
	for _, n := range []struct {
		need Need
		text string
	}{
		{Handshake, "the connection's handshake is in the capture"},
		{Lossless, "no packet of the connection is missing from the capture so far"},
		{Uncut, "the messages were captured to their ends"},
	} {
		if needs[r.ID]&n.need != 0 {
			lacking = append(lacking, n.text)
		}
	}
	list("Only judged where", lacking)
	return b.String()
}
