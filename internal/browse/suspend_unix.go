//go:build !windows

package browse

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopsWithin is the time in which a process that the shell can continue is stopped by SIGTSTP.
const stopsWithin = 100 * time.Millisecond

// Run stops the processes of the terminal's foreground until the shell continues them.
func (s *suspension) Run() error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return err
	}
	for range 2 { // The first wait may have ended while the process was stopped.
		select {
		case <-continued:
			return nil
		case <-s.ctx.Done():
			return nil
		case <-time.After(stopsWithin):
		}
	}
	return errors.New("there is no shell that could continue browse, so it was not suspended")
}
