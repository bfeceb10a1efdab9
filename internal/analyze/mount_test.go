package analyze

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestSteps: the steps of a mount that fails, in the order of their time.
func TestSteps(t *testing.T) {
	rpc := func(at record.Time, connection int, edit func(*record.Transaction)) *record.Transaction {
		r := &record.Transaction{
			ID: int64(at), Connection: connection, Status: record.Complete, RPCStatus: record.Some("SUCCESS"), Transport: "TCP",
			Call: &record.Message{Time: at}, Reply: &record.Message{Time: at + 1}, Version: record.Some[uint32](3),
		}
		edit(r)
		return r
	}
	asks := func(port record.Opt[uint16]) func(*record.Transaction) {
		return func(r *record.Transaction) {
			r.ProgramName = record.Some("PORTMAP")
			r.Mapping = &record.Mapping{Program: 100005, ProgramName: record.Some("MOUNT"), Version: 3, Protocol: "TCP", Port: port}
		}
	}
	mounts := func(status string) func(*record.Transaction) {
		return func(r *record.Transaction) {
			r.ProgramName, r.ProcedureName, r.MountPath, r.NFSStatus = record.Some("MOUNT"), record.Some("MNT"), record.Some("/export"), record.Some(status)
		}
	}
	reads := func(r *record.Transaction) {
		r.ProgramName, r.Operation, r.NFSStatus = record.Some("NFS"), record.Some("FSINFO"), record.Some("NFS3_OK")
	}
	c := NewCollector()
	c.Transaction(rpc(10, 0, asks(record.Some[uint16](20048))))
	c.Transaction(rpc(11, 1, asks(record.Some[uint16](0))))
	c.Transaction(rpc(20, 1, mounts("MNT3_OK")))
	c.Transaction(rpc(21, 1, mounts("MNT3ERR_ACCES")))
	c.Transaction(rpc(40, 3, reads))
	c.Transaction(rpc(41, 3, reads))
	lost := rpc(50, 4, asks(record.Opt[uint16]{}))
	lost.Reply, lost.Status = nil, record.NoReply
	c.Transaction(lost)
	c.Transaction(rpc(51, 4, asks(record.Opt[uint16]{})))
	end := record.Connection{
		ID: 2, Transport: "RoCEv2", UpperLayer: "unknown", Handshake: "seen", First: 30, Server: record.Endpoint{Port: record.Some[uint16](20049)},
		Ended: record.Some(record.Ended{How: record.EndRejected, Reason: record.Some("consumer reject")}),
	}
	c.Connection(&end)
	end.ID, end.First, end.Transport, end.UpperLayer, end.Ended = 5, 31, "TCP", "rpc", record.Some(record.Ended{How: record.EndReset})
	end.Server.Port = record.Some[uint16](2049)
	c.Connection(&end)
	end.ID, end.First, end.Ended = 6, 60, record.Opt[record.Ended]{}
	c.Connection(&end)
	accepted := record.Connection{
		ID: 7, Transport: "RoCEv2", UpperLayer: "rpcrdma", Handshake: "seen", First: 70, Established: record.Some(record.Time(70 + 43_549_000_000)), Requests: 10,
		Server: record.Endpoint{Port: record.Some[uint16](20049)},
	}
	c.Connection(&accepted)
	var got []string
	for _, s := range c.Finish(nil).MountSteps {
		got = append(got, fmt.Sprintf("%d %s %d %v %s: %s", s.Time, s.Kind, s.Connection, s.OK.Any(), s.Asked, s.Answer))
	}
	want := []string{
		"10 rpcbind 0 true port of MOUNT version 3 over TCP: port 20048",
		"11 rpcbind 1 false port of MOUNT version 3 over TCP: not registered",
		"20 mountd 1 true MNT /export: MNT3_OK",
		"21 mountd 1 false MNT /export: MNT3ERR_ACCES",
		"30 rdma_connection 2 false RoCEv2 connection to port 20049: rejected: consumer reject",
		"31 tcp_refused 5 false TCP connection to port 2049: refused",
		"40 nfs 3 true NFS3 FSINFO over TCP: NFS3_OK",
		"50 rpcbind 4 <nil> port of MOUNT version 3 over TCP: no Reply",
		"51 rpcbind 4 <nil> port of MOUNT version 3 over TCP: the answer contains no port",
		"60 tcp_unanswered 6 <nil> TCP connection to port 2049: no answer",
		"70 rdma_connection 7 true RoCEv2 connection to port 20049: accepted after 10 requests, 43.549 s after the first",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestStepsOfManyClients: a mount that fails is reported although many succeeded before it, and the steps that are left out are counted.
func TestStepsOfManyClients(t *testing.T) {
	c := NewCollector()
	for i := range 200 {
		r := &record.Transaction{
			ID: int64(i), Connection: i, Status: record.Complete, RPCStatus: record.Some("SUCCESS"), Transport: "TCP", ProgramName: record.Some("MOUNT"), ProcedureName: record.Some("MNT"),
			MountPath: record.Some("/export"), NFSStatus: record.Some("MNT3_OK"), Call: &record.Message{Time: record.Time(i)}, Reply: &record.Message{Time: record.Time(i)},
		}
		if i >= 198 {
			r.NFSStatus = record.Some("MNT3ERR_ACCES")
		}
		c.Transaction(r)
		c.Connection(&record.Connection{
			ID: 200 + i, Transport: "RoCEv2", UpperLayer: "rpcrdma", Handshake: "seen", First: record.Time(i), Established: record.Some(record.Time(i)), Server: record.Endpoint{Port: record.Some[uint16](20049)},
		})
	}
	o := c.Finish(nil)
	got := fmt.Sprint(len(o.MountSteps), o.MountStepsTotal, o.MountSteps[63].Time, o.MountSteps[64].Time, o.MountSteps[65].Time)
	if want := fmt.Sprint(66, 400, record.Time(31), record.Time(198), record.Time(199)); got != want {
		t.Errorf("%s, want %s: 64 steps that were granted, and the two that were not, of 400", got, want)
	}
}

// TestMountedInline: inline thresholds are those of a connection whose handshake was captured. Without it, the capture does not show them.
func TestMountedInline(t *testing.T) {
	for _, handshake := range []string{"seen", "missed"} {
		c := NewCollector()
		c.Transaction(&record.Transaction{
			Status: record.Complete, Direction: record.Forward, Program: record.Some[uint32](programNFS), Version: record.Some[uint32](3), Procedure: record.Some[uint32](1),
			Client: record.Some("10.0.0.1"), Server: record.Some("10.0.0.2"), Call: &record.Message{},
		})
		c.Connection(&record.Connection{
			UpperLayer: "rpcrdma", Handshake: handshake, Packets: 9, InlineThreshold: record.Some(record.InlineThresholds{ClientToServer: 1024, ServerToClient: 1024}),
			Client: record.Endpoint{Address: record.Some("10.0.0.1")}, Server: record.Endpoint{Address: record.Some("10.0.0.2")}, Transactions: 1,
		})
		list := c.Finish(&record.Summary{RDMA: 1}).Mounted
		if len(list) != 1 || list[0].InlineThresholds.Known() != (handshake == "seen") {
			t.Errorf("handshake %s: %+v", handshake, list)
		}
	}
}
