package main

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Rotations are killed at random moments while a server runs. The server and the
// next command must still be able to decrypt every secret.
func TestKilledMasterKeyRotationLosesNoSecret(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		dir := t.TempDir()
		flags := []string{"--data", dir, "--database", address}
		server := serve(t, append(flags, "--rate-limit", "0")...)
		c := newIntegrator(t, server)
		const rounds = 15
		killed := 0
		for i := range rounds {
			rotate := exec.CommandContext(t.Context(), program(t), append([]string{"master-key", "rotate"}, flags...)...)
			rotate.Env = environment()
			if err := rotate.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(200 * time.Millisecond)) // the kill meets any point of the rotation
			_ = rotate.Process.Kill()                  // fails when the rotation has ended
			var exit *exec.ExitError
			if err := rotate.Wait(); errors.As(err, &exit) {
				killed++
			}
			// The next command needs the keyring, and finishes the rotation.
			next := exec.CommandContext(t.Context(), program(t), append([]string{"credential", "create", "--environment", "certification",
				"--taxpayer", c.taxpayer, "--scope", "ecf.read"}, flags...)...)
			next.Env = environment()
			if out, err := next.CombinedOutput(); err != nil {
				t.Fatalf("round %d: %v\n%s", i, err, out)
			}
			id := strconv.Itoa(i)
			if got, err := c.create(t.Context(), server.base, "key-"+id, "ext-"+id); err != nil || got.status != http.StatusAccepted {
				t.Fatalf("round %d: %d %s, %v", i, got.status, got.body, err)
			}
		}
		again := serve(t, append(flags, "--rate-limit", "0", "--no-bootstrap", "--master-key", filepath.Join(dir, "master.key"))...)
		if found := c.invoices(t, again.base); len(found) != rounds {
			t.Errorf("a new server finds %d invoices, want %d", len(found), rounds)
		}
		t.Logf("%d of %d rotations were killed before they were done", killed, rounds)
	})
}
