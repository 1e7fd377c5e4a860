package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

func (e *env) goClient() *client.Client {
	e.t.Helper()
	c, err := client.New(e.base, e.key, e.taxpayer, client.WithHTTPClient(e.client))
	e.must(err)
	return c
}

// These tests use the Go client against the service.
func TestGoClientManagesEndpoints(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		c, ctx := e.goClient(), t.Context()
		request := client.WebhookEndpointRequest{URL: "https://erp.example.com/", Events: []client.EventType{client.EventTaxpayerContingencyStarted}, Description: "ERP"}
		made, err := c.CreateWebhookEndpoint(ctx, "k", request)
		e.must(err)
		again, err := c.CreateWebhookEndpoint(ctx, "k", request)
		e.must(err)
		id := made.Data.ID
		if again.Data.Secret != made.Data.Secret || made.Data.Secret == "" || !again.Meta.Replayed || made.Meta.Replayed {
			t.Errorf("created %+v, and %+v", made, again)
		}
		page, err := c.ListWebhookEndpoints(ctx, client.PageOptions{Limit: 1})
		if e.must(err); len(page.Data) != 1 || page.Data[0].ID != id || page.Data[0].Description != "ERP" || page.Data[0].Secret != "" {
			t.Errorf("listed %+v", page)
		}
		rotated, err := c.RotateWebhookSecret(ctx, id)
		if e.must(err); rotated.Data.Secret == made.Data.Secret || rotated.Data.Secret == "" {
			t.Errorf("rotated %+v", rotated)
		}
		if test, err := c.TestWebhookEndpoint(ctx, id); err != nil || test.Data != (client.WebhookTest{Delivered: true, HTTPStatus: 204}) {
			t.Errorf("tested %+v, %v", test, err)
		}
		if log, err := c.WebhookDeliveries(ctx, id, client.PageOptions{}); err != nil || len(log.Data) != 1 || log.Data[0].Type != "webhook.test" {
			t.Errorf("log %+v, %v", log, err)
		}
		added := e.addEvent("taxpayer.contingency_started")
		for want, r := range map[int64]client.Replay{1: {EventID: added.ID}, 0: {Since: e.clock.now().Add(time.Second)}} {
			if n, err := c.ReplayWebhookEvents(ctx, id, r); err != nil || n.Data != want {
				t.Errorf("replayed %+v, %v, want %d", n, err, want)
			}
		}
		if enabled, err := c.EnableWebhookEndpoint(ctx, id); err != nil || enabled.Data.Status != client.EndpointEnabled {
			t.Errorf("enabled %+v, %v", enabled, err)
		}
		e.must(c.DeleteWebhookEndpoint(ctx, id))
		var refusal *client.Error
		if _, err := c.WebhookEndpoint(ctx, id); !errors.As(err, &refusal) || refusal.Code != client.CodeNotFound {
			t.Errorf("after the deletion: %v", err)
		}
	})
}

func TestGoClientFollowsEvents(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		want := []string{e.addEvent("taxpayer.contingency_started").ID, e.addEvent("taxpayer.contingency_ended").ID}
		got := make(chan string, 10)
		ended := make(chan error, 1)
		go func() {
			for page, err := range e.goClient().FollowEvents(ctx, client.EventOptions{Limit: 1}) {
				if err != nil {
					ended <- err
					return
				}
				got <- page.Data[0].ID
			}
		}()
		for i := range want {
			if id := receive(t, "an event", got); id != want[i] {
				t.Errorf("event %d is %s, want %s", i, id, want[i])
			}
		}
		e.awaitWaits(t, 1)
		late := e.addEvent("taxpayer.contingency_started").ID
		if id := receive(t, "a late event", got); id != late {
			t.Errorf("the late event is %s, want %s", id, late)
		}
		cancel()
		if err := receive(t, "the end", ended); !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestGoClientWaitsForTheVerdict(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		made := e.createPending()
		got := make(chan client.Response[client.Invoice], 1)
		go func() {
			r, err := e.goClient().Invoice(t.Context(), made.ID, client.WithWait(20*time.Second))
			if err != nil {
				t.Error(err)
			}
			got <- r
		}()
		e.awaitWaits(t, 1)
		e.awaitVerdict(made.ID)
		if r := receive(t, "the verdict", got); r.Data.Status != client.Accepted {
			t.Errorf("%+v", r)
		}
		direct, err := e.goClient().CreateInvoiceJSON(t.Context(), "k", invoiceBody("B"), client.WithWait(time.Second))
		if e.must(err); direct.Data.Status != client.Accepted {
			t.Errorf("%+v", direct)
		}
	})
}

// Every kind of event and every scenario that the service has is one of the client's.
func TestGoClientKnowsEveryEvent(t *testing.T) {
	t.Parallel()
	for _, kind := range event.Kinds() {
		var e client.Event
		must(t, json.Unmarshal([]byte(`{"id":"evt_1","type":"`+kind+`","data":{}}`), &e))
		if _, unknown := e.Data.(client.UnknownData); unknown || e.Data == nil {
			t.Errorf("the client does not know the kind %s", kind)
		}
	}
	for _, s := range []client.Scenario{
		client.ScenarioSubmitted, client.ScenarioProcessing, client.ScenarioAccepted, client.ScenarioAcceptedConditional,
		client.ScenarioRejected, client.ScenarioOutcomeUnknown, client.ScenarioDelivered, client.ScenarioValidationFailed,
	} {
		if _, ok := pipeline.ParseScenario(string(s)); !ok {
			t.Errorf("the service does not know the scenario %s", s)
		}
	}
}

// What the service signs is what the client verifies, also during a rotation.
func TestGoClientVerifiesWhatTheServiceSigns(t *testing.T) {
	t.Parallel()
	now, old, fresh := time.Now(), webhook.NewSecret(), webhook.NewSecret()
	body := []byte(`{"id":"evt_1","type":"webhook.test","data":{}}`)
	h := http.Header{}
	h.Set(webhook.HeaderID, "evt_1")
	h.Set(webhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(webhook.HeaderSignature, webhook.Sign("evt_1", now, body, fresh, old))
	for _, secret := range []webhook.Secret{old, fresh} {
		if e, err := client.VerifyWebhook(h, body, secret.Reveal()); err != nil || e.ID != "evt_1" {
			t.Errorf("%+v, %v", e, err)
		}
	}
}
