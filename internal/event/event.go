package event

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// An Event is one encoded event.
type Event struct {
	ID   string
	Kind string
	At   time.Time
	Body []byte // the JSON that integrators receive, with relative links
}

// NewID returns a new event id. Ids sort by the time of their creation.
func NewID() string {
	id := uuid.Must(uuid.NewV7())
	return "evt_" + hex.EncodeToString(id[:])
}

// An Owner is the taxpayer, in one environment, that an event belongs to.
type Owner struct {
	Environment fiscal.Environment
	TaxpayerID  string
}

// envelope is the outer object of every event.
type envelope struct {
	ID          string             `json:"id"`
	Type        string             `json:"type"`
	Timestamp   string             `json:"timestamp"`
	APIVersion  string             `json:"api_version"`
	Environment fiscal.Environment `json:"environment"`
	TaxpayerID  string             `json:"taxpayer_id"`
	Data        any                `json:"data"`
}

// New encodes an event of the given kind with one of the data types of this
// package. It fails when the data cannot be encoded as JSON.
func New(owner Owner, kind string, at time.Time, data any) (Event, error) {
	e := Event{ID: NewID(), Kind: kind, At: at}
	body, err := strictjson.Encode(envelope{
		ID: e.ID, Type: kind, Timestamp: fiscal.FormatInstant(at), APIVersion: "v1",
		Environment: owner.Environment, TaxpayerID: owner.TaxpayerID, Data: data,
	})
	if err != nil {
		return Event{}, fmt.Errorf("event: encode %s: %w", kind, err)
	}
	e.Body = body
	return e, nil
}
