package systemtest

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// Rotations are killed at random moments while a server runs. The server and the
// next command must still be able to decrypt every secret.
func TestKilledMasterKeyRotationLosesNoSecret(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		dir := t.TempDir()
		flags := []string{"--data", dir, "--database", address}
		server := harness.Serve(t, append(flags, "--rate-limit", "0")...)
		c := server.Client(t)
		const rounds = 15
		killed := 0
		for i := range rounds {
			rotate := harness.Command(t.Context(), harness.Program(t), append([]string{"master-key", "rotate"}, flags...)...)
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
			next := exec.CommandContext(t.Context(), harness.Program(t), append([]string{"credential", "create", "--environment", "certification",
				"--taxpayer", c.Taxpayer, "--scope", "ecf.read"}, flags...)...)
			next.Env = harness.Environment()
			if out, err := next.CombinedOutput(); err != nil {
				t.Fatalf("round %d: %v\n%s", i, err, out)
			}
			id := strconv.Itoa(i)
			c.Created(t, server.Base, "key-"+id, "ext-"+id)
		}
		again := harness.Serve(t, append(flags, "--rate-limit", "0", "--no-bootstrap", "--master-key", filepath.Join(dir, "master.key"))...)
		if found := c.Invoices(t, again.Base); len(found) != rounds {
			t.Errorf("a new server finds %d invoices, want %d", len(found), rounds)
		}
		t.Logf("%d of %d rotations were killed before they were done", killed, rounds)
	})
}
