package browse

import "strings"

// helpText explains the keys. Its lines fit a terminal of 80 columns.
const helpText = `MOVE
  j k, arrows        next, previous line
  ^D ^U, ^F ^B, PgUp PgDn   half a page, a page
  g G, Home End      first, last line
  Enter, l           open: an RPC as a ladder, then its packets; a connection
  q, h, Esc          back; q in a list quits, unless the list was opened from
                     another one: the last line says so
  0                  overview; Enter shows what its line is about
  1 2 3 4 5 6 7, Tab RPCs, connections, findings, sums by operation, files,
                     sums by time, packets
  Q, ^C, ZZ          quit

FIND
  /                  search: moves to the next row that contains the text;
                     n N go on
  &, f, F7           filter in the language of -Y; empty shows all; Tab
                     completes fields and values, Up shows earlier filters
  e E                next, previous RPC that failed or has findings; in the
                     list of packets, packet with a mark
  :57                the RPC with the number 57; in the list of packets, the
                     packet
  :10:02:03.5        the first record at or after a time, as --from takes it:
                     also with a date, since 1970, 2.5s since the start, or
                     -1m from the end of what was read
  :from TIME :to TIME   add a limit of time to the filter of the list
  r                  in the list of packets: the RPC of the packet
  < > z              sort by the column to the left or right, << by latency;
                     z reverses the order
  :sort FIELD        sort by any field; -FIELD puts the largest first
  x                  in findings: explain the rule
  t                  times: since the start, time of day (UTC), here
  w                  all columns of tables that fit, or the usual ones
  \                  hide or show the lines below a list
  F                  the cursor stays on the newest record of a live capture

USE
  Space, U           mark the RPC, or take its mark away; unmark all
  d                  compare two marked RPCs side by side
  c                  say what the RPCs of the filter have in common that
                     others do not; without a filter, of those with trouble
  y, then            copy to the clipboard of the terminal (OSC 52):
    r x j l            the row, the XID, the JSON, the ladder as text
    f c                the filter, the command line that shows the same
  Y                  quit and print what was copied
  s, F2              save the marked RPCs, this RPC or the list as
                     FILE.pcapng, FILE.json (JSON lines), FILE.txt (ladders)
  b B, :by FIELDS    in sums by operation: group by client, server, file,
                     directory, size, or by any fields
  + - 0              in sums by time: zoom in, zoom out, show all; if all is
                     shown, 0 is the overview
  n N                in a ladder: next, previous one of the list that it was
                     opened from; with packets: next, previous packet
  Space, za zo zc    in a packet: fold or open the fields of a header, as in
  zR zM              vim; open all, fold all
  ^Z                 suspend

ROWS
  >  the line with the cursor    *  marked    !  the RPC has findings
The headings of the columns are explained by: rdmadump help columns
The language of filters is explained by:      rdmadump help filter`

// newHelp returns the screen that explains the keys.
func newHelp() *pane { return &pane{name: "keys", text: strings.Split(helpText, "\n")} }
