package main

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

// nobody is the user and group of whom nothing belongs.
const nobody = 65534

// identity is what the threads of a process may do, as the kernel words it in
// /proc/PID/status.
type identity struct {
	uid, gid int
	groups   string // supplementary groups; "" for none
	bounded  bool   // nothing in the capability bounding set
}

// dropPrivileges gives up, on all threads and for good, what root or a file
// capability allows this process: it becomes the user who called sudo, or
// nobody, without groups, capabilities, or a way to gain any by running another
// program. It proves that by what the kernel says of every thread; with an error
// there may be something left, and the process should not read what strangers
// wrote. A user without any privilege keeps going as it is.
//
// A thread's credentials are its own in Linux. The runtime can make a system call
// on all threads unless the program is linked with cgo; there, libc still changes
// user and groups of all, which takes root's capabilities away from each, but a
// file capability stays.
func dropPrivileges() error {
	ruid, euid, suid := unix.Getresuid()
	root := ruid == 0 || euid == 0 || suid == 0
	held, err := holdsCapabilities()
	if err != nil {
		return fmt.Errorf("giving up privileges: %w", err)
	}
	if !root && !held {
		return nil
	}
	want := identity{uid: euid, gid: os.Getegid()}
	if root {
		want, err = becomeUser(ruid)
	} else {
		want.groups, err = groupsOf("/proc/self/status")
	}
	if err != nil {
		return fmt.Errorf("giving up privileges: %w", err)
	}
	dropped := dropCapabilities()
	err = errors.Join(forbidNewPrivileges(), want.check("/proc/self/task"))
	switch {
	case err != nil && errors.Is(dropped, syscall.ENOTSUP):
		return fmt.Errorf("giving up privileges: %w; a program linked with cgo cannot take capabilities from all its threads: build rdmadump with CGO_ENABLED=0", err)
	case err != nil:
		return fmt.Errorf("giving up privileges: %w", err)
	case dropped != nil && !errors.Is(dropped, syscall.ENOTSUP): // with cgo, that there are none left is proven
		return fmt.Errorf("giving up privileges: %w", dropped)
	}
	return nil
}

// becomeUser leaves root for the user who called: through sudo, or, of a program
// that is set-user-ID, directly. When that is root as well, for nobody.
func becomeUser(ruid int) (identity, error) {
	want := identity{uid: sudoID("SUDO_UID"), gid: sudoID("SUDO_GID")}
	if want.uid == nobody {
		want.gid = nobody
	}
	if ruid != 0 {
		want.uid, want.gid = ruid, os.Getgid()
	}
	var err error
	if want.bounded, err = dropBounding(); err != nil {
		return want, err
	}
	if err := syscall.Setgroups(nil); err != nil {
		// A user namespace may forbid it, so that nobody gets rid of a group that
		// keeps him out. They are the groups of an ordinary user, then.
		deny, _ := os.ReadFile("/proc/self/setgroups")
		if !errors.Is(err, syscall.EPERM) || strings.TrimSpace(string(deny)) != "deny" {
			return want, fmt.Errorf("leaving all groups: %w", err)
		}
		if want.groups, err = groupsOf("/proc/self/status"); err != nil {
			return want, err
		}
	}
	if err := syscall.Setresgid(want.gid, want.gid, want.gid); err != nil {
		return want, fmt.Errorf("becoming group %d: %w", want.gid, err)
	}
	if err := syscall.Setresuid(want.uid, want.uid, want.uid); err != nil {
		return want, fmt.Errorf("becoming user %d: %w", want.uid, err)
	}
	return want, nil
}

// sudoID reads the user or group who called sudo; root, and what is no id, is
// nobody.
func sudoID(variable string) int {
	id, err := strconv.ParseUint(os.Getenv(variable), 10, 32)
	if err != nil || id == 0 || id == 1<<32-1 { // -1 is "as it is" to the kernel
		return nobody
	}
	return int(id)
}

// holdsCapabilities says whether this thread, of a process whose threads are all
// alike, may do or pass on anything.
func holdsCapabilities() (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false, fmt.Errorf("asking for capabilities: %w", err)
	}
	return data != [2]unix.CapUserData{}, nil
}

// dropBounding empties the capability bounding set of all threads, and says
// whether it could: that needs a capability of its own, and without it
// no_new_privs has to do.
func dropBounding() (bool, error) {
	for c := uintptr(0); c < 64; c++ {
		in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return true, nil // the kernel knows no more
		}
		if err != nil || in == 0 {
			continue
		}
		switch _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); errno {
		case 0:
		case syscall.EPERM, syscall.ENOTSUP:
			return false, nil
		default:
			return false, fmt.Errorf("leaving the capability bounding set: %w", errno)
		}
	}
	return true, nil
}

// dropCapabilities takes all capabilities from all threads. It is ENOTSUP in a
// program linked with cgo, which cannot.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno != 0 {
		return fmt.Errorf("dropping capabilities: %w", errno)
	}
	return nil
}

// forbidNewPrivileges sets no_new_privs on all threads: no program that one of
// them might run is given anything. With cgo it is set on one thread and copied to
// the others along with a system call filter that lets everything through.
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

func forbidThroughFilter() syscall.Errno {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	program := unix.SockFprog{Len: 1, Filter: &allow}
	thread, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno == 0 && thread != 0 { // one that has another filter
		return syscall.EBUSY
	}
	return errno
}

// check proves that every thread in a task folder of /proc is what is wanted. A
// thread that begins meanwhile is as the one that began it.
func (want identity) check(tasks string) error {
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return fmt.Errorf("no proof that they are gone: %w", err)
	}
	checked := 0
	for _, e := range entries {
		status, err := readStatus(filepath.Join(tasks, e.Name(), "status"))
		switch {
		case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH): // the thread has ended
			continue
		case err != nil:
			return fmt.Errorf("no proof that they are gone: %w", err)
		}
		if err := want.compare(status); err != nil {
			return fmt.Errorf("thread %s still has %w", e.Name(), err)
		}
		checked++
	}
	if checked == 0 {
		return fmt.Errorf("no proof that they are gone: no thread in %s", tasks)
	}
	return nil
}

// compare holds one thread's status against what is wanted.
func (want identity) compare(status map[string]string) error {
	all := func(id int) string { return strings.TrimSpace(strings.Repeat(" "+strconv.Itoa(id), 4)) } // real, effective, saved, of files
	rows := []struct{ name, want string }{{"Uid", all(want.uid)}, {"Gid", all(want.gid)}, {"Groups", want.groups}}
	for _, row := range rows {
		if got, told := status[row.name]; !told || got != row.want {
			return fmt.Errorf("%s %q and not %q", row.name, got, row.want)
		}
	}
	sets := []string{"CapInh", "CapPrm", "CapEff", "CapAmb"}
	if want.bounded {
		sets = append(sets, "CapBnd")
	}
	for _, name := range sets {
		got, told := status[name]
		if !told && name == "CapAmb" { // before Linux 4.3
			continue
		}
		if set, err := strconv.ParseUint(got, 16, 64); err != nil || set != 0 {
			return fmt.Errorf("%s %q", name, got)
		}
	}
	if got, told := status["NoNewPrivs"]; told && got != "1" { // untold before Linux 4.10
		return fmt.Errorf("NoNewPrivs %q", got)
	}
	return nil
}

// readStatus reads a status file of /proc: words by their key.
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

func groupsOf(path string) (string, error) {
	status, err := readStatus(path)
	return status["Groups"], err
}
