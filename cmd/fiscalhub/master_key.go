package main

import (
	"errors"
	"io"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type masterCmd struct {
	Rotate masterRotateCmd `cmd:"" help:"Make a new master key and put every secret under it; API keys and certificates stay good."`
}

type masterRotateCmd struct{}

// rotationView is a rotation in JSON.
type rotationView struct {
	Old       string `json:"old"`
	New       string `json:"new"`
	Rewrapped int    `json:"rewrapped"`
}

// Run rotates the master key.
func (masterRotateCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		keys := t.masterKeys()
		done, err := access.RotateMaster(t.ctx, s, keys)
		if errors.Is(err, access.ErrNoKeyring) {
			return errors.New("nothing is sealed yet, so there is no master key to rotate: the first credential or server start makes one")
		}
		if err != nil {
			return keyMissing(err, keys)
		}
		if s.Shared() {
			t.warn("nodes with a copy of the master key need the new one: copy %s to each of them now", keys.File())
		}
		v := rotationView(done)
		return t.answer(v, func(w io.Writer) {
			line(w, "old", v.Old)
			line(w, "new", v.New)
			line(w, "rewrapped", strconv.Itoa(v.Rewrapped))
			line(w, "", keys.File()+" is the new key; running servers of this machine find it by themselves.")
			line(w, "", "Backups from before need the old one, which stays in "+keys.FileOf(v.Old)+".")
		})
	})
}
