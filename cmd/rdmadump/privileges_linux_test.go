package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmadump/rdmadump/internal/command/live"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// builds returns the paths of programs by the way in which they were built: the program as this
// test was built, and with -all also without cgo, as it is released, and with cgo, as go install
// builds it if there is a C compiler.
func builds(t *testing.T) map[string]string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("capturing on an interface, and giving up the right to, needs root")
	}
	dir, err := os.MkdirTemp("", "rdmadump") // Other users may not enter t.TempDir.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	info, _ := debug.ReadBuildInfo()
	own := ""
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" {
			own = s.Value
		}
	}
	if own == "" {
		t.Fatal("it is unknown whether the test was built with cgo")
	}
	paths := map[string]string{"CGO_ENABLED=" + own: filepath.Join(dir, "rdmadump")}
	itself(t, paths["CGO_ENABLED="+own])
	if !testkit.All() {
		return paths
	}
	for _, cgo := range []string{"0", "1"} {
		if _, err := exec.LookPath("cc"); cgo == "1" && err != nil {
			continue
		}
		path := filepath.Join(dir, "rdmadump"+cgo)
		build := exec.Command("go", "build", "-o", path, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		paths["CGO_ENABLED="+cgo] = path
	}
	return paths
}

// start runs a command until the test ends. It returns the standard output of the command and the
// error with which it ended.
func start(t *testing.T, cmd *exec.Cmd) (lines chan string, ended chan string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(cmd.Environ(), "GOMAXPROCS=8") // This makes the program use more threads.
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, ended = make(chan string, 1000), make(chan string, 1)
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			default:
			}
		}
		err := cmd.Wait()
		ended <- fmt.Sprintf("%v: %s", err, stderr.String())
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	return lines, ended
}

// threadStatus returns the lines about privileges in the kernel's status of each thread of a
// process.
func threadStatus(t *testing.T, pid int) (list []map[string]string) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads of %d: %v %v", pid, threads, err)
	}
	for _, path := range threads {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // The thread has ended.
		}
		status := map[string]string{}
		for line := range strings.Lines(string(content)) {
			key, value, _ := strings.Cut(line, ":")
			status[key] = strings.Join(strings.Fields(value), " ")
		}
		list = append(list, status)
	}
	return list
}

// traffic sends datagrams to the RoCEv2 port over the loopback interface until the test ends.
func traffic(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("udp", "127.0.0.1:4791")
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan bool)
	t.Cleanup(func() { close(stop); conn.Close() })
	go func() {
		for {
			conn.Write(make([]byte, 64))
			select {
			case <-time.After(10 * time.Millisecond):
			case <-stop:
				return
			}
		}
	}()
}

const (
	noCapabilities = "0000000000000000"
	nobodyIDs      = "65534 65534 65534 65534"
)

// TestPrivileges: when live shows the first packet, no thread has any privilege left, whichever
// user started it.
func TestPrivileges(t *testing.T) {
	paths := builds(t)
	traffic(t)
	sample, err := os.ReadFile("../../samples/rocev2-callback41.pcap")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		from     []string
		env      []string
		uid, gid string
	}{
		{"root", []string{"-i", "lo"}, nil, nobodyIDs, nobodyIDs},
		{"sudo", []string{"-i", "lo"}, []string{"SUDO_UID=1234", "SUDO_GID=1235"}, "1234 1234 1234 1234", "1235 1235 1235 1235"},
		{"sudo by root", []string{"-i", "lo"}, []string{"SUDO_UID=0", "SUDO_GID=0"}, nobodyIDs, nobodyIDs},
		{"sudo with root's group", []string{"-i", "lo"}, []string{"SUDO_UID=1234", "SUDO_GID=0"}, "1234 1234 1234 1234", nobodyIDs},
		{"sudo that is none", []string{"-i", "lo"}, []string{"SUDO_UID=4294967295", "SUDO_GID=x"}, nobodyIDs, nobodyIDs},
		{"pipe", []string{"-"}, nil, nobodyIDs, nobodyIDs},
	} {
		for build, path := range paths {
			t.Run(c.name+" "+build, func(t *testing.T) {
				cmd := exec.Command(path, append([]string{"live", "--view", "packets", "-q"}, c.from...)...)
				cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "SUDO_") }), c.env...)
				pipe, feed, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer pipe.Close()
				defer feed.Close()
				if _, err := feed.Write(sample[:10000]); err != nil {
					t.Fatal(err)
				}
				cmd.Stdin = pipe
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{4, 27}}}
				lines, ended := start(t, cmd)
				select {
				case <-lines:
				case how := <-ended:
					ended <- how
					t.Fatal(how)
				case <-time.After(20 * time.Second):
					t.Fatal("no packet")
				}
				checkThreads(t, cmd.Process.Pid, c.uid, c.gid, build == "CGO_ENABLED=0")
			})
		}
	}
}

// checkThreads compares the status of every thread with the expected one.
func checkThreads(t *testing.T, pid int, uid, gid string, bounding bool) {
	t.Helper()
	list := threadStatus(t, pid)
	if len(list) < 4 {
		t.Errorf("only %d threads", len(list))
	}
	want := map[string]string{
		"Uid": uid, "Gid": gid, "Groups": "", "NoNewPrivs": "1",
		"CapInh": noCapabilities, "CapPrm": noCapabilities, "CapEff": noCapabilities, "CapAmb": noCapabilities,
	}
	if bounding {
		want["CapBnd"] = noCapabilities
	}
	for _, status := range list {
		for key, value := range want {
			if status[key] != value {
				t.Errorf("thread %s: %s is %q, not %q", status["Pid"], key, status[key], value)
			}
		}
	}
}

// TestFileCapability: with setcap cap_net_raw+ep and without root, the capability is dropped. A
// build that cannot drop it from all threads says so and captures nothing.
func TestFileCapability(t *testing.T) {
	paths := builds(t)
	traffic(t)
	for build, path := range paths {
		t.Run(build, func(t *testing.T) {
			// This is a struct vfs_cap_data of revision 2, with the effective bit.
			capability := binary.LittleEndian.AppendUint32(nil, 0x02000000|1)
			capability = binary.LittleEndian.AppendUint32(capability, 1<<unix.CAP_NET_RAW)
			capability = append(capability, make([]byte, 12)...)
			if err := unix.Setxattr(path, "security.capability", capability, 0); err != nil {
				t.Skip("no file capabilities here: ", err)
			}
			cmd := exec.Command(path, "live", "--view", "packets", "-q", "-i", "lo")
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1234, Gid: 1235}}
			lines, ended := start(t, cmd)
			select {
			case <-lines:
				if build != "CGO_ENABLED=0" {
					t.Error("captures, though a build with cgo cannot drop a capability")
				}
			case how := <-ended:
				ended <- how
				if build == "CGO_ENABLED=0" || !strings.HasPrefix(how, "exit status 2") || !strings.Contains(how, "CGO_ENABLED=0") {
					t.Fatal(how)
				}
				return
			case <-time.After(20 * time.Second):
				t.Fatal("no packet")
			}
			checkThreads(t, cmd.Process.Pid, "1234 1234 1234 1234", "1235 1235 1235 1235", false)
		})
	}
}

// TestPrivilegesStay: if root may not become another user, rdmadump says so and captures nothing.
func TestPrivilegesStay(t *testing.T) {
	paths := builds(t)
	traffic(t)
	for build, path := range paths {
		t.Run(build, func(t *testing.T) {
			cmd := exec.Command(path, "live", "--view", "packets", "-q", "-i", "lo")
			var lines, ended chan string
			done := make(chan bool)
			go func() { // The goroutine has its own thread, which ends with it.
				defer close(done)
				runtime.LockOSThread()
				if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SETUID, 0, 0, 0); err != nil {
					t.Error(err)
				}
				lines, ended = start(t, cmd)
			}()
			<-done
			select {
			case how := <-ended:
				ended <- how
				if !strings.HasPrefix(how, "exit status 2: rdmadump: ") || !strings.Contains(how, "becoming user 65534: operation not permitted") || len(lines) > 0 {
					t.Errorf("%d lines; %s", len(lines), how)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it goes on")
			}
		})
	}
}

// TestPrivilegesCheck: one thread with a privilege is an error.
func TestPrivilegesCheck(t *testing.T) {
	const clean = "Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nGroups:\t \n" +
		"CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n"
	want := live.Identity{Uid: 7, Gid: 8, Bounded: true}
	for _, c := range []struct{ name, old, changed, want string }{
		{"nothing", "", "", ""},
		{"saved user", "7\t7\t7\t7", "7\t7\t0\t7", `thread 12 still has Uid "7 7 0 7" instead of "7 7 7 7"`},
		{"group", "8\t8\t8\t8", "8\t8\t8\t0", `thread 12 still has Gid "8 8 8 0" instead of "8 8 8 8"`},
		{"groups", "Groups:\t ", "Groups:\t4 27 ", `thread 12 still has Groups "4 27" instead of ""`},
		{"effective", "CapEff:\t0000000000000000", "CapEff:\t0000000000002000", `thread 12 still has CapEff "0000000000002000"`},
		{"bounding", "CapBnd:\t0000000000000000", "CapBnd:\t000001ffffffffff", `thread 12 still has CapBnd "000001ffffffffff"`},
		{"permitted, missing", "CapPrm", "Other", `thread 12 still has CapPrm ""`},
		{"ambient, untold", "CapAmb", "Other", ""},
		{"no_new_privs", "Privs:\t1", "Privs:\t0", `thread 12 still has NoNewPrivs "0"`},
		{"no_new_privs, untold", "NoNewPrivs", "Other", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := t.TempDir()
			for thread, content := range map[string]string{"11": clean, "12": strings.Replace(clean, c.old, c.changed, 1)} {
				if err := os.Mkdir(filepath.Join(tasks, thread), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(tasks, thread, "status"), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			os.Mkdir(filepath.Join(tasks, "13"), 0o755) // The thread has ended.
			err := want.Check(tasks)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	for _, tasks := range []string{t.TempDir(), "/nonexistent"} {
		if err := want.Check(tasks); err == nil || !strings.HasPrefix(err.Error(), "cannot verify that they are dropped: ") {
			t.Errorf("of %s: %v", tasks, err)
		}
	}
}
