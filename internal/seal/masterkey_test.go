package seal

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// childEnv is the environment variable with the key file that a child process of
// the tests creates.
const childEnv = "FISCALHUB_SEAL_TEST_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		key, err := LoadOrCreate(path)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Print(key.ID())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLoadOrCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "master.key")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load before: err = %v, want fs.ErrNotExist", err)
	}
	made, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("the file has mode %v, want 0600", info.Mode())
	}
	for name, load := range map[string]func(string) (*MasterKey, error){"LoadOrCreate": LoadOrCreate, "Load": Load} {
		again, err := load(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := again.Open(mustSeal(t, made, []byte("secret"), nil), nil); err != nil || string(got) != "secret" {
			t.Errorf("%s: the same file opens %q, %v", name, got, err)
		}
	}
	checkAlone(t, dir)
}

// checkAlone fails unless the key is the only file in the folder.
func checkAlone(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("the folder holds %v, want only the key", entries)
	}
}

func TestLoadOrCreateNeedsTheFolder(t *testing.T) {
	t.Parallel()
	if _, err := LoadOrCreate(filepath.Join(t.TempDir(), "no", "master.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v, want fs.ErrNotExist", err)
	}
}

func TestConcurrentGoroutinesGetTheSameKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "master.key")
	var wg sync.WaitGroup
	ids := make([]string, 32)
	for i := range ids {
		wg.Go(func() {
			m, err := LoadOrCreate(path)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = m.ID()
		})
	}
	wg.Wait()
	checkSame(t, ids)
	checkAlone(t, dir)
}

func TestConcurrentProcessesGetTheSameKey(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "master.key")
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), childEnv+"="+path)
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("child: %v: %s", err, out)
				return
			}
			ids[i] = string(out)
		})
	}
	wg.Wait()
	checkSame(t, ids)
	checkAlone(t, dir)
}

func checkSame(t *testing.T, ids []string) {
	t.Helper()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("more than one key: %q", ids)
		}
	}
}

func TestLoadRefusesOpenPermissions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "master.key")
	if _, err := LoadOrCreate(path); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o660, 0o666, 0o620, 0o601} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for name, load := range map[string]func(string) (*MasterKey, error){"LoadOrCreate": LoadOrCreate, "Load": Load} {
			if _, err := load(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
				t.Errorf("%s with mode %04o: err = %v, want the command that fixes it", name, mode, err)
			}
		}
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err != nil {
		t.Errorf("mode 0400: %v", err)
	}
}

func TestLoadRefusesDamage(t *testing.T) {
	t.Parallel()
	key := make([]byte, keyLen)
	good := formatFile(key)
	head, line, _ := strings.Cut(good, "\n")
	tests := []struct{ name, text string }{
		{"empty", ""},
		{"the key alone", line},
		{"the header alone", head + "\n"},
		{"another version", strings.Replace(good, "v1", "v2", 1)},
		{"a digit changed", strings.Replace(good, "\n0", "\n1", 1)},
		{"another id", strings.Replace(good, "v1 ", "v1 0", 1)},
		{"cut", good[:len(good)-3]},
		{"not hexadecimal", head + "\n" + strings.Repeat("z", 64) + "\n"},
		{"more text after the key", good + good},
		{"too long", good + strings.Repeat("0", maxFile)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "master.key")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(path); err == nil || strings.Contains(err.Error(), hex.EncodeToString(key)) {
				t.Errorf("Load: err = %v, want an error that does not quote the key", err)
			}
			if _, err := LoadOrCreate(path); err == nil {
				t.Error("LoadOrCreate accepted the file")
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != tt.text {
				t.Errorf("the file was changed, or %v", err)
			}
		})
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("Load accepted a folder")
	}
}

func TestMasterKeyPrintsRedacted(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef0123456789abcdef")
	m, err := newMasterKey(key)
	if err != nil {
		t.Fatal(err)
	}
	type hidden struct{ m *MasterKey }
	for name, v := range map[string]any{"pointer": m, "value": *m, "field": hidden{m}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			got := fmt.Sprintf(verb, v)
			if strings.Contains(got, string(key)) || strings.Contains(got, hex.EncodeToString(key)) {
				t.Errorf("%s of a %s prints the key", verb, name)
			}
		}
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "key", m)
	text, err := json.Marshal(map[string]any{"key": m})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{fmt.Sprint(m), fmt.Sprintf("%#v", *m), string(text), logged.String()} {
		if !strings.Contains(got, "[redacted]") {
			t.Errorf("prints %s, want [redacted]", got)
		}
	}
}
