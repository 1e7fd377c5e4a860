package main

import (
	"errors"
	"io"
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
		return t.answer(keyView{Kind: c.Kind, Version: c.Version}, func(w io.Writer) {
			say(w, lang.Messagef("deleted; every server of this release refuses what it has made within 5 seconds",
				"eliminada; todos los servidores de esta versión rechazan lo que hizo en 5 segundos"))
		})
	})
}

// explainKeyNeeded adds what to do to an error about a key that is still needed.
func explainKeyNeeded(err error) error {
	if errors.Is(err, access.ErrKeyNeeded) {
		return lang.Errorf("nothing is changed: %s",
			"no se cambió nada: %s", err)
	}
	return err
}
