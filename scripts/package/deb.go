package main

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the format of md5sums, which protects against accidents only
	"fmt"
	"io/fs"
	"strings"
)

const (
	maintainer  = "fiscalhub project <packages@fiscalhub.example>"
	homepage    = "https://fiscalhub.example"
	summary     = "electronic fiscal invoices for the Dominican Republic"
	description = "A service that issues, signs and sends electronic fiscal invoices (e-CF) to the\n" +
		"tax authority of the Dominican Republic, with an API, webhooks and a console.\n" +
		"It needs no other service: its database is SQLite or PostgreSQL."
)

// deb writes a Debian package: an ar archive with the version of the format, an archive of
// control files and an archive of the installed files.
func (r release) deb(t target, files []file, s scripts) ([]byte, error) {
	controlTar, err := r.debTar(r.debControl(t, files, s))
	if err != nil {
		return nil, err
	}
	dataTar, err := r.debTar(withFolders(files))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, member := range []struct {
		name string
		body []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", controlTar}, {"data.tar.gz", dataTar}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, r.made.Unix(), 0, 0, "100644", len(member.body))
		b.Write(member.body)
		if len(member.body)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

func (r release) debTar(files []file) ([]byte, error) {
	plain, err := tarball(append([]file{{name: "", mode: fs.ModeDir | 0o755}}, files...), "./", r.made)
	if err != nil {
		return nil, err
	}
	return r.compress(plain)
}

// debControl returns the control files.
func (r release) debControl(t target, files []file, s scripts) []file {
	var sums, settings strings.Builder
	size := 0
	for _, f := range files {
		if f.isDir() {
			continue
		}
		size += (len(f.body) + 1023) / 1024
		if f.settings {
			fmt.Fprintf(&settings, "/%s\n", f.name)
			continue
		}
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.body), f.name) //nolint:gosec // see above
	}
	control := fmt.Sprintf("Package: fiscalhub\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nDepends: passwd\nRecommends: systemd (>= 252)\n"+
		"Section: net\nPriority: optional\nHomepage: %s\nDescription: %s\n %s\n",
		r.version, t.arch, maintainer, size, homepage, summary, strings.ReplaceAll(description, "\n", "\n "))
	return sorted([]file{
		{name: "control", mode: 0o644, body: []byte(control)},
		{name: "md5sums", mode: 0o644, body: []byte(sums.String())},
		{name: "conffiles", mode: 0o644, body: []byte(settings.String())},
		{name: "postinst", mode: 0o755, body: debScript("configure", s.afterInstall)},
		{name: "prerm", mode: 0o755, body: debScript("remove", s.beforeRemove)},
		{name: "postrm", mode: 0o755, body: debScript("remove", s.afterRemove)},
	})
}

// debScript returns a script that does something in one case only. dpkg calls each script
// in several cases, with the case as its first argument.
func debScript(when, body string) []byte {
	return fmt.Appendf(nil, "#!/bin/sh\nset -e\n[ \"$1\" = %s ] || exit 0\n%s", when, body)
}

// debChangelog returns the changelog in the form that Debian asks for.
func (r release) debChangelog() []byte {
	return fmt.Appendf(nil, "fiscalhub (%s) unstable; urgency=medium\n\n  * CHANGELOG.md.gz in this folder says what changed.\n\n -- %s  %s\n",
		r.version, maintainer, r.made.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
}
