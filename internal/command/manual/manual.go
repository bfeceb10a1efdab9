// Package manual has the texts about the command line: help, man pages, and the lists of fields and of schemas.
package manual

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// NewMan returns the command that writes the man pages, from the descriptions of the
// commands.
func NewMan(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the man pages to a folder", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return WriteManual(root, args[0])
		},
	}
}

// viewExamples has the examples of the views, for help texts and man pages.
var viewExamples = map[string]string{
	"transactions": `  rdmadump transactions nfs.pcap --top 10 list the ten slowest RPCs
  rdmadump transactions nfs.pcap -Y 'latency > 5ms and READ in operations'
  rdmadump transactions nfs.pcap -Y 'status != ok'
  rdmadump transactions nfs.pcap --xid 0x4cc9dbf7 --time utc
                                          draw one RPC, with times of day`,
	"connections": `  rdmadump connections nfs.pcap           list connections, one per line
  rdmadump connections nfs.pcap -Y 'retr > 0 or nak > 0'
  rdmadump connections nfs.pcap --conn 0 --timeline
                                          draw credits and handles over time
  rdmadump connections nfs.pcap --columns CONN,CLIENT,REPEATED,CLOSED`,
	"packets": `  rdmadump packets nfs.pcap --xid 0x4cc9dbf7   list the packets of one RPC
  rdmadump packets -V nfs.pcap -c 1       decode every field of the first packet
  rdmadump packets nfs.pcap -Y 'ip.src in 192.168.77.0/24 and bth.opcode == 0x17'
  rdmadump packets nfs.pcap --columns TIME,XID,OPERATION,PSN,MARKS
  rdmadump packets nfs.pcap -e number -e bth.psn -e reth.r_key`,
	"tasks": `  rdmadump tasks mount.pcap              list what was put off or repeated, the longest first
  rdmadump tasks mount.pcap -Y 'outcome == "given_up"'`,
	"rdma": `  rdmadump rdma nvme.pcap                 list RDMA operations, one per line
  rdmadump rdma nvme.pcap -Y 'stalled_ns > 0' --sort -stalled_ns
                                          list the operations that stalled
  rdmadump rdma nvme.pcap --conn 0 --top 10
  rdmadump rdma nvme.pcap --by kind,side  sum up by kind and requester`,
	"problems": `  rdmadump problems nfs.pcap              list what went wrong, the worst first
  rdmadump problems --explain outage      tell what a kind of problem means`,
	"overview": `  rdmadump overview nfs.pcap              summarize a capture
  rdmadump overview nfs.pcap --from 10s --to 20s
                                          summarize the RPCs of ten seconds`,
	"network": `  rdmadump network client.pcap server.pcap
                                          compare captures of both ends
  rdmadump network client.pcap server.pcap --lost
                                          list the packets that were lost between them`,
	"check": `  rdmadump check nfs.pcap                 report violations of the protocol
  rdmadump check nfs.pcap -Y 'severity == error' --time local
  rdmadump check --explain xid-mismatch   explain a rule
  rdmadump check nfs.pcap -o json --jq 'select(.rule == "xid-mismatch") | .packet'`,
	"files": `  rdmadump files nfs.pcap                 list files, largest total latency first
  rdmadump files nfs.pcap -Y 'removed != null'
                                          who removed which file, and when
  rdmadump files nfs.pcap --sort -written --top 10
  rdmadump files nfs.pcap -Y 'operation == WRITE' -e file -e latency.max_ns`,
	"stats": `  rdmadump stats nfs.pcap                 sum up by operation, largest total latency first
  rdmadump stats nfs.pcap -Y 'latency > 1ms'
  rdmadump stats nfs.pcap --by client,operation --top 5
  rdmadump stats nfs.pcap --every 1s      sum up every second: rates, latencies, Calls in flight`,
}

// columnsManual is the beginning of the page on headings and symbols, in Markdown. The
// explanations follow.
const columnsManual = `# NAME

rdmadump-columns - the headings and symbols of tables, ladder diagrams and timelines

# DESCRIPTION

This page explains the headings and symbols of every view; some symbols have other meanings
in other views. **--columns** and **-Y** accept headings in upper or lower case. A narrow terminal hides some columns and says
which; **--wide** shows all of them.
`

// FilterManual is the page on the filter language, in Markdown. The fields follow.
const FilterManual = `# NAME

rdmadump-filter - the expressions of rdmadump -Y

# SYNOPSIS

**rdmadump** *VIEW* *FILE* **-Y** *'EXPRESSION'*

# DESCRIPTION

**-Y** selects the records of a view that match an expression over their fields. A
field is named as in JSON (**latency_ns**), as in Wireshark (**rpcordma.xid**), or by
the heading of its column (**LATENCY**). The command **rdmadump fields** *VIEW* lists
them. Expressions for **overview**, **extract** and **export** use the fields of
transactions, but for **export --format pcapng** those of packets. For **stats** and
**files**, they use the fields of transactions, to select what is summed up, or the
columns of the table, to select its rows. For **live**, they use the fields of its view.

# COMPARISONS

**==** **!=** **<** **<=** **>** **>=**, or **eq** **ne** **lt** **le** **gt**
**ge**, compare two values. **contains**, **startsWith**, **endsWith** and **matches**
(or **~**, followed by a regular expression) search text; for a number they search the
text that JSON shows. **in** is followed by a set of values, a range, a network, or a
field that is a list: *xid in {0x4cc9dbf7, 0x4dc9dbf7}*, *number in {1..100}*,
*client in 192.168.77.0/24*, *"READ" in operations*.

**and**, **or**, **not** (or **&&**, **||**, **!**) combine conditions; **not** applies
to the whole comparison that follows it. A field without a comparison is true if it is
present and is not false, zero or empty.

If a field is a list, or its path runs through a list, a comparison is true if it is
true for any element; but **!=** is true if no element is equal. **any(timeline, .event == nak
and .packet > 100)** is true if one element meets both conditions.

**null** means that a value is unknown or does not exist; the list of fields says
which. It equals only itself, and no other comparison with it is true, as in Wireshark and
SQL: *nfs_status != NFS4_OK* selects no RPC without an NFS status. *!= null*, and a field
without a comparison, select what has a value.

Names of Wireshark's filters that stand for several fields work, too: **ip.addr**,
**tcp.port**, **udp.port** and **frame.time_relative** (in seconds), and protocols as
conditions: **nfs**, **nfsacl**, **mount**, **nlm**, **rpcordma**, **infiniband**,
**iwarp_mpa**. The elements of a set may be separated by commas or by spaces.

# VALUES

Numbers
: *42*, *0x4cc9dbf7*, up to 64 bits.

Durations
: *5ms*, *20us*, *1.5s*, *1m30s*. A number without a unit is an error.

Sizes
: *4096*, *64KiB*, *1GiB*, *96K*.

Times
: *2026-11-21T05:20:00Z*; a time without a zone is UTC. **--from** and **--to** also
accept seconds since the start of the capture.

Addresses
: *192.168.77.1*, *192.168.77.0/24*, *fe80::1*, *52:54:00:77:00:01*.

Bytes
: *8f3a2c*, *0x8f3a2c*, *8f:3a:2c*, in hex: file handles, session IDs, owners. A
stateid can be given with all of its 16 bytes, with the last 12 only (*other*), or as
tables show it, with its sequence number before a colon:
*1:a227016bb6919acf03000000*.

Text
: *"in quotes"*, or a word. Compared with a field of text, a word is a value, even if it is
also a heading: *operation == READ*. Only the exact name of another field of text stands
for that field: *call.form == reply.form*. For a field with few values, upper and lower
case are the same. A procedure, an operation or a status that does not exist is an error.

Values can be typed as tables show them: *status == ok*, *dir == back*, *form ==
"short/long"*. The **status** *complete* of a transaction means that the capture
contains its Call and its Reply, whatever the Reply says; *ok* means that the Reply has
no error status either.

# NAMES WITH ANOTHER MEANING

Some names mean something else than one may expect:

**operation**
: In transactions, the NFS operation: *operation == WRITE*. In packets, it is a name for
**rdma_operation**: *operation == "RDMA Write"*.

**ip.src**, **ip.dst**
: In transactions, the addresses that the Call came from and went to; in connections, the client and the server.
**ip.addr** is either.

**udp.port**
: In transactions and connections, 4791 for RoCEv2. In packets, both ports of the packet.

**client**, **server**
: In connections, their address, with or without the port. For RoCE and InfiniBand, this
is the port of the RDMA connection manager, not a UDP port.

**rpc.version**
: The version of the RPC program. In Wireshark it is the version of RPC, which is
**rpc.rpc_vers** here.

**tcp.seq**, **tcp.ack**
: The numbers in the header, which Wireshark calls **tcp.seq_raw** and **tcp.ack_raw**.

# ARGUMENTS AND RESULTS

**nfs.offset**, **nfs.name**, **nfs.slotid** and so on stand for every value with that
name in the arguments and results of NFS, its callbacks, MOUNT, NLM and NFSACL, in any
operation, of the Call or of the Reply. A comparison is true if it is true for one of
these values. The names are those of **--rpc**, or those of Wireshark
(**nfs.offset4**). **nfs.status** and other enumerations accept names and numbers.
**nfs.operation** and **nfs.opcode** stand for the operations, **nfs.stateid** and
**nfs.fhandle** for all stateids and all file handles under any name, and
**nfs.error** for the reason why something could not be decoded.

For a transaction, the values come from the whole Call and the whole Reply, including
chunks. An expression that uses these fields makes rdmadump keep all data that moves,
within **--memory**. For a packet, the values come from the Send that begins or ends in
the packet: if a Send takes several packets, the first packet has the values that it
contains, and the last packet has all values. Data in chunks is not part of a Send, and
a Call and its Reply are different packets.

# EXAMPLES

    rdmadump nfs.pcap -Y 'nfs.offset >= 1GiB and nfs.opcode == READ'
    rdmadump nfs.pcap -Y 'nfs.name == "a.out" or nfs.status == NFS4ERR_STALE'
    rdmadump nfs.pcap -Y 'nfs.fh == 010001010000000006a71826 or nfs.slotid > 30'
    rdmadump nfs.pcap -Y 'latency > 5ms and operation == READ'
    rdmadump nfs.pcap -Y 'nfs and ip.addr == 192.168.77.1 and frame.time_relative < 5'
    rdmadump nfs.pcap -Y 'not status == ok'
    rdmadump nfs.pcap -Y 'xid in {0x4cc9dbf7, 0x4dc9dbf7}'
    rdmadump nfs.pcap -Y 'latency in {1ms..5ms} and "READ" in operations'
    rdmadump nfs.pcap -Y 'read_chunks.segments.length >= 1MiB'
    rdmadump nfs.pcap -Y 'any(waits, .ns > 100ms and .reason contains retransmit)'
    rdmadump connections nfs.pcap -Y 'client in 192.168.77.0/24 and retr > 0'
    rdmadump packets nfs.pcap -Y 'ip.src == 192.168.77.1 and bth.ack_req'
    rdmadump packets nfs.pcap -Y 'marks == retransmitted'
    rdmadump check nfs.pcap -Y 'rule == xid-mismatch'

# ERRORS

rdmadump checks an expression before it reads the capture, and marks the place of an
error:

    rdmadump: -Y: 5 has no unit; write 5ms, 5us or 5s
      latency > 5
                ^

`

// filterPage returns the page on filters with the fields of all views, in Markdown.
func filterPage() string {
	var b strings.Builder
	b.WriteString(FilterManual)
	for _, l := range FieldLists[:7] {
		fmt.Fprintf(&b, "# FIELDS OF %s\n\n", strings.ToUpper(l.View))
		for _, f := range l.Fields.List() {
			if query.InTables(f.Path) { // They are listed once, below.
				continue
			}
			fmt.Fprintf(&b, "**%s** (%s)\n: %s\n\n", escapeMarkdown(f.Path), f.Kind(), escapeMarkdown(aboutField(&f)))
		}
	}
	b.WriteString("# FIELDS OF ARGUMENTS AND RESULTS, IN TRANSACTIONS AND PACKETS\n\n")
	for _, f := range query.Transactions.List() {
		if query.InTables(f.Path) {
			fmt.Fprintf(&b, "**%s** (%s)\n: %s\n\n", escapeMarkdown(f.Path), f.Kind(), escapeMarkdown(aboutField(&f)))
		}
	}
	b.WriteString("# SEE ALSO\n\n**rdmadump(1)**, **rdmadump-fields(1)**\n")
	return b.String()
}

// aboutField returns the meaning of a field with its values and its other names.
func aboutField(f *query.Field) string {
	text := f.Doc
	if f.Values != nil {
		text += " Values: " + strings.Join(f.Values, ", ") + "."
	}
	if f.Aliases != nil {
		text += " Other names: " + strings.Join(f.Aliases, ", ") + "."
	}
	return text
}

// WriteManual writes the man pages of root, of all commands below it, and of the help
// topics to a folder.
func WriteManual(root *cobra.Command, folder string) (err error) {
	date := time.Now()
	if epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		date = time.Unix(epoch, 0) // for builds that can be reproduced
	}
	month := date.UTC().Format("Jan 2006")
	write := func(name string, section int, page string) {
		var file *command.OutFile
		if err == nil {
			file, err = command.Create(root.Context(), filepath.Join(folder, fmt.Sprintf("%s.%d", name, section)), nil, nil)
		}
		if err == nil {
			_, err = file.Write(manPage(name, section, month, page))
			err = file.Done(err)
		}
	}
	EachCommand(root, func(cmd *cobra.Command) {
		if cmd.IsAvailableCommand() || cmd == root {
			write(Dashed(cmd), 1, commandPage(cmd))
		}
	})
	write("rdmadump-filter", 7, filterPage())
	write("rdmadump-columns", 7, columnsPage(render.Explanations())+"# SEE ALSO\n\n**rdmadump(1)**\n")
	return err
}

// Dashed returns the name of a command's man page.
func Dashed(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// commandPage returns the man page of a command, in Markdown. Its flags have the same headings as in the help text.
func commandPage(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# NAME\n%s - %s\n\n# SYNOPSIS\n**%s**\n\n# DESCRIPTION\n", Dashed(cmd), escapeMarkdown(cmd.Short), escapeMarkdown(cmd.UseLine()))
	for line := range strings.Lines(cmp.Or(cmd.Long, cmd.Short+".")) {
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") { // Examples have no marks.
			line = escapeMarkdown(line)
		}
		b.WriteString(line)
	}
	b.WriteString("\n\n# OPTIONS\n")
	for group, set := range flags.Grouped(cmd) {
		if set.HasFlags() {
			fmt.Fprintf(&b, "## %s\n", flags.GroupTitles[group])
		}
		set.VisitAll(func(f *pflag.Flag) { fmt.Fprintf(&b, "%s\n: %s\n\n", flagName(f), escapeMarkdown(flagUsage(f))) })
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "# EXAMPLES\n%s\n\n", cmd.Example)
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, Dashed(cmd.Parent())+"(1)")
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			also = append(also, Dashed(c)+"(1)")
		}
	}
	for _, topic := range Topics {
		also = append(also, "rdmadump-"+topic.Name+"(7)")
	}
	fmt.Fprintf(&b, "# SEE ALSO\n**%s**\n", strings.Join(also, "**, **"))
	return b.String()
}

// flagName returns a flag with its short form and its placeholder, for a man page.
func flagName(f *pflag.Flag) string {
	name := "**--" + f.Name + "**"
	if f.Shorthand != "" {
		name = "**-" + f.Shorthand + "**, " + name
	}
	switch placeholder, _ := pflag.UnquoteUsage(f); {
	case placeholder == "":
	case f.NoOptDefVal != "":
		name += "[=*" + placeholder + "*]"
	default:
		name += " *" + placeholder + "*"
	}
	return name
}

// flagUsage returns the description of a flag as a sentence, with its default.
func flagUsage(f *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(f)
	first, size := utf8.DecodeRuneInString(usage)
	usage = string(unicode.ToUpper(first)) + usage[size:] + "."
	switch f.DefValue {
	case "", "0", "false", "[]":
		return usage
	}
	return usage + " The default is " + f.DefValue + "."
}

// bareCompletion replaces the call of a function of the bash-completion package in cobra's
// script. Without that package, each TAB would print an error.
const bareCompletion = `if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
    else
        cur=${COMP_WORDS[COMP_CWORD]}
        prev=${COMP_WORDS[COMP_CWORD-1]}
        words=("${COMP_WORDS[@]}")
        cword=$COMP_CWORD
    fi`

// Document sets the examples of the views and the completion script for bash.
func Document(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if example := viewExamples[cmd.Name()]; example != "" {
			cmd.Example = example
		}
	}
	bashCompletion(root)
}

// bashCompletion makes cobra's completion script for bash work without other packages.
func bashCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || cmd.Name() != "bash" {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var b bytes.Buffer
		if err := root.GenBashCompletionV2(&b, true); err != nil {
			return err
		}
		_, err := fmt.Fprint(cmd.Root().OutOrStdout(), strings.Replace(b.String(), `_get_comp_words_by_ref "$@" cur prev words cword`, bareCompletion, 1))
		return err
	}
}
