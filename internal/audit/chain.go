package audit

import (
	"bytes"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// Head is the newest entry of a log: how many entries there are, and the hash of the
// last one.
type Head struct {
	Seq  int64
	Hash []byte
}

// Checker verifies the entries of a log one after the other. Its zero value is not
// usable; NewChecker and NewCheckerFrom make one.
type Checker struct {
	last  Head
	marks map[int64][]Checkpoint // two of the same entry may contradict each other
}

// NewChecker returns a checker for a whole log. The checkpoints, whose signatures the
// caller has verified, must be part of the log.
func NewChecker(checkpoints ...Checkpoint) *Checker {
	c := NewCheckerFrom(Head{Hash: Start()})
	for _, p := range checkpoints {
		c.marks[p.Seq] = append(c.marks[p.Seq], p)
	}
	return c
}

// NewCheckerFrom returns a checker for the entries after a verified one.
func NewCheckerFrom(last Head) *Checker {
	return &Checker{last: last, marks: make(map[int64][]Checkpoint)}
}

// BrokenError means that the log was changed after it was written. Seq is the first wrong
// entry. Problem continues a sentence about that entry.
type BrokenError struct {
	Seq     int64
	Problem lang.Message
}

// Error returns the English text.
func (e *BrokenError) Error() string { return e.In(lang.English) }

// In returns the text in a language.
func (e *BrokenError) In(l lang.Language) string {
	return lang.Messagef("audit entry %d %s", "la entrada de auditoría %d %s", e.Seq, e.Problem).In(l)
}

// Last returns the entry that the checker has verified last.
func (c *Checker) Last() Head { return c.last }

// Next verifies the entry that follows. It fails with a *BrokenError.
func (c *Checker) Next(e Entry) error {
	want := c.last.Seq + 1
	switch {
	case e.Seq < 1:
		return &BrokenError{e.Seq, lang.Messagef("was inserted: the first entry has the number 1",
			"se insertó: la primera entrada tiene el número 1")}
	case e.Seq > want:
		return &BrokenError{want, lang.Messagef("is missing: it was removed, or a later entry has another number",
			"falta: se quitó, o una entrada posterior tiene otro número")}
	case e.Seq < want:
		return &BrokenError{e.Seq, lang.Messagef("was inserted: it has the number of another entry",
			"se insertó: tiene el número de otra entrada")}
	}
	hash := e.ChainHash(c.last.Hash)
	if !bytes.Equal(e.Hash, hash) {
		return &BrokenError{e.Seq, lang.Messagef("was changed or inserted: its contents do not match its hash",
			"se modificó o se insertó: su contenido no coincide con su huella digital")}
	}
	for _, p := range c.marks[e.Seq] {
		if !bytes.Equal(p.Hash, hash) {
			return &BrokenError{e.Seq, lang.Messagef("or an entry before it was changed: the hash differs from the checkpoint of %s",
				"o una entrada anterior se modificó: la huella digital no es la del punto de control de %s", p.At)}
		}
	}
	c.last = Head{e.Seq, hash}
	return nil
}

// End verifies that no entry is missing at the end: the log must reach the recorded
// head and every checkpoint. It fails with a *BrokenError.
func (c *Checker) End(head Head) error {
	switch {
	case head.Seq > c.last.Seq:
		return &BrokenError{c.last.Seq + 1, lang.Messagef("is missing: entries were removed from the end",
			"falta: se quitaron entradas del final")}
	case head.Seq < c.last.Seq:
		return &BrokenError{head.Seq + 1, lang.Messagef("was inserted: the log ended before it",
			"se insertó: el registro terminaba antes de ella")}
	case !bytes.Equal(head.Hash, c.last.Hash):
		return &BrokenError{c.last.Seq, lang.Messagef("does not match the recorded end of the log",
			"no coincide con el final anotado del registro")}
	}
	for seq, marks := range c.marks {
		if seq > c.last.Seq {
			return &BrokenError{c.last.Seq + 1, lang.Messagef("is missing: the checkpoint of %s has %d entries",
				"falta: el punto de control de %s tiene %d entradas", marks[0].At, seq)}
		}
	}
	return nil
}
