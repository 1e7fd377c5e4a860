package lang

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestMessagef(t *testing.T) {
	t.Parallel()
	kind := Messagef("a number", "un número")
	for _, test := range []struct {
		message Message
		en, es  string
	}{
		{Messagef("is required", "es obligatorio"), "is required", "es obligatorio"},
		{Messagef("18 % is the rate", "18 % es la tasa"), "18 % is the rate", "18 % es la tasa"},
		{Messagef("at most %d characters", "un máximo de %d caracteres", 7), "at most 7 characters", "un máximo de 7 caracteres"},
		{Messagef("must be %s, not %s", "debe ser %s, no %s", kind, "null"), "must be a number, not null", "debe ser un número, no null"},
		{Messagef("%[1]s of %[2]s", "de %[2]s, %[1]s", "a", "b"), "a of b", "de b, a"},
		{Literal("[135] x"), "[135] x", "[135] x"},
	} {
		if en, es := test.message.In(English), test.message.In(Spanish); en != test.en || es != test.es {
			t.Errorf("got %q and %q, want %q and %q", en, es, test.en, test.es)
		}
	}
	if !(Message{}).IsZero() || kind.IsZero() || !kind.Equal(Messagef("a number", "un número")) {
		t.Error("IsZero or Equal is wrong")
	}
}

func TestErrorTextIsInTheLanguageOfTheReader(t *testing.T) {
	t.Parallel()
	missing := Errorf("there is no file %s: %s", "no existe el archivo %s: %s", "x", fs.ErrNotExist)
	outer := Errorf("cannot start: %s", "no se puede iniciar: %s", missing)
	for _, test := range []struct {
		err    error
		en, es string
	}{
		{missing, "there is no file x: file does not exist", "no existe el archivo x: file does not exist"},
		{outer, "cannot start: there is no file x: file does not exist", "no se puede iniciar: no existe el archivo x: file does not exist"},
		{errors.Join(missing, nil), "there is no file x: file does not exist", "no existe el archivo x: file does not exist"},
		{fmt.Errorf("database: %w", fs.ErrExist), "database: file already exists", "database: file already exists"},
	} {
		if en, es := ErrorText(test.err, English), ErrorText(test.err, Spanish); en != test.en || es != test.es {
			t.Errorf("got %q and %q, want %q and %q", en, es, test.en, test.es)
		}
		if test.err.Error() != test.en {
			t.Errorf("Error() = %q, want %q", test.err.Error(), test.en)
		}
	}
	if !errors.Is(outer, fs.ErrNotExist) {
		t.Error("Errorf does not wrap the errors among its arguments")
	}
}
