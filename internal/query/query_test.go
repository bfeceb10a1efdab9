package query_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
)

// count counts the matching records of a capture, by type.
func count(t *testing.T, name, source string, fields query.Fields) int {
	t.Helper()
	filter, err := query.Compile(source, fields)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	match := func(r any) {
		if filter.Match(r) {
			n++
		}
	}
	var h dissect.Handler
	switch fields {
	case query.Transactions:
		h.Transaction = func(r *record.Transaction) error {
			match(r)
			return nil
		}
	case query.Connections:
		h.Connection = func(r *record.Connection) error {
			match(r)
			return nil
		}
	case query.Packets:
		h.Packet = func(r *record.Packet) error {
			match(r)
			return nil
		}
	case query.Findings:
		h.Finding = func(r *record.Finding) error {
			match(r)
			return nil
		}
	}
	matchAll(t, name, h)
	return n
}

func TestFilter(t *testing.T) {
	const callback, errors = "rocev2-callback41.pcap.zst", "rocev2-errors.pcap.zst"
	for _, c := range []struct {
		capture, source string
		fields          query.Fields
		want            int
	}{
		{callback, `xid == 0x3da94e54`, query.Transactions, 1},
		{callback, `xid == "0x3da94e54"`, query.Transactions, 1},
		{callback, `rpcordma.xid == 0x3da94e54`, query.Transactions, 1},
		{callback, `direction == "backward"`, query.Transactions, 3},
		{callback, `direction != "backward"`, query.Transactions, 61},
		{callback, `"CB_RECALL" in operations`, query.Transactions, 3},
		{callback, `operations matches "^CB_"`, query.Transactions, 3},
		{callback, `operations == "READ" and write_chunks.segments.moved_bytes > 0`, query.Transactions, 4},
		{callback, `reply_chunk`, query.Transactions, 11},
		{callback, `not reply_chunk`, query.Transactions, 53},
		{callback, `reply.credits in [16, 17]`, query.Transactions, 3},
		{callback, `call.rdma_proc == "RDMA_MSG" and reply.rdma_proc == "RDMA_NOMSG"`, query.Transactions, 11},
		{callback, `latency_ns > 100ms`, query.Transactions, 2},
		{callback, `latency > 0.1s && latency < 1h`, query.Transactions, 2},
		{callback, `invalidation.handle == 0xcf4`, query.Transactions, 1},
		{callback, `any(timeline, .event == "invalidate")`, query.Transactions, 15},
		{callback, `call.time >= "2026-11-21T05:20:00Z"`, query.Transactions, 23},
		{errors, `reply.credits > 0`, query.Transactions, 14}, // A Reply that is null is neither less nor greater.
		{errors, `reply == null or rdma_error == "ERR_CHUNK"`, query.Transactions, 11},
		{errors, `"xid-mismatch" in findings`, query.Transactions, 1},
		{errors, `ended.how == nak`, query.Connections, 3},
		{errors, `private_data.client.offset == 3`, query.Connections, 1},
		{errors, `client.qpn >= 0x20`, query.Connections, 4},
		{errors, `severity == "note"`, query.Findings, 4},
		{callback, `infiniband.bth.opcode == 17`, query.Packets, 143},
		{callback, `bth.opcode == 0x17 or bth.opcode_name contains "Invalidate"`, query.Packets, 15},
		{callback, `reth`, query.Packets, 15},
		{callback, `infiniband.reth.r_key == 0xcf4`, query.Packets, 1},
		{callback, `cm.message == "REQ" and ip_cm.source_port == 42771`, query.Packets, 1},
		{callback, `rpcrdma.xid == 0x3ea94e54`, query.Packets, 2},
		{callback, `rpc.operations == "EXCHANGE_ID"`, query.Packets, 4},
		{callback, `segment.handle == 0xcf4`, query.Packets, 2},
		{"derived-ib-callback41.pcap.zst", `src == "LID 2"`, query.Packets, 149},
		{callback, `eth.src == "52:54:00:77:00:01"`, query.Packets, 160},
		{callback, `cm.private_data contains "f6ab0e18"`, query.Packets, 4},
		{callback, `src == null`, query.Packets, 4},
		{callback, `transport == null`, query.Packets, 26},
		{callback, `ip.src == "192.168.77.1" and connection == 0`, query.Packets, 61},
	} {
		if got := count(t, c.capture, c.source, c.fields); got != c.want {
			t.Errorf("%s: %d of %s, want %d", c.source, got, c.capture, c.want)
		}
	}
}

// TestAliases: Wireshark's names and short names stand for the same fields as before, and each is
// listed with its field.
func TestAliases(t *testing.T) {
	for _, c := range []struct {
		fields query.Fields
		want   map[string]string
	}{
		{query.Transactions, map[string]string{
			"rpcordma.xid": "xid", "rpc.xid": "xid", "rpcordma.msg_type": "call.rdma_proc", "rpcordma.version": "call.rdma_vers",
			"rpcordma.flow_control": "call.credits", "rpcordma.position": "read_chunks.position", "rpc.program": "program",
			"rpc.programversion": "version", "rpc.procedure": "procedure", "nfs.nfsstat4": "nfs.status", "nfs.nfsstat3": "nfs.status",
			"frame.number": "call.packet", "frame.time": "call.time", "rpc.time": "latency_ns", "latency": "latency_ns",
			"infiniband.ieth": "invalidation.handle", "handle": "timeline.handle", "rpcordma.rdma_handle": "timeline.handle",
		}},
		{query.Connections, map[string]string{"ip.src": "client.address", "ip.dst": "server.address", "infiniband.cm.req.serviceid": "service_id", "conn": "id"}},
		{query.Findings, map[string]string{"frame.number": "packet", "rpcordma.xid": "xid", "rpc.xid": "xid"}},
		{query.Packets, map[string]string{
			"frame.number": "number", "frame.len": "length", "frame.cap_len": "captured", "frame.time": "time", "ip.src": "ipv4.src", "ip.dst": "ipv4.dst",
			"ipv6.src": "ipv6.src", "infiniband.invariant.crc": "infiniband.invariant.crc", "xid": "xid", "credits": "rpcrdma.credits", "rpc.programversion": "rpc.version",
			"rpc.msgtyp": "rpc.message_type", "infiniband.bth.psn": "bth.psn", "sll.etype": "sll.etype",
			"infiniband.cm.req.localqpn": "infiniband.cm.req.localqpn", "infiniband.cm.dreq.localcommid": "infiniband.cm.dreq.localcommid",
		}},
	} {
		for alias, want := range c.want {
			if got, err := query.Resolve(alias, c.fields); err != nil || got != want {
				t.Errorf("%s is %s, want %s: %v", alias, got, want, err)
			}
		}
		for _, f := range c.fields.List() {
			if f.Type == "" || f.Doc == "" || !c.fields.Has(f.Path) {
				t.Errorf("%+v lacks a type or a meaning", f)
			}
		}
	}
}

// TestEveryField: each field of each record can be read, for filters and for printing.
func TestEveryField(t *testing.T) {
	known := map[string]bool{} // fields that have a value in some record
	read := func(fields query.Fields, kind string, r any) {
		for _, name := range fields.Names() {
			plain, raw := fields.Get(r, name), fields.Raw(r, name)
			if (plain == nil) != (raw == nil) {
				t.Errorf("%s is %v to filters and %v in columns", name, plain, raw)
			}
			known[kind+name] = known[kind+name] || plain != nil
		}
	}
	for _, name := range []string{"rocev2-errors.pcap.zst", "rocev2-loss42.pcap.zst", "rocev2-nfs41.pcap.zst", "rocev2-callback41.pcap.zst", "lab-retries42.pcap.zst", "lab-krb5.pcap.zst", "ends-stormall42-client.pcap.zst", "rocev2-storm41.pcap.zst"} {
		f, err := capture.Open("../../testdata/captures/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		d := dissect.New(dissect.Handler{
			Transaction: func(r *record.Transaction) error {
				read(query.Transactions, "transaction ", r)
				return nil
			},
			Connection: func(r *record.Connection) error {
				read(query.Connections, "connection ", r)
				return nil
			},
			Finding: func(r *record.Finding) error {
				read(query.Findings, "finding ", r)
				return nil
			},
		}, dissect.Options{RPC: true, Files: true, At: record.Position{Place: record.AtClient}})
		if _, err := d.Run(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	read(query.Transactions, "transaction ", &record.Transaction{
		Reply: &record.Message{}, MountPath: record.Some("/export"), Mapping: &record.Mapping{ProgramName: record.Some("NFS"), Port: record.Some[uint16](2049)},
	})
	handle, point := record.Some(record.Hex32(1)), "client.pcap" // No capture has such values, and one capture point has no name.
	read(query.Transactions, "transaction ", &record.Transaction{
		Call:  &record.Message{InvHandle: handle, FirstSent: record.Some(record.Time(1)), Point: &point, LastPoint: &point},
		Reply: &record.Message{InvHandle: handle, Point: &point, LastPoint: &point}, Principal: record.Some("root@LAB"), Split: record.Some(record.Split{}),
		Meanwhile: record.Some(record.Meanwhile{PausePort: record.Some(record.PausedByServer), PausedNS: record.Some(record.Bounds{Min: 1, Max: 2})}),
	})
	for name, some := range known {
		if !some && !query.Decoded(strings.TrimPrefix(name, "transaction ")) { // The captures have only some of the values of NFS.
			t.Errorf("no %s in any record", name)
		}
	}
	read(query.Transactions, "", &record.Transaction{Reply: &record.Message{}})
	read(query.Connections, "", &record.Connection{})
	read(query.Findings, "", &record.Finding{})
	read(query.Packets, "", &record.Packet{})
}

// TestShown: values can be typed as tables show them.
func TestShown(t *testing.T) {
	const iwarp, callback, errors, nfs = "iwarp-nfs41.pcap.zst", "rocev2-callback41.pcap.zst", "rocev2-errors.pcap.zst", "rocev2-nfs41.pcap.zst"
	for _, c := range []struct {
		capture, source, same string
		fields                query.Fields
	}{
		{callback, `status == ok`, `status == "complete" and (nfs_status == "NFS4_OK" or nfs_status == null)`, query.Transactions},
		{nfs, `STATUS == ok`, `status == "complete" and (nfs_status endsWith "_OK" or nfs_status == null) and rpc_status == "SUCCESS"`, query.Transactions},
		{nfs, `status == NFS4ERR_NOENT`, `nfs_status == "NFS4ERR_NOENT"`, query.Transactions},
		{errors, `status == ERR_CHUNK`, `rdma_error == "ERR_CHUNK"`, query.Transactions},
		{errors, `status == complete`, `status == "complete"`, query.Transactions},
		{callback, `dir == back`, `direction == "backward"`, query.Transactions},
		{callback, `DIR != back`, `direction == "forward"`, query.Transactions},
		{callback, `rpc and udp and infiniband and not tcp`, `transport == "RoCEv2"`, query.Transactions},
		{callback, `ip.src == 192.168.77.1`, `direction == "backward"`, query.Transactions},
		{callback, `ip.dst == 192.168.77.1`, `direction == "forward"`, query.Transactions},
		{callback, `udp.port == 4791 and ip.addr == 192.168.77.2`, `id > 0`, query.Transactions},
		{callback, `frame.number in {30 37}`, `call.packet in [30, 37] or reply.packet in [30, 37]`, query.Transactions},
		{iwarp, `tcp.port == 20049 and tcp and iwarp_mpa and rpcordma`, `id >= 0`, query.Connections},
		{iwarp, `iwarp_ddp_rdmap and not udp and not infiniband`, `transport == "iWARP"`, query.Transactions},
		{callback, `udp.port == 4791 and udp and rpcordma`, `id >= 0`, query.Connections},
		{callback, `not (tcp.port == 20049 or tcp)`, `id >= 0`, query.Connections},
		{callback, `frame.time_relative < 8`, `first < 2026-11-21T05:19:57.640067Z`, query.Connections},
		{errors, `ip.addr == 192.168.77.2`, `client != null`, query.Findings},
		{errors, `frame.time_relative >= 0.001`, `packet > 1`, query.Findings},
		{errors, `at_fault == client`, `at_fault == "client"`, query.Findings},
		{errors, `client == at_fault`, `at_fault == "client"`, query.Findings},
		{callback, `conn == 1`, `connection == 1`, query.Transactions},
		{callback, `CONN == 1`, `id == 1`, query.Connections},
		{callback, `LATENCY > 5ms`, `latency_ns > 5000000`, query.Transactions},
		{callback, `5ms < latency`, `latency_ns > 5000000`, query.Transactions},
		{callback, `operation == READ`, `operation == "READ"`, query.Transactions},
		{callback, `READ in operations`, `"READ" in operations`, query.Transactions},
		{callback, `procedure == CB_RECALL`, `"CB_RECALL" in operations`, query.Transactions},
		{callback, `procedure contains "CB_REC"`, `"CB_RECALL" in operations`, query.Transactions},
		{callback, `program == NFS`, `program == 100003`, query.Transactions},
		{callback, `procedure == 1`, `procedure_name == "COMPOUND" or procedure_name == "CB_COMPOUND"`, query.Transactions},
		{nfs, `rdma_read_bytes > 0`, `read_chunks.segments.moved_bytes > 0`, query.Transactions},
		{callback, `reply > 100B`, `reply.payload_bytes > 100`, query.Transactions},
		{callback, `form == "short/long"`, `call.form == short and reply.form == long`, query.Transactions},
		{callback, `dscp == 0`, `call.dscp == 0 or reply.dscp == 0`, query.Transactions},
		{callback, `INVALIDATED == 0xcf4`, `invalidation.handle == 0xcf4`, query.Transactions},
		{callback, `time >= 2026-11-21T05:20:00Z`, `call.time >= "2026-11-21T05:20:00Z"`, query.Transactions},
		{callback, `not status == "complete"`, `status != "complete"`, query.Transactions},
		{callback, `!status == complete or not dir == back and conn == 0`, `status != "complete" or (direction != "backward" and connection == 0)`, query.Transactions},
		{callback, `xid in {0x3da94e54, 0x3ea94e54}`, `xid == 0x3da94e54 or xid == 0x3ea94e54`, query.Transactions},
		{callback, `reply.credits in {16..17}`, `reply.credits == 16 or reply.credits == 17`, query.Transactions},
		{callback, `reply.credits in 16..17`, `reply.credits == 16 or reply.credits == 17`, query.Transactions},
		{callback, `operation ne "READ" && rpc.xid ge 0`, `operation != "READ"`, query.Transactions},
		{callback, `operation ~ "^RE"`, `operation matches "^RE"`, query.Transactions},
		{callback, `status matches "^o"`, `status == ok`, query.Transactions},
		{callback, `status contains comp`, `status == complete`, query.Transactions},
		{callback, `xid contains "a94e54"`, `xid matches "a94e54"`, query.Transactions},
		{callback, `any(timeline, .event == invalidate)`, `any(timeline, .event == "invalidate")`, query.Transactions},
		{callback, `any(timeline, .handle == 0xcf4 and .bytes > 0B)`, `any(timeline, .handle == "0x00000cf4" and .bytes > 0)`, query.Transactions},
		{errors, `findings == xid-mismatch`, `"xid-mismatch" in findings`, query.Transactions},
		{errors, `rule == xid-mismatch`, `rule == "xid-mismatch"`, query.Findings},
		{callback, `summary contains "0x000011"`, `summary matches "0x000011"`, query.Packets},
		{callback, `ip.src == 192.168.77.1`, `src == "192.168.77.1" and ipv4`, query.Packets},
		{callback, `ip.src in 192.168.77.0/24`, `ipv4.src startsWith "192.168.77."`, query.Packets},
		{callback, `src == 192.168.77.0/30`, `ipv4.src == "192.168.77.1" or ipv4.src == "192.168.77.2"`, query.Packets},
		{callback, `ip.addr == 192.168.77.1`, `src == "192.168.77.1" or dst == "192.168.77.1"`, query.Packets},
		{callback, `eth.src == 52:54:00:77:00:01`, `eth.src == "52:54:00:77:00:01"`, query.Packets},
		{callback, `transport == rocev2`, `transport == "RoCEv2"`, query.Packets},
		{callback, `bth.opcode == "RC SEND Only"`, `bth.opcode_name == "RC SEND Only"`, query.Packets},
		{callback, `ip.src == 192.168.77.2`, `client.address == "192.168.77.2"`, query.Connections},
		{callback, `client in 192.168.77.0/24 and upper == rpcrdma`, `upper_layer == "rpcrdma"`, query.Connections},
		{callback, `CLIENT == "192.168.77.2:42771"`, `client.port == 42771`, query.Connections},
		{callback, `qpn == 0x11`, `client.qpn == 0x11 or server.qpn == 0x11`, query.Connections},
		{callback, `remote-inv == no and credits-used > 0`, `remote_invalidation == false and credits.forward.peak_in_flight > 0`, query.Connections},
		{callback, `closed == open`, `ended == null`, query.Connections},
	} {
		got, want := count(t, c.capture, c.source, c.fields), count(t, c.capture, c.same, c.fields)
		if got != want {
			t.Errorf("%s: %d of %s, and %s: %d", c.source, got, c.capture, c.same, want)
		}
		if got == 0 && !strings.Contains(c.source, "complete") && !strings.Contains(c.source, "open") {
			t.Errorf("%s matches nothing", c.source)
		}
	}
}

// TestUnsigned: numbers have 64 bits, and text that looks like a number stays text.
func TestUnsigned(t *testing.T) {
	high := &record.Transaction{
		Call:        &record.Message{},
		ReadChunks:  []record.ReadChunk{{Segments: []record.Segment{{Offset: 0xffff888012345678, Length: 1 << 31, Handle: 0xcf4}}}},
		Timeline:    []record.Event{{Offset: record.Some(record.Hex64(0xffff888012345678)), Reason: "at 0x00000cf4"}},
		ProgramName: record.Some("0x10"),
	}
	for source, want := range map[string]bool{
		`read_chunks.segments.offset > 0x1000`:                                    true,
		`read_chunks.segments.offset > 0xffff888012345677`:                        true,
		`read_chunks.segments.offset > 0xffff888012345678`:                        false,
		`read_chunks.segments.offset == 18446612682375452280`:                     true,
		`read_chunks.segments.offset == "0xffff888012345678"`:                     true,
		`read_chunks.segments.offset in [0xffff888012345678]`:                     true,
		`read_chunks.segments.offset in [0xffff888000000000..0xffffffffffffffff]`: true,
		`read_chunks.segments.offset < 0`:                                         false,
		`read_chunks.segments.length >= 2GiB`:                                     true,
		`read_chunks.segments.length > 2G`:                                        false,
		`read_chunks.segments.offset contains "8880"`:                             true,
		`timeline.reason contains "0x00000cf4"`:                                   true,
		`any(timeline, .offset >= 0xffff888000000000)`:                            true,
		`any(timeline, .offset < .packet)`:                                        false,
		`any(timeline, .offset > .packet)`:                                        true,
		`program_name == "0x10"`:                                                  true,
		`program_name == "16"`:                                                    false,
		`id > -1`:                                                                 true,
		`id > -1 and id < 0x8000000000000000`:                                     true,
		`latency == null`:                                                         true,
		`latency > 0`:                                                             false,
		`id == 0.0`:                                                               true,
		`file != 'a\'b' or file != "b'a"`:                                         false, // it has none
		`not (file == 'a\'b' or file == "b'a")`:                                   true,
		`latency != 5ms or latency != latency`:                                    false,
		`latency != null`:                                                         false,
		`program_name matches "^\d"`:                                              true,
		`0 <= id < 1`:                                                             true,
		`1 < id < 0`:                                                              false,
		`-1 < id <= -0`:                                                           true,
		`not (id == 0 or id == 1)`:                                                false,
		`id == 1 or id == 0 and program_name == "0x11"`:                           false,
		`id in -5..5 and id not in 1..5`:                                          true,
		`any(read_chunks, any(.segments, .length == 2GiB))`:                       true,
		`any(read_chunks, .segments.length == 2GiB)`:                              true,
		`not any(timeline, .offset == null) and any(timeline, .reason != "")`:     true,
		`timeline.reason in ["at 0x00000cf4"] and file not in ["a", "b"]`:         true,
		`not retransmitted > attempt and id == connection`:                        true,
		`program_name not matches "^x" and program_name not contains "y"`:         true,
	} {
		f, err := query.Compile(source, query.Transactions)
		if err != nil {
			t.Errorf("%s does not compile: %v", source, err)
			continue
		}
		if got := f.Match(high); got != want {
			t.Errorf("%s is %v", source, got)
		}
	}
}

// TestErrors: an error shows the expression with a mark under the place, and suggests a
// correction.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		source, message, mark string
		fields                query.Fields
	}{
		{`latncy_ns > 5`, "unknown field \"latncy_ns\"; similar: latency_ns", "^~~~~~~~~", query.Transactions},
		{`latncy > 5ms`, "unknown field \"latncy\"; similar: latency, latency_ns, latency_min_ns", "^~~~~~", query.Transactions},
		{`WRITE`, "unknown field \"WRITE\"; for the RPCs of this operation: operation == WRITE", "^~~~~", query.Transactions},
		{`xid and not read`, "unknown field \"read\"; for the RPCs of this operation: operation == READ", "            ^~~~", query.Transactions},
		{`COMMIT`, "unknown field \"COMMIT\"; for the RPCs of this operation: operation == COMMIT", "^~~~~~", query.Transactions},
		{`opertion == READ`, "unknown field \"opertion\"; similar: operation", "^~~~~~~~", query.Transactions},
		{`xid and reply.credit > 5`, "unknown field \"reply.credit\"; similar: reply.credits", "        ^~~~~~~~~~~~", query.Transactions},
		{`bth.psnn == 5`, "unknown field \"bth.psnn\"; similar: bth.psn", "^~~~~~~~", query.Packets},
		{`lenght == 5`, "unknown field \"lenght\"; similar: length", "^~~~~~", query.Packets},
		{`path matches "a"`, "unknown field \"path\"; write file", "^~~~", query.Transactions},
		{`eth.src == 10.0.0.1`, "unknown field \"eth.src\"; similar: ip.src; packets have this field", "^~~~~~~", query.Transactions},
		{`xid ==`, "something is missing at the end", "      ^", query.Transactions},
		{`xid == 1 nonsense`, "unexpected nonsense; and, or, or an operator", "         ^~~~~~~~", query.Transactions},
		{`(xid == 1`, "something is missing at the end", "         ^", query.Transactions},
		{`xid == 1)`, "unexpected )", "        ^", query.Transactions},
		{`latency = 5ms`, "did you mean ==?", "        ^", query.Transactions},
		{`latency > 5`, "5 has no unit; write 5ms, 5us or 5s", "          ^", query.Transactions},
		{`not latency > 5 and xid == 1`, "5 has no unit; write 5ms, 5us or 5s", "              ^", query.Transactions},
		{`latency in [1ms, 5]`, "5 has no unit; write 5ms, 5us or 5s", "                 ^", query.Transactions},
		{`latency > 1KiB`, "latency_ns is a duration, such as 5ms, 20us or 1.5s; 1KiB is not", "          ^~~~", query.Transactions},
		{`reply.credits > 5ms`, "5ms is a duration, but reply.credits is a number", "                ^~~", query.Transactions},
		{`latency > 5sec`, "5sec is not a number; units are ns, us, ms, s, m and h for time", "          ^~~~", query.Transactions},
		{`xid == "no number"`, `xid is a number, such as 0x4cc9dbf7; "no number" is not`, "       ^~~~~~~~~~~", query.Transactions},
		{`xid == FORD`, `xid is a number, such as 0x4cc9dbf7; FORD is not`, "       ^~~~", query.Transactions},
		{`xid == 0x1ffffffffffffffff`, "is too large; numbers have 64 bits", "       ^~~~~~~~~~~~~~~~~~~", query.Transactions},
		{`direction == sideways`, `unknown value "sideways" for direction (want forward or backward)`, "             ^~~~~~~~", query.Transactions},
		{`severity == fatal`, `unknown value "fatal" for severity (want error, warning or note)`, "            ^~~~~", query.Findings},
		{`status == okay`, `unknown value "okay" for status; did you mean "ok"?`, "          ^~~~", query.Transactions},
		{`status != no_replay`, `unknown value "no_replay" for status; did you mean "no_reply"?`, "          ^~~~~~~~~", query.Transactions},
		{`status == nfs4err_stale`, `unknown value "nfs4err_stale" for status; did you mean "NFS4ERR_STALE"`, "          ^~~~~~~~~~~~~", query.Transactions},
		{`status in [ok, gone]`, `unknown value "gone" for status`, "               ^~~~", query.Transactions},
		{`operations matches "("`, "invalid regular expression: missing closing ): `(`", "                   ^~~", query.Transactions},
		{`operation == "READ`, "the closing quote is missing", "             ^~~~~", query.Transactions},
		{`call.time > 5s`, "call.time is a time, such as 2026-11-21T05:20:00Z", "            ^~", query.Transactions},
		{`private_data == 1`, "private_data is an object; use one of its fields, such as private_data.client", "^~~~~~~~~~~~", query.Connections},
		{`operation == 5`, `operation is text: write "5"`, "             ^", query.Transactions},
		{`src in 10.0.0.0/64`, "10.0.0.0/64 is not an address", "       ^~~~~~~~~~~", query.Packets},
		{`xid in 5`, "in must be followed by a list", "       ^", query.Transactions},
		{`foo(xid) == 1`, "the only function is any(list, condition)", "^~~", query.Transactions},
		{`len(timeline) > 6`, "the only function is any(list, condition)", "^~~", query.Transactions},
		{`any(operations, .x == 1)`, "any needs a list of objects", "    ^~~~~~~~~~", query.Transactions},
		{`any(timeline, any(timeline, .bytes > 1))`, "any inside any looks at a list of the element", "                  ^~~~~~~~", query.Transactions},
		{`reply.packet - call.packet > 3`, "unexpected -", "             ^", query.Transactions},
		{`id + 1 == 2`, "unexpected +", "   ^", query.Transactions},
		{`timeline[0].bytes > 1`, "unexpected [", "        ^", query.Transactions},
		{`loss > 5%`, "a percentage that a table prints needs quotes", "        ^", query.Transactions},
		{`latency == - "a"`, "a cannot be negative", "           ^~~~~", query.Transactions},
		{`1 == 1`, "the left side of == must be a field", "^", query.Transactions},
		{`(xid == 1) == 1`, "a condition cannot be compared", " ^~~~~~~~", query.Transactions},
		{`file matches procedure_name`, "matches must be followed by a regular expression in quotes", "             ^~~~~~~~~~~~~~", query.Transactions},
		{`call.time > reply.credits`, "call.time is a time and reply.credits is a number", "            ^~~~~~~~~~~~~", query.Transactions},
		{`xid in [latency > 5ms]`, "unexpected >", "                ^", query.Transactions},
		{`xid in [(xid == 5)]`, "unexpected (", "        ^", query.Transactions},
		{`any(timeline)`, "any needs a list and a condition, as in any(timeline, .event == nak)", "^~~~~~~~~~~~~", query.Transactions},
		{`any(timeline`, "something is missing at the end", "            ^", query.Transactions},
		{`client.address()`, "the only function is any(list, condition)", "^~~~~~~~~~~~~~", query.Transactions},
		{`.event == nak`, "unexpected .", "^", query.Transactions},
		{`xid == 1 | id == 2`, "did you mean or?", "         ^", query.Transactions},
		{`operation == "READ"5`, "unexpected 5; and, or, or an operator", "                   ^", query.Transactions},
		{`xid not 5`, "unexpected 5", "        ^", query.Transactions},
		{`id == {1 2}`, "unexpected {", "      ^", query.Transactions},
		{`id == [1, 2]`, "a list can follow only in, not ==", "      ^~~~~~", query.Transactions},
		{`1..5 == id`, "a list can follow only in, not ==", "^~~~", query.Transactions},
		{`xid-mismatch`, "unknown field \"xid-mismatch\"", "^~~~~~~~~~~~", query.Transactions},
		{`id == 5 and`, "something is missing at the end", "           ^", query.Transactions},
		{strings.Repeat("(", 300) + "xid", "the expression is nested too deeply", strings.Repeat(" ", 200) + "^", query.Transactions},
		{strings.Repeat("not ", 1500) + "xid", "the expression is nested too deeply", strings.Repeat(" ", 800) + "^~~", query.Transactions},
		{`any(timeline, .evnt == "nak")`, "unknown field \"timeline.evnt\"; similar: timeline.event", "              ^~~~~", query.Transactions},
		{`5ms`, "5ms is not a condition", "^~~", query.Transactions},
		{`"é" == credential and latncy`, "unknown field \"latncy\"", "                      ^~~~~~", query.Transactions},
		{`xid == 1 § 2`, "unexpected character §", "         ^", query.Transactions},
		{``, "the expression is empty", "^", query.Transactions},
	} {
		_, err := query.Compile(c.source, c.fields)
		if err == nil {
			t.Errorf("%s: no error", c.source)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "-Y: ") || !strings.Contains(lines[0], c.message) || lines[1] != "  "+c.source || lines[2] != "  "+c.mark {
			t.Errorf("%s: %q\n  %s\ngot\n%v", c.source, c.message, c.mark, err)
		}
	}
}

// TestNear: if nothing matched, similar values are suggested.
func TestNear(t *testing.T) {
	for _, c := range []struct {
		source string
		want   []string
	}{
		{`xid == 0x3da94e55`, []string{"no record has xid 0x3da94e55; similar: 0x3da94e54, 0x3ea94e54, 0x3fa94e54"}},
		{`procedure == REDA`, []string{"no record has procedure REDA; similar: READ"}},
		{`operation == READ and conn == 9`, nil},
		{`credential == AUTH_SIS`, []string{"no record has credential AUTH_SIS; similar: AUTH_SYS"}},
	} {
		f, err := query.Compile(c.source, query.Transactions)
		if err != nil {
			t.Fatal(err)
		}
		matchAll(t, "rocev2-callback41.pcap.zst", dissect.Handler{Transaction: func(r *record.Transaction) error {
			f.Match(r)
			return nil
		}})
		if got := f.Near(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.source, got, c.want)
		}
	}
}

func matchAll(t *testing.T, name string, h dissect.Handler) {
	t.Helper()
	f, err := capture.Open("../../testdata/captures/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := dissect.New(h, dissect.Options{})
	if _, err := d.Run(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkMatch measures a filter that runs for each packet.
func BenchmarkMatch(b *testing.B) {
	for _, source := range []string{`connection == 0 and length > 100`, `transport == "RoCEv2"`, `bth.opcode == 17`, `src in 192.168.77.0/24`, `rpcordma.xid == 0x3da94e54`} {
		b.Run(source, func(b *testing.B) {
			f, err := query.Compile(source, query.Packets)
			if err != nil {
				b.Fatal(err)
			}
			p := &record.Packet{Number: 7, Length: 200, Transport: "RoCEv2", Src: netip.MustParseAddr("192.168.77.1"), Dst: netip.MustParseAddr("192.168.77.2"), Connection: record.Some(0)}
			b.ReportAllocs()
			for b.Loop() {
				f.Match(p)
			}
		})
	}
}

// FuzzCompile: no expression makes the compiler panic, and each error is at a part of the expression.
func FuzzCompile(f *testing.F) {
	f.Add(`xid == 0x3da94e54 and any(timeline, .event == "nak") or latency > 5ms`)
	f.Add(`nfs.fh == 8f:3a:2c and nfs.offset >= 1GiB or nfs.stateid == 1:6120737461746569642e2e2e`)
	f.Add(`not -id + 1 % 2 < len(timeline[1:-1]) <= 5 and status not in {ok 5..6 "a"} or all(read_chunks, none(.segments, #.length == 5))`)
	f.Add(`nfs.mode in [0644, 0x1ffffffffffffffffff] or nfs.name contains "a" and nfs.status != NFS4ERR_IO`)
	message := &nfs.Message{}
	message.Call(nfs.ProgramNFS, 3, 3, nfs.NewStream([]byte("\x00\x00\x00\x04abcd\x00\x00\x00\x04name"), nil))
	said := &record.Transaction{Reply: &record.Message{}, Decoded: record.Decoded{Call: record.Half{Message: message}}}
	f.Fuzz(func(t *testing.T, source string) {
		filter, err := query.Compile(source, query.Transactions)
		if err == nil {
			filter.Match(&record.Transaction{Reply: &record.Message{}})
			filter.Match(said)
		}
		if wrong, is := errors.AsType[*query.Error](err); err != nil && (!is || wrong.From < 0 || wrong.To < wrong.From || wrong.To > len(wrong.Source) && wrong.To > 1) {
			t.Errorf("%#v is not at a part of %q", err, source)
		}
	})
}

// TestWiresharkHabits: names and forms of Wireshark's filters that stand for no single field. The numbers of packets
// are those of tshark.
func TestWiresharkHabits(t *testing.T) {
	const nfs3, iwarp, callback = "rocev2-nfs3.pcap.zst", "iwarp-nfs41.pcap.zst", "rocev2-callback41.pcap.zst"
	for _, c := range []struct {
		capture, source string
		fields          query.Fields
		want            int
	}{
		{nfs3, "rpcordma", query.Packets, 674},
		{nfs3, "infiniband", query.Packets, 2628},
		{nfs3, "infiniband.bth.opcode in {12 13}", query.Packets, 58},
		{nfs3, "infiniband.bth.opcode in {12, 13}", query.Packets, 58},
		{nfs3, "infiniband.bth.opcode in {12 14..16}", query.Packets, 518},
		{callback, "nfs", query.Packets, 122},
		{nfs3, "nfs", query.Packets, 532},
		{nfs3, "nfsacl", query.Packets, 142},
		{callback, "rpcordma and ip.addr == 192.168.77.1", query.Packets, 128},
		{callback, "udp.port == 4791", query.Packets, 296},
		{callback, "udp.port in {1 4791}", query.Packets, 296},
		{callback, "tcp.port == 20049", query.Packets, 0},
		{iwarp, "tcp.port == 20049", query.Packets, 2153}, // without the 8 segments of tshark's that precede and follow iWARP,
		{iwarp, "iwarp_mpa", query.Packets, 1491},
		{callback, "frame.time_relative > 5", query.Packets, 304},
		{callback, "frame.time_epoch > 1.7e9", query.Packets, 322},
		{nfs3, "nfs", query.Transactions, 266},
		{nfs3, "nfsacl", query.Transactions, 71},
		{nfs3, "rpcordma and not mount and not nlm", query.Transactions, 337},
		{nfs3, "ip.addr == 192.168.77.1", query.Transactions, 349},
		{nfs3, "ip.addr == 192.168.77.3", query.Transactions, 0},
		{nfs3, "client in 192.168.77.0/24 and server == 192.168.77.1 and transport == RoCEv2", query.Transactions, 337},
		{nfs3, "frame.time_relative < 7", query.Transactions, 7},
		{nfs3, "mount", query.Transactions, 8},
		{nfs3, "portmap", query.Transactions, 4},
		{nfs3, "tcp", query.Transactions, 12},
		{nfs3, "udp", query.Transactions, 337}, // RoCEv2, too
		{nfs3, "operation == REMOVE", query.Transactions, 60},
		{nfs3, "operation in {REMOVE, CREATE}", query.Transactions, 123},
	} {
		if got := count(t, c.capture, c.source, c.fields); got != c.want {
			t.Errorf("%s: %d of %s, want %d", c.source, got, c.capture, c.want)
		}
	}
}

// TestImpossibleNames: a name that no record can have is an error, because no match would look like an answer.
func TestImpossibleNames(t *testing.T) {
	for _, c := range []struct {
		source, want string
		fields       query.Fields
	}{
		{"status == no_replay", `unknown value "no_replay" for status; did you mean "no_reply"?`, query.Transactions},
		{"procedure_name == WRTIE", `unknown value "WRTIE" for procedure_name; did you mean "WRITE"?`, query.Transactions},
		{"operation != REMVE", `unknown value "REMVE" for operation; did you mean "REMOVE"?`, query.Transactions},
		{`"RAED" in operations`, `unknown value "RAED" for operations; did you mean "READ"?`, query.Transactions},
		{"nfs_status == NFS3ERR_NOET", `unknown value "NFS3ERR_NOET" for nfs_status; did you mean "NFS3ERR_NOENT", "NFSERR_NOENT" or "NFS3ERR_NODEV"?`, query.Transactions},
		{"program == nfs", `unknown value "nfs" for program; did you mean "NFS" or "NLM"?`, query.Transactions},
		{"program_name in {NFS, NFSD}", `unknown value "NFSD" for program_name; did you mean "NFS"?`, query.Transactions},
		{"rpc.procedure_name == COMPUND", `unknown value "COMPUND" for rpc.procedure_name; did you mean "COMPOUND"?`, query.Packets},
		{"rpc.nfs_status == NFS4ER_STALE", `unknown value "NFS4ER_STALE" for rpc.nfs_status; did you mean "NFS4ERR_STALE", "NFSERR_STALE" or "NFS3ERR_STALE"?`, query.Packets},
	} {
		_, err := query.Compile(c.source, c.fields)
		if err == nil {
			t.Errorf("%s: no error", c.source)
			continue
		}
		if line, _, _ := strings.Cut(err.Error(), "\n"); line != "-Y: "+c.want {
			t.Errorf("%s: %s, want %s", c.source, line, c.want)
		}
	}
	for _, source := range []string{"nfs_status == NFS4ERR_20001", "procedure_name in {NULL, CB_COMPOUND, MNT, GETACL}", "operation == CB_RECALL", "operations == OP_200"} {
		if _, err := query.Compile(source, query.Transactions); err != nil {
			t.Error(err)
		}
	}
}
