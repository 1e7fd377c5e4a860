package simulator

import "time"

// A DocumentView is a document that the simulated authority has received.
type DocumentView struct {
	ID       string    `json:"id"`                 // the trackId; an RFCE has an id of the simulator's own
	TrackID  string    `json:"track_id,omitempty"` // of an e-CF
	Amb      string    `json:"amb"`
	Kind     string    `json:"kind"` // ecf or rfce
	RNC      string    `json:"rnc"`
	ENCF     string    `json:"encf"`
	Type     string    `json:"type"`
	Attempt  int       `json:"attempt"` // its position among the stored documents of its number
	Posts    int       `json:"posts"`   // all posts of its number, stored or not
	Code     int       `json:"code"`    // what a look-up shows now
	State    string    `json:"state"`
	Verdict  Verdict   `json:"verdict"` // the final verdict
	Received time.Time `json:"received"`
	Visible  time.Time `json:"visible"`
	Due      time.Time `json:"due"`
	Stuck    bool      `json:"stuck,omitempty"`
	Hidden   bool      `json:"hidden,omitempty"`
	Polls    int       `json:"polls"`
	Signer   string    `json:"signer,omitempty"`
	Security string    `json:"security_code,omitempty"`
	Total    string    `json:"total,omitempty"`
	File     string    `json:"file"`
	SHA256   string    `json:"sha256"`
	Bytes    []byte    `json:"bytes,omitempty"` // as received
}

// A Filter selects documents. An empty field selects all.
type Filter struct{ ID, Amb, RNC, ENCF string }

// Documents returns the documents that a filter selects, by environment in the order of
// arrival.
func (s *Simulator) Documents(f Filter) []DocumentView {
	now := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	views := []DocumentView{}
	for _, amb := range []string{TestECF, CertECF, ECF} {
		if f.Amb != "" && f.Amb != amb {
			continue
		}
		e := s.state.Environments[amb]
		for _, id := range e.Order {
			d := e.Documents[id]
			if (f.ID == "" || f.ID == id) && (f.RNC == "" || f.RNC == d.Facts.RNC) && (f.ENCF == "" || f.ENCF == d.Facts.ENCF) {
				views = append(views, e.view(d, now))
			}
		}
	}
	return views
}

func (e *environment) view(d *document, now time.Time) DocumentView {
	code := d.codeAt(now)
	v := DocumentView{
		ID: d.ID, TrackID: d.ID, Amb: d.Amb, Kind: "ecf", RNC: d.Facts.RNC, ENCF: d.Facts.ENCF, Type: d.Facts.Type, Attempt: d.Attempt,
		Code: code, State: stateName(code), Verdict: d.Verdict, Received: d.Received, Visible: d.Visible, Due: d.Due, Stuck: d.Stuck, Hidden: d.Hidden,
		Polls: d.Polls, Signer: d.Facts.Signer, Security: d.Facts.Code, Total: d.Facts.Total, File: d.File, SHA256: d.SHA256, Bytes: d.Raw,
	}
	if d.RFCE {
		v.Kind, v.TrackID = "rfce", ""
	}
	if n := e.Numbers[d.Facts.RNC+d.Facts.ENCF]; n != nil {
		v.Posts = n.Posts
	}
	return v
}
