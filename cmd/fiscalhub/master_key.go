package main

import (
	"errors"
	"io"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type masterCmd struct {
	Rotate masterRotateCmd `cmd:"" help:"Create a new master key and encrypt every stored secret with it. API keys and certificates stay valid."`
}

type masterRotateCmd struct{}

// rotationView is the result of a rotation in JSON.
type rotationView struct {
	Old       string `json:"old"`
	New       string `json:"new"`
	Rewrapped int    `json:"rewrapped"`
}

// Run rotates the master key.
func (masterRotateCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		keys := t.masterKeys()
		progress := t.startProgress(lang.Messagef("master-key rotate", "rotación de la clave maestra"), lang.Messagef("secrets", "secretos"))
		done, err := access.RotateMaster(t.ctx, s, keys, func(done, total int) { progress.report(int64(done), int64(total)) })
		progress.end(t)
		if errors.Is(err, access.ErrNoKeyring) {
			return lang.Errorf("there is no master key to rotate: the first credential or the first start of a server creates one",
				"no hay clave maestra que rotar: la primera credencial o el primer inicio de un servidor crea una")
		}
		if err != nil {
			return t.interrupted(explainMissingKey(err, keys), lang.Messagef("no secret was changed, and the old master key stays in use; run the command again to rotate it",
				"no se cambió ningún secreto, y la clave maestra anterior sigue en uso; ejecute el comando otra vez para rotarla"))
		}
		if s.Shared() {
			t.warn(lang.Messagef("servers on other machines need the new master key: copy %s to each of them now",
				"los servidores en otras máquinas necesitan la nueva clave maestra: copie %s a cada una ahora", keys.File()))
		}
		v := rotationView(done)
		return t.answer(v, func(w io.Writer) {
			line(w, "old", v.Old)
			line(w, "new", v.New)
			line(w, "rewrapped", strconv.Itoa(v.Rewrapped))
			line(w, "", lang.Messagef("%s is the new key. Running servers on this machine load it automatically.",
				"%s es la clave nueva. Los servidores en marcha de esta máquina la cargan solos.", keys.File()).In(t.language))
			line(w, "", lang.Messagef("Older backups need the old key, which stays in %s.",
				"Las copias anteriores necesitan la clave anterior, que queda en %s.", keys.FileOf(v.Old)).In(t.language))
		})
	})
}
