package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

func writeTar(path, folder string, list []file, epoch time.Time) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range list {
		content, err := os.ReadFile(f.source)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: folder + "/" + f.name, Mode: int64(f.mode), Size: int64(len(content)), ModTime: epoch, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return writeGzip(path, b.Bytes())
}

// writeGzip writes a compressed file.
func writeGzip(path string, content []byte) error {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(content); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func writeZip(path, folder string, list []file, epoch time.Time) error {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range list {
		content, err := os.ReadFile(f.source)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: epoch}
		h.SetMode(f.mode)
		part, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := part.Write(content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// inPackage returns the path of a file of an archive on a Linux system. The folder for zsh
// depends on the distribution.
func inPackage(name, packager string) string {
	switch {
	case name == "rdmadump":
		return "/usr/bin/rdmadump"
	case strings.HasPrefix(name, "man/"):
		return "/usr/share/man/man" + filepath.Ext(name)[1:] + "/" + filepath.Base(name) + ".gz"
	case name == "completions/rdmadump.bash":
		return "/usr/share/bash-completion/completions/rdmadump"
	case name == "completions/rdmadump.fish":
		return "/usr/share/fish/vendor_completions.d/rdmadump.fish"
	case name == "completions/rdmadump.zsh" && packager == "deb":
		return "/usr/share/zsh/vendor-completions/_rdmadump"
	case name == "completions/rdmadump.zsh":
		return "/usr/share/zsh/site-functions/_rdmadump"
	case name == "LICENSE" && packager == "deb":
		return "/usr/share/doc/rdmadump/copyright"
	}
	return "/usr/share/doc/rdmadump/" + name
}

// extcapFolder returns the folder in which Wireshark looks for capture sources.
func extcapFolder(packager, arch string) string {
	if packager == "rpm" {
		return "/usr/lib64/wireshark/extcap"
	}
	triplet := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch] + "-linux-gnu"
	return "/usr/lib/" + triplet + "/wireshark/extcap"
}

// writePackages writes the .deb and the .rpm. base is their path without the extension.
func (r *maker) writePackages(base, version string, t target, list []file) error {
	for _, packager := range []string{"deb", "rpm"} {
		var contents files.Contents
		for _, f := range list {
			source := f.source
			if strings.HasPrefix(f.name, "man/") {
				var err error
				if source, err = compressed(r.work, f, r.epoch); err != nil {
					return err
				}
			}
			contents = append(contents, &files.Content{
				Source: source, Destination: inPackage(f.name, packager),
				FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.epoch},
			})
		}
		contents = append(contents, &files.Content{ // Wireshark then lists the interface "RPC over RDMA"
			Source: "/usr/bin/rdmadump", Destination: extcapFolder(packager, t.arch) + "/rdmadump-extcap", Type: files.TypeSymlink,
			FileInfo: &files.ContentFileInfo{MTime: r.epoch},
		})
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "rdmadump", Arch: t.arch, Platform: t.os, Version: version,
			Section: "net", Priority: "optional", Maintainer: "The rdmadump authors <rdmadump@localhost>",
			Description: "Command-line analyzer for captures of NFS over RDMA\n" +
				"Reads captures of NFS over RDMA and shows each RPC as one transaction:\n" +
				"which memory was exposed for it, which side read or wrote that memory, how\n" +
				"long each step took, and which protocol rules were violated.\n" +
				"Live capture on an interface needs CAP_NET_RAW, which this package does not\n" +
				"grant: see /usr/share/doc/rdmadump/live-capture.md.",
			License: "Apache-2.0", DisableGlobbing: true, MTime: r.epoch,
			Overridables: nfpm.Overridables{
				Contents: contents,
				RPM:      nfpm.RPM{BuildHost: "localhost", Summary: "Command-line analyzer for captures of NFS over RDMA"},
			},
		})
		p, err := nfpm.Get(packager)
		if err != nil {
			return err
		}
		if err := nfpm.PrepareForPackager(info, packager); err != nil {
			return err
		}
		var b bytes.Buffer
		if err := p.Package(info, &b); err != nil {
			return fmt.Errorf("%s: %w", packager, err)
		}
		if err := os.WriteFile(filepath.Join(r.out, base+"."+packager), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compressed writes a gzip copy of a man page, and returns its path.
func compressed(work string, f file, epoch time.Time) (string, error) {
	content, err := os.ReadFile(f.source)
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, filepath.Base(f.name)+".gz")
	if err := writeGzip(path, content); err != nil {
		return "", err
	}
	return path, os.Chtimes(path, epoch, epoch)
}
