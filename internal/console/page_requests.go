package console

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	requestsAddress = "/console/requests"
	requestRows     = 50             // of one page
	errorsSince     = 24 * time.Hour // of the grouped errors
	errorRows       = 8              // groups of errors on the page
)

func (c *Console) requestPages() []page {
	return []page{
		get(requestsAddress, integrators(), c.showRequests),
		get(requestsAddress+"/{request_id}", integrators(), c.showRequest),
	}
}

// requestsView is the data of the page of API requests.
type requestsView struct {
	Form      *form
	Taxpayers []option
	Chosen    string
	Statuses  []option
	Codes     []option
	Filtered  bool
	Requests  []requestView
	Groups    []errorGroup
	Whole     int64  // errors of all groups
	Partial   bool   // the page looked at many requests and is not full
	Newest    string // address of the first page; empty on the first page
	Older     string // address of the next page; empty on the last page
}

// requestView is a request of the log.
type requestView struct {
	store.LoggedRequest
	TaxpayerName string
	Explanation  string // of the error code; empty without an error
	Action       string // what to do
}

// Tone returns how good or bad the answer was.
func (v requestView) Tone() string {
	switch {
	case v.Status >= 500:
		return string(bad)
	case v.Status >= 400:
		return string(warn)
	}
	return string(good)
}

// Millis returns the duration in milliseconds.
func (v requestView) Millis() string { return millis(v.Took) }

// Short returns the path without the beginning that all paths of a taxpayer share. Without
// a path it returns the route.
func (v requestView) Short() string {
	path := cmp.Or(v.Path, v.Route)
	for _, id := range []string{v.TaxpayerID, "{taxpayer_id}"} {
		if rest, ok := strings.CutPrefix(path, "/v1/taxpayers/"+id+"/"); ok && id != "" {
			return "…/" + rest
		}
	}
	return path
}

// Linked reports whether a page can have the request id in its address.
func (v requestView) Linked() bool { return safeSegment.MatchString(v.RequestID) }

// safeSegment is a part of an address that needs no escaping.
var safeSegment = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]*$`)

// millis writes a duration in milliseconds, like 41 ms.
func millis(d time.Duration) string {
	if d < 10*time.Millisecond {
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + "\u00a0ms"
	}
	return grouped(strconv.FormatInt(d.Milliseconds(), 10)) + "\u00a0ms"
}

// errorGroup is how many requests of a route ended with a code.
type errorGroup struct {
	store.RequestErrors
	Explanation string
	Address     string // page with these requests
}

// showRequests shows the log of API requests, the newest first. The filters are in the
// query string: q (a request id), taxpayer, status, code, credential, from and to; before
// is the cursor.
func (c *Console) showRequests(x *request) error {
	query := x.URL.Query()
	f := newForm(query)
	id := f.Value("q")
	if id != "" {
		if !safeSegment.MatchString(id) {
			f.fail("q", x.text("requests.wrong_id"))
		} else if found, err := c.o.Store.RequestByID(x.Context(), x.viewer.Within(), id); err != nil {
			return err
		} else if len(found) > 0 {
			return x.redirect(requestsAddress + "/" + id)
		}
	}
	v := requestsView{Form: f, Statuses: x.statusOptions(), Codes: x.codeOptions()}
	var names map[string]string
	var err error
	if v.Taxpayers, names, err = x.taxpayerOptions(); err != nil {
		return err
	}
	v.Chosen = f.Value("taxpayer")
	if v.Chosen == "" && !x.viewer.SeesAll() && len(v.Taxpayers) > 0 {
		v.Chosen = v.Taxpayers[0].Value
	}
	filter := x.requestFilter(f)
	v.Filtered = filter != store.RequestFilter{Before: filter.Before, Limit: filter.Limit} || f.Value("taxpayer") != "" || id != ""
	if f.ok() && id == "" && (v.Chosen != "" || x.viewer.SeesAll()) {
		if err := x.readRequests(&v, filter, names, query); err != nil {
			return err
		}
	}
	status := http.StatusOK
	if !f.ok() {
		status = http.StatusUnprocessableEntity
	}
	return x.renderStatus(status, "requests", x.text("requests.title"), v)
}

// requestFilter reads the filters of the query.
func (x *request) requestFilter(f *form) store.RequestFilter {
	filter := store.RequestFilter{
		Code: f.Value("code"), Route: f.Value("route"), Method: strings.ToUpper(f.Value("method")), Credential: f.Value("credential"),
		From: x.dayField(f, "from", 0), To: x.dayField(f, "to", 1), Before: f.Value("before"), Limit: requestRows,
	}
	switch status := f.Value("status"); status {
	case "":
	case "error":
		filter.Errors = true
	default:
		filter.Status, _ = strconv.Atoi(strings.TrimSuffix(status, "xx")) // another text filters nothing
	}
	return filter
}

// readRequests reads the page of requests and the groups of errors.
func (x *request) readRequests(v *requestsView, filter store.RequestFilter, names map[string]string, query url.Values) error {
	var found []store.LoggedRequest
	var groups []store.RequestErrors
	var next string
	var err error
	since := x.console.o.Now().Add(-errorsSince)
	if v.Chosen == "" {
		if found, next, err = x.console.o.Store.AllRequests(x.Context(), x.console.o.Environment, filter); err != nil {
			return err
		}
		groups, err = x.console.o.Store.AllRequestErrors(x.Context(), x.console.o.Environment, since)
	} else {
		scope, unseen := x.viewer.Scope(v.Chosen)
		if unseen != nil {
			return unseen
		}
		if found, next, err = x.console.o.Store.Requests(x.Context(), scope, filter); err != nil {
			return err
		}
		groups, err = x.console.o.Store.RequestErrors(x.Context(), scope, since)
	}
	if err != nil {
		return err
	}
	for _, q := range found {
		v.Requests = append(v.Requests, x.newRequestView(q, names))
	}
	for _, g := range groups {
		v.Whole += g.Requests
		if len(v.Groups) < errorRows {
			v.Groups = append(v.Groups, errorGroup{g, x.codeText(g.Code), linkWith(requestsAddress, url.Values{"taxpayer": query["taxpayer"]}, map[string]string{"code": g.Code, "route": g.Route})})
		}
	}
	if filter.Before != "" {
		v.Newest = linkWith(requestsAddress, query, map[string]string{"before": ""})
	}
	if next != "" {
		v.Older, v.Partial = linkWith(requestsAddress, query, map[string]string{"before": next}), len(found) < requestRows
	}
	return nil
}

func (x *request) newRequestView(q store.LoggedRequest, names map[string]string) requestView {
	v := requestView{LoggedRequest: q, TaxpayerName: names[q.TaxpayerID]}
	if q.Code != "" {
		v.Explanation, v.Action = x.codeText(q.Code), x.text(cmp.Or(codeActions[q.Code], "requests.do_unknown"))
	}
	return v
}

// linkWith returns an address with other values of the query. An empty value removes one.
func linkWith(address string, query url.Values, change map[string]string) string {
	changed := maps.Clone(query)
	for name, value := range change {
		changed.Del(name)
		if value != "" {
			changed.Set(name, value)
		}
	}
	if len(changed) == 0 {
		return address
	}
	return address + "?" + changed.Encode()
}

func (x *request) statusOptions() []option {
	return []option{
		{"", x.text("word.all")}, {"2xx", x.text("requests.status_ok")}, {"error", x.text("requests.status_errors")},
		{"4xx", x.text("requests.status_client")}, {"5xx", x.text("requests.status_server")},
	}
}

// The texts of the error codes of the API: what each of them means, and what to do.
var (
	codeTexts = map[string]string{
		"bad_request": "requests.code_bad_request", "invalid_json": "requests.code_invalid_json", "validation_error": "requests.code_validation_error",
		"unauthorized": "requests.code_unauthorized", "forbidden": "requests.code_forbidden", "not_found": "requests.code_not_found",
		"idempotency_mismatch": "requests.code_idempotency_mismatch", "external_id_conflict": "requests.code_external_id_conflict",
		"operational_readiness_failed": "requests.code_readiness", "artifact_not_ready": "requests.code_artifact_not_ready",
		"rate_limited": "requests.code_rate_limited", "service_unavailable": "requests.code_service_unavailable", "internal_error": "requests.code_internal_error",
	}
	codeActions = map[string]string{
		"bad_request": "requests.do_bad_request", "invalid_json": "requests.do_invalid_json", "validation_error": "requests.do_validation_error",
		"unauthorized": "requests.do_unauthorized", "forbidden": "requests.do_forbidden", "not_found": "requests.do_not_found",
		"idempotency_mismatch": "requests.do_idempotency_mismatch", "external_id_conflict": "requests.do_external_id_conflict",
		"operational_readiness_failed": "requests.do_readiness", "artifact_not_ready": "requests.do_artifact_not_ready",
		"rate_limited": "requests.do_rate_limited", "service_unavailable": "requests.do_service_unavailable", "internal_error": "requests.do_internal_error",
	}
)

// codeText says what an error code means.
func (x *request) codeText(code string) string {
	return x.text(cmp.Or(codeTexts[code], "requests.code_unknown"))
}

func (x *request) codeOptions() []option {
	all := []option{{"", x.text("word.all")}}
	for _, code := range slices.Sorted(maps.Keys(codeTexts)) {
		all = append(all, option{code, code})
	}
	return all
}

// requestDetail is the data of the page of one request.
type requestDetail struct {
	RequestID string
	Requests  []requestView // the newest first; a client may use an id twice
	Documents []store.FoundDocument
}

func (c *Console) showRequest(x *request) error {
	id, within := x.PathValue("request_id"), x.viewer.Within()
	found, err := c.o.Store.RequestByID(x.Context(), within, id)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errNotFound
	}
	_, names, err := x.taxpayerOptions()
	if err != nil {
		return err
	}
	v := requestDetail{RequestID: id}
	ids, err := c.o.Store.DocumentsOfRequest(x.Context(), c.o.Environment, id)
	if err != nil {
		return err
	}
	for _, q := range found {
		v.Requests = append(v.Requests, x.newRequestView(q, names))
		for part := range strings.SplitSeq(q.Path, "/") {
			if len(part) != len(q.ID) {
				continue // no id of a document
			}
			own := store.Within{Environment: c.o.Environment, Taxpayers: []string{q.TaxpayerID}}
			some, err := c.o.Store.DocumentsByID(x.Context(), own, part)
			if err != nil {
				return err
			}
			ids = append(ids, some...)
		}
	}
	slices.Sort(ids)
	if v.Documents, err = c.o.Store.FoundDocuments(x.Context(), within, slices.Compact(ids)); err != nil {
		return err
	}
	return x.render("request", x.text("requests.one", id), v)
}
