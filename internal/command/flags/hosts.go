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
	h.Transaction = after(h.Transaction, func(r *record.Transaction) { r.ClientName, r.ServerName = name(r.Client), name(r.Server) })
	h.Connection = after(h.Connection, func(r *record.Connection) {
		r.Client.Name, r.Server.Name = name(r.Client.Address), name(r.Server.Address)
	})
	h.Operation = after(h.Operation, func(r *record.RDMAOperation) { r.ClientName, r.ServerName = name(r.Client), name(r.Server) })
	h.Task = after(h.Task, func(r *record.Task) { r.ClientName, r.ServerName = name(r.Client), name(r.Server) })
	h.Finding = after(h.Finding, func(r *record.Finding) { r.ClientName, r.ServerName = name(r.Client), name(r.Server) })
	h.Packet = after(h.Packet, func(p *record.Packet) { p.Hosts = hosts })
	return h
}

// after returns a handler that gets a record after it was changed, or nil if there is no handler.
func after[R any](handle func(*R) error, change func(*R)) func(*R) error {
	if handle == nil {
		return nil
	}
	return func(r *R) error {
		change(r)
		return handle(r)
	}
}
