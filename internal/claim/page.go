package claim

import (
	"fmt"
	"strings"
)

// Page returns the page docs/causes.md, which explains the sentences.
func Page() string {
	var b strings.Builder
	b.WriteString(`# Causes: what one capture proves about the time of an RPC

The field ` + "`cause`" + ` of an RPC, its ladder diagram, ` + "`browse`" + ` and the report say in one sentence what took most of its latency. The
sentences are tried in this order; the first one that holds is used.

A host is the only subject of a sentence if the capture proves its part; otherwise all that can have taken the time are named: also
the network, and the host's adapter. Proofs are:

- The capture was taken at the host: it says which packets its computer sent, or ` + "`--at`" + ` does. Both are ignored if two packets of
  the host came late.
- Packets were captured at both ends.
- TCP timestamps (iWARP), which have the sender's clock.
- A host that answered a later Call first had that Call before it answered the earlier one.
- An ACK of the Call bounds the way to the server, and says nothing about the way back.

Round trips prove nothing: a network that stops for a moment delays exactly the packet that comes next. The field ` + "`shares`" + ` has the
least and the most time that each side can have taken; these are bounds, no estimates. To find out more, capture at both ends, or use ` + "`--at`" + `.

For a Call in backward direction, the ids begin with ` + "`responder-`" + ` and ` + "`requester-`" + ` instead of ` + "`server-`" + ` and ` + "`client-`" + `.
` + "`stats --by cause`" + ` counts RPCs without a sentence as ` + "`" + None + "`" + `: ` + withoutSentence + `.
`)
	for _, s := range All {
		fmt.Fprintf(&b, "\n## %s\n\n> %s\n\n%s", s.ID, s.Like, s.Proves)
		if s.Needs != "" {
			fmt.Fprintf(&b, " **Needs:** %s", s.Needs)
		}
		if s.Withdrawn != "" {
			fmt.Fprintf(&b, " **Withdrawn by:** %s", s.Withdrawn)
		}
		b.WriteString("\n")
	}
	return b.String()
}
