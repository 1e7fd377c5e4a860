package systemtest

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// documentsOfAPart is how many documents an export keeps when it is interrupted, at least.
const documentsOfAPart = 200

// fiscalhub export is killed several times and must continue where it was. The file that
// it writes has every document with its digest, and fiscalhub export verify finds a changed
// byte. EXPORT_DOCUMENTS changes how many documents there are.
func TestKilledExportIsCompleteAndValid(t *testing.T) {
	t.Parallel()
	count := setting(t, "EXPORT_DOCUMENTS", documentsOfAPart+50)
	parts := count / documentsOfAPart
	kills := min(10, parts)
	e := newEnv(t, "sqlite:"+filepath.Join(t.TempDir(), "live.db"), "happy")
	server := e.serve(t)
	began := time.Now()
	e.issue(t, server.Base, count)
	t.Logf("%d documents accepted in %.1f s", count, time.Since(began).Seconds())

	out := filepath.Join(e.dir, "export.zip")
	args := append([]string{"export", "--taxpayer", e.client.Taxpayer, "--environment", "certification", "--from", "2026-11-14", "--to", "2026-11-14", "--out", out}, e.shared...)
	began = time.Now()
	for killed := 0; killed < kills; {
		if killExport(t, out, max(1, parts/(kills+1)), args) {
			killed++
			continue
		}
		// The export was complete before the kill: begin again.
		if err := errors.Join(os.Remove(out), os.RemoveAll(out+".partial")); err != nil {
			t.Fatal(err)
		}
		killed = 0
	}
	if printed, err := runExport(t, args...); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	t.Logf("%d documents exported in %.1f s, %d kills, %d bytes", count, time.Since(began).Seconds(), kills, len(readFile(t, out)))
	checkManifest(t, out, count)

	began = time.Now()
	var report struct {
		Valid                 bool
		Documents, Signatures int64
		Problems              []any
	}
	harness.Run(t, harness.Program(t), &report, "export", "verify", out)
	if !report.Valid || report.Signatures != int64(count) || report.Documents != int64(count) {
		t.Errorf("the export has %d documents and %d valid signatures, want %d: %v", report.Documents, report.Signatures, count, report.Problems)
	}
	content := readFile(t, out)
	content[len(content)/2] ^= 1
	writeFile(t, out, content)
	if printed, err := runExport(t, "export", "verify", out); err == nil || !strings.Contains(printed, "xml/") {
		t.Errorf("a byte was changed, and export verify prints %v\n%s", err, printed)
	}
	t.Logf("two runs of export verify in %.1f s", time.Since(began).Seconds())
}

// issue sends invoices with fiscalhub send and waits until they are accepted.
func (e *env) issue(t *testing.T, base string, count int) {
	t.Helper()
	file := filepath.Join(e.dir, "invoices.ndjson")
	writeInvoices(t, file, count)
	cmd := exec.CommandContext(t.Context(), e.program, "send", file, "--base-url", base, "--taxpayer", e.client.Taxpayer, "--wait")
	cmd.Env = append(harness.Environment(), "FISCALHUB_KEY="+e.client.Key)
	if printed, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
}

// runExport runs the command and returns what it prints.
func runExport(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := harness.Command(t.Context(), harness.Program(t), args...)
	printed, err := cmd.CombinedOutput()
	return string(printed), err
}

// killExport starts an export and kills it when some more parts are complete. It reports
// whether the kill came in time. Parts that were complete before must stay as they are.
func killExport(t *testing.T, out string, more int, args []string) bool {
	t.Helper()
	before := completeParts(t, out)
	cmd := harness.Command(t.Context(), harness.Program(t), args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for begun := time.Now(); len(completeParts(t, out)) < len(before)+more; time.Sleep(time.Millisecond) {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return false
		default:
		}
		if time.Since(begun) > 2*time.Minute {
			t.Fatal("the export does not go on")
		}
	}
	_ = cmd.Process.Kill()
	<-ended
	if _, err := os.Stat(out); err == nil {
		return false
	}
	after := completeParts(t, out)
	for i, info := range before {
		if i >= len(after) || !os.SameFile(info, after[i]) {
			t.Errorf("part %d was written again", i)
		}
	}
	return true
}

// completeParts returns the complete parts of an interrupted export.
func completeParts(t *testing.T, out string) (parts []os.FileInfo) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(out+".partial", "[0-9]*.zip"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil { // the export may remove them at its end
			parts = append(parts, info)
		}
	}
	return parts
}

// checkManifest checks the digest of every file of an export, and that each document is
// there.
func checkManifest(t *testing.T, out string, count int) {
	t.Helper()
	archive, err := zip.OpenReader(out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	digests, documents := map[string]string{}, 0
	var manifest []byte
	for _, f := range archive.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == "manifest.json" {
			manifest = content
			continue
		}
		sum := sha256.Sum256(content)
		digests[f.Name] = hex.EncodeToString(sum[:])
		if strings.HasPrefix(f.Name, "xml/") {
			documents++
		}
	}
	var m struct {
		Files []struct {
			Name   string `json:"name"`
			SHA256 string `json:"sha256"`
		} `json:"files"`
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Files {
		if digests[f.Name] != f.SHA256 {
			t.Errorf("%s has the digest %s, and the manifest says %s", f.Name, digests[f.Name], f.SHA256)
		}
	}
	if documents != count || len(digests) != len(m.Files) {
		t.Errorf("%d documents, want %d; %d files, and %d in the manifest", documents, count, len(digests), len(m.Files))
	}
}
