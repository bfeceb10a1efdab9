package rpcrdma_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

const fixed = "4cc9dbf7 00000001 00000080 "

// headers are complete. Each decodes to want, and encodes to the same bytes.
var headers = []struct{ name, wire, want string }{
	{
		"no chunks", fixed + "00000000 00000000 00000000 00000000",
		"RDMA_MSG 4cc9dbf7 1 128 reads [] writes [] [] reply [] false err 0 0-0 length 28",
	},
	{
		"two Read chunks", fixed + "00000000 00000001 00000028 00000001 00000002 0000000000000003 00000001 00000028 00000004 00000005 0000000000000006 " +
			"00000001 00000040 00000007 00000008 0000000000000009 00000000 00000000 00000000",
		"RDMA_MSG 4cc9dbf7 1 128 reads [{40 {1 2 3}} {40 {4 5 6}} {64 {7 8 9}}] writes [] [] reply [] false err 0 0-0 length 100",
	},
	{
		"two Write chunks", fixed + "00000000 00000000 00000001 00000002 00000001 00000002 0000000000000003 00000004 00000005 0000000000000006 " +
			"00000001 00000001 00000007 00000008 0000000000000009 00000000 00000000",
		"RDMA_MSG 4cc9dbf7 1 128 reads [] writes [{1 2 3} {4 5 6} {7 8 9}] [2 3] reply [] false err 0 0-0 length 92",
	},
	{
		"Reply chunk", fixed + "00000001 00000000 00000000 00000001 00000001 00000001 00000002 0000000000000003",
		"RDMA_NOMSG 4cc9dbf7 1 128 reads [] writes [] [] reply [{1 2 3}] true err 0 0-0 length 48",
	},
	{
		"Reply chunk without segments", fixed + "00000001 00000000 00000000 00000001 00000000",
		"RDMA_NOMSG 4cc9dbf7 1 128 reads [] writes [] [] reply [] true err 0 0-0 length 32",
	},
	{
		"RDMA_MSGP", fixed + "00000002 00000004 00000040 00000000 00000000 00000000",
		"RDMA_MSGP 4cc9dbf7 1 128 reads [] writes [] [] reply [] false err 0 0-0 length 36",
	},
	{"RDMA_DONE", fixed + "00000003", "RDMA_DONE 4cc9dbf7 1 128 reads [] writes [] [] reply [] false err 0 0-0 length 16"},
	{
		"ERR_VERS", fixed + "00000004 00000001 00000001 00000002",
		"RDMA_ERROR 4cc9dbf7 1 128 reads [] writes [] [] reply [] false err 1 1-2 length 28",
	},
	{
		"ERR_CHUNK", fixed + "00000004 00000002",
		"RDMA_ERROR 4cc9dbf7 1 128 reads [] writes [] [] reply [] false err 2 0-0 length 20",
	},
	{"another version", "4cc9dbf7 00000002 00000080 00000000", "RDMA_MSG 4cc9dbf7 2 128 reads [] writes [] [] reply [] false err 0 0-0 length 16"},
	{
		"RDMA_ERROR of another version", "4cc9dbf7 00000002 00000080 00000004 00000001 00000001 00000001",
		"RDMA_ERROR 4cc9dbf7 2 128 reads [] writes [] [] reply [] false err 1 1-1 length 28",
	},
}

func text(h *rpcrdma.Header) string {
	return fmt.Sprintf("%v %08x %d %d reads %v writes %v %v reply %v %t err %d %d-%d length %d",
		h.Proc, h.XID, h.Vers, h.Credits, h.Reads, h.Writes, h.WriteEnds, h.Reply, h.HasReply, h.Err, h.VersLow, h.VersHigh, h.Length)
}

func TestHeader(t *testing.T) {
	var h rpcrdma.Header // one for all, as the dissector uses it
	for _, c := range headers {
		t.Run(c.name, func(t *testing.T) {
			wire := testkit.Unhex(t, c.wire)
			if err := h.Decode(append(wire, "payload"...)); err != nil {
				t.Fatal(err)
			}
			if got := text(&h); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if got := h.Append(nil); !bytes.Equal(got, wire) {
				t.Errorf("\n got %x\nwant %x", got, wire)
			}
		})
	}
}

// TestBroken: decoding a truncated or malformed header sets the fields before the error,
// and the error contains the offset.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		name, wire, err string
		is              error
		reads, writes   int
		length          int
	}{
		{"nothing", "", "RPC-over-RDMA header truncated: 0 of at least 16 bytes", rpcrdma.ErrTruncated, 0, 0, 0},
		{"eight bytes", "4cc9dbf7 00000001", "RPC-over-RDMA header truncated: 8 of at least 16 bytes", rpcrdma.ErrTruncated, 0, 0, 8},
		{"no lists", fixed + "00000000", "next word of the Read list truncated: 0 of 4 bytes at offset 16", rpcrdma.ErrTruncated, 0, 0, 16},
		{
			"Read list cut", fixed + "00000000 00000001 00000028 00000001 00000002 0000000000000003 00000001 00000028 00000004",
			"Read list entry 1 truncated: 8 of 20 bytes at offset 44", rpcrdma.ErrTruncated, 1, 0, 44,
		},
		{"a list that says 2", fixed + "00000000 00000002 00000028", "malformed Read list: 0x00000002 at offset 16 is neither 0 nor 1", rpcrdma.ErrMalformed, 0, 0, 16},
		{
			"segment count that lies", fixed + "00000000 00000000 00000001 ffffffff 00000001 00000002 0000000000000003 00000000",
			"Write chunk truncated: 1 of 4294967295 segments at offset 24", rpcrdma.ErrTruncated, 0, 1, 44,
		},
		{"unknown procedure", fixed + "00000063", "unknown rdma_proc 99 (version 1 defines 0 to 4)", rpcrdma.ErrMalformed, 0, 0, 16},
		{"unknown error", fixed + "00000004 00000009", "unknown rdma_err 9 (version 1 defines 1 and 2)", rpcrdma.ErrMalformed, 0, 0, 20},
		{"ERR_VERS cut", fixed + "00000004 00000001 00000001", "version range of ERR_VERS truncated: 4 of 8 bytes at offset 20", rpcrdma.ErrTruncated, 0, 0, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h rpcrdma.Header
			err := h.Decode(testkit.Unhex(t, c.wire))
			if err == nil || err.Error() != c.err || !errors.Is(err, c.is) {
				t.Errorf("error %v\nwant  %s", err, c.err)
			}
			if len(h.Reads) != c.reads || len(h.Writes) != c.writes || h.Length != c.length {
				t.Errorf("%d Read segments, %d Write segments, %d bytes", len(h.Reads), len(h.Writes), h.Length)
			}
		})
	}
}

func TestPrivateData(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       rpcrdma.PrivateData
		found      bool
		err        string
	}{
		{"none", "0000000000000000000000", rpcrdma.PrivateData{}, false, ""},
		{"at the start", "f6ab0e18 01 01 03 07 000000", rpcrdma.PrivateData{Offset: 0, Version: 1, RemoteInvalidation: true, SendSize: 4096, ReceiveSize: 8192}, true, ""},
		{"at an odd offset", "78797a f6ab0e18 01 01 00 ff", rpcrdma.PrivateData{Offset: 3, Version: 1, RemoteInvalidation: true, SendSize: 1024, ReceiveSize: 262144}, true, ""},
		{"reserved bits change nothing", "f6ab0e18 01 fe 03 03", rpcrdma.PrivateData{Version: 1, Reserved: 0x7f, SendSize: 4096, ReceiveSize: 4096}, true, ""},
		{"version 2", "f6ab0e18 02 01 03 03", rpcrdma.PrivateData{}, false, "private data has unknown version 2 (version 1 is defined)"},
		{"cut", "0000 f6ab0e18 01 01 03", rpcrdma.PrivateData{}, false, "private data truncated: 7 of 8 bytes at offset 2"},
		{"a second one is sound", "f6ab0e18 09 f6ab0e18 01 00 00 00", rpcrdma.PrivateData{Offset: 5, Version: 1, SendSize: 1024, ReceiveSize: 1024}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := testkit.Unhex(t, c.data)
			got, found, err := rpcrdma.FindPrivateData(data)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if got != c.want || found != c.found || message != c.err {
				t.Errorf("the private data is %+v (found %t), error %q; want %+v (%t), %q", got, found, message, c.want, c.found, c.err)
			}
			if found && data[got.Offset+5]&0xfe == 0 && !bytes.Equal(got.Append(nil), data[got.Offset:got.Offset+8]) {
				t.Errorf("encodes as %x", got.Append(nil))
			}
		})
	}
}

// FuzzHeader: a header that is decoded without error encodes to the same bytes, and
// decoding never allocates more memory than the input justifies.
func FuzzHeader(f *testing.F) {
	for _, c := range headers {
		f.Add(testkit.Unhex(f, c.wire))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var h rpcrdma.Header
		err := h.Decode(data)
		if h.Length > len(data) || (len(h.Reads)+len(h.Writes)+len(h.Reply))*rpcrdma.SegmentLen > len(data) {
			t.Fatalf("%d bytes read of %d", h.Length, len(data))
		}
		if err == nil {
			if got := h.Append(nil); !bytes.Equal(got, data[:h.Length]) {
				t.Errorf("\n got %x\nwant %x", got, data[:h.Length])
			}
		}
	})
}

// FuzzPrivateData: a message that is found lies within the data.
func FuzzPrivateData(f *testing.F) {
	f.Add(testkit.Unhex(f, "f6ab0e180101030300"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, found, _ := rpcrdma.FindPrivateData(data); found && (p.Offset+rpcrdma.PrivateDataLen > len(data) || p.SendSize > 262144) {
			t.Errorf("%+v in %d bytes", p, len(data))
		}
	})
}

// TestReadOrder: the order of the Read list is that of the Positions, and within a Position that of
// the list, also if the list ends too early.
func TestReadOrder(t *testing.T) {
	h := rpcrdma.Header{XID: 1, Vers: 1}
	for i, position := range []uint32{148, 4184, 148, 0, 148, 0} {
		h.Reads = append(h.Reads, rpcrdma.ReadSegment{Position: position, Segment: rpcrdma.Segment{Handle: uint32(i)}})
	}
	wire := h.Append(nil)
	for length, want := range map[int][]int{len(wire): {3, 5, 0, 2, 4, 1}, rpcrdma.FixedLen + 3*rpcrdma.ReadSegmentLen: {0, 2, 1}} {
		var got rpcrdma.Header
		if err := got.Decode(wire[:length]); (err == nil) != (length == len(wire)) {
			t.Fatal(err)
		}
		if !slices.Equal(got.ReadOrder, want) {
			t.Errorf("%d bytes: order %v, want %v", length, got.ReadOrder, want)
		}
	}
}
