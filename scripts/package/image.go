package main

import (
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the number of the user in the image. It is that of many images without root.
const imageUser = 65532

// imageName is the name of the image in the store of the machine that loads it.
const imageName = "fiscalhub"

// imageFiles are all files of the image: the program, the roots of public certificates, the
// names of the user, and the folders that it writes to.
func imageFiles(program []byte) []file {
	var roots []byte
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // a file of certificates cannot carry the constraint
		}
		roots = append(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
	}
	user := fmt.Sprintf("fiscalhub:x:%d:%d:fiscalhub:/var/lib/fiscalhub:/sbin/nologin\n", imageUser, imageUser)
	return withFolders([]file{
		{name: "usr/bin/fiscalhub", mode: 0o755, body: program},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, body: roots},
		{name: "etc/passwd", mode: 0o644, body: []byte("root:x:0:0:root:/root:/sbin/nologin\n" + user)},
		{name: "etc/group", mode: 0o644, body: fmt.Appendf(nil, "root:x:0:\nfiscalhub:x:%d:\n", imageUser)},
		{name: "var/lib/fiscalhub", mode: fs.ModeDir | 0o750, uid: imageUser},
		{name: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
	})
}

// imageConfig says how the image runs. Docker and Podman read the health check from it;
// Kubernetes has its own.
func (r release) imageConfig(t target, layer []byte) map[string]any {
	seconds := func(n int64) int64 { return n * int64(time.Second) }
	return map[string]any{
		"created": r.made.Format(time.RFC3339), "architecture": t.arch, "os": "linux",
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%d", imageUser, imageUser), "Entrypoint": []string{"/usr/bin/fiscalhub"}, "Cmd": []string{"serve"},
			"Env":        []string{"PATH=/usr/bin", "FISCALHUB_DATA=/var/lib/fiscalhub", "FISCALHUB_LISTEN=0.0.0.0:8080"},
			"WorkingDir": "/var/lib/fiscalhub", "Volumes": map[string]any{"/var/lib/fiscalhub": struct{}{}},
			"ExposedPorts": map[string]any{"8080/tcp": struct{}{}}, "StopSignal": "SIGTERM",
			"Healthcheck": map[string]any{
				"Test": []string{"CMD", "/usr/bin/fiscalhub", "healthcheck"}, "Interval": seconds(10), "Timeout": seconds(6), "StartPeriod": seconds(30), "Retries": 3,
			},
			"Labels": map[string]string{
				"org.opencontainers.image.title": "fiscalhub", "org.opencontainers.image.description": "electronic fiscal invoices for the Dominican Republic",
				"org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
		"history": []map[string]any{{"created": r.made.Format(time.RFC3339), "created_by": "scripts/package"}},
	}
}

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// image writes a container image as an archive that is an OCI image layout and also has the
// manifest.json of Docker. So `docker load` and `podman load` of all releases read it.
func (r release) image(t target, program []byte) ([]byte, error) {
	layer, err := tarball(imageFiles(program), r.made)
	if err != nil {
		return nil, err
	}
	tag := imageName + ":" + r.fileVersion()
	var files []file
	blob := func(kind string, body []byte) map[string]any {
		sum := digest(body)
		files = append(files, file{name: blobName(sum), mode: 0o644, body: body})
		return map[string]any{"mediaType": "application/vnd.oci.image." + kind, "digest": sum, "size": len(body)}
	}
	config, err := json.Marshal(r.imageConfig(t, layer))
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": blob("config.v1+json", config), "layers": []any{blob("layer.v1.tar", layer)},
	})
	if err != nil {
		return nil, err
	}
	described := blob("manifest.v1+json", manifest)
	described["platform"] = map[string]string{"os": "linux", "architecture": t.arch}
	described["annotations"] = map[string]string{"org.opencontainers.image.ref.name": r.fileVersion(), "io.containerd.image.name": "docker.io/library/" + tag}
	for name, content := range map[string]any{
		"index.json":    map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{described}},
		"oci-layout":    map[string]any{"imageLayoutVersion": "1.0.0"},
		"manifest.json": []any{map[string]any{"Config": blobName(digest(config)), "RepoTags": []string{tag}, "Layers": []string{blobName(digest(layer))}}},
	} {
		body, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, mode: 0o644, body: body})
	}
	return tarball(withFolders(files), r.made)
}

// blobName returns the name of the file with a digest in an image layout.
func blobName(sum string) string { return "blobs/sha256/" + sum[len("sha256:"):] }
