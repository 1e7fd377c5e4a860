//go:build unix

package seal

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRootPassesFilesToAGroup(t *testing.T) {
	t.Parallel()
	const service = 998
	for _, c := range []struct {
		perm    fs.FileMode
		owner   uint32
		process int
		want    bool
	}{
		{0o440, 0, service, true},        // a credential of systemd, a secret of Kubernetes
		{0o040, 0, service, true},        // the owner is root and needs no right
		{0o640, 0, service, false},       // root edits it in place: not a passed file
		{0o460, 0, service, false},       // the group may change it
		{0o444, 0, service, false},       // everybody may read it
		{0o440, service, service, false}, // the service's own file needs no group
		{0o440, 0, 0, false},             // root's own file
	} {
		if got := passedByRoot(c.perm, c.owner, c.process); got != c.want {
			t.Errorf("mode %04o of %d for %d: %t, want %t", c.perm, c.owner, c.process, got, c.want)
		}
	}
}

func TestOnlyTheOwnerMayOpenAnOrdinaryFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[fs.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true, 0o644: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := OpenToOthers(info); got != want {
			t.Errorf("mode %04o: %t, want %t", mode, got, want)
		}
	}
}
