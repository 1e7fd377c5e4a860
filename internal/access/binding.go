package access

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// ErrAltered means that a credential in the database is not as it was stored: a
// field that its binding covers was changed without the keys of the service.
var ErrAltered = errors.New("the credential was changed in the database: revoke it, and find out who can write to the database")

const (
	// boundPepper begins every pepper of this version. Earlier programs use such a pepper
	// like any other. It says that every credential with this pepper has a binding, and
	// no one without the master key can remove it.
	boundPepper = "fiscalhub pepper of bound credentials\x00"
	// kindBound is the mark of a pepper of an earlier version: since when its credentials
	// have bindings. The mark has the version of its pepper.
	kindBound = "bound"
	// upgradeTime is how long after the mark the service still binds credentials without a
	// binding. Nodes of an earlier version may create them while an upgrade lasts.
	upgradeTime = 24 * time.Hour
)

// bind returns the binding of a credential: when it expires, and a MAC of that and of
// everything else that decides what its key may do. It returns nil when the keyring does
// not have the pepper of the credential.
func (s *keySet) bind(c store.Credential) []byte {
	pepper, ok := s.peppers[c.PepperVersion]
	if !ok {
		return nil
	}
	expires := int64(0)
	if !c.ExpiresAt.IsZero() {
		expires = c.ExpiresAt.UnixMicro()
	}
	head := binary.BigEndian.AppendUint64(nil, uint64(expires))
	h := hmac.New(sha256.New, pepper)
	// The digest is a MAC with the same key, of a text that begins with fh_.
	h.Write([]byte("fiscalhub credential binding v1\x00"))
	h.Write(seal.AAD(c.ID, c.Prefix, string(c.Digest), c.TaxpayerID, string(c.Environment), c.ScopeText(),
		strconv.FormatInt(c.RateLimit, 10), strconv.FormatInt(expires, 10), c.NetworkText(), c.CertificateText()))
	return h.Sum(head)
}

// verify returns the credential as its binding states it: it may end earlier than the
// columns say. It fails with ErrAltered when the binding is missing or does not match the
// credential. The columns may end a credential earlier than the binding, because earlier
// programs end a credential without a new binding.
func (s *keySet) verify(c store.Credential) (store.Credential, error) {
	if len(c.Binding) < 8 {
		return c, ErrAltered
	}
	column := c.ExpiresAt
	c.ExpiresAt = time.Time{}
	if expires := int64(binary.BigEndian.Uint64(c.Binding)); expires != 0 { //nolint:gosec // bind wrote it from an int64
		c.ExpiresAt = time.UnixMicro(expires).UTC()
	}
	if !hmac.Equal(c.Binding, s.bind(c)) {
		return c, ErrAltered
	}
	if !column.IsZero() && (c.ExpiresAt.IsZero() || column.Before(c.ExpiresAt)) {
		c.ExpiresAt = column
	}
	return c, nil
}

// Altered lists the usable credentials whose binding is not valid: the service refuses
// them.
func (k *Keyring) Altered(ctx context.Context) ([]store.Credential, error) {
	all, err := k.store.Credentials(ctx)
	if err != nil {
		return nil, err
	}
	set, now := k.set.Load(), k.store.Now()
	return slices.DeleteFunc(all, func(c store.Credential) bool {
		_, err := set.verify(c)
		return err == nil || !c.Live(now)
	}), nil
}

// bindEarlier binds the credentials of programs that know no bindings: all that exist when
// the first program of this version loads the keyring, and those that earlier programs
// create within upgradeTime. After that a credential without a binding is not valid.
func (k *Keyring) bindEarlier(ctx context.Context) error {
	set, now := k.set.Load(), k.store.Now()
	for version, pepper := range set.peppers {
		since, marked := set.bound[version]
		if bytes.HasPrefix(pepper, []byte(boundPepper)) || marked && now.Sub(since) >= upgradeTime {
			continue
		}
		if marked {
			unbound, err := k.store.UnboundCredentials(ctx, version)
			if err != nil {
				return err
			}
			if len(unbound) == 0 {
				continue
			}
		}
		if err := k.bindAll(ctx, version); err != nil {
			return err
		}
	}
	return nil
}

// bindAll binds the credentials with a version of the pepper that have no binding, marks
// the pepper, and loads the mark.
func (k *Keyring) bindAll(ctx context.Context, version int64) error {
	set := k.set.Load()
	for {
		master, err := masterKey(ctx, k.store, k.keys)
		if err != nil {
			return err
		}
		mark, err := sealKey(master, kindBound, version, binary.BigEndian.AppendUint64(nil, uint64(k.store.Now().UnixMicro())))
		if err != nil {
			return err
		}
		err = k.store.Update(ctx, func(tx *store.Tx) error {
			if err := lockMaster(ctx, tx, master); err != nil {
				return err
			}
			if err := tx.AddSecret(ctx, mark); err != nil { // it does not replace an earlier mark
				return err
			}
			return bindUnbound(ctx, tx, set, version)
		})
		if errors.Is(err, errRotated) {
			continue
		}
		if err != nil {
			return err
		}
		return k.load(ctx)
	}
}

// bindUnbound binds the credentials with a version of the pepper that have no binding.
func bindUnbound(ctx context.Context, tx *store.Tx, set *keySet, version int64) error {
	unbound, err := tx.UnboundCredentials(ctx, version)
	if err != nil {
		return err
	}
	for _, c := range unbound {
		if err := tx.BindCredential(ctx, c.ID, set.bind(c)); err != nil {
			return err
		}
		err := tx.Audit(ctx, store.AuditEntry{
			Scope: store.Scope{Environment: c.Environment, TaxpayerID: c.TaxpayerID}, Action: "credential.bind", Object: "credential:" + c.ID,
			After: map[string]any{"prefix": c.Prefix, "scopes": c.ScopeText()},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readBoundMark returns the instant of a mark.
func readBoundMark(mark []byte) (time.Time, error) {
	if len(mark) != 8 {
		return time.Time{}, fmt.Errorf("access: the mark of bound credentials has %d bytes", len(mark))
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(mark))).UTC(), nil //nolint:gosec // it was written from an int64
}
