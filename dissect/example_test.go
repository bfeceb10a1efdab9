package dissect_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// This example prints the answered RPCs of a capture and their latency.
func Example() {
	source, err := capture.Open("../samples/rocev2-callback41.pcap")
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	enough := errors.New("enough")
	n := 0
	d := dissect.New(dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			if latency, known := r.LatencyNS.Get(); known {
				fmt.Println(r.XID, r.ProgramProcedure(), latency, "ns")
			}
			if n++; n == 3 {
				return enough // This ends Run.
			}
			return nil
		},
	}, dissect.Options{Memory: 64 << 20})
	if _, err := d.Run(context.Background(), source); err != nil && err != enough {
		log.Fatal(err)
	}
	// Output:
	// 0x3da94e54 NFS4 NULL 4571000 ns
	// 0x3ea94e54 NFS4 COMPOUND 24458000 ns
	// 0x3fa94e54 NFS4 COMPOUND 4937000 ns
}

// A program that gets frames from elsewhere passes them one by one.
func ExampleDissector_Frame() {
	source, err := capture.Open("../samples/rocev2-callback41.pcap")
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	d := dissect.New(dissect.Handler{Connection: func(r *record.Connection) error {
		fmt.Println(r.ID, r.Transport, r.UpperLayer)
		return nil
	}}, dissect.Options{})
	for frame, err := range capture.All(context.Background(), source) {
		if err != nil {
			log.Fatal(err)
		}
		if err := d.Frame(frame); err != nil {
			log.Fatal(err)
		}
	}
	summary, err := d.Finish()
	fmt.Println(summary.Packets, "packets,", err)
	// Output:
	// 0 RoCEv2 rpcrdma
	// 1 RoCEv2 rpcrdma
	// 322 packets, <nil>
}
