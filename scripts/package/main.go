// Command package makes the archives and images of a release from programs that are built already:
//
//	package -version V -epoch SECONDS -in DIR -out DIR
//
// The folder -in has, for each target, bin/fiscalhub-OS-ARCH; man/*.1; completion/bash, zsh
// and fish; and LICENCES.txt. The folder -out gets an archive for each target, and for Linux
// also a container image. nfpm makes the .deb and the .rpm. The same input gives the same
// bytes on every machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

// release is what all files of a release share.
type release struct {
	version string    // 1.2.3, or 1.2.3~git20261116.0123abc between two releases
	made    time.Time // the time of every file: that of the commit
	in, out string
	root    string // the folder of the project
	fast    bool   // compresses less
}

// fileVersion is the version in the names of files, where ~ is not usual.
func (r release) fileVersion() string { return strings.ReplaceAll(r.version, "~", "-") }

// target is a system that a program was built for.
type target struct{ system, arch string }

func run(args []string) error {
	flags := flag.NewFlagSet("package", flag.ContinueOnError)
	var r release
	var epoch int64
	flags.StringVar(&r.version, "version", "", "version of the packages")
	flags.Int64Var(&epoch, "epoch", 0, "time of all files, in seconds since 1970")
	flags.StringVar(&r.in, "in", "", "folder with programs, manual pages, completions and licences")
	flags.StringVar(&r.out, "out", "", "folder for the packages")
	flags.BoolVar(&r.fast, "fast", false, "compress less, for a check")
	flags.StringVar(&r.root, "root", ".", "folder of the project")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if r.version == "" || epoch <= 0 || r.in == "" || r.out == "" || flags.NArg() > 0 {
		return errors.New("usage: package -version V -epoch SECONDS -in DIR -out DIR")
	}
	r.made = time.Unix(epoch, 0).UTC()
	programs, err := filepath.Glob(filepath.Join(r.in, "bin", "fiscalhub-*-*"))
	if err != nil {
		return err
	}
	if len(programs) == 0 {
		return fmt.Errorf("%s has no programs", filepath.Join(r.in, "bin"))
	}
	for _, program := range programs {
		fields := strings.Split(filepath.Base(program), "-")
		if err := r.packageTarget(target{fields[1], fields[2]}, program); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(program), err)
		}
	}
	return nil
}

// packageTarget makes all files of one target.
func (r release) packageTarget(t target, program string) error {
	body, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	portable, err := r.portableFiles(t, body)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("fiscalhub_%s_%s_%s", r.fileVersion(), t.system, t.arch)
	if t.system == "windows" {
		return r.write(name+".zip", func() ([]byte, error) { return zipArchive(portable, r.made) })
	}
	if err := r.write(name+".tar.gz", func() ([]byte, error) { return r.tarGz(portable) }); err != nil {
		return err
	}
	if t.system != "linux" {
		return nil
	}
	return r.write(name+"_image.tar", func() ([]byte, error) { return r.image(t, body) })
}

// write makes a file of the release.
func (r release) write(name string, make func() ([]byte, error)) error {
	body, err := make()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(r.out, name), body, 0o644) //nolint:gosec // a release is for everyone
}
