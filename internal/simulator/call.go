package simulator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A call is one request to an emulated service.
type call struct {
	target
	s      *Simulator
	w      http.ResponseWriter
	r      *http.Request
	body   io.Reader
	config *Config
	now    time.Time // of the servers
	query  map[string]string
	key    docKey
	fault  *Action
	person string // whom the token names
	entry  RequestView
	store  bool // what is uploaded is kept
}

// An answer is what a service says, before a fault has its way with it.
type answer struct {
	status int
	kind   string
	body   []byte
}

// Handler serves what is emulated.
func (s *Simulator) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Simulator) serve(w http.ResponseWriter, r *http.Request) {
	c := &call{s: s, w: w, r: r, body: r.Body, store: true, now: s.Now()}
	var ok bool
	if c.target, ok = route(r); !ok {
		s.noService(c)
		return
	}
	done := s.enter(c)
	defer done()
	c.query = queryOf(r.URL)
	if method := c.service.method(); method != "" && r.Method != method {
		c.entry.Class = "wrong method"
		c.write(answer{status: http.StatusMethodNotAllowed})
		return
	}
	if c.amb == CertECF && c.service.absent() && !c.config.CertECFFull {
		c.asked()
		c.entry.Class = "absent service"
		c.write(answer{status: http.StatusNotFound})
		return
	}
	s.fire(c)
	if c.before() {
		return
	}
	if c.service.needsToken() && !c.authorized() {
		c.entry.Class = "no token"
		c.write(answer{status: http.StatusUnauthorized})
		return
	}
	a := c.answer()
	if c.delay() != nil {
		c.entry.Class = "given up"
		return
	}
	c.after(a)
}

// noService answers where nothing is, and has the journal tell.
func (s *Simulator) noService(c *call) {
	s.mu.Lock()
	c.config = s.config
	c.entry = newRequestView(c, s.clock.now())
	c.entry.Class, c.entry.Status = "no such service", http.StatusNotFound
	s.journal.add(c.entry, c.config.journalSize())
	s.mu.Unlock()
	http.NotFound(c.w, c.r)
}

// enter starts a call: it counts it, and takes the configuration and the time
// that hold for it. What it returns ends the call.
func (s *Simulator) enter(c *call) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.config = s.config
	start := s.clock.now()
	c.now = start.Add(time.Duration(c.config.ClockSkew))
	host := c.host + c.peer
	s.inflight[host]++
	if limit := c.config.maxParallel(); limit >= 0 && s.inflight[host] > limit {
		s.violate(c, ParallelCalls, strconv.Itoa(s.inflight[host])+" calls to "+host+" at once")
	}
	if !c.config.Lean {
		c.entry = newRequestView(c, start)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.inflight[host]--; s.inflight[host] == 0 {
			delete(s.inflight, host)
		}
		c.entry.Took = Duration(s.clock.now().Sub(start))
		c.entry.RNC, c.entry.ENCF, c.entry.TrackID = c.key.rnc, c.key.encf, c.key.trackID
		s.journal.add(c.entry, c.config.journalSize())
	}
}

// delay is the latency of the network and the servers. It comes after the work,
// when the document is known on which it depends.
func (c *call) delay() error {
	if c.s.clock.isFrozen() {
		return nil
	}
	if c.config.Latency != nil && c.config.Latency.Max == 0 {
		return nil
	}
	d := c.config.latency(newDraw(c.s.seed(), "latency", c.amb, string(c.service), c.key.rnc, c.key.encf, c.key.trackID, strconv.Itoa(c.key.attempt)))
	return c.s.clock.sleep(c.r.Context(), d)
}

func (s *Simulator) seed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Seed
}

// answer lets the service speak.
func (c *call) answer() answer {
	switch c.service {
	case Seed:
		return c.giveSeed()
	case Token:
		return c.giveToken()
	case Reception:
		return c.receive()
	case RFCE:
		return c.receiveSummary()
	case Result:
		return c.result()
	case StateLookup:
		return c.state()
	case TrackIDs:
		return c.trackIDs()
	case RFCELookup:
		return c.summary()
	case Directory:
		return c.directory()
	case Approval:
		return c.approve()
	case Annulment:
		return c.annul()
	case Stamp, StampFC:
		return c.stamp()
	case Status:
		return c.status()
	case Emulator:
		return c.emulate()
	case PeerSeed:
		return c.givePeerSeed()
	case PeerToken:
		return c.givePeerToken()
	case PeerReception:
		return c.receiveAsPeer()
	case PeerApproval:
		return c.approveAsPeer()
	}
	return answer{status: http.StatusNotFound}
}

// write sends an answer.
func (c *call) write(a answer) {
	c.entry.Status, c.entry.BytesOut = a.status, len(a.body)
	if a.kind != "" {
		c.w.Header().Set("Content-Type", a.kind)
	}
	c.w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	// Clients set their clock by it, so that it is of the simulated one.
	c.w.Header().Set("Date", c.now.UTC().Format(http.TimeFormat))
	c.w.WriteHeader(a.status)
	_, _ = c.w.Write(a.body) // whoever has gone is not told
}

// reply is an answer in JSON.
func reply(status int, v any) answer {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what is encoded is made here, of what can be
	return answer{status: status, kind: "application/json; charset=utf-8", body: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}
}

// fileName finds the name of the file in the head of an upload.
var fileName = regexp.MustCompile(`(?i)filename="?([^";\r\n]*)`)

// findKey finds which document the call is about: that of the question, or that
// of the file name at the head of the upload.
func (c *call) findKey() {
	c.findQueryKey()
	if c.key.encf != "" || c.service.method() != http.MethodPost || c.r.Body == nil {
		return
	}
	head := bufio.NewReaderSize(c.body, 1<<10)
	c.body = head
	start, _ := head.Peek(512) // what there is of it
	if found := fileName.FindSubmatch(start); found != nil {
		name := strings.TrimSuffix(string(found[1]), ".xml")
		if cut := len(name) - 13; cut > 0 {
			c.key.rnc, c.key.encf = name[:cut], name[cut:]
			c.countAttempt()
		}
	}
}

// countAttempt tells which post of its number this one is.
func (c *call) countAttempt() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.key.attempt = 1
	if e := c.s.state.Environments[c.amb]; e != nil {
		if n := e.Numbers[c.key.rnc+c.key.encf]; n != nil {
			c.key.attempt = n.Posts + 1
		}
	}
	if p := c.s.state.Peers[c.peer]; p != nil && c.service == PeerReception {
		c.key.attempt = p.Posts[c.key.rnc+c.key.encf] + 1
	}
}

// findQueryKey finds which document a question is about.
func (c *call) findQueryKey() {
	if c.key != (docKey{}) {
		return
	}
	switch c.service {
	case Result:
		c.key.trackID = c.query["trackid"]
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if d := c.s.state.Environments[c.amb].Documents[c.key.trackID]; d != nil {
			c.key.rnc, c.key.encf = d.Facts.RNC, d.Facts.ENCF
		}
	case StateLookup:
		c.key.rnc, c.key.encf = c.query["rncemisor"], c.query["ncfelectronico"]
	case TrackIDs, Stamp, StampFC:
		c.key.rnc, c.key.encf = c.query["rncemisor"], c.query["encf"]
	case RFCELookup:
		c.key.rnc, c.key.encf = c.query["rnc_emisor"], c.query["encf"]
	case Directory:
		c.key.rnc = c.query["rnc"]
	default: // what is uploaded, or about no document
	}
}

// asked remembers that somebody wants to know what became of a document. A
// question that is not answered is none.
func (c *call) asked() {
	c.findQueryKey()
	if c.key.encf == "" || c.spoils() {
		return
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if n := c.s.state.Environments[c.amb].Numbers[c.key.rnc+c.key.encf]; n != nil {
		n.Asked = true
	}
}
