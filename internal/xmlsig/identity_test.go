package xmlsig_test

import (
	"crypto"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// A module is a hardware module with a key.
type module struct {
	key    crypto.Signer
	asked  int
	broken bool
}

func (m *module) Public() crypto.PublicKey { return m.key.Public() }

func (m *module) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	m.asked++
	if m.broken {
		return nil, errors.New("the device is gone")
	}
	return m.key.Sign(rand, digest, opts)
}

func TestHardwareModuleSigns(t *testing.T) {
	t.Parallel()
	leaf := xmlsigtest.Must(t, xmlsigtest.Options{})
	device := &module{key: leaf.Key}
	id, err := xmlsig.NewIdentity(leaf.Certificate, device)
	if err != nil {
		t.Fatal(err)
	}
	write := func() *xmlsig.Writer {
		w := xmlsig.NewWriter("ECF", 100)
		w.Text("a", "b")
		return w
	}
	document, _, err := write().Sign(id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := xmlsig.Verify(document, xmlsig.SmallLimits()); err != nil || device.asked != 1 {
		t.Errorf("Verify() = %v after %d signatures", err, device.asked)
	}
	device.broken = true
	if document, _, err := write().Sign(id); err == nil || document != nil {
		t.Errorf("a device that fails signed %d bytes, %v", len(document), err)
	}
}

func TestIdentityNeverShowsItsKey(t *testing.T) {
	t.Parallel()
	id := xmlsigtest.Must(t, xmlsigtest.Options{}).Identity
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("signed", "by", id)
	for _, shown := range []string{fmt.Sprint(id), fmt.Sprintf("%+v", id), fmt.Sprintf("%#v", id), log.String()} {
		if !strings.Contains(shown, xmlsigtest.Subject) || len(shown) > 300 {
			t.Errorf("shown as %q", shown)
		}
	}
}

func TestIdentityCheckOfTheValidity(t *testing.T) {
	t.Parallel()
	from, to := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	id := xmlsigtest.Must(t, xmlsigtest.Options{NotBefore: from, NotAfter: to}).Identity
	for at, want := range map[time.Time]error{
		from: nil, to: nil, from.Add(-time.Second): xmlsig.ErrNotYetValid, to.Add(time.Second): xmlsig.ErrExpired,
	} {
		if err := id.Check(at); !errors.Is(err, want) {
			t.Errorf("Check(%s) = %v, want %v", at, err, want)
		}
	}
}
