package capture

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Interface is a network interface that can be captured on, with the RDMA
// devices behind it.
type Interface struct {
	Type    string   `json:"type" doc:"The record's type, always \"interface\"." values:"interface"`
	Name    string   `json:"name" doc:"The operating system's name of the interface."`
	Up      bool     `json:"up" doc:"Whether the interface is up."`
	MTU     int      `json:"mtu" doc:"MTU of the interface, in bytes."`
	Address []string `json:"addresses" doc:"IP addresses of the interface, with prefix lengths."`
	RDMA    []Device `json:"rdma" doc:"RDMA devices that use the interface."`
}

// Device is an RDMA device.
type Device struct {
	Name     string `json:"name" doc:"The operating system's name of the RDMA device."`
	Link     string `json:"link_layer" doc:"Link layer of the device, Ethernet or InfiniBand."`
	Hardware bool   `json:"hardware" doc:"Whether the device is hardware whose traffic bypasses the kernel, so that sockets cannot capture it."`
}

// Interfaces lists the network interfaces. Sys is where sysfs is mounted,
// normally /sys.
func Interfaces(sys string) ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	devices := rdmaDevices(sys)
	var list []Interface
	for _, i := range all {
		x := Interface{Type: "interface", Name: i.Name, Up: i.Flags&net.FlagUp != 0, MTU: i.MTU, Address: []string{}, RDMA: devices[i.Name]}
		if addresses, err := i.Addrs(); err == nil {
			for _, a := range addresses {
				x.Address = append(x.Address, a.String())
			}
		}
		if x.RDMA == nil {
			x.RDMA = []Device{}
		}
		list = append(list, x)
	}
	return list, nil
}

// Bypass returns the hardware RDMA device behind an interface, empty when there
// is none: a socket on that interface does not see what the device sends.
func Bypass(sys, name string) string {
	for _, d := range rdmaDevices(sys)[name] {
		if d.Hardware {
			return d.Name
		}
	}
	return ""
}

// rdmaDevices finds the RDMA devices behind each network interface. A software
// device (rxe, siw) names its interface in "parent" and has no device of its own
// on a bus; a hardware device lists its interfaces below that, and all of them
// per port in gid_attrs.
func rdmaDevices(sys string) map[string][]Device {
	found := map[string][]Device{}
	entries, _ := os.ReadDir(filepath.Join(sys, "class", "infiniband"))
	for _, e := range entries {
		base := filepath.Join(sys, "class", "infiniband", e.Name())
		d := Device{Name: e.Name(), Link: readWord(filepath.Join(base, "ports", "1", "link_layer"))}
		_, err := os.Stat(filepath.Join(base, "device"))
		d.Hardware = err == nil
		var names []string
		if parent := readWord(filepath.Join(base, "parent")); parent != "" {
			names = append(names, parent)
			d.Hardware = false
		}
		if nets, err := os.ReadDir(filepath.Join(base, "device", "net")); err == nil {
			for _, n := range nets {
				names = append(names, n.Name())
			}
		}
		ports, _ := filepath.Glob(filepath.Join(base, "ports", "*", "gid_attrs", "ndevs", "*"))
		for _, p := range ports {
			names = append(names, readWord(p))
		}
		slices.Sort(names)
		for _, n := range slices.Compact(names) {
			if n != "" {
				found[n] = append(found[n], d)
			}
		}
	}
	return found
}

func readWord(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
