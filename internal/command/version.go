package command

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Build describes how a binary was built.
type Build struct {
	Type     string `json:"type"`     // always "version"
	Version  string `json:"version"`  // version of the module: a tag, or a pseudo-version for a commit between tags
	Commit   string `json:"commit"`   // empty if it was not built in a git repository
	Time     string `json:"time"`     // time of the commit
	Modified bool   `json:"modified"` // the source tree had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// thisBuild returns the description that Go's linker recorded in this binary.
func thisBuild() Build {
	b := Build{Type: "version", Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Read(info)
	}
	return b
}

// Read fills in the description from build information.
func (b *Build) Read(info *debug.BuildInfo) {
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
}

// String returns the description as text for people.
func (b Build) String() string {
	s := "rdmadump " + b.Version
	if b.Commit != "" {
		s += "\ncommit " + b.Commit
		if b.Time != "" {
			s += " of " + b.Time
		}
		if b.Modified {
			s += ", with uncommitted changes"
		}
	}
	return s + "\n" + b.Go + " " + b.Platform
}

// Version returns the version of this binary.
func Version() string { return thisBuild().Version }

// NewVersion returns the command that prints the version.
func NewVersion(stdout io.Writer) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version, the commit and the Go version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := OneOf("-o", output, "text", "json"); err != nil {
				return err
			}
			b := thisBuild()
			if output == "json" {
				return json.NewEncoder(stdout).Encode(b)
			}
			_, err := fmt.Fprintln(stdout, b)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "write this `format`: text or json")
	return cmd
}
