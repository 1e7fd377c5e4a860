package pipeline

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// A Kind is what a piece of evidence is.
type Kind string

// The kinds of evidence. What was asked by our own track id, or answered our own
// submission, concerns our bytes; what was asked by number may concern others'.
const (
	// KindTrack is a track id that the authority gave our submission, or that a
	// look-up by number showed.
	KindTrack Kind = "track"
	// KindVerdict is the authority's word on one of our track ids, or on a
	// summary, or its refusal at the door.
	KindVerdict Kind = "verdict"
	// KindState is what a look-up by number shows. Ours tells whether security
	// code, total and date are those of our bytes; Foreign, that they are not.
	KindState Kind = "state"
	// KindAbsent is a well-formed answer that there is no such document.
	KindAbsent Kind = "absent"
	// KindLost is a track id of ours that the authority no longer knows.
	KindLost Kind = "lost"
	// KindInconclusive is an attempt of which nobody knows whether it arrived.
	KindInconclusive Kind = "inconclusive"
	// KindSettled is an inconclusive attempt that was explained: what it may
	// have left at the authority has been found, or proven not to be there.
	KindSettled Kind = "settled"
	// KindOperator is an operator's recorded decision.
	KindOperator Kind = "operator"
	// KindReceipt is the buyer's verified acknowledgement.
	KindReceipt Kind = "receipt"
	// KindRefusedDelivery is the buyer's verified refusal, or the end of trying.
	KindRefusedDelivery Kind = "delivery_failed"
	// KindCommercial is the buyer's verified approval or rejection. It may come
	// at any moment, and is no word on where the document stands.
	KindCommercial Kind = "commercial"
)

// Evidence is one thing that was learnt about a document. Two that say the same
// are one.
type Evidence struct {
	Kind    Kind           `json:"kind"`
	TrackID string         `json:"track_id,omitempty"`
	Verdict fiscal.Verdict `json:"verdict,omitempty"`
	// Ours and Foreign judge what a look-up by number showed; neither, when it
	// showed too little.
	Ours    bool `json:"ours,omitempty"`
	Foreign bool `json:"foreign,omitempty"`

	Messages []fiscal.Message `json:"messages,omitempty"`
	// SequenceFree tells that the authority lets the number be used again.
	SequenceFree bool `json:"sequence_free,omitempty"`
	// Attempt is the attempt that an inconclusive or settled one is about.
	Attempt int64 `json:"attempt,omitempty"`
	// Note is for people.
	Note string `json:"note,omitempty"`
	// Signer is the person whom the certificate of a signed message names.
	Signer string `json:"signer,omitempty"`

	// At orders what was seen; of absences each one counts, so that it is part
	// of what they say.
	At time.Time `json:"-"`
}

// record is evidence as it is stored.
func (e Evidence) record(scope store.Scope, documentID string, raw []byte) (store.Evidence, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return store.Evidence{}, fmt.Errorf("pipeline: encode evidence: %w", err)
	}
	same := string(body)
	if e.Kind == KindAbsent {
		same += " " + strconv.FormatInt(e.At.UnixMicro(), 10)
	}
	digest := sha256.Sum256([]byte(same))
	return store.Evidence{
		Scope: scope, DocumentID: documentID, ID: store.NewID(), At: e.At, Kind: string(e.Kind),
		TrackID: e.TrackID, Verdict: e.Verdict, Body: string(body), Digest: digest[:], Raw: raw,
	}, nil
}

func decodeEvidence(stored []store.Evidence) ([]Evidence, error) {
	all := make([]Evidence, len(stored))
	for i, s := range stored {
		if err := json.Unmarshal([]byte(s.Body), &all[i]); err != nil {
			return nil, fmt.Errorf("pipeline: evidence %s: %w", s.ID, err)
		}
		all[i].At = s.At
	}
	return all, nil
}

// duplicate tells whether a rejection only says that the number is known
// already, which after an attempt of ours that got lost is no rejection.
func (e Evidence) duplicate() bool {
	if e.SequenceFree || len(e.Messages) == 0 {
		return false
	}
	for _, m := range e.Messages {
		if !duplicateMessage(m) {
			return false
		}
	}
	return true
}

func duplicateMessage(m fiscal.Message) bool {
	if m.Code == "75" || m.Code == "135" {
		return true
	}
	text := strings.ToLower(m.Text)
	for _, word := range [...]string{"utilizad", "duplicad", "anulad"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
