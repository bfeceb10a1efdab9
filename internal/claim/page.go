package claim

import (
	"fmt"
	"strings"
)

// Page returns the page docs/causes.md, which explains the sentences.
func Page() string {
	var b strings.Builder
	b.WriteString(`# Causes: what one capture proves about the time of an RPC

The field ` + "`cause`" + ` of an RPC, its ladder diagram, ` + "`browse`" + ` and the report say in one sentence what took most of its latency, as
far as the capture proves it. This page lists all sentences, in the order in which they are tried: the first one that
holds is used. It is generated from the program's table.

A capture contains the packets that passed one point. Between this point and a host lies a way: the network and,
if nothing else is known, that host's adapter. A host is named as the only subject of a sentence if the capture
proves its part; otherwise the sentence names all that can have taken the time. Five facts prove a part:

- The capture was taken at the host: the capture says which packets its computer sent, or ` + "`--at`" + ` (client, server or the
  address of the host) says so, and then the sentence adds "as --at says". If two packets of the host came late, the
  capture was not taken there, and both are ignored.
- Packets were captured at both ends.
- TCP timestamps (iWARP): a segment contains its sender's clock, and round trips bound the difference of the clocks.
- The order of sequence numbers: a host that answered a later Call first had that Call before it answered the earlier one.
- An ACK of the Call bounds the way to the server. It says nothing about the way back.

Round trips prove nothing about an RPC: a network that stops for a moment delays exactly the packet that comes next. They follow
a sentence as facts.

The ids below are those of Calls that the client sends and the server executes. A Call in backward direction is executed by the client: its
ids begin with ` + "`responder-`" + ` instead of ` + "`server-`" + `, and with ` + "`requester-`" + ` instead of ` + "`client-`" + `, such as ` + "`responder-or-way-back`" + `.

The field ` + "`shares`" + ` has the least and the most time that each side can have taken. These bounds are no estimates.
To find out more, capture at both ends (` + "`rdmadump network`" + `), or say with ` + "`--at`" + ` where the capture was taken.

` + "`stats --by cause`" + ` counts RPCs that none of the sentences is about as ` + "`" + None + "`" + `: ` + withoutSentence + `.
`)
	for _, s := range All {
		fmt.Fprintf(&b, "\n## %s\n\n> %s\n\n**Proven if:** %s\n", s.ID, s.Like, s.Proves)
		if s.Needs != "" {
			fmt.Fprintf(&b, "\n**Needs:** %s\n", s.Needs)
		}
		if s.Withdrawn != "" {
			fmt.Fprintf(&b, "\n**Withdrawn by:** %s\n", s.Withdrawn)
		}
		fmt.Fprintf(&b, "\n**Not for:** %s\n", s.Twin)
	}
	return b.String()
}
