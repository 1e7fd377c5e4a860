package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type keysCmd struct {
	List   keysListCmd   `cmd:"" help:"List the versions of the service's own keys, without the keys."`
	Rotate keysRotateCmd `cmd:"" help:"Add a new version of a key. Running servers load it within 2 seconds; cursors and the receiver use it after 5 seconds."`
	Drop   keysDropCmd   `cmd:"" help:"Delete an old version of a key. What it has made is no longer accepted."`
}

// keyView is a version of a key in JSON.
type keyView struct {
	Kind        string `json:"kind"`
	Version     int64  `json:"version"`
	CreatedAt   string `json:"created_at"`
	Newest      bool   `json:"newest"`
	Credentials int    `json:"credentials"`
}

func newKeyView(v access.KeyVersion) keyView {
	return keyView{v.Kind, v.Version, formatTime(v.CreatedAt), v.Newest, v.Credentials}
}

type keysListCmd struct{}

// Run lists the versions of all keys.
func (keysListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := access.KeyVersions(t.ctx, s)
		if err != nil {
			return err
		}
		views := mapEach(all, newKeyView)
		b := newTable("KIND", "VERSION", "CREATED", "STATE")
		for _, v := range views {
			state := lang.Messagef("old", "anterior")
			if v.Newest {
				state = lang.Messagef("newest", "la más reciente")
			}
			if v.Credentials > 0 {
				state = lang.Messagef("%s, used by %d credentials", "%s; credenciales que la usan: %d", state, v.Credentials)
			}
			b.add(v.Kind, strconv.FormatInt(v.Version, 10), v.CreatedAt, state.In(t.language))
		}
		return t.list(views, b)
	})
}

type keysRotateCmd struct {
	Kind    string `arg:"" help:"pepper (digests of API keys), cursor (pages of lists), receiver (tokens of other taxpayers) or audit (checkpoints)." enum:"pepper,cursor,receiver,audit"`
	DropOld bool   `help:"Also delete all older versions, as after a leak. Clients must start their lists again, and senders need new tokens."`
	reasonFlag
}

// Run adds a version of a key.
func (c keysRotateCmd) Run(t *terminal) error {
	return t.withKeys(func(s *store.Store, keys *seal.Keys, _ *access.Keyring) error {
		made, err := access.RotateKey(c.context(t.ctx), s, keys, c.Kind, c.DropOld)
		if err != nil {
			return explainKeyNeeded(err)
		}
		return t.answer(newKeyView(made), func(w io.Writer) {
			say(w, lang.Messagef("%s has the version %d; every server of this release uses it within 5 seconds",
				"%s tiene la versión %d; todos los servidores de esta versión la usan en 5 segundos", c.Kind, made.Version))
			if c.Kind == "pepper" {
				say(w, lang.Messagef("New credentials use it. The old ones need the old version until they are rotated: see fiscalhub keys list.",
					"Las credenciales nuevas la usan. Las anteriores necesitan la versión anterior hasta que se roten: vea fiscalhub keys list."))
			}
		})
	})
}

type keysDropCmd struct {
	Kind    string `arg:"" help:"pepper, cursor or receiver." enum:"pepper,cursor,receiver,audit"`
	Version int64  `arg:"" help:"Version to delete: see fiscalhub keys list."`
	reasonFlag
}

// Run deletes a version of a key.
func (c keysDropCmd) Run(t *terminal) error {
	return t.withKeys(func(s *store.Store, _ *seal.Keys, _ *access.Keyring) error {
		err := access.DropKey(c.context(t.ctx), s, c.Kind, c.Version)
		if errors.Is(err, store.ErrNotFound) {
			return lang.Errorf("there is no version %d of the key %s: see fiscalhub keys list",
				"no existe la versión %d de la clave %s: vea fiscalhub keys list", c.Version, c.Kind)
		}
		if err != nil {
			return explainKeyNeeded(err)
		}
		return t.confirm(keyView{Kind: c.Kind, Version: c.Version}, lang.Messagef("deleted; every server of this release refuses what it has made within 5 seconds",
			"eliminada; todos los servidores de esta versión rechazan lo que hizo en 5 segundos"))
	})
}

// explainKeyNeeded adds what to do to an error about a key that is still needed.
func explainKeyNeeded(err error) error {
	if errors.Is(err, access.ErrKeyNeeded) {
		return lang.Errorf("nothing is changed: %s", "no se cambió nada: %s", err)
	}
	return err
}

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
