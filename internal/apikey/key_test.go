package apikey

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

var format = regexp.MustCompile(`^fh_[pcs][a-z0-9]{11}_[0-9A-Za-z]{49}$`)

func newKey(t testing.TB, env string) Key {
	t.Helper()
	k, err := New(env, rand.Reader)
	if err != nil {
		t.Fatalf("New(%q): %v", env, err)
	}
	return k
}

func TestNew(t *testing.T) {
	t.Parallel()
	for env, letter := range map[string]string{"production": "p", "certification": "c", "sandbox": "s"} {
		k := newKey(t, env)
		if !format.MatchString(k.Reveal()) {
			t.Errorf("New(%q) does not have the format of a key", env)
		}
		if got := k.Prefix(); len(got) != 12 || got[:1] != letter {
			t.Errorf("New(%q).Prefix() = %q, want 12 characters that start with %q", env, got, letter)
		}
	}
	for _, env := range []string{"", "Production", "p", "staging"} {
		if _, err := New(env, rand.Reader); err == nil {
			t.Errorf("New(%q) made a key", env)
		}
	}
	broken := errors.New("no randomness")
	if _, err := New("sandbox", iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("New with a broken source: err = %v, want %v", err, broken)
	}
	if _, err := New("sandbox", io.LimitReader(rand.Reader, 20)); err == nil {
		t.Error("New made a key of 20 random bytes")
	}
}

// The format must not change: scanners for leaked keys search for it.
func TestTheFormatIsFixed(t *testing.T) {
	t.Parallel()
	source := make([]byte, 11+32)
	for i := range source {
		source[i] = byte(i)
	}
	k, err := New("sandbox", bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	const want = "fh_s0123456789a_2cPkOWUkrUb4EZzajfasC13e5zNIwyMtKOLBq78h99G2on5oj"
	if got := k.Reveal(); got != want {
		t.Errorf("New = %s, want %s", got, want)
	}
}

func TestPrefixIsUnbiased(t *testing.T) {
	t.Parallel()
	// Every byte once: New uses 252 of them, 7 for each character.
	var source []byte
	for i := range 256 {
		source = append(source, byte(255-i))
	}
	source = append(source, make([]byte, 32)...)
	k, err := New("sandbox", bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	if want := "szyxwvutsrqp"; k.Prefix() != want { // New skips 255 to 252
		t.Errorf("Prefix() = %q, want %q", k.Prefix(), want)
	}
}

func TestMaxEntropy(t *testing.T) {
	t.Parallel()
	n := new(big.Int).Lsh(big.NewInt(1), 256)
	n.Sub(n, big.NewInt(1))
	if got := encode62(n, entropyLen); got != maxEntropy {
		t.Fatalf("2^256-1 in base 62 is %s", got)
	}
	over := "fh_s0123456789a_" + strings.Repeat("z", entropyLen)
	if _, err := Parse(over + checksum(over)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a secret over 256 bits: err = %v, want ErrMalformed", err)
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		env := rapid.SampledFrom([]string{"production", "certification", "sandbox"}).Draw(t, "env")
		source := rapid.SliceOfN(rapid.Byte(), 32, 200).Draw(t, "source")
		k, err := New(env, io.MultiReader(bytes.NewReader(source), rand.Reader))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(k.Reveal())
		if err != nil {
			t.Fatalf("Parse(%s): %v", k.Reveal(), err)
		}
		if got.Reveal() != k.Reveal() || got.Prefix() != k.Prefix() {
			t.Fatalf("Parse(%s).Reveal() = %s", k.Reveal(), got.Reveal())
		}
	})
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := newKey(t, "sandbox").Reveal()
	other := "fh_x0123456789a_" + good[secretStart:checkStart]
	tests := []struct{ name, text string }{
		{"nothing", ""},
		{"only fh_", "fh_"},
		{"only the prefix", good[:prefixEnd]},
		{"one character less", good[:keyLen-1]},
		{"one character more", good + "0"},
		{"a blank after it", good + " "},
		{"a blank before it", " " + good},
		{"another first letter", "gh_" + good[len(lead):]},
		{"upper case", strings.ToUpper(good)},
		{"unknown environment", other + checksum(other)},
		{"very long", strings.Repeat("a", 1<<20)},
		{"not ASCII", strings.Repeat("é", keyLen/2) + "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Parse(tt.text); !errors.Is(err, ErrMalformed) {
				t.Errorf("Parse: err = %v, want ErrMalformed", err)
			}
		})
	}
}

func TestParseRefusesEveryTypo(t *testing.T) {
	t.Parallel()
	good := newKey(t, "production").Reveal()
	for i := range len(good) {
		for c := range 256 {
			if byte(c) == good[i] {
				continue
			}
			typo := good[:i] + string([]byte{byte(c)}) + good[i+1:]
			if _, err := Parse(typo); !errors.Is(err, ErrMalformed) {
				t.Fatalf("character %d changed to %#x: err = %v, want ErrMalformed", i, c, err)
			}
		}
		if i > 0 && good[i] != good[i-1] {
			swapped := good[:i-1] + good[i:i+1] + good[i-1:i] + good[i+1:]
			if _, err := Parse(swapped); !errors.Is(err, ErrMalformed) {
				t.Fatalf("characters %d and %d swapped: err = %v, want ErrMalformed", i-1, i, err)
			}
		}
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	k, pepper := newKey(t, "sandbox"), []byte("pepper")
	mac := hmac.New(sha256.New, pepper)
	mac.Write([]byte(k.Reveal()))
	got := k.Digest(pepper)
	if !hmac.Equal(got[:], mac.Sum(nil)) {
		t.Error("Digest is not HMAC-SHA-256 of the whole key")
	}
	if got == k.Digest([]byte("Pepper")) {
		t.Error("Digest does not depend on the pepper")
	}
	if got == newKey(t, "sandbox").Digest(pepper) {
		t.Error("two keys have the same digest")
	}
}

func TestKeyPrintsRedacted(t *testing.T) {
	t.Parallel()
	k := newKey(t, "sandbox")
	type exported struct{ Key Key }
	type hidden struct{ key Key }
	values := map[string]any{
		"value": k, "pointer": &k, "slice": []Key{k}, "map": map[string]Key{"k": k},
		"field": exported{k}, "unexported field": hidden{k}, "pointer to field": &hidden{k},
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
			checkLeak(t, k, name+" "+verb, fmt.Sprintf(verb, v))
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%s: json: %v", name, err)
		}
		checkLeak(t, k, name+" json", string(text))
		var logged strings.Builder
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("m", "v", v)
		slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "v", v)
		checkLeak(t, k, name+" slog", logged.String())
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, k); got != "[redacted]" {
			t.Errorf("%s prints %s, want [redacted]", verb, got)
		}
	}
}

func checkLeak(t *testing.T, k Key, where, text string) {
	t.Helper()
	secret := k.Reveal()[secretStart:]
	if strings.Contains(text, secret) || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", secret)) {
		t.Errorf("%s shows the secret", where)
	}
}

func TestZeroKey(t *testing.T) {
	t.Parallel()
	var k Key
	if k.Reveal() != "" || k.Prefix() != "" {
		t.Errorf("the zero Key has text %q and prefix %q", k.Reveal(), k.Prefix())
	}
}

func FuzzParse(f *testing.F) {
	f.Add("fh_s0123456789a_2cPkOWUkrUb4EZzajfasC13e5zNIwyMtKOLBq78h99G2on5oj")
	f.Add("fh_")
	f.Add("")
	f.Add(strings.Repeat("_", keyLen))
	f.Fuzz(func(t *testing.T, text string) {
		k, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("err = %v, want ErrMalformed", err)
			}
			return
		}
		if k.Reveal() != text || !format.MatchString(text) {
			t.Fatalf("Parse(%q) = %q", text, k.Reveal())
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := newKey(b, "sandbox").Reveal()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
