package analyze

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Mounted is what a client and a server agreed on, as far as the capture shows it.
type Mounted struct {
	Client           record.Opt[string]                  `json:"client" doc:"Address of the client." secret:"address"`
	Server           record.Opt[string]                  `json:"server" doc:"Address of the server." secret:"address"`
	NFSVersion       string                              `json:"nfs_version" doc:"Version of NFS, such as 3, 4.1 or 4.2." secret:"no"`
	Security         string                              `json:"security" doc:"Flavor of the credentials of most Calls, such as AUTH_SYS; empty if it is not known." secret:"no"`
	ReadBytesMax     record.Opt[int64]                   `json:"read_bytes_max" doc:"Number of bytes that the largest READ returned; null if none returned any. With large files it is the rsize of the mount."`
	ReadCountMax     record.Opt[int64]                   `json:"read_count_max" doc:"Largest number of bytes that a READ asked for (its count); null if the arguments of none were captured. A READ returns fewer at the end of a file, or if the server returns at most so many. Clients ask for at most the rsize of the mount."`
	WriteBytesMax    record.Opt[int64]                   `json:"write_bytes_max" doc:"Number of bytes that the largest WRITE wrote; null if none wrote any. With large files it is the wsize of the mount."`
	Connections      int                                 `json:"connections" doc:"Number of connections that carried NFS between the two."`
	MTU              record.Opt[int]                     `json:"path_mtu" doc:"Path MTU that the handshakes negotiated, in bytes; null if it is not known or not the same on all connections."`
	InlineThresholds record.Opt[record.InlineThresholds] `json:"inline_threshold" doc:"Longest Send that each side may transmit, of the first connection that shows it."`
	Credits          record.Opt[uint32]                  `json:"credits" doc:"Number of credits that the latest Reply granted, on the connection with the most."`

	key     pairKey
	flavors map[string]int
	conns   map[int]bool // connections
}

// pairKey identifies a mount of a client.
type pairKey struct {
	client, server string
	version, minor uint32
}

// programNFS is the number of the RPC program, and maxMountedConns limits the connections that are remembered.
const (
	programNFS      = 100003
	maxMountedConns = 1 << 12
)

// Mounts collects what clients and servers agreed on.
type Mounts struct {
	pairs map[pairKey]*Mounted
	of    map[int]*Mounted // by connection
}

// Transaction notes an RPC, if it is one of NFS.
func (m *Mounts) Transaction(r *record.Transaction) {
	if r.Program.Or(0) != programNFS || r.Direction == record.Backward || !r.Status.Replied() || r.Procedure.Or(0) == 0 {
		return // A NULL procedure, or a Call without a Reply, agrees on nothing.
	}
	k := pairKey{r.Client.Or(""), r.Server.Or(""), r.Version.Or(0), min(r.MinorVersion.Or(0), 99)}
	if k.version == 4 && !r.MinorVersion.Known() {
		return
	}
	p := m.of[r.Connection]
	if p == nil || p.key != k {
		p = m.pairs[k]
	}
	if p == nil {
		if len(m.pairs) >= MaxPairs {
			return
		}
		if m.pairs == nil {
			m.pairs, m.of = map[pairKey]*Mounted{}, map[int]*Mounted{}
		}
		version := strconv.FormatUint(uint64(k.version), 10)
		if k.version == 4 {
			version += "." + strconv.FormatUint(uint64(k.minor), 10)
		}
		p = &Mounted{Client: r.Client, Server: r.Server, NFSVersion: version, key: k, flavors: map[string]int{}, conns: map[int]bool{}}
		m.pairs[k] = p
	}
	if m.of[r.Connection] != p && len(m.of) < maxMountedConns {
		m.of[r.Connection], p.conns[r.Connection] = p, true
	}
	if flavor, known := r.Credential.Get(); known && (len(p.flavors) < 8 || p.flavors[flavor] > 0) {
		p.flavors[flavor]++
	}
	if asked, known := r.BytesAsked.Get(); known && asked > p.ReadCountMax.Or(-1) {
		p.ReadCountMax = record.Some(asked)
	}
	read, written := r.FileBytes()
	if read > p.ReadBytesMax.Or(0) {
		p.ReadBytesMax = record.Some(read)
	}
	if written > p.WriteBytesMax.Or(0) {
		p.WriteBytesMax = record.Some(written)
	}
}

// Connection notes what the handshake of a connection negotiated. Its transactions come before it.
func (m *Mounts) Connection(r *record.Connection) {
	p := m.of[r.ID]
	if p == nil {
		return
	}
	delete(m.of, r.ID)
	if mtu, known := r.PathMTU.Get(); known {
		if other, had := p.MTU.Get(); had && other != mtu {
			p.MTU = record.Some(0) // They differ.
		} else {
			p.MTU = record.Some(mtu)
		}
	}
	if !p.InlineThresholds.Known() && r.Handshake != "missed" { // Without the private data, the thresholds are only the defaults.
		p.InlineThresholds = r.InlineThreshold
	}
	if c, known := r.Credits.Get(); known && c.Forward.Granted.Or(0) > p.Credits.Or(0) {
		p.Credits = c.Forward.Granted
	}
}

// List returns the mounts, with the most connections first.
func (m *Mounts) List() []Mounted {
	list := []Mounted{}
	for _, p := range m.pairs {
		now := *p
		now.Connections = len(p.conns)
		if now.MTU.Or(1) == 0 {
			now.MTU = record.Opt[int]{}
		}
		most := 0
		for flavor, n := range p.flavors {
			if n > most || n == most && flavor < now.Security {
				now.Security, most = flavor, n
			}
		}
		list = append(list, now)
	}
	slices.SortFunc(list, func(a, b Mounted) int {
		return cmp.Or(cmp.Compare(b.Connections, a.Connections), cmp.Compare(a.Client.Or(""), b.Client.Or("")), cmp.Compare(a.Server.Or(""), b.Server.Or("")), cmp.Compare(a.NFSVersion, b.NFSVersion))
	})
	return list
}
