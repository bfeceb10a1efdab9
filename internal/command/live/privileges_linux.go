package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nobody is the ID of the user and the group nobody, which own no files.
const nobody = 65534

// Identity holds the privileges of the threads of a process, in the form of /proc/PID/status.
type Identity struct {
	Uid, Gid int
	groups   string // supplementary groups, or ""
	Bounded  bool   // the capability bounding set is empty
}

// dropPrivileges drops, on all threads and permanently, the privileges that root or a file
// capability gives to this process. The process continues as the user who called sudo, or as
// nobody, without supplementary groups and capabilities, and cannot gain any by running another
// program. dropPrivileges verifies this with the kernel's status of every thread. If it returns
// an error, some privileges may be left, and the process should not read untrusted packets. A
// process without privileges is not changed.
//
// In Linux, each thread has its own credentials. The Go runtime can make a system call on all
// threads unless the program is linked with cgo. With cgo, libc still changes user and groups of
// all threads, which removes the capabilities of root from each thread, but file capabilities
// stay.
func dropPrivileges() error {
	ruid, euid, suid := unix.Getresuid()
	root := ruid == 0 || euid == 0 || suid == 0
	held, err := holdsCapabilities()
	if err != nil {
		return fmt.Errorf("dropping privileges: %w", err)
	}
	if !root && !held {
		return nil
	}
	want := Identity{Uid: euid, Gid: os.Getegid()}
	if root {
		want, err = becomeUser(ruid)
	} else {
		want.groups, err = groupsOf("/proc/self/status")
	}
	if err != nil {
		return fmt.Errorf("dropping privileges: %w", err)
	}
	dropped := dropCapabilities()
	err = errors.Join(forbidNewPrivileges(), want.Check("/proc/self/task"))
	switch {
	case err != nil && errors.Is(dropped, syscall.ENOTSUP):
		return fmt.Errorf("dropping privileges: %w; a program linked with cgo cannot drop the capabilities of all threads; build rdmadump with CGO_ENABLED=0", err)
	case err != nil:
		return fmt.Errorf("dropping privileges: %w", err)
	case dropped != nil && !errors.Is(dropped, syscall.ENOTSUP): // With cgo, the check has proved that none are left.
		return fmt.Errorf("dropping privileges: %w", dropped)
	}
	return nil
}

// becomeUser changes from root to the user who called the program: through sudo or, for a
// set-user-ID program, directly. If that user is root, too, it changes to nobody.
func becomeUser(ruid int) (Identity, error) {
	want := Identity{Uid: sudoID("SUDO_UID"), Gid: sudoID("SUDO_GID")}
	if want.Uid == nobody {
		want.Gid = nobody
	}
	if ruid != 0 {
		want.Uid, want.Gid = ruid, os.Getgid()
	}
	var err error
	if want.Bounded, err = dropBounding(); err != nil {
		return want, err
	}
	if err := syscall.Setgroups(nil); err != nil {
		// A user namespace may forbid this, so that users cannot leave a group that denies them
		// access. In such a namespace, the groups are those of an ordinary user.
		deny, _ := os.ReadFile("/proc/self/setgroups")
		if !errors.Is(err, syscall.EPERM) || strings.TrimSpace(string(deny)) != "deny" {
			return want, fmt.Errorf("dropping all groups: %w", err)
		}
		if want.groups, err = groupsOf("/proc/self/status"); err != nil {
			return want, err
		}
	}
	if err := syscall.Setresgid(want.Gid, want.Gid, want.Gid); err != nil {
		return want, fmt.Errorf("becoming group %d: %w", want.Gid, err)
	}
	if err := syscall.Setresuid(want.Uid, want.Uid, want.Uid); err != nil {
		return want, fmt.Errorf("becoming user %d: %w", want.Uid, err)
	}
	return want, nil
}

// sudoID returns the ID of the user or group that called sudo, from an environment variable. It
// returns nobody for root or an invalid ID.
func sudoID(variable string) int {
	id, err := strconv.ParseUint(os.Getenv(variable), 10, 32)
	if err != nil || id == 0 || id == 1<<32-1 { // The kernel reads -1 as no change.
		return nobody
	}
	return int(id)
}

// holdsCapabilities reports whether this thread has any capability, or can pass one on. All
// threads of the process are alike.
func holdsCapabilities() (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false, fmt.Errorf("reading capabilities: %w", err)
	}
	return data != [2]unix.CapUserData{}, nil
}

// dropBounding empties the capability bounding set of all threads. It returns false if it may
// not, because that needs a capability of its own; no_new_privs is sufficient then.
func dropBounding() (bool, error) {
	for c := uintptr(0); c < 64; c++ {
		in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return true, nil // The kernel has no more capabilities.
		}
		if err != nil || in == 0 {
			continue
		}
		switch _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); errno {
		case 0:
		case syscall.EPERM, syscall.ENOTSUP:
			return false, nil
		default:
			return false, fmt.Errorf("emptying the capability bounding set: %w", errno)
		}
	}
	return true, nil
}

// dropCapabilities drops all capabilities of all threads. It returns ENOTSUP in a program that is
// linked with cgo.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno != 0 {
		return fmt.Errorf("dropping capabilities: %w", errno)
	}
	return nil
}

// forbidNewPrivileges sets no_new_privs on all threads, so that programs that they run gain no
// privileges. With cgo it sets it on one thread and copies it to the others together with a
// system call filter that allows everything.
func forbidNewPrivileges() error {
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if errno == syscall.ENOTSUP {
		errno = forbidThroughFilter()
	}
	if errno != 0 {
		return fmt.Errorf("setting no_new_privs: %w", errno)
	}
	return nil
}

// forbidThroughFilter sets no_new_privs on all threads with a system call filter.
func forbidThroughFilter() syscall.Errno {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	program := unix.SockFprog{Len: 1, Filter: &allow}
	thread, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno == 0 && thread != 0 { // This thread has another filter.
		return syscall.EBUSY
	}
	return errno
}

// Check verifies that every thread in a task folder of /proc has only the wanted privileges. A
// thread that starts meanwhile has the privileges of the thread that started it.
func (want Identity) Check(tasks string) error {
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return fmt.Errorf("cannot verify that they are dropped: %w", err)
	}
	checked := 0
	for _, e := range entries {
		status, err := readStatus(filepath.Join(tasks, e.Name(), "status"))
		switch {
		case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH): // The thread has ended.
			continue
		case err != nil:
			return fmt.Errorf("cannot verify that they are dropped: %w", err)
		}
		if err := want.compare(status); err != nil {
			return fmt.Errorf("thread %s still has %w", e.Name(), err)
		}
		checked++
	}
	if checked == 0 {
		return fmt.Errorf("cannot verify that they are dropped: no thread in %s", tasks)
	}
	return nil
}

// compare compares the status of one thread with the wanted privileges.
func (want Identity) compare(status map[string]string) error {
	all := func(id int) string { return strings.TrimSpace(strings.Repeat(" "+strconv.Itoa(id), 4)) } // real, effective, saved and file system IDs
	rows := []struct{ name, want string }{{"Uid", all(want.Uid)}, {"Gid", all(want.Gid)}, {"Groups", want.groups}}
	for _, row := range rows {
		if got, has := status[row.name]; !has || got != row.want {
			return fmt.Errorf("%s %q instead of %q", row.name, got, row.want)
		}
	}
	sets := []string{"CapInh", "CapPrm", "CapEff", "CapAmb"}
	if want.Bounded {
		sets = append(sets, "CapBnd")
	}
	for _, name := range sets {
		got, has := status[name]
		if !has && name == "CapAmb" { // Linux before 4.3 does not have it.
			continue
		}
		if set, err := strconv.ParseUint(got, 16, 64); err != nil || set != 0 {
			return fmt.Errorf("%s %q", name, got)
		}
	}
	if got, has := status["NoNewPrivs"]; has && got != "1" { // Linux before 4.10 does not show it.
		return fmt.Errorf("NoNewPrivs %q", got)
	}
	return nil
}

// readStatus returns the values of a status file of /proc by their keys.
func readStatus(path string) (map[string]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	status := map[string]string{}
	for line := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(line, ":")
		status[key] = strings.Join(strings.Fields(value), " ")
	}
	return status, nil
}

// groupsOf returns the supplementary groups in a status file of /proc.
func groupsOf(path string) (string, error) {
	status, err := readStatus(path)
	return status["Groups"], err
}
