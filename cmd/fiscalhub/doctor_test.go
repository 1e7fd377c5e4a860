package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

func TestDoctorChecksTheTLSCertificate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		until time.Duration
		want  checkState
	}{
		"valid":        {365 * 24 * time.Hour, statePassed},
		"ends soon":    {24 * time.Hour, stateWarning},
		"has expired":  {-time.Hour, stateFailed},
		"is not there": {0, stateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := doctor{tls: tlsFlags{TLSCert: filepath.Join(dir, "chain.pem"), TLSKey: filepath.Join(dir, "key.pem")}, now: time.Now}
			if test.until != 0 {
				identity := harness.NewIdentity(t, 1, time.Now().Add(test.until))
				identity.Write(t, d.tls.TLSCert, d.tls.TLSKey)
			}
			got := d.tlsCertificate(t.Context())
			if len(got) != 1 || got[0].state != test.want || got[0].action.IsZero() != (test.want == statePassed) {
				t.Errorf("%+v, want one outcome %s with an action if it is not ok", got, test.want)
			}
		})
	}
}

// The check of the disk reports each folder of the data once.
func TestDoctorChecksTheDiskOfEachFolder(t *testing.T) {
	t.Parallel()
	data, keys := t.TempDir(), t.TempDir()
	d := newTestDoctor(t, cli{Data: data, MasterKey: filepath.Join(keys, "master.key")})
	d.minFree = 1 << 62
	got := d.diskSpace(t.Context())
	if len(got) != 2 || got[0].state != stateFailed || got[1].state != stateFailed {
		t.Errorf("%+v, want a failure for each of the two folders", got)
	}
	d.minFree = 0
	if got := d.diskSpace(t.Context()); len(got) != 1 || got[0].state != statePassed {
		t.Errorf("%+v, want one success", got)
	}
}

// A folder in which every user may create files, but not replace those of others, is as
// safe as the modes of the files.
func TestDoctorAcceptsAStickyFolder(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	d := newTestDoctor(t, cli{Data: data})
	for mode, want := range map[os.FileMode]checkState{0o700: statePassed, 0o755: statePassed, 0o777: stateFailed, 0o777 | os.ModeSticky: statePassed} {
		must(t, os.Chmod(data, mode))
		if got := d.folders(t.Context()); got[0].state != want {
			t.Errorf("mode %v: %+v, want %s", mode, got, want)
		}
	}
}

// Roots that other users can replace are not trusted roots.
func TestDoctorChecksWhoCanChangeTheRoots(t *testing.T) {
	t.Parallel()
	d := newTestDoctor(t, cli{})
	d.flags.Trust = filepath.Join(t.TempDir(), "roots.pem")
	harness.NewIdentity(t, 1, time.Now().AddDate(1, 0, 0)).Write(t, d.flags.Trust, filepath.Join(t.TempDir(), "key.pem"))
	for mode, want := range map[os.FileMode]checkState{0o644: statePassed, 0o666: stateFailed} {
		must(t, os.Chmod(d.flags.Trust, mode))
		if got := d.trustedRoots(t.Context()); len(got) != 1 || got[0].state != want {
			t.Errorf("mode %v: %+v, want %s", mode, got, want)
		}
	}
}

// A server that accepts connections and never answers does not hold a check longer than
// its time limit.
func TestDoctorDoesNotWaitForASilentServer(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	silent := listener.Addr().String()
	d := newTestDoctor(t, cli{Database: "postgres://u@" + silent + "/x?sslmode=disable"})
	d.env, d.flags = fiscal.Certification, liveFlags{Authority: "http://" + silent, Pace: 1}
	for name, check := range map[string]func(context.Context) []checkOutcome{"tax authority": d.reachability, "database": d.connect} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		begin := time.Now()
		got := check(ctx)
		cancel()
		if took := time.Since(begin); took > time.Minute || got[0].state != stateFailed {
			t.Errorf("%s: %+v after %s", name, got, took)
		}
	}
}

func newTestDoctor(t *testing.T, c cli) *doctor {
	t.Helper()
	term := &terminal{ctx: t.Context(), cli: &c}
	return &doctor{t: term, keys: term.masterKeys(), now: time.Now}
}

func TestFindingsFitATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := finding{lang.Literal("Files"), lang.Literal("permissions"), checkOutcome{
		stateFailed, lang.Literal(strings.Repeat("Palabra ", 20)), lang.Literal("Run \x1bchmod 600 /" + strings.Repeat("x", 70) + " now."),
	}}
	f.print(&out)
	want := []string{
		"  FAILED   permissions      Palabra Palabra Palabra Palabra Palabra Palabra",
		"                            Palabra Palabra Palabra Palabra Palabra Palabra",
		"                            Palabra Palabra Palabra Palabra Palabra Palabra",
		"                            Palabra Palabra",
		`                            Run \x1bchmod 600`,
		"                            /" + strings.Repeat("x", 70),
		"                            now.",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
