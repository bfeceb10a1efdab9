// Command cases writes the table of cases as pcap files. For every rule of rdmadump there are
// connections that violate it, and similar healthy ones.
//
//	go run ./synth/cmd/cases DIR
//
// The name of a file consists of the transport, the rule, the number of the case among those
// of the rule, and "broken" or "healthy": roce-pad-written-1-broken.pcap.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rdmadump/rdmadump/synth/cases"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cases DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "cases:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	number := map[string]int{}
	for _, c := range cases.All() {
		number[c.Rule]++
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			if !c.On(transport) {
				continue
			}
			for name, broken := range map[string]bool{"broken": true, "healthy": false} {
				path := filepath.Join(dir, fmt.Sprintf("%s-%s-%d-%s.pcap", strings.ToLower(transport), c.Rule, number[c.Rule], name))
				if err := one(path, c, transport, broken); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func one(path string, c cases.Case, transport string, broken bool) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.Wire(transport, broken).WritePcap(f); err != nil {
		return err
	}
	return f.Close()
}
