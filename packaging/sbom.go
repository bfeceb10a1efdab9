package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// writeSBOM writes the build information in a binary as a CycloneDX bill of materials.
func writeSBOM(path string, info *debug.BuildInfo, t target, epoch time.Time) error {
	b := cyclonedx.NewBOM()
	sum := sha256.Sum256([]byte(info.String()))
	b.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, sum[:]).URN()
	b.Metadata = &cyclonedx.Metadata{
		Timestamp: epoch.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: purl(info.Main.Path, info.Main.Version), Type: cyclonedx.ComponentTypeApplication,
			Name: info.Main.Path, Version: info.Main.Version, PackageURL: purl(info.Main.Path, info.Main.Version),
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
			Properties: &[]cyclonedx.Property{
				{Name: "platform", Value: t.os + "/" + t.arch},
				{Name: "vcs.revision", Value: setting(info, "vcs.revision")},
			},
		},
	}
	std := strings.TrimPrefix(info.GoVersion, "go")
	components := []cyclonedx.Component{{
		BOMRef: purl("std", std), Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: std, PackageURL: purl("std", std),
	}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, cyclonedx.Component{
			BOMRef: purl(m.Path, m.Version), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
			PackageURL: purl(m.Path, m.Version),
			Properties: &[]cyclonedx.Property{{Name: "go.sum", Value: m.Sum}},
		})
	}
	b.Components = &components
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(b); err != nil {
		return err
	}
	return f.Close()
}

func purl(path, version string) string { return fmt.Sprintf("pkg:golang/%s@%s", path, version) }

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
