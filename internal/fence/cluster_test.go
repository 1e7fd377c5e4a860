package fence

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A heartbeat begins on one timeline, and the database fails over before it reads the
// standbys. That commits wait for a standby now says nothing about the timeline before.
func TestTheReplicationOfANewPrimaryExcusesNothing(t *testing.T) {
	t.Parallel()
	server := storetest.PrivatePostgres(t)
	s := storetest.Open(t, server.Empty(t), time.Now)
	server.Standby(t, "second")
	if err := server.Configure("synchronous_standby_names", "second"); err != nil {
		t.Fatal(err)
	}
	now, err := s.Timeline(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if got, err := s.Replication(t.Context()); err == nil && got.Synchronous == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the standby is not synchronous")
		}
	}
	for timeline, want := range map[string]bool{now: true, "7-00000001": false} {
		f := &Fence{o: Options{Store: s, Path: filepath.Join(t.TempDir(), "witness")}, history: history{timeline, false}}
		if err := f.recordReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.history.lossless != want {
			t.Errorf("on %s, commits of %s waited for a standby: %t, want %t", now, timeline, f.history.lossless, want)
		}
	}
}
