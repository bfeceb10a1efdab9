package record

import "strings"

// ProblemPlace is a place that trouble comes from.
type ProblemPlace string

// The places, in the order in which lists have them.
const (
	InCapture ProblemPlace = "capture" // what the capture lacks
	InClient  ProblemPlace = "client"
	InConfig  ProblemPlace = "config"  // what client and server were told to do
	InNetwork ProblemPlace = "network" // between the adapters of both hosts
	InRPC     ProblemPlace = "rpc"     // an answer that is no fault
	InServer  ProblemPlace = "server"
)

// Values returns all places.
func (ProblemPlace) Values() []string {
	return Words(InCapture, InClient, InConfig, InNetwork, InRPC, InServer)
}

// Problem is what went wrong in a capture: what happened, what it cost, where it comes from, and which command shows it.
type Problem struct {
	Type     string         `json:"type" doc:"The record's type, always \"problem\"." values:"problem"`
	Rank     int            `json:"rank" doc:"Rank of the problem, by its harm: 1 is the worst."`
	ID       string         `json:"id" doc:"Stable id of the kind of problem; rdmadump problems --explain ID explains it." secret:"no"`
	Severity Severity       `json:"severity" doc:"Severity of the problem: error (something failed, or hung for long), warning (something took longer because of it, or is at risk), note (worth knowing; it harms nobody)."`
	Places   []ProblemPlace `json:"places" doc:"Where the problem comes from: capture, client, config, network, rpc or server, in this order. Several are alternatives: the capture excludes all others."`
	Headline string         `json:"headline" doc:"What happened, in at most twelve words, without the place." secret:"sentence"`
	Effect   string         `json:"effect" doc:"What it cost; empty if it cost nothing." secret:"sentence"`
	Evidence []ProblemFact  `json:"evidence" doc:"Packets that prove it, at most three."`
	From     Opt[Time]      `json:"from" doc:"Time at which the problem began; null if it has no time."`
	To       Opt[Time]      `json:"to" doc:"Time at which its last consequence ended; null if it has no time."`
	Ongoing  bool           `json:"ongoing" doc:"Whether it had not ended when the capture ended."`

	BlockedNS  int64   `json:"blocked_ns" doc:"Time in which at least one task waited because of the problem, in nanoseconds, by what the capture proves: a latency that is only an upper bound counts with its lower bound. Times that overlap count once."`
	Tasks      int64   `json:"tasks" doc:"Number of tasks that the problem delayed or that failed because of it. A task is what an application waited for: a request, and the requests that repeat it because the server put it off."`
	Failed     int64   `json:"requests_failed" doc:"Number of requests that failed because of the problem."`
	Unanswered int64   `json:"requests_unanswered" doc:"Number of requests that were never answered because of the problem."`
	Share      float64 `json:"share" doc:"Part of the times of all tasks that the problem took, from 0 to 1."`

	Client      Opt[string] `json:"client" doc:"Address of the client; null if there are several." secret:"address"`
	Server      Opt[string] `json:"server" doc:"Address of the server; null if there are several." secret:"address"`
	Connections []int       `json:"connections" doc:"Numbers of connections that the problem is about, the worst first, at most 20."`
	Requests    []int64     `json:"requests" doc:"Transaction numbers (id) of requests that the problem is about, the worst first, at most 20."`
	XIDs        []Hex32     `json:"xids" doc:"XIDs of these requests."`
	Rules       []string    `json:"rules" doc:"Ids of the rules whose findings the problem explains, at most 20." secret:"no"`
	CausedBy    Opt[int]    `json:"caused_by" doc:"Rank of the problem that caused this one; null if none is known to."`
	Beside      []int       `json:"explained_by" doc:"Ranks of problems that explain what this one observes, too."`
	Only        Opt[string] `json:"only" doc:"What of several clients, servers or connections the problem is about; null if it is about all, or there is one." secret:"sentence"`
	Command     []string    `json:"command" doc:"Arguments of rdmadump that show the problem, without the names of files; the subcommand is first." secret:"filter"`
}

// Place returns where the problem comes from in words: the places that the capture does not exclude.
func (p *Problem) Place() string {
	var words []string
	for _, place := range p.Places {
		words = append(words, string(place))
	}
	return strings.Join(words, " or ")
}

// Quirk is the id of problems that are unusual and harm nobody.
const Quirk = "quirk"

// Shown reports whether screens list the problem without being asked: all but quirks.
func (p *Problem) Shown() bool { return p.ID != Quirk }

// ProblemFact is a packet that proves a problem.
type ProblemFact struct {
	Packet int64  `json:"packet" doc:"Packet number: the packet that shows the fact."`
	Point  string `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points." secret:"point"`
	Fact   string `json:"fact" doc:"What the packet shows." secret:"sentence"`
}
