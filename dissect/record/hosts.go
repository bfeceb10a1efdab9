package record

import (
	"net/netip"
	"reflect"
	"strings"
)

// Hosts are the names of hosts. A nil Hosts has none.
type Hosts struct {
	names  map[string]string // by address, as records have it
	number map[string]int    // of the addresses of a name
}

// NewHosts returns Hosts without names.
func NewHosts() *Hosts { return &Hosts{map[string]string{}, map[string]int{}} }

// Add gives an address a name, unless it has one.
func (h *Hosts) Add(address netip.Addr, name string) {
	text := address.Unmap().WithZone("").String()
	if h.names[text] == "" {
		h.names[text] = name
		h.number[name]++
	}
}

// Name returns the name of the host with an address, or nothing if it has none.
func (h *Hosts) Name(address string) string {
	if h == nil {
		return ""
	}
	return h.names[address]
}

// Shown returns the name of the host with an address for texts, or the address if there is no name. A name that several addresses have
// is followed by the address.
func (h *Hosts) Shown(address string) string {
	name := h.Name(address)
	switch {
	case name == "":
		return address
	case h.number[name] > 1:
		return name + "(" + address + ")"
	}
	return name
}

// keepsContent marks what replaces addresses only.
func (*Hosts) keepsContent() {}

// In returns a text in which names replace addresses. An address that is a part of a longer word, such as the name of a file, stays.
func (h *Hosts) In(text string) string {
	if h == nil || len(h.names) == 0 {
		return text
	}
	var b strings.Builder
	for at := 0; at < len(text); {
		end := at
		for end < len(text) && isOfAddress(text[end]) {
			end++
		}
		if end == at {
			b.WriteByte(text[at])
			at++
			continue
		}
		word := text[at:end]
		address := strings.TrimRight(word, ".:")
		if _, err := netip.ParseAddr(address); err != nil { // perhaps with a port
			if host, _, found := strings.Cut(address, ":"); found {
				address = host
			}
		}
		b.WriteString(h.Shown(address) + word[len(address):])
		at = end
	}
	return b.String()
}

// isOfAddress reports whether a word that contains a character may be an address, or is not separated from it.
func isOfAddress(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == ':' || c == '-' || c == '_' || c == '/' || c == '%' || c >= 0x80
}

// ID returns a number as it is.
func (*Hosts) ID(id uint32) uint32 { return id }

// Text returns what is shown of a text.
func (h *Hosts) Text(what Secret, text string) string {
	switch what {
	case SecretAddress:
		return h.Shown(text)
	case SecretSentence, SecretContent:
		return h.In(text)
	}
	return text
}

// Named returns a copy of a record, given as a pointer, for texts: names replace addresses. Without names it returns the record itself.
func (h *Hosts) Named(r any) any {
	if h == nil {
		return r
	}
	own := reflect.New(reflect.TypeOf(r).Elem())
	own.Elem().Set(reflect.ValueOf(r).Elem())
	hide(own.Elem(), "", h)
	return own.Interface()
}

// Named returns what the method of Hosts returns.
func Named[T any](r *T, h *Hosts) *T { return h.Named(r).(*T) }
