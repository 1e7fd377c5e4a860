package audit

import (
	"bytes"
	"fmt"
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

// BrokenError means that the log was changed after it was written. Seq is the first wrong entry.
type BrokenError struct {
	Seq     int64
	Problem string
}

func (e *BrokenError) Error() string { return fmt.Sprintf("audit entry %d %s", e.Seq, e.Problem) }

// Last returns the entry that the checker has verified last.
func (c *Checker) Last() Head { return c.last }

// Next verifies the entry that follows. It fails with a *BrokenError.
func (c *Checker) Next(e Entry) error {
	want := c.last.Seq + 1
	switch {
	case e.Seq < 1:
		return &BrokenError{e.Seq, "was inserted: the first entry has the number 1"}
	case e.Seq > want:
		return &BrokenError{want, "is missing: it was removed, or a later entry has another number"}
	case e.Seq < want:
		return &BrokenError{e.Seq, "was inserted: it has the number of another entry"}
	}
	hash := e.ChainHash(c.last.Hash)
	if !bytes.Equal(e.Hash, hash) {
		return &BrokenError{e.Seq, "was changed or inserted: its contents do not match its hash"}
	}
	for _, p := range c.marks[e.Seq] {
		if !bytes.Equal(p.Hash, hash) {
			return &BrokenError{e.Seq, "or an entry before it was changed: the hash differs from the checkpoint of " + p.At}
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
		return &BrokenError{c.last.Seq + 1, "is missing: entries were removed from the end"}
	case head.Seq < c.last.Seq:
		return &BrokenError{head.Seq + 1, "was inserted: the log ended before it"}
	case !bytes.Equal(head.Hash, c.last.Hash):
		return &BrokenError{c.last.Seq, "does not match the recorded end of the log"}
	}
	for seq, marks := range c.marks {
		if seq > c.last.Seq {
			return &BrokenError{c.last.Seq + 1, "is missing: the checkpoint of " + marks[0].At + " has " + fmt.Sprint(seq) + " entries"}
		}
	}
	return nil
}
