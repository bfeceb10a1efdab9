package capture

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Interface is a network interface that can be captured on, with its RDMA devices.
type Interface struct {
	Type    string   `json:"type" doc:"The record's type, always \"interface\"." values:"interface"`
	Name    string   `json:"name" doc:"The name of the interface in the operating system."`
	Up      bool     `json:"up" doc:"Whether the interface is up."`
	MTU     int      `json:"mtu" doc:"The MTU of the interface in bytes."`
	Address []string `json:"addresses" doc:"The IP addresses of the interface, with prefix lengths."`
	RDMA    []Device `json:"rdma" doc:"The RDMA devices that use the interface."`
}

// Device is an RDMA device.
type Device struct {
	Name     string `json:"name" doc:"The name of the RDMA device in the operating system."`
	Link     string `json:"link_layer" doc:"The link layer of the first port: Ethernet or InfiniBand."`
	Hardware bool   `json:"hardware" doc:"Whether the device is hardware. The traffic of a hardware device bypasses the kernel, so a socket on the interface does not receive it."`
}

// Interfaces lists the network interfaces. The argument sys is the mount point of sysfs, normally
// /sys.
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

// Bypass returns the name of the hardware RDMA device of an interface, or "" if the interface has
// none. A socket on an interface with such a device does not receive the traffic of the device.
func Bypass(sys, name string) string {
	for _, d := range rdmaDevices(sys)[name] {
		if d.Hardware {
			return d.Name
		}
	}
	return ""
}

// rdmaDevices finds the RDMA devices of each network interface. A software device (rxe, siw) names
// its interface in the file "parent" and has no bus device. A hardware device lists its interfaces
// in device/net, and the interfaces of each port in gid_attrs.
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
