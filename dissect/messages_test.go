package dissect_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// TestMessages: findings state what the capture shows in one sentence. They attribute nothing
// to a side if the capture shows only which side noticed the problem.
func TestMessages(t *testing.T) {
	for name, want := range map[string][]string{
		"rocev2-lostlink41.pcap.zst": {
			"note invalidation-not-negotiated, at fault -: Usual for Linux servers: Send With Invalidate of 0x00000ca1, although only the requester set the R bit in its private data",
			"warning retransmission-timeout, at fault -: the client retransmitted its Call after a timeout: for 547.00 ms it sent no request, and the capture has no new acknowledgement; the connection request of the client (CM REQ) announced a timeout of 536.87 ms",
			"warning connection-lost, at fault -: client closed the connection after 6 unacknowledged retransmissions; 4 Calls in flight (0x835d3053, ...)",
		},
		"rocev2-errors.pcap": {
			"error rdma-error, at fault -: the responder correctly rejected the Call with ERR_VERS: consequence of the finding rdma-version",
			"error rdma-proc-unknown, at fault client: unknown rdma_proc 99 (version 1 defines 0 to 4)",
			"error header-truncated, at fault client: RPC-over-RDMA header truncated: 8 of at least 16 bytes",
			"warning connection-lost, at fault -: client closed the connection with a NAK (remote access error); 1 Call in flight (0xbad04567)",
			"note private-data-unusable, at fault client: private data has unknown version 2 (version 1 is defined); the default inline thresholds apply",
			"error reply-not-delivered, at fault -: the client cannot have received the Reply in packet 194: it rejected that Reply or an earlier packet (NAK of PSN 7674598: remote access error), and discards everything from there on",
		},
	} {
		f, err := capture.Open("../samples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		harmless := 0
		d := dissect.New(dissect.Handler{Finding: func(r *record.Finding) error {
			got = append(got, fmt.Sprintf("%s %s, at fault %s: %s", r.Severity, r.Rule, r.AtFault.Or("-"), r.Message))
			if r.Rule == "invalidation-not-negotiated" {
				harmless++
			}
			return nil
		}}, dissect.Options{})
		if _, err := d.Run(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("%s: no finding\n%s\nin\n%s", name, line, strings.Join(got, "\n"))
			}
		}
		if name == "rocev2-lostlink41.pcap.zst" { // two connections lack packets that may be the Replies
			if lost := count(got, "warning connection-lost"); lost != 1 {
				t.Errorf("%s: %d lost connections, want 1", name, lost)
			}
		}
		if harmless > 1 {
			t.Errorf("%s: %d notes about the server's private data, want one for each capture", name, harmless)
		}
	}
}

// count returns the number of texts that begin with prefix.
func count(texts []string, prefix string) (n int) {
	for _, text := range texts {
		if strings.HasPrefix(text, prefix) {
			n++
		}
	}
	return n
}

// TestTerminateNamesOperation: the finding about a Terminate names the operation that it refuses, as far as it was captured before.
func TestTerminateNamesOperation(t *testing.T) {
	for want, play := range map[string]func(c *synth.Conn){
		"Terminate of the server's RDMA Write of 4096 bytes in packets 7 to 9: DDP tagged buffer error: invalid STag": func(c *synth.Conn) {
			c.Client.Call(synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096)))
			c.Server.Write(0xa1, 0x1000, make([]byte, 4096))
			c.Client.Refuse()
		},
		"Terminate of the client's Send of 88 bytes in packet 6: DDP untagged buffer error: no buffer available": func(c *synth.Conn) {
			c.Client.Call(synth.Getattr3())
			c.Server.NotReady()
		},
	} {
		w := synth.New()
		c := w.IWARP(synth.Options{})
		c.Connect()
		play(c)
		if all := findings(t, w); !slices.ContainsFunc(all, func(f record.Finding) bool { return f.Rule == "terminate" && f.Message == want }) {
			t.Errorf("no finding %q in%s", want, lines(all))
		}
	}
}

// TestCutReplies: of packets that were captured only in part, an RPC is complete only if its Reply still shows the status
// that the whole capture shows, and otherwise it is answered: never is an error taken for a success. Whole packets leave
// nothing open, encrypted or not.
func TestCutReplies(t *testing.T) {
	for _, name := range short(t, "*.zst") {
		if strings.Contains(name, "derived-cut") || strings.Contains(name, "snaplen") { // captured only in part
			continue
		}
		whole, size := map[int64]*record.Transaction{}, 0
		read(t, name, dissect.Handler{Transaction: func(r *record.Transaction) error {
			if r.Call != nil {
				whole[r.Call.Packet] = r.Clone()
			}
			return nil
		}}, dissect.Options{})
		frames, _ := testkit.Frames(t, captures+name)
		for i := range frames {
			size = max(size, len(frames[i].Data))
		}
		total := 0
		for _, snaplen := range []int{64, 90, 96, 100, 110, 128, 150, 200, 300, size} {
			answered := 0
			d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
				if r.Call == nil || whole[r.Call.Packet] == nil {
					return nil
				}
				w := whole[r.Call.Packet]
				switch {
				case r.Status == record.Answered:
					answered++
					if r.Failed() || r.Succeeded() || r.NFSStatus.Known() || r.RPCStatus.Or("SUCCESS") != "SUCCESS" {
						t.Errorf("%s cut to %d: XID %v is answered, with the statuses %v and %v", name, snaplen, r.XID, r.RPCStatus, r.NFSStatus)
					}
				case r.Status == record.Complete && w.Reply != nil && r.Reply.LastPacket == w.Reply.LastPacket && (w.Status != record.Complete && w.Status != record.Answered || w.Failed() != r.Failed()):
					t.Errorf("%s cut to %d: XID %v is complete (%v, %v); the whole capture shows %v (%v, %v)", name, snaplen, r.XID, r.RPCStatus, r.NFSStatus, w.Status, w.RPCStatus, w.NFSStatus)
				}
				return nil
			}}, dissect.Options{})
			for _, f := range frames {
				f.Data = f.Data[:min(len(f.Data), snaplen)]
				d.Frame(&f)
			}
			d.Finish()
			if snaplen == size && answered > 0 {
				t.Errorf("%s: %d RPCs are answered, although the packets are whole", name, answered)
			}
			total += answered
		}
		if total < len(whole)/2 {
			t.Errorf("%s: only %d of %d RPCs are ever answered", name, total, len(whole))
		}
	}
}
