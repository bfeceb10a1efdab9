package testkit

import (
	"flag"
	"os"
	"testing"
)

// all is for make hostile. Without it, the tests that take long process only short captures, so
// that make test is quick enough to be run after every change.
var all = flag.Bool("all", false, "process long captures, too, in the tests that take minutes for them")

// short is the size, compressed, up to which a capture is processed without -all.
const short = 200 << 10

// All reports whether the flag -all is set.
func All() bool { return *all }

// Short returns the captures that are short, or with -all all of them. Among the short ones are
// all transports, IPv4 and IPv6, losses, and captures that break rules.
func Short(t testing.TB, paths []string) (list []string) {
	t.Helper()
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if *all || info.Size() <= short {
			list = append(list, path)
		}
	}
	return list
}

// Few returns each third of a list, or with -all the whole list: for comparisons with programs that take long to start.
func Few[T any](list []T) (some []T) {
	for i, v := range list {
		if *all || i%3 == 0 {
			some = append(some, v)
		}
	}
	return some
}
