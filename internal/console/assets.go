package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var staticFiles embed.FS

// assetPrefix begins the addresses of files. What follows is a digest of the file and its
// name, so that a browser may keep the file without an end.
const assetPrefix = "/console/assets/"

// assets are the embedded files that pages refer to.
type assets struct {
	byAddress map[string]asset
	byName    map[string]string // address of each file
}

type asset struct {
	name, mediaType string
	content         []byte
}

func loadAssets() (*assets, error) {
	a := &assets{byAddress: make(map[string]asset), byName: make(map[string]string)}
	entries, err := fs.ReadDir(staticFiles, "static")
	if err != nil {
		return nil, fmt.Errorf("console: list files: %w", err)
	}
	for _, e := range entries {
		content, err := staticFiles.ReadFile(path.Join("static", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("console: read file: %w", err)
		}
		sum := sha256.Sum256(content)
		address := assetPrefix + hex.EncodeToString(sum[:8]) + "/" + e.Name()
		a.byAddress[address] = asset{e.Name(), mediaType(e.Name()), content}
		a.byName[e.Name()] = address
	}
	return a, nil
}

// mediaType returns the media type of a file by the end of its name. It does not depend on
// the machine for the types that the console has.
func mediaType(name string) string {
	switch {
	case strings.HasSuffix(name, ".css"):
		return "text/css; charset=utf-8"
	case strings.HasSuffix(name, ".js"):
		return "text/javascript; charset=utf-8"
	case strings.HasSuffix(name, ".svg"):
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// address returns the address of a file.
func (a *assets) address(name string) (string, error) {
	address, ok := a.byName[name]
	if !ok {
		return "", fmt.Errorf("console: there is no file %q", name)
	}
	return address, nil
}

// serve answers with a file.
func (a *assets) serve(x *request) error {
	found, ok := a.byAddress[x.URL.EscapedPath()]
	switch {
	case !ok:
		return errNotFound
	case x.Method != http.MethodGet && x.Method != http.MethodHead:
		x.w.Header().Set("Allow", "GET")
		return errMethod
	}
	x.w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	x.w.Header().Set("Content-Type", found.mediaType)
	http.ServeContent(x.w, x.Request, found.name, time.Time{}, bytes.NewReader(found.content))
	return nil
}
