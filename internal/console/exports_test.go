package console

import (
	"archive/zip"
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// runExports makes exports until a page shows that all are done.
func (e *env) runExports(b *browser, want string) string {
	e.t.Helper()
	ctx, stop := context.WithCancel(e.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); e.o.Exports.Run(ctx) }()
	defer func() { stop(); <-ended }()
	for range 20_000 {
		if got := b.get(exportsAddress + "/list").body; strings.Contains(got, want) {
			return got
		}
	}
	e.t.Fatalf("the list has no %s: %s", want, b.get(exportsAddress+"/list").body)
	return ""
}

var fileLink = regexp.MustCompile(`href="(/console/exports/[^"]+/file)"`)

// A person exports a month and downloads the file; people who do not see the taxpayer do
// not find it.
func TestAPersonExportsAMonth(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newNode(t, address, storetest.NewClock(), seal.NewKeys(filepath.Join(t.TempDir(), "master.key")))
		e.taxpayer = e.addTaxpayer("199000013", "Palma Clara, SRL")
		other := e.addTaxpayer("199000102", "Otra, SRL")
		b, u := e.signedIn(store.RoleAccountant, e.taxpayer)
		stranger, _ := e.signedIn(store.RoleAccountant, other)
		auditor, _ := e.signedIn(store.RoleAuditor)
		if got := b.send(http.MethodPost, issueAddress, e.invoiceFields()); got.StatusCode != http.StatusSeeOther {
			t.Fatalf("issue answered %d", got.StatusCode)
		}
		wrong := b.post(exportsAddress, "from", "2026-11-30", "to", "2026-11-01")
		if wrong.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(wrong.body, `id="to-error"`) || !strings.Contains(wrong.body, `value="2026-11-30"`) {
			t.Errorf("a wrong span answered %d", wrong.StatusCode)
		}
		if got := b.post(exportsAddress, "from", "x", "to", ""); !strings.Contains(got.body, `id="to-error"`) || !strings.Contains(got.body, `id="from-error"`) {
			t.Errorf("wrong dates answered %d", got.StatusCode)
		}
		wantAnswer(t, "another taxpayer's export", b.post(exportsAddress, "taxpayer", other, "from", "2026-11-01", "to", "2026-11-30"), http.StatusNotFound)
		if got := b.post(exportsAddress, "from", "2026-11-01", "to", "2026-11-30", "include", "pdf"); got.StatusCode != http.StatusSeeOther {
			t.Fatalf("the export answered %d", got.StatusCode)
		}
		link := fileLink.FindStringSubmatch(e.runExports(b, "/file"))[1]
		file := b.get(link)
		if file.StatusCode != http.StatusOK || file.Header.Get("Content-Disposition") != `attachment; filename="199000013_2026-11-01_2026-11-30.zip"` {
			t.Fatalf("the file answered %d %v", file.StatusCode, file.Header)
		}
		archive, err := zip.NewReader(strings.NewReader(file.body), int64(len(file.body)))
		e.must(err)
		if _, err := archive.Open("documents.csv"); err != nil {
			t.Error(err)
		}
		wantAnswer(t, "a stranger", stranger.get(link), http.StatusNotFound)
		if got := stranger.get(exportsAddress).body; strings.Contains(got, link) {
			t.Error("a stranger sees the export")
		}
		wantAnswer(t, "an auditor", auditor.get(link), http.StatusOK)
		if got := auditor.get(exportsAddress).body; strings.Contains(got, "<form method=\"post\" action=\"/console/exports") {
			t.Error("an auditor sees the form")
		}
		entries, err := e.o.Store.AuditEntries(t.Context(), store.AuditFilter{Actor: u.Name}, 0, 100)
		e.must(err)
		if len(entries) == 0 || entries[len(entries)-1].Action != "export.create" {
			t.Errorf("the audit log has %+v", entries)
		}
		remove := strings.TrimSuffix(link, "/file") + "/delete"
		wantAnswer(t, "a stranger deletes", stranger.post(remove), http.StatusNotFound)
		wantAnswer(t, "delete", b.post(remove), http.StatusSeeOther)
		wantAnswer(t, "a deleted export", b.get(link), http.StatusNotFound)
	})
}

// With two nodes, an export is downloaded from the one that did not make it, whole and in
// parts; who does not see the taxpayer does not find it there either.
func TestEveryNodeServesAnExport(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		clock, keys := storetest.NewClock(), seal.NewKeys(filepath.Join(t.TempDir(), "master.key"))
		one := newNode(t, address, clock, keys)
		one.taxpayer = one.addTaxpayer("199000013", "Palma Clara, SRL")
		other := one.addTaxpayer("199000102", "Otra, SRL")
		two := newNode(t, address, clock, keys) // with a folder of its own
		b, _ := one.signedIn(store.RoleAccountant, one.taxpayer)
		stranger, _ := one.signedIn(store.RoleAccountant, other)
		if got := b.send(http.MethodPost, issueAddress, one.invoiceFields()); got.StatusCode != http.StatusSeeOther {
			t.Fatalf("issue answered %d", got.StatusCode)
		}
		if got := b.post(exportsAddress, "from", "2026-11-01", "to", "2026-11-30"); got.StatusCode != http.StatusSeeOther {
			t.Fatalf("the export answered %d", got.StatusCode)
		}
		link := fileLink.FindStringSubmatch(one.runExports(b, "/file"))[1]
		here := b.get(link)
		b.handler, stranger.handler = two.Console, two.Console
		there := b.get(link)
		if there.StatusCode != http.StatusOK || there.body != here.body || there.body == "" {
			t.Errorf("the other node answers %d with %d bytes, want %d", there.StatusCode, len(there.body), len(here.body))
		}
		b.header.Set("Range", "bytes=10-19")
		if part := b.get(link); part.StatusCode != http.StatusPartialContent || part.body != here.body[10:20] {
			t.Errorf("a part of the file: %d %q", part.StatusCode, part.body)
		}
		b.header.Del("Range")
		wantAnswer(t, "a stranger", stranger.get(link), http.StatusNotFound)
		wantAnswer(t, "delete", b.post(strings.TrimSuffix(link, "/file")+"/delete"), http.StatusSeeOther)
		b.handler = one.Console
		wantAnswer(t, "the first node still serves a deleted export", b.get(link), http.StatusNotFound)
	})
}

var exportToken = regexp.MustCompile(`name="form_token" value="([^"]+)"`)

// A form that a browser sends several times creates one export. The same page with another
// span, or after the export was deleted, creates another one.
func TestAnExportIsCreatedOnce(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newNode(t, address, storetest.NewClock(), seal.NewKeys(filepath.Join(t.TempDir(), "master.key")))
		e.taxpayer = e.addTaxpayer("199000013", "Palma Clara, SRL")
		b, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
		token := exportToken.FindStringSubmatch(b.get(exportsAddress).body)
		if token == nil {
			t.Fatal("the form has no token")
		}
		kept := func() []store.Export {
			all, err := e.o.Store.Exports(t.Context(), store.Scope{Environment: e.o.Environment, TaxpayerID: e.taxpayer})
			e.must(err)
			return all
		}
		send := func(to string) int {
			return b.post(exportsAddress, "from", "2026-11-01", "to", to, "form_token", token[1]).StatusCode
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if got := send("2026-11-30"); got != http.StatusSeeOther {
					t.Errorf("the form answered %d", got)
				}
			})
		}
		group.Wait()
		if got := len(kept()); got != 1 {
			t.Errorf("the form created %d exports", got)
		}
		if got := send("2026-11-15"); got != http.StatusSeeOther || len(kept()) != 2 {
			t.Errorf("another span: %d, %d exports", got, len(kept()))
		}
		for _, one := range kept() {
			e.must(e.o.Exports.Delete(t.Context(), one))
		}
		if got := send("2026-11-30"); got != http.StatusSeeOther || len(kept()) != 1 {
			t.Errorf("after the deletion: %d, %d exports", got, len(kept()))
		}
	})
}
