package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/show"
	"github.com/rdmadump/rdmadump/internal/metrics"
)

// serveMetrics serves the metrics that --metrics asks for until ctx ends. It listens before the process drops its privileges.
func (l *liveFlags) serveMetrics(ctx context.Context, cmd *cobra.Command, r *show.Runner) error {
	if l.Metrics == "" {
		if cmd.Flags().Changed("metrics") {
			return errors.New("--metrics: the address is empty; it is PORT or HOST:PORT")
		}
		if cmd.Flags().Changed("metrics-clients") {
			return errors.New("--metrics-clients: this is about the labels of --metrics; name its address with it")
		}
		return nil
	}
	if l.MetricsClients < 1 || l.MetricsClients > maxClients {
		return fmt.Errorf("--metrics-clients %d: must be from 1 to %d", l.MetricsClients, maxClients)
	}
	listener, err := metrics.Listen(l.Metrics)
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	m := metrics.New(l.MetricsClients)
	r.Also = append(r.Also, m)
	if !l.Quiet {
		command.Say(r.Stderr, "metrics are at http://%s%s", listener.Addr(), metrics.Path)
	}
	go func() {
		if err := m.Serve(ctx, listener); err != nil {
			command.Say(r.Stderr, "--metrics: %v", err)
		}
	}()
	return nil
}

// maxClients limits the memory for labels.
const maxClients = 100000
