package dissect_test

import (
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// documents lists the captures of testdata/documents: situations that were written from the documents by somebody who did
// not know the program, and all findings that they have, each a rule and the side at fault.
var documents = map[string][]string{
	// draft-cel-nfsv4-rpcrdma-bidirection s.2.2.3: how other programs than NFS allow backward Calls is not in its scope.
	"bk-other-program.roce.pcap": nil,
	// draft-cel-nfsv4-reminv-design s.3.3, s.4.4.3: backward RPCs of version 2 may have chunks, and name a handle.
	"bk-v2-chunks-inv.roce.pcap": nil,
	// rfc5666bis s.4.4.4: the count remains in the Payload stream.
	"ch-count-in-chunk-readlink-reply.roce.pcap": {"chunk-length-mismatch server"},
	"ch-count-in-chunk.roce.pcap":                {"read-position-invalid client"},
	// rfc5666bis s.5.3.2: the first eligible result is in the first Write chunk.
	"ch-first-result-inline-second-in-chunk0.roce.pcap": {"write-chunk-unused server"},
	"ch-first-result-inline-two-left.iwarp.pcap":        {"write-chunk-unused server"},
	// rfc5666bis s.5.3.3: the returned Reply chunk has the actual amount of data.
	"ch-long-reply-cut.roce.pcap": {"chunk-length-mismatch server"},
	// rfc5666bis s.4.1, s.5.4.1: the TCP stream shows that the Read Response came before the Call.
	"ch-read-chunk-of-later-call.iwarp.pcap": {"rdma-outside-exposed-memory server", "read-chunk-not-read"},
	// rfc5666bis s.4.4.5: the empty item begins at this Position.
	"ch-zero-write.roce.pcap": {"empty-segment client"},
	// bidirection s.2.2.1: no backchannel was granted, so the client need not have a buffer.
	"cr-rnr-back-after-refusal.roce.pcap": {"backward-unexpected server"},
	// rfc5666bis s.4.3.1, s.5.6.2: the RDMA_DONE took the only buffer that was granted.
	"cr-rnr-call-after-done.roce.pcap": {"error-not-answered server", "rdma-done client"},
	"dec-50-segments.iwarp.pcap":       nil,
	// rfc5666bis s.5.5.1, s.8: a refused version and the fallback are how a version is found.
	"er-v2-cel01-fallback.roce.pcap": {"rdma-error", "rdma-version note"},
	// rfc5666bis s.5.2.2: the Reply to a version 1 Call has version 1.
	"iv-v1-reply-v2.roce.pcap": {"rdma-version server"},
	// reminv-design s.5.3: rdma_direction is the type of the RPC message.
	"iv-v2-direction-wrong.roce.pcap": {"header-malformed client"},
	// IBTA vol. 1 s.9.7.6: what is acknowledged is not sent again, unless the ACK does not arrive or is not accepted.
	"rt-acked-copies.roce.pcap": nil,
	// RFC 5531 s.9: msg_type is 0 or 1, and rpcvers is 2.
	"rp-msgtype2-write-chunk.roce.pcap":      {"rpc-header-malformed client", "rpc-rejected"},
	"rp-rpcvers1-write-chunk.roce.pcap":      {"rpc-header-malformed client", "rpc-rejected"},
	"rp-violation-after-xid-reuse.roce.pcap": {"rdma-outside-exposed-memory server", "write-list-not-copied server", "xid-in-use client"},
}

// malformed lists the documents with an RPC whose Call or Reply cannot be decoded.
var malformed = map[string]string{
	"ch-count-in-chunk-readlink-reply.roce.pcap": "reply",
	"ch-count-in-chunk.roce.pcap":                "call",
	"ch-long-reply-cut.roce.pcap":                "reply",
	"iv-v2-direction-wrong.roce.pcap":            "call",
	"rp-msgtype2-write-chunk.roce.pcap":          "call",
	"rp-rpcvers1-write-chunk.roce.pcap":          "call",
}

// TestAcknowledgedCopies: a stall that ends with a retransmission of what the capture shows acknowledged says so.
func TestAcknowledgedCopies(t *testing.T) {
	count := func(file string) (acknowledged, all int) {
		d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
			for i := range r.Waits {
				if all++; r.Waits[i].Acknowledged {
					acknowledged++
				}
			}
			return nil
		}}, dissect.Options{})
		frames, _ := testkit.Frames(t, file)
		for i := range frames {
			d.Frame(&frames[i])
		}
		d.Finish()
		return acknowledged, all
	}
	if n, all := count("../testdata/documents/rt-acked-copies.roce.pcap"); n != 6 || all != 6 {
		t.Errorf("%d of %d stalls ended with a copy of what was acknowledged, want 6 of 6", n, all)
	}
	if n, all := count("../testdata/captures/rocev2-loss42.pcap.zst"); n != 0 || all == 0 {
		t.Errorf("%d of %d stalls after losses ended with a copy of what was acknowledged, want none", n, all)
	}
}

// TestDocuments: what the documents say of a situation is what is found in it.
func TestDocuments(t *testing.T) {
	for name, want := range documents {
		t.Run(name, func(t *testing.T) {
			var all []record.Finding
			var broken string
			d := dissect.New(dissect.Handler{
				Finding:     func(f *record.Finding) error { all = append(all, *f); return nil },
				Transaction: func(r *record.Transaction) error { broken += r.Malformed.Or(""); return nil },
			}, dissect.Options{})
			frames, _ := testkit.Frames(t, "../testdata/documents/"+name)
			for i := range frames {
				d.Frame(&frames[i])
			}
			d.Finish()
			var got []string
			for _, f := range all {
				text := f.Rule
				if side, known := f.AtFault.Get(); known {
					text += " " + string(side)
				}
				if f.Rule == "rdma-version" && f.Severity == record.Note {
					text += " note"
				}
				got = append(got, text)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q:%s", got, want, lines(all))
			}
			if broken != malformed[name] {
				t.Errorf("malformed is %q, want %q", broken, malformed[name])
			}
		})
	}
}
