package systemtest

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// While the database is down /livez succeeds and /readyz fails. The service
// recovers without a restart when the database is back.
func TestServerWithoutDatabaseIsLiveButNotReady(t *testing.T) {
	t.Parallel()
	pg := storetest.PrivatePostgres(t)
	server := harness.Serve(t, "--data", t.TempDir(), "--database", pg.Empty(t), "--rate-limit", "0")
	c := server.Client(t)
	probe := func(path string, want int) {
		t.Helper()
		harness.Eventually(t, time.Minute, path+" answers "+strconv.Itoa(want), func() bool {
			status, err := harness.Status(t.Context(), server.Base+path)
			return err == nil && status == want
		})
	}
	probe("/readyz", http.StatusOK)
	first := c.Created(t, server.Base, "before", "before")
	pg.Halt()
	probe("/readyz", http.StatusServiceUnavailable)
	probe("/livez", http.StatusOK)
	for _, key := range []string{"during", "before"} {
		got, err := c.Create(t.Context(), server.Base, key, key)
		if err != nil || got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
			t.Errorf("key %s without a database: %d %s, %v; want 503 with Retry-After", key, got.Status, got.Body, err)
		}
	}
	if err := pg.Start(); err != nil {
		t.Fatal(err)
	}
	probe("/readyz", http.StatusOK)
	harness.Eventually(t, time.Minute, "creations succeed again", func() bool {
		got, err := c.Create(t.Context(), server.Base, "during", "during")
		return err == nil && got.Status == http.StatusAccepted
	})
	again, err := c.Create(t.Context(), server.Base, "before", "before")
	if err != nil || again.Body != first.Body {
		t.Errorf("the first answer is replayed as %d %s, %v", again.Status, again.Body, err)
	}
}

// Another process holds the write lock of a SQLite file. A creation must fail with
// 503 after the time limit for the lock.
func TestLockedDatabaseAnswers503AfterTheLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := harness.Serve(t, "--data", dir, "--rate-limit", "0")
	c := server.Client(t)
	c.Created(t, server.Base, "warm", "warm")
	holder := storetest.Open(t, "sqlite:"+filepath.Join(dir, "fiscalhub.db"), time.Now)
	held, release := make(chan struct{}), make(chan struct{})
	var holding sync.WaitGroup
	holding.Go(func() {
		err := holder.Update(t.Context(), func(*store.Tx) error {
			close(held)
			<-release
			return nil
		})
		if err != nil {
			t.Errorf("the holder: %v", err)
		}
	})
	<-held
	begun := time.Now()
	got, err := c.Create(t.Context(), server.Base, "key", "ext")
	took := time.Since(begun)
	if err != nil || got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" || took < 4*time.Second || took > time.Minute {
		t.Errorf("after %s: %d %s, %v; want 503 with Retry-After at about 5 s", took, got.Status, got.Body, err)
	}
	if found := c.Invoices(t, server.Base); len(found) != 1 {
		t.Errorf("the list has %v during the lock, want only the first invoice", found)
	}
	close(release)
	holding.Wait()
	c.Created(t, server.Base, "key", "ext")
}

// A limit on the size of files makes a write fail as on a broken disk, with another
// error than "disk full". The process must end and acknowledge nothing after that.
func TestFailingStorageEndsTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"-c", `ulimit -f 4096; exec "$0" "$@"`, harness.Program(t), "serve", "--listen", "127.0.0.1:0", "--data", dir, "--rate-limit", "0"}
	launched, err := harness.Launch(harness.Command(t.Context(), "sh", args...))
	server := launched.Until(t, err)
	c := server.Client(t)
	acks := &acknowledged{by: map[string]harness.Answer{}}
	for i := 0; ; i++ {
		id := strconv.Itoa(i)
		got, err := c.Create(t.Context(), server.Base, "key-"+id, "ext-"+id)
		if err != nil || got.Status != http.StatusAccepted {
			if err == nil && got.Status != http.StatusServiceUnavailable {
				t.Errorf("the failed creation got %d %s, want 503", got.Status, got.Body)
			}
			break
		}
		acks.add(id, got)
	}
	if code := server.Ended(t); code != 1 || !strings.Contains(server.Log.String(), "storage failed") {
		t.Errorf("exit code %d, want 1 and the reason\n%s", code, server.Log)
	}
	again := harness.Serve(t, "--data", dir, "--rate-limit", "0", "--no-bootstrap")
	acks.checkStored(t, c, again.Base)
	t.Logf("%d creations were acknowledged before the failure", len(acks.by))
}
