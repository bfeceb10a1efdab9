package capture_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/rdmadump/rdmadump/capture"
)

// This example reads frames one by one. Open recognises pcap, pcapng, gzip and zstd.
func Example() {
	source, err := capture.Open("../testdata/captures/rocev2-callback41.pcap.zst")
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	for frame, err := range capture.All(context.Background(), source) {
		if err != nil {
			log.Fatal(err)
		}
		if frame.Number > 2 {
			break
		}
		fmt.Println(frame.Number, frame.Timestamp(), frame.LinkType, frame.Length, "bytes")
	}
	// Output:
	// 1 2026-11-21 05:19:49.640067 +0000 UTC Ethernet 110 bytes
	// 2 2026-11-21 05:19:49.649435 +0000 UTC Ethernet 86 bytes
}

// Reading batches is faster. The bytes of a batch are valid until it is filled again.
func ExampleSource() {
	source, err := capture.OpenAll([]string{"../samples/rocev2-callback41.pcap", "../samples/rocev2-errors.pcap"})
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	var b capture.Batch
	frames, bytes := 0, 0
	for {
		if err := source.ReadBatch(context.Background(), &b); err == io.EOF {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		for i := range b.Frames {
			frames, bytes = frames+1, bytes+len(b.Frames[i].Data)
		}
	}
	fmt.Println(frames, "frames,", bytes, "bytes")
	// Output:
	// 519 frames, 95442 bytes
}
