package flags

import (
	"slices"

	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// View describes what a command shows. The table of flags says which of them a view takes, by its name.
type View struct {
	Name, Short string
	Fields      query.Fields // fields of its records
	summed      query.Fields // fields of the transactions that it sums up, for -Y; nil if it sums up none
	filters     string       // what -Y selects, if not the records of the view
	byUsage     string       // usage of --by, if it does not group transactions
	top         string       // order of --top without --sort
	order       string       // order without both; empty for the order in which records come
	onePage     bool         // it shows one summary and no table of its records, so -o csv has nothing to print
	diagnoses   bool         // it finds problems
	Light       bool         // its handlers take less time than passing records to another goroutine
}

// Views lists the views. The first is the default.
var Views = []*View{
	{
		Name: "transactions", Short: "List RPC transactions; --xid draws one as a ladder diagram",
		Fields: query.Transactions, top: "-latency_ns",
	},
	{
		Name: "connections", Short: "List connections: handshake, negotiated values, health; --timeline draws credits and handles",
		Fields: query.Connections, top: "-packets", order: "id", Light: true,
	},
	{
		Name: "packets", Short: "List packets; -V decodes every field, -x shows bytes",
		Fields: query.Packets,
	},
	{
		Name: "rdma", Short: "List RDMA operations, of any upper layer; --by sums them up",
		Fields: render.OperationFields, byUsage: "sum up RDMA operations by these `fields`, with commas between them, such as kind,side; without the flag, they are listed", top: "-latency_ns",
	},
	{
		Name: "tasks", Short: "List what applications waited for: requests that were put off or repeated, with their tries, the longest blocked first",
		Fields: render.TaskFields, top: "-blocked_ns", order: "-blocked_ns", Light: true,
	},
	{
		Name: "network", Short: "Show what happened between capture points: delay, loss, reordering, corruption; --lost lists packets",
		Fields: render.NetworkFields, filters: "directions", Light: true,
	},
	{
		Name: "check", Short: "Report violations of the protocol; exit with status 1 if there are errors",
		Fields: query.Findings, top: "time", Light: true,
	},
	{
		Name: "overview", Short: "Summarize a capture on one screen and suggest the next commands",
		Fields: query.Transactions, filters: "RPCs (by the fields of transactions)", diagnoses: true, Light: true, onePage: true,
	},
	{
		Name: "problems", Short: "List what went wrong, the worst first; --explain tells what a kind of problem means",
		Fields: render.ProblemFields, filters: "problems", diagnoses: true, Light: true,
	},
	{
		Name: "files", Short: "List files: path, reads, writes, latency, who created, renamed or removed it",
		Fields: render.FileFields, summed: query.Transactions, filters: "RPCs (by the fields of transactions) or files", top: "-total_ns", Light: true,
	},
	{
		Name: "stats", Short: "Sum up transactions by operation or any field (--by): counts, bytes, latency",
		Fields: render.StatsFields, summed: query.Transactions, filters: "RPCs (by the fields of transactions) or rows", top: "-total_ns", Light: true,
	},
}

// RatesView is the view of stats with --every: its records are intervals.
var RatesView = &View{
	Name: "stats", Fields: render.RateFields, summed: query.Transactions, top: "-rpcs", Light: true,
}

// CompareView is the view of compare, which reads two captures instead of one.
var CompareView = &View{
	Name: "compare", Fields: render.ComparisonFields, summed: query.Transactions, filters: "RPCs (by the fields of transactions) or rows",
	byUsage: "compare the groups of transactions with equal values of these `fields`, with commas between them, such as client,operation (default operation)", top: "-after.total_ns", diagnoses: true, Light: true,
}

// BrowseView describes the flags that browse supports.
var BrowseView = &View{
	Name: "browse", Fields: query.Transactions, filters: "RPCs (by the fields of transactions)",
}

// ReportView describes the flags that report accepts.
var ReportView = &View{Name: "report", Fields: query.Transactions, filters: "RPCs (by the fields of transactions)"}

// LostView is the view of network with --lost and -e or -o csv, which print records of one type.
var LostView = &View{
	Name: "network", Fields: render.LostPacketFields, filters: "packets that were lost", Light: true,
}

// OperationSumsView is the view of rdma with --by: its records are sums.
var OperationSumsView = &View{
	Name: "rdma", Fields: render.OperationSumFields, summed: render.OperationFields, filters: "RDMA operations or rows", top: "-bytes", Light: true,
}

// ExportView describes the flags that export accepts.
func ExportView(fields query.Fields) *View {
	return &View{Name: "export", Fields: fields, filters: "RPCs (by the fields of transactions), or with --format pcapng and --scrub the packets,"}
}

// ExtractView describes the flags that extract accepts.
var ExtractView = &View{Name: "extract", Fields: query.Transactions, filters: "RPCs (by the fields of transactions)"}

// SumsRPCs reports whether a view shows only RPCs, or sums of them.
func (v *View) SumsRPCs() bool {
	return v.Fields == query.Transactions || v.summed == query.Transactions
}

// ViewNamed returns the view with a name, or nil if there is none.
func ViewNamed(name string) *View {
	if i := slices.IndexFunc(Views, func(v *View) bool { return v.Name == name }); i >= 0 {
		return Views[i]
	}
	return nil
}
