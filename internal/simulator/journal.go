package simulator

import (
	"net/http"
	"time"
)

// A RequestView is a request and its result.
type RequestView struct {
	Seq      uint64      `json:"seq"`
	At       time.Time   `json:"at"`
	Took     Duration    `json:"took"`
	Method   string      `json:"method"`
	Path     string      `json:"path"`
	Query    string      `json:"query,omitempty"`
	Header   http.Header `json:"header"` // without secrets
	Service  Service     `json:"service"`
	Amb      string      `json:"amb,omitempty"`
	RNC      string      `json:"rnc,omitempty"`
	ENCF     string      `json:"encf,omitempty"`
	TrackID  string      `json:"track_id,omitempty"`
	BytesIn  int         `json:"bytes_in"`
	Status   int         `json:"status"` // 0 when there was no response
	BytesOut int         `json:"bytes_out"`
	Class    string      `json:"class"`
	Rule     string      `json:"rule,omitempty"` // the rule that was applied
}

func newRequestView(c *call, at time.Time) RequestView {
	header := c.r.Header.Clone()
	if header.Get("Authorization") != "" {
		header.Set("Authorization", "[redacted]")
	}
	return RequestView{At: at, Method: c.r.Method, Path: c.r.URL.Path, Query: c.r.URL.RawQuery, Header: header, Service: c.service, Amb: c.amb}
}

// A journal is a ring buffer of the last requests.
type journal struct {
	seq  uint64
	ring []RequestView
	next int
}

func (j *journal) add(v RequestView, size int) {
	j.seq++
	v.Seq = j.seq
	switch {
	case size == 0:
		j.ring, j.next = nil, 0
	case len(j.ring) < size && j.next == len(j.ring):
		j.ring = append(j.ring, v)
		j.next++
	case len(j.ring) > size:
		j.ring = append([]RequestView{}, j.since(0)[len(j.ring)-size+1:]...)
		j.ring, j.next = append(j.ring, v), size
	default:
		j.next %= len(j.ring)
		j.ring[j.next] = v
		j.next++
	}
}

// since returns the requests after a sequence number, in the order in which they ended.
func (j *journal) since(seq uint64) []RequestView {
	views := []RequestView{}
	for i := range j.ring {
		if v := j.ring[(j.next+i)%len(j.ring)]; v.Seq > seq {
			views = append(views, v)
		}
	}
	return views
}

// Requests returns the last requests, in the order in which they ended.
func (s *Simulator) Requests() []RequestView { return s.requestsSince(0) }

func (s *Simulator) requestsSince(seq uint64) []RequestView {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.since(seq)
}
