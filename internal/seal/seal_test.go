package seal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func newKey(t testing.TB) *MasterKey {
	t.Helper()
	m, err := LoadOrCreate(t.TempDir() + "/master.key")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustSeal(t testing.TB, m *MasterKey, plaintext, aad []byte) []byte {
	t.Helper()
	sealed, err := m.Seal(plaintext, aad)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	m := newKey(t)
	rapid.Check(t, func(rt *rapid.T) {
		plaintext := rapid.SliceOf(rapid.Byte()).Draw(rt, "plaintext")
		aad := rapid.SliceOf(rapid.Byte()).Draw(rt, "aad")
		sealed := mustSeal(t, m, plaintext, aad)
		if len(plaintext) > 8 && bytes.Contains(sealed, plaintext) {
			rt.Fatal("the sealed bytes hold the secret")
		}
		got, err := m.Open(sealed, aad)
		if err != nil || !bytes.Equal(got, plaintext) {
			rt.Fatalf("Open = %x, %v, want %x", got, err, plaintext)
		}
	})
}

func TestSealUsesNewKeysAndNonces(t *testing.T) {
	t.Parallel()
	m := newKey(t)
	a, b := mustSeal(t, m, []byte("secret"), nil), mustSeal(t, m, []byte("secret"), nil)
	if bytes.Equal(a[wrappedAt:secretAt], b[wrappedAt:secretAt]) || bytes.Equal(a[secretAt:], b[secretAt:]) {
		t.Error("two sealed copies of a secret have equal parts")
	}
}

func TestOpenRefusesAnotherAAD(t *testing.T) {
	t.Parallel()
	m := newKey(t)
	sealed := mustSeal(t, m, []byte("secret"), AAD("t1", "production", "p12", "7", "1"))
	for _, aad := range [][]byte{
		nil,
		AAD("t2", "production", "p12", "7", "1"),
		AAD("t1", "sandbox", "p12", "7", "1"),
		AAD("t1", "production", "p12", "7", "2"),
		AAD("t1", "production", "p12", "71"),
	} {
		if _, err := m.Open(sealed, aad); !errors.Is(err, ErrTampered) {
			t.Errorf("Open with aad %q: err = %v, want ErrTampered", aad, err)
		}
	}
}

func TestOpenRefusesEveryChange(t *testing.T) {
	t.Parallel()
	m, aad := newKey(t), AAD("t1")
	sealed := mustSeal(t, m, []byte("secret"), aad)
	for i := range sealed {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			changed := slices.Clone(sealed)
			changed[i] ^= flip
			want := ErrTampered
			if i >= 1 && i < wrappedAt {
				want = ErrWrongKey // it names another key
			}
			if _, err := m.Open(changed, aad); !errors.Is(err, want) {
				t.Errorf("byte %d xor %#x: err = %v, want %v", i, flip, err, want)
			}
		}
		if _, err := m.Open(sealed[:i], aad); !errors.Is(err, ErrTampered) {
			t.Errorf("cut to %d bytes: err = %v, want ErrTampered", i, err)
		}
	}
	if _, err := m.Open(append(slices.Clone(sealed), 0), aad); !errors.Is(err, ErrTampered) {
		t.Errorf("one byte more: err = %v, want ErrTampered", err)
	}
}

func TestOpenRefusesPartsOfAnotherSecret(t *testing.T) {
	t.Parallel()
	m, aad := newKey(t), AAD("t1")
	a, b := mustSeal(t, m, []byte("secret a"), aad), mustSeal(t, m, []byte("secret b"), aad)
	mixed := slices.Concat(a[:secretAt], b[secretAt:])
	if _, err := m.Open(mixed, aad); !errors.Is(err, ErrTampered) {
		t.Errorf("data key of one and ciphertext of another: err = %v, want ErrTampered", err)
	}
}

func TestOpenReportsAnotherMasterKey(t *testing.T) {
	t.Parallel()
	m, other := newKey(t), newKey(t)
	sealed := mustSeal(t, m, []byte("secret"), nil)
	if _, err := other.Open(sealed, nil); !errors.Is(err, ErrWrongKey) {
		t.Errorf("err = %v, want ErrWrongKey", err)
	}
	copy(sealed[1:], other.id[:]) // names the other key
	if _, err := other.Open(sealed, nil); !errors.Is(err, ErrTampered) {
		t.Errorf("under a false id: err = %v, want ErrTampered", err)
	}
}

func TestRewrap(t *testing.T) {
	t.Parallel()
	from, to, third := newKey(t), newKey(t), newKey(t)
	aad := AAD("t1")
	sealed := mustSeal(t, from, []byte("secret"), aad)
	moved, err := from.Rewrap(sealed, aad, to)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := to.Open(moved, aad); err != nil || string(got) != "secret" {
		t.Errorf("the new key opens %q, %v", got, err)
	}
	if _, err := from.Open(moved, aad); !errors.Is(err, ErrWrongKey) {
		t.Errorf("the old key: err = %v, want ErrWrongKey", err)
	}
	if got, err := from.Open(sealed, aad); err != nil || string(got) != "secret" {
		t.Errorf("the old bytes with the old key: %q, %v", got, err)
	}
	if again, err := from.Rewrap(moved, aad, to); err != nil || !bytes.Equal(again, moved) {
		t.Errorf("Rewrap a second time: changed, or err = %v", err)
	}
	if _, err := third.Rewrap(sealed, aad, to); !errors.Is(err, ErrWrongKey) {
		t.Errorf("by a third key: err = %v, want ErrWrongKey", err)
	}
	if _, err := from.Rewrap(sealed, AAD("t2"), to); !errors.Is(err, ErrTampered) {
		t.Errorf("with other aad: err = %v, want ErrTampered", err)
	}
}

func TestAADIsUnambiguous(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.StringMatching(`[a|\x00\x01]{0,3}`))
		a, b := parts.Draw(t, "a"), parts.Draw(t, "b")
		if slices.Equal(a, b) != bytes.Equal(AAD(a...), AAD(b...)) {
			t.Fatalf("AAD(%q) = %x and AAD(%q) = %x", a, AAD(a...), b, AAD(b...))
		}
	})
}

// fixedKey returns the key that the stored bytes below are sealed under.
func fixedKey(t testing.TB) *MasterKey {
	t.Helper()
	m, err := newMasterKey([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Version 1 of the format never changes: stored secrets must open for ever.
func TestOpenReadsTheStoredFormat(t *testing.T) {
	t.Parallel()
	const id = "55a1ffc1622e0008"
	const stored = "" +
		"0155a1ffc1622e0008bda388676b202c1af12eba0666c5c48260e9eded154b3ce2dc1e749b3df5c5" +
		"a3106915e09364c55b16b7a8f8710940d3ea1d8a491fc5b0e75f41011b8d4f952802ab43ba25b64a" +
		"2cbd88bcde53d397cb2322c2e9ca6fa4fcbe87a8f2324a"
	m := fixedKey(t)
	if m.ID() != id {
		t.Errorf("ID() = %s, want %s", m.ID(), id)
	}
	sealed, err := hex.DecodeString(stored)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Open(sealed, AAD("taxpayer", "sandbox", "kind", "id", "1"))
	if err != nil || string(got) != "secret" {
		t.Errorf("Open = %q, %v", got, err)
	}
}

func FuzzOpen(f *testing.F) {
	m := fixedKey(f) // the same key in every fuzzing process
	sealed := mustSeal(f, m, []byte("secret"), nil)
	f.Add(sealed)
	f.Add(sealed[:secretAt])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := m.Open(b, nil)
		if err == nil && string(got) != "secret" {
			t.Fatalf("%x opened as %q", b, got)
		}
		if err != nil && !errors.Is(err, ErrTampered) && !errors.Is(err, ErrWrongKey) {
			t.Fatalf("err = %v, want ErrTampered or ErrWrongKey", err)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	m := newKey(b)
	sealed := mustSeal(b, m, make([]byte, 1200), nil) // an RSA key in PKCS#8
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Open(sealed, nil); err != nil {
			b.Fatal(err)
		}
	}
}
