package simulator

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A call is one request to a simulated service.
type call struct {
	target
	s      *Simulator
	w      http.ResponseWriter
	r      *http.Request
	body   io.Reader
	config *Config
	now    time.Time // the servers' time
	query  map[string]string
	key    documentKey
	fault  *Action
	person string // the person in the token
	entry  RequestView
	store  bool // store the uploaded document
}

// A response is the response of a service, before a fault changes it.
type response struct {
	status      int
	contentType string
	body        []byte
}

// Handler serves the simulated hosts.
func (s *Simulator) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Simulator) serve(w http.ResponseWriter, r *http.Request) {
	c := &call{s: s, w: w, r: r, body: r.Body, store: true, now: s.Now()}
	var ok bool
	if c.target, ok = route(r); !ok {
		s.serveNotFound(c)
		return
	}
	done := s.begin(c)
	defer done()
	c.query = queryOf(r.URL)
	if method := c.service.method(); method != "" && r.Method != method {
		c.entry.Class = "wrong method"
		c.write(response{status: http.StatusMethodNotAllowed})
		return
	}
	if c.amb == CertECF && c.service.absent() && !c.config.CertECFFull {
		c.markLookedUp()
		c.entry.Class = "absent service"
		c.write(response{status: http.StatusNotFound})
		return
	}
	s.applyRules(c)
	if c.applyEarlyFault() {
		return
	}
	if c.service.needsToken() && !c.authorized() {
		c.entry.Class = "no token"
		c.write(response{status: http.StatusUnauthorized})
		return
	}
	a := c.dispatch()
	if c.sleepLatency() != nil {
		c.entry.Class = "given up"
		return
	}
	c.writeWithFault(a)
}

// serveNotFound answers a request to an unknown path, and adds it to the journal.
func (s *Simulator) serveNotFound(c *call) {
	s.mu.Lock()
	c.config = s.config
	c.entry = newRequestView(c, s.clock.now())
	c.entry.Class, c.entry.Status = "no such service", http.StatusNotFound
	s.journal.add(c.entry, c.config.journalSize())
	s.mu.Unlock()
	http.NotFound(c.w, c.r)
}

// begin starts a call: it counts the call and sets its configuration and time. The
// caller calls the function that it returns at the end of the call.
func (s *Simulator) begin(c *call) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.config = s.config
	start := s.clock.now()
	c.now = start.Add(time.Duration(c.config.ClockSkew))
	host := c.host + c.peer
	s.inflight[host]++
	if limit := cmp.Or(c.config.MaxParallel, defaultParallel); limit >= 0 && s.inflight[host] > limit {
		s.addViolationLocked(c, ParallelCalls, strconv.Itoa(s.inflight[host])+" calls to "+host+" at once")
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

// sleepLatency waits for the simulated latency. It does so after the work, because
// the latency depends on the document.
func (c *call) sleepLatency() error {
	if c.s.clock.isFrozen() {
		return nil
	}
	if c.config.Latency != nil && c.config.Latency.Max == 0 {
		return nil
	}
	d := c.config.latency(newRandom(c.s.seed(), "latency", c.amb, string(c.service), c.key.rnc, c.key.encf, c.key.trackID, strconv.Itoa(c.key.attempt)))
	return c.s.clock.sleep(c.r.Context(), d)
}

func (s *Simulator) seed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Seed
}

// dispatch calls the service and returns its response.
func (c *call) dispatch() response {
	switch c.service {
	case Seed:
		return c.serveSeed()
	case Token:
		return c.serveToken()
	case Reception:
		return c.serveReception()
	case RFCE:
		return c.serveSummaryReception()
	case Result:
		return c.serveResult()
	case StateLookup:
		return c.serveState()
	case TrackIDs:
		return c.serveTrackIDs()
	case RFCELookup:
		return c.serveSummaryState()
	case Directory:
		return c.serveDirectory()
	case Approval:
		return c.serveApproval()
	case Annulment:
		return c.serveAnnulment()
	case Stamp, StampFC:
		return c.serveStamp()
	case Status:
		return c.serveStatus()
	case Emulator:
		return c.serveEmulator()
	case PeerSeed:
		return c.servePeerSeed()
	case PeerToken:
		return c.servePeerToken()
	case PeerReception:
		return c.servePeerReception()
	case PeerApproval:
		return c.servePeerApproval()
	}
	return response{status: http.StatusNotFound}
}

// write sends a response.
func (c *call) write(a response) {
	c.entry.Status, c.entry.BytesOut = a.status, len(a.body)
	if a.contentType != "" {
		c.w.Header().Set("Content-Type", a.contentType)
	}
	c.w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	// Clients compare their clock with this header, so it has the simulated time.
	c.w.Header().Set("Date", c.now.UTC().Format(http.TimeFormat))
	c.w.WriteHeader(a.status)
	_, _ = c.w.Write(a.body) // the client may have gone
}

// jsonResponse returns a response with a JSON body.
func jsonResponse(status int, v any) response {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // the values come from this package and can be encoded
	return response{status: status, contentType: "application/json; charset=utf-8", body: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}
}

// fileName matches the file name at the start of an upload.
var fileName = regexp.MustCompile(`(?i)filename="?([^";\r\n]*)`)

// findKey finds out which document the call is about: from the query, or from the file
// name at the start of the upload.
func (c *call) findKey() {
	c.findQueryKey()
	if c.key.encf != "" || c.service.method() != http.MethodPost || c.r.Body == nil {
		return
	}
	head := bufio.NewReaderSize(c.body, 1<<10)
	c.body = head
	start, _ := head.Peek(512) // a short body is no error
	if found := fileName.FindSubmatch(start); found != nil {
		name := strings.TrimSuffix(string(found[1]), ".xml")
		if cut := len(name) - 13; cut > 0 {
			c.key.rnc, c.key.encf = name[:cut], name[cut:]
			c.countAttempt()
		}
	}
}

// countAttempt sets which post of its number this call is.
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

// findQueryKey finds out from the query which document a look-up is about.
func (c *call) findQueryKey() {
	if c.key != (documentKey{}) {
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
	default: // an upload, or a call about no document
	}
}

// markLookedUp remembers that the client has looked a document up. A look-up whose
// response is lost does not count.
func (c *call) markLookedUp() {
	c.findQueryKey()
	if c.key.encf == "" || c.losesResponse() {
		return
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if n := c.s.state.Environments[c.amb].Numbers[c.key.rnc+c.key.encf]; n != nil {
		n.Asked = true
	}
}
