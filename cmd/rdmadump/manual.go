package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/query"
)

// viewExamples are those of the commands' help and man pages.
var viewExamples = map[string]string{
	"transactions": `  rdmadump transactions nfs.pcap --top 10 the ten slowest
  rdmadump transactions nfs.pcap -Y 'latency > 5ms and READ in operations'
  rdmadump transactions nfs.pcap -Y 'status != ok'
  rdmadump transactions nfs.pcap --xid 0x4cc9dbf7 --time utc
                                          one of them, drawn, with times of day`,
	"connections": `  rdmadump connections nfs.pcap           a line each
  rdmadump connections nfs.pcap -Y 'retr > 0 or nak > 0'
  rdmadump connections nfs.pcap --conn 0 --timeline
                                          credits and handles over time
  rdmadump connections nfs.pcap --columns CONN,CLIENT,RETR,CLOSED`,
	"packets": `  rdmadump packets nfs.pcap --xid 0x4cc9dbf7   those of one RPC
  rdmadump packets -V nfs.pcap -c 1       every field of the first
  rdmadump packets nfs.pcap -Y 'ip.src in 192.168.77.0/24 and bth.opcode == 0x17'
  rdmadump packets nfs.pcap --columns TIME,XID,OPERATION,PSN,MARKS
  rdmadump packets nfs.pcap -e number -e bth.psn -e reth.r_key`,
	"check": `  rdmadump check nfs.pcap                 what broke which rule
  rdmadump check nfs.pcap -Y 'severity == error' --time local
  rdmadump check nfs.pcap -o json --jq 'select(.rule == "xid-mismatch") | .packet'`,
	"stats": `  rdmadump stats nfs.pcap                 per operation, what took most time first
  rdmadump stats nfs.pcap -Y 'latency > 1ms'
  rdmadump stats nfs.pcap --by procedure --top 5`,
}

// filterManual is the page on the filter language, in Markdown; the fields follow.
const filterManual = `rdmadump-filter 7 "" rdmadump "Filters of rdmadump"
==================================================

# NAME

rdmadump-filter - the expressions of rdmadump -Y

# SYNOPSIS

**rdmadump** *VIEW* *FILE* **-Y** *'EXPRESSION'*

# DESCRIPTION

**-Y** keeps the records of a view that match an expression over their fields. A
field is named as JSON names it (**latency_ns**), as Wireshark does
(**rpcordma.xid**), or as the heading of its column does (**LATENCY**).
**rdmadump fields** *VIEW* lists them.

# COMPARISONS

**==** **!=** **<** **<=** **>** **>=**, or **eq** **ne** **lt** **le** **gt**
**ge**, compare. **contains**, **startsWith**, **endsWith** and **matches** (or
**~**), with a regular expression behind it, look into text; of a number they look
into what is shown of it. **in** takes a list, a range or a network.

**and**, **or**, **not** (or **&&**, **||**, **!**) join conditions; **not** is of
the whole comparison behind it. A field alone is true when it is there, and not
false, zero or empty.

Where a field is a list, or runs through one, a comparison holds when it holds for
any element; **!=** is the opposite of **==**. **any(timeline, .event == nak and
.packet > 100)** asks for one element that is all of that.

**null** is what is not known. It equals itself, and is neither more nor less than
anything.

# VALUES

Numbers
: *42*, *0x4cc9dbf7*, up to 64 bits.

Times
: *5ms*, *20us*, *1.5s*, *1m30s*. A number without a unit is asked for one.

Sizes
: *4096*, *64KiB*, *1GiB*, *96K*.

Moments
: *2026-11-21T05:20:00Z*; without zone it is UTC. **--from** and **--to** take
seconds from the start of the capture, too.

Addresses
: *192.168.77.1*, *192.168.77.0/24*, *fe80::1*, *52:54:00:77:00:01*.

Bytes
: *8f3a2c*, *0x8f3a2c*, *8f:3a:2c*, in hex: file handles, session IDs, owners. A
stateid is 16 bytes, 12 without its first word, or as it is shown:
*1:61207374617465696428*...

Text
: *"in quotes"*, or a word that is no field: *operation == READ*. Of a field of few
values letters may be small or large.

What tables show can be typed as they show it: *status == ok*, *dir == back*, *form
== "short>long"*.

# WHAT CALLS ASK AND REPLIES SAY

**nfs.offset**, **nfs.name**, **nfs.slotid** and so on are every value of that name
in the arguments and results of NFS, its callbacks, MOUNT, NLM and NFSACL: in any
operation, of the Call or of the Reply. A comparison holds when it holds for one of
them. They are called what **--rpc** calls them, or what Wireshark does
(**nfs.offset4**). **nfs.status** and other enumerations take names and numbers.
Further there are **nfs.operation** and **nfs.opcode**, **nfs.stateid** and
**nfs.fhandle**, which are all stateids and all file handles whatever they are
called, and **nfs.error**.

Of transactions it is the whole Call and the whole Reply, also what travelled in
chunks; an expression that names one of these fields makes rdmadump keep all data
that moves, within **--memory**. Of packets it is what the Send says that begins or
ends in the packet: of one that takes several packets the first has what is in it
and the last has all. What travels in chunks is in no Send, and what is asked and
what is answered are two packets.

# EXAMPLES

    rdmadump nfs.pcap -Y 'nfs.offset >= 1GiB and nfs.opcode == READ'
    rdmadump nfs.pcap -Y 'nfs.name == "a.out" or nfs.status == NFS4ERR_STALE'
    rdmadump nfs.pcap -Y 'nfs.fh == 010001010000000006a71826 or nfs.slotid > 30'
    rdmadump nfs.pcap -Y 'latency > 5ms and operation == READ'
    rdmadump nfs.pcap -Y 'not status == ok'
    rdmadump nfs.pcap -Y 'xid in {0x4cc9dbf7, 0x4dc9dbf7}'
    rdmadump nfs.pcap -Y 'read_chunks.segments.length >= 1MiB'
    rdmadump nfs.pcap -Y 'any(waits, .ns > 100ms and .reason contains repeat)'
    rdmadump connections nfs.pcap -Y 'client in 192.168.77.0/24 and retr > 0'
    rdmadump packets nfs.pcap -Y 'ip.src == 192.168.77.1 and bth.ackreq'
    rdmadump packets nfs.pcap -Y 'marks == retransmitted'
    rdmadump check nfs.pcap -Y 'rule == xid-mismatch'

# ERRORS

An expression that cannot be is refused before the capture is read, with a mark
under the place:

    rdmadump: -Y: 5 what? 5ms, 5us, 5s
      latency > 5
                ^

`

// filterPage is the man page on filters, with the fields of all views.
func filterPage() []byte {
	var b strings.Builder
	b.WriteString(filterManual)
	for _, l := range fieldLists[:5] {
		fmt.Fprintf(&b, "# FIELDS OF %s\n\n", strings.ToUpper(l.view))
		for _, f := range l.fields.List() {
			if query.InTables(f.Path) { // once, below
				continue
			}
			fmt.Fprintf(&b, "**%s** (%s)\n: %s\n\n", escapeMarkdown(f.Path), kindOf(&f), escapeMarkdown(aboutField(&f)))
		}
	}
	b.WriteString("# FIELDS OF ARGUMENTS AND RESULTS, IN TRANSACTIONS AND PACKETS\n\n")
	for _, f := range query.Transactions.List() {
		if query.InTables(f.Path) {
			fmt.Fprintf(&b, "**%s** (%s)\n: %s\n\n", escapeMarkdown(f.Path), kindOf(&f), escapeMarkdown(aboutField(&f)))
		}
	}
	b.WriteString("# SEE ALSO\n\n**rdmadump(1)**, **rdmadump-fields(1)**\n")
	return md2man.Render([]byte(b.String()))
}

func kindOf(f *query.Field) string {
	if f.List {
		return f.Type + " list"
	}
	return f.Type
}

// aboutField is a field's meaning, values and other names.
func aboutField(f *query.Field) string {
	text := f.Doc
	if f.Values != nil {
		text += ": " + strings.Join(f.Values, ", ")
	}
	if f.Aliases != nil {
		text += ". Also " + strings.Join(f.Aliases, ", ")
	}
	return text + "."
}

func escapeMarkdown(s string) string {
	return strings.NewReplacer("_", `\_`, "*", `\*`, "<", `\<`).Replace(s)
}

// writeFilterPage writes the page on filters beside those of the commands.
func writeFilterPage(folder string) error {
	return os.WriteFile(filepath.Join(folder, "rdmadump-filter.7"), filterPage(), 0o644)
}

// bareCompletion is what completes without the bash-completion package, instead
// of an error at each TAB: cobra's script wants a function of that package.
const bareCompletion = `if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
    else
        cur=${COMP_WORDS[COMP_CWORD]}
        prev=${COMP_WORDS[COMP_CWORD-1]}
        words=("${COMP_WORDS[@]}")
        cword=$COMP_CWORD
    fi`

// document gives the commands what their own files do not.
func document(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if example := viewExamples[cmd.Name()]; example != "" {
			cmd.Example = example
		}
	}
	bashCompletion(root)
}

// bashCompletion makes cobra's completion script for bash stand alone.
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
