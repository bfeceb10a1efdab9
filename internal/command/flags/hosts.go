package flags

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/render"
)

// The longest file of --hosts, and the longest name, which is that of the domain name system.
const (
	mostHosts = 4 << 20
	longName  = 255
)

// parseHosts reads the file of --hosts, which has the format of /etc/hosts: an address, and after it the name that is shown, and others.
func parseHosts(ctx context.Context, path string) (*record.Hosts, error) {
	if path == "" {
		return nil, nil
	}
	text, err := command.ReadSide(ctx, "--hosts", path, mostHosts)
	if err != nil {
		return nil, err
	}
	if len(text) > mostHosts {
		return nil, fmt.Errorf("--hosts %s: the file is longer than 4 MiB", render.Clean(path))
	}
	hosts := record.NewHosts()
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, mostHosts+1)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		address, err := netip.ParseAddr(words[0])
		wrong := ""
		switch {
		case err != nil:
			wrong = fmt.Sprintf("%.40s is no address", render.Clean(words[0]))
		case len(words) == 1:
			wrong = "no name follows the address"
		}
		for _, name := range words[1:] {
			_, err := netip.ParseAddr(name)
			switch {
			case err == nil:
				wrong = fmt.Sprintf("the name %.40s is an address", name)
			case len(name) > longName:
				wrong = fmt.Sprintf("a name is longer than %d bytes", longName)
			case !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }):
				wrong = fmt.Sprintf("the name %.40s has characters that cannot be printed", render.Clean(name))
			}
		}
		if wrong != "" {
			return nil, fmt.Errorf("--hosts: %s:%d: %s; a line is an address and a name, as in /etc/hosts", render.Clean(path), n, wrong)
		}
		hosts.Add(address, words[1])
	}
	return hosts, nil
}

// Naming returns a handler that gives records the names of --hosts before another one gets them.
func (s *Settings) Naming(h dissect.Handler) dissect.Handler {
	hosts := s.Hosts
	if hosts == nil {
		return h
	}
	name := func(address record.Opt[string]) string { return hosts.Name(address.Or("")) }
	if inner := h.Transaction; inner != nil {
		h.Transaction = func(r *record.Transaction) error {
			r.ClientName, r.ServerName = name(r.Client), name(r.Server)
			return inner(r)
		}
	}
	if inner := h.Connection; inner != nil {
		h.Connection = func(r *record.Connection) error {
			r.Client.Name, r.Server.Name = name(r.Client.Address), name(r.Server.Address)
			return inner(r)
		}
	}
	if inner := h.Operation; inner != nil {
		h.Operation = func(r *record.RDMAOperation) error {
			r.ClientName, r.ServerName = name(r.Client), name(r.Server)
			return inner(r)
		}
	}
	if inner := h.Task; inner != nil {
		h.Task = func(r *record.Task) error {
			r.ClientName, r.ServerName = name(r.Client), name(r.Server)
			return inner(r)
		}
	}
	if inner := h.Finding; inner != nil {
		h.Finding = func(r *record.Finding) error {
			r.ClientName, r.ServerName = name(r.Client), name(r.Server)
			return inner(r)
		}
	}
	if inner := h.Packet; inner != nil {
		h.Packet = func(p *record.Packet) error {
			p.Hosts = hosts
			return inner(p)
		}
	}
	return h
}
