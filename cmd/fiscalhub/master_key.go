package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type masterCmd struct {
	Create masterCreateCmd `cmd:"" help:"Create a master key file before the first start, for a place that the service itself may not write to."`
	Rotate masterRotateCmd `cmd:"" help:"Create a new master key and encrypt every stored secret with it. API keys and certificates stay valid."`
}

type masterCreateCmd struct{}

// Run creates the master key file. It fails when the file exists, and does not touch it.
func (masterCreateCmd) Run(t *terminal) error {
	keys := t.masterKeys()
	if _, err := os.Lstat(keys.File()); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return lang.Errorf("%s exists already, and every stored secret may need it: it was not changed",
			"%s ya existe, y cada secreto guardado puede necesitarla: no se cambió", keys.File())
	}
	key, err := keys.InUse()
	if err != nil {
		return err
	}
	v := struct {
		ID   string `json:"id"`
		File string `json:"file"`
	}{key.ID(), keys.File()}
	return t.answer(v, func(w io.Writer) {
		line(w, "new", v.ID)
		line(w, "", lang.Messagef("%s is the master key. Keep a copy of it outside of this machine.",
			"%s es la clave maestra. Guarde una copia fuera de esta máquina.", v.File).In(t.language))
	})
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
			return t.interrupted(explainKeyFile(err, keys), lang.Messagef("no secret was changed, and the old master key stays in use; run the command again to rotate it",
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
