package printed

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
)

// output runs a program that reads a PDF, and returns what it prints.
func output(t testing.TB, name string, input []byte, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), needtest.Program(t, name), args...)
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, stderr.Bytes())
	}
	return string(out)
}

// extract returns the text of every page, laid out as on the page, with every
// run of spaces as one and without empty lines.
func extract(t testing.TB, pdf []byte) []string {
	t.Helper()
	pages := strings.Split(strings.TrimSuffix(output(t, "pdftotext", pdf, "-layout", "-enc", "UTF-8", "-", "-"), "\f"), "\f")
	for i, page := range pages {
		var lines []string
		for line := range strings.Lines(page) {
			if line = strings.Join(strings.Fields(line), " "); line != "" {
				lines = append(lines, line)
			}
		}
		pages[i] = strings.Join(lines, "\n") + "\n"
	}
	return pages
}

// scan returns the text of the QR code on a page.
func scan(t testing.TB, pdf []byte, page string) string {
	t.Helper()
	needtest.Program(t, "zbarimg")
	image := filepath.Join(t.TempDir(), "page")
	output(t, "pdftoppm", pdf, "-r", "150", "-gray", "-f", page, "-l", page, "-singlefile", "-", image)
	found := output(t, "zbarimg", nil, "--raw", "-q", "-Sdisable", "-Sqrcode.enable", image+".pgm")
	return strings.TrimSuffix(found, "\n")
}
