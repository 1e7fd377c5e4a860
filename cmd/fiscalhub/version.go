package main

import (
	"io"
	"runtime"
	"runtime/debug"
)

// version is the version of this source tree.
const version = "0.1.0"

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(t *terminal) error {
	v := struct {
		Version  string `json:"version"`
		Revision string `json:"revision,omitempty"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	}{Version: version, Revision: revision(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	return t.answer(v, func(w io.Writer) { line(w, "fiscalhub "+v.Version, v.Revision, v.Go, v.Platform) })
}

// revision returns the commit that the program was built from, or "" when it is unknown.
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}
