package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/audit"
)

// text draws any text, also one that looks like a part of the encoding.
func text() *rapid.Generator[string] { return rapid.StringN(0, 12, -1) }

func entryGen() *rapid.Generator[audit.Entry] {
	return rapid.Custom(func(t *rapid.T) audit.Entry {
		return audit.Entry{
			At: time.UnixMicro(rapid.Int64Range(0, 1<<50).Draw(t, "at")),
			Caller: audit.Caller{
				Actor: text().Draw(t, "actor"), From: text().Draw(t, "from"),
				RequestID: text().Draw(t, "request id"), Reason: text().Draw(t, "reason"),
			},
			Action: text().Draw(t, "action"), Object: text().Draw(t, "object"), Environment: text().Draw(t, "environment"),
			TaxpayerID: text().Draw(t, "taxpayer"), Before: text().Draw(t, "before"), After: text().Draw(t, "after"),
		}
	})
}

// chain numbers and chains entries as the store does.
func chain(entries []audit.Entry) audit.Head {
	head := audit.Head{Hash: audit.Start()}
	for i := range entries {
		entries[i].Seq = int64(i + 1)
		entries[i].Hash = entries[i].ChainHash(head.Hash)
		head = audit.Head{Seq: entries[i].Seq, Hash: entries[i].Hash}
	}
	return head
}

func verify(entries []audit.Entry, head audit.Head, marks ...audit.Checkpoint) error {
	c := audit.NewChecker(marks...)
	for _, e := range entries {
		if err := c.Next(e); err != nil {
			return err
		}
	}
	return c.End(head)
}

// Every change of one field of one entry, every removal, insertion and swap is found,
// and the first wrong entry is named.
func TestCheckerNamesTheFirstWrongEntry(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfN(entryGen(), 1, 12).Draw(t, "entries")
		head := chain(entries)
		if err := verify(entries, head); err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(entries)-1).Draw(t, "at")
		changed, first := slices.Clone(entries), int64(at+1)
		switch what := rapid.SampledFrom([]string{"change", "remove", "insert", "swap", "renumber"}).Draw(t, "what"); what {
		case "change":
			changeField(t, &changed[at])
		case "remove":
			changed = slices.Delete(changed, at, at+1)
		case "insert":
			changed = slices.Insert(changed, at, entryGen().Draw(t, "inserted"))
			changed[at].Seq = first
			changed[at].Hash = bytes.Repeat([]byte{1}, 32)
		case "swap":
			other := rapid.IntRange(0, len(entries)-1).Draw(t, "other")
			if other == at {
				t.Skip("the same entry")
			}
			changed[at], changed[other] = changed[other], changed[at]
			changed[at].Seq, changed[other].Seq = changed[other].Seq, changed[at].Seq
			first = int64(min(at, other) + 1)
		case "renumber":
			changed[at].Seq += 100
			first = min(first, int64(len(entries)))
		}
		var broken *audit.BrokenError
		if err := verify(changed, head); !errors.As(err, &broken) || broken.Seq != first {
			t.Fatalf("verification says %v, want entry %d", err, first)
		}
	})
}

// changeField changes one field of an entry.
func changeField(t *rapid.T, e *audit.Entry) {
	fields := []*string{
		&e.Caller.Actor, &e.Caller.From, &e.Caller.RequestID, &e.Caller.Reason,
		&e.Action, &e.Object, &e.Environment, &e.TaxpayerID, &e.Before, &e.After,
	}
	switch n := rapid.IntRange(0, len(fields)+1).Draw(t, "field"); n {
	case len(fields):
		e.At = e.At.Add(time.Microsecond)
	case len(fields) + 1:
		e.Hash = slices.Clone(e.Hash)
		e.Hash[0] ^= 1
	default:
		*fields[n] += "x"
	}
}

// Text that moves from one field to the next changes the hash.
func TestChainHashSeparatesFields(t *testing.T) {
	t.Parallel()
	a := audit.Entry{Action: "ab", Object: "c"}
	b := audit.Entry{Action: "a", Object: "bc"}
	if bytes.Equal(a.ChainHash(audit.Start()), b.ChainHash(audit.Start())) {
		t.Error("two different entries have the same hash")
	}
}

// A log that was shortened or computed again no longer matches a checkpoint.
func TestCheckpointShowsAnotherLog(t *testing.T) {
	t.Parallel()
	entries := make([]audit.Entry, 5)
	for i := range entries {
		entries[i] = audit.Entry{Action: "taxpayer.create", Object: string(rune('a' + i))}
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	head := chain(entries)
	mark := audit.NewCheckpoint(private, head, time.Unix(1_800_000_000, 0))
	if err := errors.Join(mark.Verify(public), verify(entries, head, mark)); err != nil {
		t.Fatal(err)
	}

	shorter := slices.Clone(entries[:3])
	if err := verify(shorter, chain(shorter), mark); err == nil {
		t.Error("entries were removed from the end, and the checkpoint does not show it")
	}
	other := slices.Clone(entries)
	other[1].Object = "z"
	if err := verify(other, chain(other), mark); err == nil {
		t.Error("the chain was computed again, and the checkpoint does not show it")
	}
	contradicting := mark
	contradicting.Hash = bytes.Repeat([]byte{1}, 32)
	for _, marks := range [][]audit.Checkpoint{{mark, contradicting}, {contradicting, mark}} {
		if err := verify(entries, head, marks...); err == nil {
			t.Error("two checkpoints contradict each other, and the verification does not say so")
		}
	}
	forged := mark
	forged.Seq--
	if err := forged.Verify(public); !errors.Is(err, audit.ErrCheckpoint) {
		t.Errorf("a changed checkpoint: %v", err)
	}
}

func TestCheckpointSurvivesItsFile(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	mark := audit.NewCheckpoint(private, audit.Head{Seq: 3, Hash: audit.Start()}, time.Unix(1_800_000_000, 0))
	file, err := json.Marshal(mark)
	if err != nil {
		t.Fatal(err)
	}
	var back audit.Checkpoint
	if err := json.Unmarshal(file, &back); err != nil {
		t.Fatal(err)
	}
	if err := back.Verify(public); err != nil {
		t.Error(err)
	}
	for _, text := range []string{`{}`, `{"hash":"%"}`, `{"signature":"%"}`, `[]`} {
		var p audit.Checkpoint
		if err := json.Unmarshal([]byte(text), &p); err == nil && p.Verify(public) == nil {
			t.Errorf("%s is a valid checkpoint", text)
		}
	}
}

func TestCallerOfAContext(t *testing.T) {
	t.Parallel()
	if got := audit.CallerOf(t.Context()); got != (audit.Caller{Actor: audit.System}) {
		t.Errorf("without a caller: %+v", got)
	}
	ctx := audit.WithReason(audit.WithCaller(t.Context(), audit.Caller{Actor: "ana", From: "host"}), "why")
	if got := audit.CallerOf(ctx); got != (audit.Caller{Actor: "ana", From: "host", Reason: "why"}) {
		t.Errorf("with a caller and a reason: %+v", got)
	}
}
