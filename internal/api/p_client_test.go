package api_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
)

func (w *world) goClient() *client.Client {
	w.t.Helper()
	c, err := client.New(w.base, w.key, w.taxpayer, client.WithHTTPClient(w.client))
	w.must(err)
	return c
}

// The Go client manages endpoints and follows events of the service itself.
func TestW08W10TheGoClient(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		c, ctx := w.goClient(), t.Context()
		request := client.WebhookEndpointRequest{URL: "https://erp.example.com/", Events: []string{"taxpayer.contingency_started"}, Description: "ERP"}
		made, err := c.CreateWebhookEndpoint(ctx, "k", request)
		w.must(err)
		again, err := c.CreateWebhookEndpoint(ctx, "k", request)
		w.must(err)
		id := made.Data.ID
		if again.Data.Secret != made.Data.Secret || made.Data.Secret == "" || !again.Meta.Replayed || made.Meta.Replayed {
			t.Errorf("created %+v, and %+v", made, again)
		}
		page, err := c.ListWebhookEndpoints(ctx, client.PageOptions{Limit: 1})
		if w.must(err); len(page.Data) != 1 || page.Data[0].ID != id || page.Data[0].Description != "ERP" || page.Data[0].Secret != "" {
			t.Errorf("listed %+v", page)
		}
		rotated, err := c.RotateWebhookSecret(ctx, id)
		if w.must(err); rotated.Data.Secret == made.Data.Secret || rotated.Data.Secret == "" {
			t.Errorf("rotated %+v", rotated)
		}
		if test, err := c.TestWebhookEndpoint(ctx, id); err != nil || test.Data != (client.WebhookTest{Delivered: true, HTTPStatus: 204}) {
			t.Errorf("tested %+v, %v", test, err)
		}
		if log, err := c.WebhookDeliveries(ctx, id, client.PageOptions{}); err != nil || len(log.Data) != 1 || log.Data[0].Type != "webhook.test" {
			t.Errorf("log %+v, %v", log, err)
		}
		told := w.tell("taxpayer.contingency_started")
		for want, r := range map[int64]client.Replay{1: {EventID: told.ID}, 0: {Since: w.clock.now().Add(time.Second)}} {
			if n, err := c.ReplayWebhookEvents(ctx, id, r); err != nil || n.Data != want {
				t.Errorf("replayed %+v, %v, want %d", n, err, want)
			}
		}
		if e, err := c.EnableWebhookEndpoint(ctx, id); err != nil || e.Data.Status != client.EndpointEnabled {
			t.Errorf("enabled %+v, %v", e, err)
		}
		w.must(c.DeleteWebhookEndpoint(ctx, id))
		var refusal *client.Error
		if _, err := c.WebhookEndpoint(ctx, id); !errors.As(err, &refusal) || refusal.Code != client.CodeNotFound {
			t.Errorf("after the deletion: %v", err)
		}
	})
}

func TestW10TheGoClientFollowsEvents(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		want := []string{w.tell("taxpayer.contingency_started").ID, w.tell("taxpayer.contingency_ended").ID}
		got := make(chan string, 10)
		ended := make(chan error, 1)
		go func() {
			for page, err := range w.goClient().FollowEvents(ctx, client.EventOptions{Limit: 1}) {
				if err != nil {
					ended <- err
					return
				}
				got <- page.Data[0].ID
			}
		}()
		for i := range want {
			if id := soon(t, "an event", got); id != want[i] {
				t.Errorf("event %d is %s, want %s", i, id, want[i])
			}
		}
		w.awaitWaiting(t, 1)
		late := w.tell("taxpayer.contingency_started").ID
		if id := soon(t, "a late event", got); id != late {
			t.Errorf("the late event is %s, want %s", id, late)
		}
		cancel()
		if err := soon(t, "the end", ended); !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestW10TheGoClientWaitsForTheVerdict(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		made := w.unsettled()
		got := make(chan client.Response[client.Invoice], 1)
		go func() {
			r, err := w.goClient().Invoice(t.Context(), made.ID, client.WithWait(20*time.Second))
			if err != nil {
				t.Error(err)
			}
			got <- r
		}()
		w.awaitWaiting(t, 1)
		w.judge(made.ID)
		if r := soon(t, "the verdict", got); r.Data.Status != client.Accepted {
			t.Errorf("%+v", r)
		}
		direct, err := w.goClient().CreateInvoiceJSON(t.Context(), "k", body("B"), client.WithWait(time.Second))
		if w.must(err); direct.Data.Status != client.Accepted {
			t.Errorf("%+v", direct)
		}
	})
}
