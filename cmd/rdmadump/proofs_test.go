package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestUnproven: a sentence that gives a host or the network a time is found if it has no proof. TestGolden and TestDigests
// search every output for such sentences: only captures at both ends prove such a time, and the sentence says so. That it
// took at most a time is no accusation, and a line that begins with "proven:" adds up what such sentences say.
func TestUnproven(t *testing.T) {
	for text, want := range map[string]bool{
		"ok\nThe server took 124.24 ms to send its\nReply; the capture shows no loss.": true,
		"The network took 5ms.": true,
		"The server took 5ms (captured at the server, as --at says).":                  false,
		"The server took 5ms (as --at says).":                                          true,
		"The\nclient\ntook 5.00 ms. It was seen (seen at both ends).":                  true,
		"The server took 17.65 ms\n(seen at both ends); the captures show no loss.":    false,
		"The server took at least 94.67 ms of 138.48 ms (its TCP timestamps).":         false,
		"The client took 61.99 ms to answer RDMA Reads (captured at the client).":      false,
		"The server or the network took 5.00 ms; no ACK of the Call was captured.":     false,
		"The server, or the way back, took at least 5.00 ms of 6.00 ms: the Call had.": false,
		"The client, or the network, took 5.00 ms to answer RDMA Reads.":               false,
		"proven: the server took at most 86%, the client took at most 14%":             false,
		"proven: the server took 19% to 83%,\nthe client took 0%":                      false,
		"proven: nothing. The server took 19% to 83%":                                  true,
	} {
		if got := unproven(text); len(got) > 0 != want {
			t.Errorf("%q: without proof %q, want %t", text, got, want)
		}
	}
}

var (
	took  = regexp.MustCompile(`\btook\s`)
	proof = regexp.MustCompile(`\((seen at both ends|captured at the (client|server)(, as --at says)?|its TCP timestamps|it had the Call of XID [^)]*)\)`)
	sums  = regexp.MustCompile(`proven: [^.>]*$`)
	taker = regexp.MustCompile(`(?i)( or)? the (server|client|network)$`)
)

// unproven returns the sentences of an output that give a host or the network a time and have no proof.
func unproven(text string) (list []string) {
	for at := 0; ; {
		next := took.FindStringIndex(text[at:])
		if next == nil {
			return list
		}
		// Sentences are wrapped, and a number has a dot without a space after it.
		before := strings.Join(strings.Fields(text[max(0, at+next[0]-160):at+next[0]]), " ")
		after := strings.Join(strings.Fields(text[at+next[0]:min(len(text), at+next[0]+400)]), " ")
		sentence, _, _ := strings.Cut(after, ". ")
		at += next[1]
		who := taker.FindStringSubmatch(" " + before)
		if who != nil && who[1] == "" && !strings.HasPrefix(sentence, "at most ") && !sums.MatchString(before) && !proof.MatchString(sentence) {
			list = append(list, who[0]+" "+sentence)
		}
	}
}
