package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

const (
	webhooksAddress = "/console/webhooks"
	attemptRows     = 30             // of one page
	endpointRows    = 100            // of the list
	secretOverlap   = 24 * time.Hour // how long the old secret signs too after a rotation
)

func (c *Console) webhookPages() []page {
	see, act := integrators(), integrationEditors()
	one, endpoint := webhooksAddress+"/{id}", (*request).endpoint
	return []page{
		get(webhooksAddress, see, c.showWebhooks),
		post(webhooksAddress, see, act, c.createWebhook),
		get(one, see, on(endpoint, c.showWebhook)),
		live(one+"/attempts", see, updates("attempts", (*request).newestAttempts)),
		post(one+"/test", see, act, on(endpoint, c.testWebhook)),
		post(one+"/replay", see, act, on(endpoint, c.replayWebhook)),
		post(one+"/rotate", see, act, on(endpoint, c.rotateWebhook)),
		post(one+"/enable", see, act, on(endpoint, c.enableWebhook)),
		post(one+"/delete", see, act, on(endpoint, c.deleteWebhook)),
	}
}

// webhooksView is the data of the page of all endpoints.
type webhooksView struct {
	Endpoints []endpointView
	More      bool // there are more endpoints than the page shows
	Sandbox   bool // the environment sends no events
	Chosen    string
	Form      *form
	Taxpayers []option
	Kinds     []option
}

// endpointView is an endpoint with its state in words.
type endpointView struct {
	store.Endpoint
	TaxpayerName string
	Tone         tone
	StateKey     string
	Last         *attemptView // nil: nothing was sent yet
}

// Disabled reports whether the endpoint gets no events.
func (v endpointView) Disabled() bool { return v.Status == store.EndpointDisabled }

// Failing reports whether the last attempts failed.
func (v endpointView) Failing() bool { return v.Failures > 0 }

// All reports whether the endpoint gets every kind of event.
func (v endpointView) All() bool { return slices.Contains(v.Kinds, event.All) }

// Gone reports whether the endpoint is disabled because it answered that it is gone.
func (v endpointView) Gone() bool { return v.DisabledReason == store.DisabledGone }

func newEndpointView(e store.Endpoint, name string) endpointView {
	v := endpointView{Endpoint: e, TaxpayerName: name, Tone: good, StateKey: "webhooks.state_enabled"}
	switch {
	case e.Status == store.EndpointDisabled:
		v.Tone, v.StateKey = bad, "webhooks.state_disabled"
	case e.Failures > 0:
		v.Tone, v.StateKey = warn, "webhooks.state_failing"
	}
	return v
}

// attemptView is an attempt to deliver an event, with its result in words.
type attemptView struct {
	store.DeliveryAttempt
	Result string // in words
}

// OK reports whether the endpoint accepted the event.
func (v attemptView) OK() bool { return v.Error == "" }

// Tone returns how good or bad the result was.
func (v attemptView) Tone() string {
	if v.OK() {
		return string(good)
	}
	return string(bad)
}

// Test reports whether the event was a test.
func (v attemptView) Test() bool { return v.Kind == event.WebhookTest }

// Millis returns the duration in milliseconds.
func (v attemptView) Millis() string { return millis(v.Took) }

// AnswerText returns the beginning of the answer as a text.
func (v attemptView) AnswerText() string {
	if !utf8.Valid(v.Answer) {
		return fmt.Sprintf("%q", v.Answer)
	}
	return strings.TrimSpace(string(v.Answer))
}

// classTexts are the texts of the failures of an attempt.
var classTexts = map[string]string{
	"refused_address": "webhooks.class_refused", "dns": "webhooks.class_dns", "connect": "webhooks.class_connect", "tls": "webhooks.class_tls",
	"timeout": "webhooks.class_timeout", "closed": "webhooks.class_closed", "malformed_answer": "webhooks.class_malformed", "invalid_message": "webhooks.class_message",
}

func (x *request) newAttemptView(a store.DeliveryAttempt) attemptView {
	v := attemptView{DeliveryAttempt: a}
	switch {
	case a.Error == "":
		v.Result = x.text("webhooks.delivered", a.HTTPStatus)
	case a.HTTPStatus != 0:
		v.Result = x.text("webhooks.answered", a.HTTPStatus)
	default:
		v.Result = x.text(cmp.Or(classTexts[a.Error], "webhooks.class_other"))
	}
	return v
}

func (c *Console) showWebhooks(x *request) error {
	return x.renderWebhooks(http.StatusOK, webhooksView{Form: newForm(nil)})
}

// renderWebhooks renders the list. The caller sets the form.
func (x *request) renderWebhooks(status int, v webhooksView) error {
	v.Chosen, v.Sandbox = x.URL.Query().Get("taxpayer"), x.console.o.Environment == fiscal.Sandbox
	var names map[string]string
	var err error
	if v.Taxpayers, names, err = x.taxpayerOptions(); err != nil {
		return err
	}
	all, err := x.console.o.Store.AllEndpoints(x.Context())
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(all) {
		if x.viewer.Check(e.Scope) != nil || v.Chosen != "" && e.TaxpayerID != v.Chosen {
			continue
		}
		if len(v.Endpoints) == endpointRows {
			v.More = true
			break
		}
		one := newEndpointView(e, names[e.TaxpayerID])
		last, err := x.console.o.Store.DeliveryLog(x.Context(), e.Scope, e.ID, "", 1)
		if err != nil {
			return err
		}
		if len(last) > 0 {
			shown := x.newAttemptView(last[0])
			one.Last = &shown
		}
		v.Endpoints = append(v.Endpoints, one)
	}
	v.Kinds = []option{{event.All, x.text("webhooks.every_event")}}
	for _, kind := range event.Kinds() {
		v.Kinds = append(v.Kinds, option{kind, kind})
	}
	return x.renderStatus(status, "webhooks", x.text("nav.webhooks"), v)
}

// createWebhook adds an endpoint, and shows its secret once in the answer itself.
func (c *Console) createWebhook(x *request) error {
	f := x.sentForm()
	token, err := x.formToken()
	if err != nil {
		return err
	}
	scope, err := x.viewer.Scope(f.Value("taxpayer"))
	if err != nil {
		f.fail("taxpayer", x.text("keys.wrong_taxpayer"))
	}
	var kinds []string
	for _, value := range x.PostForm["events"] {
		for kind := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ' ' || r == ',' }) {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	spec := notify.EndpointSpec{Scope: scope, URL: f.Value("url"), Kinds: kinds, Form: token}
	var made notify.Created
	if f.ok() {
		made, err = c.o.Endpoints.Create(x.Context(), spec, notify.Intent{})
	}
	var problems fiscal.Problems
	var used *store.FormUsedError
	switch {
	case !f.ok():
	case errors.As(err, &problems):
		x.failWebhook(f, problems)
	case errors.As(err, &used):
		return x.renderUsedWebhook(used.ID)
	case errors.Is(err, store.ErrTooManyEndpoints):
		f.fail("", x.text("webhooks.too_many", store.MaxEndpoints))
	case errors.Is(err, notify.ErrSandbox):
		f.fail("", x.text("webhooks.sandbox_text"))
	case errors.Is(err, store.ErrNotFound):
		f.fail("taxpayer", x.text("keys.wrong_taxpayer"))
	case err != nil:
		return err
	default:
		return x.renderWebhook(http.StatusCreated, made.Endpoint, webhookDetail{Secret: made.Secret.Reveal()})
	}
	return x.renderWebhooks(http.StatusUnprocessableEntity, webhooksView{Form: f})
}

// failWebhook records the problems of a new endpoint at their fields.
func (x *request) failWebhook(f *form, problems fiscal.Problems) {
	for _, p := range problems {
		name, _, _ := strings.Cut(p.Field, ".")
		if f.Error(name) != "" {
			continue
		}
		switch name {
		case "url":
			f.fail("url", x.text("webhooks.wrong_url"))
		case "events":
			f.fail("events", x.text("webhooks.wrong_events"))
		default:
			f.fail(name, p.Message.In(x.language))
		}
	}
}

// renderUsedWebhook answers a form that was sent before.
func (x *request) renderUsedWebhook(id string) error {
	e, err := x.console.o.Store.AnyEndpoint(x.Context(), id)
	if err != nil {
		return err
	}
	return x.renderWebhook(http.StatusConflict, e, webhookDetail{Used: true})
}

// webhookDetail is the data of the page of one endpoint.
type webhookDetail struct {
	Endpoint endpointView
	Attempts attemptsView
	Live     any    // the attempts, which update themselves; nil on an older page
	Secret   string // shown once
	Used     bool   // the form was sent before
	Form     *form  // of the replay
	Tested   *attemptView
	Replayed *replayView // nil without a replay
}

// replayView is how many events a replay sends.
type replayView struct{ store.ReplayPlan }

// Count returns how many events it sends.
func (v replayView) Count() int { return int(v.Events) }

// attemptsView is a page of attempts.
type attemptsView struct {
	EndpointID string
	Attempts   []attemptView
	Newest     string
	Older      string
	MayReplay  bool
}

// endpoint returns the endpoint of the address, if the person sees it.
func (x *request) endpoint() (store.Endpoint, error) {
	e, err := x.console.o.Endpoints.Get(x.Context(), x.PathValue("id"))
	if err != nil {
		return store.Endpoint{}, err
	}
	return e, x.viewer.Check(e.Scope)
}

func (c *Console) showWebhook(x *request, e store.Endpoint) error {
	return x.renderWebhook(http.StatusOK, e, webhookDetail{})
}

func (x *request) renderWebhook(status int, e store.Endpoint, v webhookDetail) error {
	_, names, err := x.taxpayerOptions()
	if err != nil {
		return err
	}
	query := x.URL.Query()
	v.Endpoint = newEndpointView(e, names[e.TaxpayerID])
	if v.Form == nil {
		v.Form = newForm(nil)
	}
	before := query.Get("before")
	if v.Attempts, err = x.attempts(e, before); err != nil {
		return err
	}
	if before == "" {
		element, err := x.live(webhooksAddress+"/"+e.ID+"/attempts", "attempts", v.Attempts)
		if err != nil {
			return err
		}
		v.Live = element
	}
	if query.Get("tested") != "" {
		for _, a := range v.Attempts.Attempts {
			if a.Test() {
				v.Tested = &a
				break
			}
		}
	}
	count, atLeast := strings.CutSuffix(query.Get("replayed"), "+")
	if n, err := strconv.ParseInt(count, 10, 32); err == nil && n >= 0 {
		v.Replayed = &replayView{store.ReplayPlan{Events: n, AtLeast: atLeast}}
	}
	return x.renderStatus(status, "webhook", x.text("webhooks.one"), v)
}

// attempts reads a page of the log of an endpoint.
func (x *request) attempts(e store.Endpoint, before string) (attemptsView, error) {
	address := webhooksAddress + "/" + e.ID
	v := attemptsView{EndpointID: e.ID, MayReplay: x.console.mayUse(x.viewer.Role(), http.MethodPost, webhooksAddress+"/{id}/replay")}
	all, err := x.console.o.Endpoints.Log(x.Context(), e.Scope, e.ID, before, attemptRows+1)
	if err != nil {
		return v, err
	}
	if before != "" {
		v.Newest = address
	}
	if len(all) > attemptRows {
		all = all[:attemptRows]
		v.Older = address + "?before=" + all[attemptRows-1].ID
	}
	for _, a := range all {
		v.Attempts = append(v.Attempts, x.newAttemptView(a))
	}
	return v, nil
}

// newestAttempts reads the first page of the log of the endpoint of the address.
func (x *request) newestAttempts() (attemptsView, error) {
	e, err := x.endpoint()
	if err != nil {
		return attemptsView{}, err
	}
	return x.attempts(e, "")
}

// testWebhook sends a test event now. The page shows the attempt, which is in the log.
func (c *Console) testWebhook(x *request, e store.Endpoint) error {
	if _, err := c.o.Endpoints.Test(x.Context(), e.Scope, e.ID); err != nil {
		return err
	}
	return x.redirect(webhooksAddress + "/" + e.ID + "?tested=1")
}

// replayWebhook sends events again: one event, those since a moment, or those that failed.
func (c *Console) replayWebhook(x *request, e store.Endpoint) error {
	f := x.sentForm()
	replay := notify.Replay{EventID: f.Value("event"), Failed: f.Value("failed") != ""}
	if replay.EventID == "" && !replay.Failed {
		since := x.momentField(f, "since", false)
		if f.ok() && since.IsZero() {
			f.fail("since", x.text("webhooks.no_since"))
		}
		replay.Since = &since
	}
	if !f.ok() {
		return x.renderWebhook(http.StatusUnprocessableEntity, e, webhookDetail{Form: f})
	}
	plan, err := c.o.Endpoints.Replay(x.Context(), e.Scope, e.ID, replay)
	if err != nil {
		return err
	}
	count := strconv.FormatInt(plan.Events, 10)
	if plan.AtLeast {
		count += "%2B"
	}
	return x.redirect(webhooksAddress + "/" + e.ID + "?replayed=" + count)
}

// rotateWebhook gives an endpoint a new secret, and shows it once.
func (c *Console) rotateWebhook(x *request, e store.Endpoint) error {
	token, err := x.formToken()
	if err != nil {
		return err
	}
	var secret webhook.Secret
	e, secret, err = c.o.Endpoints.RotateOnce(x.Context(), token, e.Scope, e.ID, secretOverlap)
	var used *store.FormUsedError
	if errors.As(err, &used) {
		return x.renderUsedWebhook(used.ID)
	}
	if err != nil {
		return err
	}
	return x.renderWebhook(http.StatusOK, e, webhookDetail{Secret: secret.Reveal()})
}

// enableWebhook sends events to a disabled endpoint again.
func (c *Console) enableWebhook(x *request, e store.Endpoint) error {
	if _, err := c.o.Endpoints.Enable(x.Context(), e.Scope, e.ID); err != nil {
		return err
	}
	return x.done(webhooksAddress+"/"+e.ID, "webhooks.enable")
}

// deleteWebhook deletes an endpoint.
func (c *Console) deleteWebhook(x *request, e store.Endpoint) error {
	if err := c.o.Endpoints.Delete(x.Context(), e.Scope, e.ID); err != nil {
		return err
	}
	return x.done(webhooksAddress, "webhooks.delete")
}
