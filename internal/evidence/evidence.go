// Package evidence holds what is known of a document that was sent to the tax
// authority, and decides from it where the document stands. It is pure: a status
// is a function of the evidence and of nothing else.
package evidence

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A Kind says what an item of evidence is.
type Kind string

// The kinds of evidence. An answer to our own submission, or to a question by our
// own track id, is about our bytes. An answer to a question by number may be about
// a document of another issuer.
const (
	// Track is a track id that the authority gave our submission. With Found, it is
	// one that a look-up by number returned: it may be the document of another issuer.
	Track Kind = "track"
	// Verdict is the authority's verdict on a track id or on a summary, or its
	// refusal of a submission. With Found, it is about a track id that a look-up by
	// number returned.
	Verdict Kind = "verdict"
	// State is the answer to a look-up by number. Ours says that security code,
	// total and date are those of our bytes; Foreign says that they are not.
	State Kind = "state"
	// Absent is a well-formed answer that the authority has no such document.
	Absent Kind = "absent"
	// Lost is a track id of ours that the authority no longer knows.
	Lost Kind = "lost"
	// Inconclusive is an attempt that may or may not have arrived.
	Inconclusive Kind = "inconclusive"
	// Settled is of earlier versions, which wrote it when look-ups had found nothing and
	// the document was sent again. It confirms nothing.
	Settled Kind = "settled"
	// NoOther is a well-formed list of all submissions of our number in which every
	// one is ours.
	NoOther Kind = "no_other"
	// NoLookUp says that the environment offers no look-up by number, so that nothing can
	// show whether the authority has the document.
	NoLookUp Kind = "no_look_up"
	// Operator is an operator's recorded decision.
	Operator Kind = "operator"
	// Note is what an operator recorded without a verdict, such as why the document
	// was sent again. It does not change where the document stands.
	Note Kind = "note"
	// Receipt is the buyer's verified acknowledgement.
	Receipt Kind = "receipt"
	// DeliveryFailed is the buyer's verified refusal, or the end of the attempts
	// to deliver.
	DeliveryFailed Kind = "delivery_failed"
	// Commercial is the buyer's verified approval or rejection. It may arrive at
	// any time and does not change where the document stands.
	Commercial Kind = "commercial"
)

// An Item is one thing that was learnt about a document. Two items that say the
// same count once.
type Item struct {
	Kind    Kind           `json:"kind"`
	TrackID string         `json:"track_id,omitempty"`
	Verdict fiscal.Verdict `json:"verdict,omitempty"`
	// Ours and Foreign judge the answer to a look-up by number. Both are false
	// when the answer shows too little to tell.
	Ours    bool `json:"ours,omitempty"`
	Foreign bool `json:"foreign,omitempty"`
	// Found says that the track id came from a look-up by number.
	Found bool `json:"found,omitempty"`

	Messages []fiscal.Message `json:"messages,omitempty"`
	// NumberFree says that the authority lets the number be used again.
	NumberFree bool `json:"sequence_free,omitempty"`
	// Attempt is the number of the attempt that an inconclusive item is about, or that
	// the authority answered with a track id or a verdict.
	Attempt int64 `json:"attempt,omitempty"`
	// After is the number of the last attempt before the answer to a look-up by number; see
	// Learnt. Evidence of earlier versions does not have it.
	After int64 `json:"after_attempt,omitempty"`
	// ENCF is the number with which an operator has decided to send the document.
	ENCF string `json:"encf,omitempty"`
	// Note is for people. In an item of the kind Note or DeliveryFailed it is a cause; see
	// Cause.
	Note string `json:"note,omitempty"`
	// Signer is the person that the certificate of a signed message names.
	Signer string `json:"signer,omitempty"`
	// Answered says that an acknowledgement was the answer to a delivery of ours, so that
	// it came from the buyer's registered address.
	Answered bool `json:"answered,omitempty"`
	// Confirmed says that the signer of a commercial response was known to act for the
	// buyer when the response arrived.
	Confirmed bool `json:"confirmed,omitempty"`
	// By is the person who decided, or who wrote the note.
	By string `json:"by,omitempty"`

	// At is when the item was learnt. It orders items. Several absences at different
	// times each count, and the answer to a look-up is about what was sent before it, so
	// for both it is part of what they say.
	At time.Time `json:"-"`
}

// Cause returns the note as a cause. What people wrote is the argument of one.
func (i Item) Cause() cause.Cause {
	if i.Kind == Note || i.Kind == DeliveryFailed || i.Note == "" {
		return cause.Cause(i.Note)
	}
	return cause.New(cause.Text, i.Note)
}

// Repeats reports whether a buyer's acknowledgement or refusal says what an earlier one said.
// An earlier release may have stored the reason as a sentence.
func (i Item) Repeats(earlier Item) bool {
	return i.Kind == earlier.Kind && i.Signer == earlier.Signer && i.Cause().String() == earlier.Cause().String()
}

// Encode returns the stored form of an item, and a digest that is the same for
// items that say the same.
func (i Item) Encode() (body, digest []byte, err error) {
	body, err = json.Marshal(i)
	if err != nil {
		return nil, nil, fmt.Errorf("evidence: encode: %w", err)
	}
	same := body
	if i.Kind == Absent || i.Kind == State {
		same = strconv.AppendInt(append(body[:len(body):len(body)], ' '), i.At.UnixMicro(), 10)
	}
	sum := sha256.Sum256(same)
	return body, sum[:], nil
}

// Decode reads an item that Encode has written and that was learnt at at.
func Decode(body []byte, at time.Time) (Item, error) {
	item := Item{At: at}
	if err := json.Unmarshal(body, &item); err != nil {
		return Item{}, fmt.Errorf("evidence: decode: %w", err)
	}
	return item, nil
}

// duplicate reports whether a rejection says that the number is known already. The
// authority may have registered one submission under two track ids, so that of a track id
// one such message beside others is enough.
func (i Item) duplicate() bool {
	if i.NumberFree || !slices.ContainsFunc(i.Messages, saysUsed) {
		return false
	}
	return i.TrackID != "" || !slices.ContainsFunc(i.Messages, func(m fiscal.Message) bool { return !saysUsed(m) })
}

// saysUsed reports whether a message says that the number was used before. The
// authority has several codes for it, and publishes none.
func saysUsed(m fiscal.Message) bool {
	if m.Code == "75" || m.Code == "135" || m.Code == "1209" {
		return true
	}
	text := strings.ToLower(m.Text)
	return slices.ContainsFunc([]string{"utilizad", "duplicad", "anulad"}, func(word string) bool { return strings.Contains(text, word) })
}

// Absences returns how often the authority did not know a track id, and when first.
func Absences(items []Item, trackID string) (times int, first time.Time) {
	for _, i := range items {
		if i.Kind != Absent || i.TrackID != trackID {
			continue
		}
		if times++; times == 1 || i.At.Before(first) {
			first = i.At
		}
	}
	return times, first
}
