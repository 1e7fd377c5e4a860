package main

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// While the database is down /livez succeeds and /readyz fails. The service
// recovers without a restart when the database is back.
func TestServerWithoutDatabaseIsLiveButNotReady(t *testing.T) {
	t.Parallel()
	pg := storetest.PrivatePostgres(t)
	server := serve(t, "--data", t.TempDir(), "--database", pg.Empty(t), "--rate-limit", "0")
	c := newIntegrator(t, server)
	probe := func(path string, want int) {
		t.Helper()
		eventually(t, time.Minute, path+" answers "+strconv.Itoa(want), func() bool {
			status, err := get(t.Context(), server.base+path)
			return err == nil && status == want
		})
	}
	probe("/readyz", http.StatusOK)
	first, err := c.create(t.Context(), server.base, "before", "before")
	if err != nil || first.status != http.StatusAccepted {
		t.Fatalf("before the halt: %d %s, %v", first.status, first.body, err)
	}
	pg.Halt()
	probe("/readyz", http.StatusServiceUnavailable)
	probe("/livez", http.StatusOK)
	for _, key := range []string{"during", "before"} {
		got, err := c.create(t.Context(), server.base, key, key)
		if err != nil || got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
			t.Errorf("key %s without a database: %d %s, %v; want 503 with Retry-After", key, got.status, got.body, err)
		}
	}
	if err := pg.Start(); err != nil {
		t.Fatal(err)
	}
	probe("/readyz", http.StatusOK)
	eventually(t, time.Minute, "creations succeed again", func() bool {
		got, err := c.create(t.Context(), server.base, "during", "during")
		return err == nil && got.status == http.StatusAccepted
	})
	again, err := c.create(t.Context(), server.base, "before", "before")
	if err != nil || again.body != first.body {
		t.Errorf("the first answer is replayed as %d %s, %v", again.status, again.body, err)
	}
}

// Another process holds the write lock of a SQLite file. A creation must fail with
// 503 after the time limit for the lock.
func TestLockedDatabaseAnswers503AfterTheLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := serve(t, "--data", dir, "--rate-limit", "0")
	c := newIntegrator(t, server)
	if got, err := c.create(t.Context(), server.base, "warm", "warm"); err != nil || got.status != http.StatusAccepted {
		t.Fatalf("before the lock: %d %s, %v", got.status, got.body, err)
	}
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
	got, err := c.create(t.Context(), server.base, "key", "ext")
	took := time.Since(begun)
	if err != nil || got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || took < 4*time.Second || took > time.Minute {
		t.Errorf("after %s: %d %s, %v; want 503 with Retry-After at about 5 s", took, got.status, got.body, err)
	}
	if found := c.invoices(t, server.base); len(found) != 1 {
		t.Errorf("the list has %v during the lock, want only the first invoice", found)
	}
	close(release)
	holding.Wait()
	if got, err := c.create(t.Context(), server.base, "key", "ext"); err != nil || got.status != http.StatusAccepted {
		t.Errorf("after the lock: %d %s, %v", got.status, got.body, err)
	}
}

// A limit on the size of files makes a write fail as on a broken disk, with another
// error than "disk full". The process must end and acknowledge nothing after that.
func TestFailingStorageEndsTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"-c", `ulimit -f 4096; exec "$0" "$@"`, program(t), "serve", "--listen", "127.0.0.1:0", "--data", dir, "--rate-limit", "0"}
	cmd := exec.CommandContext(t.Context(), "sh", args...)
	cmd.Env = environment()
	server, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-server.done })
	c := newIntegrator(t, server)
	acks := &acknowledged{by: map[string]answer{}}
	for i := 0; ; i++ {
		id := strconv.Itoa(i)
		got, err := c.create(t.Context(), server.base, "key-"+id, "ext-"+id)
		if err != nil || got.status != http.StatusAccepted {
			if err == nil && got.status != http.StatusServiceUnavailable {
				t.Errorf("the failed creation got %d %s, want 503", got.status, got.body)
			}
			break
		}
		acks.add(id, got)
	}
	if code := server.ended(t); code != exitFail || !strings.Contains(server.log.String(), "storage failed") {
		t.Errorf("exit code %d, want 1 and the reason\n%s", code, server.log)
	}
	again := serve(t, "--data", dir, "--rate-limit", "0", "--no-bootstrap")
	acks.checkStored(t, c, again.base)
	t.Logf("%d creations were acknowledged before the failure", len(acks.by))
}
