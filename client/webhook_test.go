package client

import (
	"net/http"
	"testing"
	"time"
)

const hook = `{"id":"` + someID + `","url":"https://erp.example.com/","events":["*"],"description":null,"status":"enabled","secret":"whsec_x",` +
	`"created_at":"2026-11-14T12:00:00Z","updated_at":"2026-11-14T12:00:00Z"}`

func one(data string) string {
	return `{"data":` + data + `,"meta":{"request_id":"req_1","next_cursor":null}}`
}

func TestWebhookEndpoints(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil,
		reply(http.StatusCreated, one(hook), "Location", "/v1/x", "Idempotency-Replayed", "true"),
		reply(http.StatusOK, one(hook)),
		reply(http.StatusOK, one(`[`+hook+`]`)),
		reply(http.StatusOK, one(hook)),
		reply(http.StatusOK, one(hook)),
		reply(http.StatusOK, one(`{"delivered":false,"http_status":null,"error":"dns"}`)),
		reply(http.StatusAccepted, one(`{"events":3}`)),
		reply(http.StatusAccepted, one(`{"events":1}`)),
		reply(http.StatusAccepted, one(`{"events":0}`)),
		reply(http.StatusOK, one(`[{"event_id":"evt_1","type":"webhook.test","attempt":1,"attempted_at":"2026-11-14T12:00:00Z","next_attempt_at":null,"http_status":500,"error":"status_500"}]`)),
		reply(http.StatusNoContent, ""))
	ctx := testContext(t)
	made, err := c.CreateWebhookEndpoint(ctx, "k", WebhookEndpointRequest{URL: "https://erp.example.com/", Events: []EventType{AllEvents}})
	if err != nil || made.Data.Secret != "whsec_x" || !made.Meta.Replayed || made.Meta.Location != "/v1/x" || made.Data.Status != EndpointEnabled {
		t.Errorf("create: %+v, %v", made, err)
	}
	if got, err := c.WebhookEndpoint(ctx, someID); err != nil || got.Data.ID != someID || got.Data.Description != "" {
		t.Errorf("read: %+v, %v", got, err)
	}
	if got, err := c.ListWebhookEndpoints(ctx, PageOptions{Cursor: "c", Limit: 1}); err != nil || len(got.Data) != 1 || got.Meta.NextCursor != "" {
		t.Errorf("list: %+v, %v", got, err)
	}
	if got, err := c.RotateWebhookSecret(ctx, someID); err != nil || got.Data.Secret != "whsec_x" {
		t.Errorf("rotate: %+v, %v", got, err)
	}
	if got, err := c.EnableWebhookEndpoint(ctx, someID); err != nil || got.Data.ID != someID {
		t.Errorf("enable: %+v, %v", got, err)
	}
	if got, err := c.TestWebhookEndpoint(ctx, someID); err != nil || got.Data != (WebhookTest{Error: "dns"}) {
		t.Errorf("test: %+v, %v", got, err)
	}
	for _, r := range []Replay{{EventID: "evt_1"}, {Since: time.Date(2026, 11, 14, 12, 0, 0, 0, time.UTC)}, {Failed: true}} {
		if got, err := c.ReplayWebhookEvents(ctx, someID, r); err != nil || got.Meta.RequestID == "" {
			t.Errorf("replay %+v: %+v, %v", r, got, err)
		}
	}
	if got, err := c.WebhookDeliveries(ctx, someID, PageOptions{}); err != nil || got.Data[0].HTTPStatus != 500 || !got.Data[0].NextAttemptAt.IsZero() {
		t.Errorf("deliveries: %+v, %v", got, err)
	}
	if err := c.DeleteWebhookEndpoint(ctx, someID); err != nil {
		t.Errorf("delete: %v", err)
	}
	base := "/v1/taxpayers/" + taxpayer + "/webhook-endpoints"
	for i, want := range []string{
		"POST " + base + ` {"url":"https://erp.example.com/","events":["*"]}`,
		"GET " + base + "/" + someID + " ",
		"GET " + base + "?cursor=c&limit=1 ",
		"POST " + base + "/" + someID + "/rotate-secret ",
		"POST " + base + "/" + someID + "/enable ",
		"POST " + base + "/" + someID + "/test ",
		"POST " + base + "/" + someID + `/replay {"event_id":"evt_1"}`,
		"POST " + base + "/" + someID + `/replay {"since":"2026-11-14T12:00:00Z"}`,
		"POST " + base + "/" + someID + `/replay {"failed":true}`,
		"GET " + base + "/" + someID + "/deliveries ",
		"DELETE " + base + "/" + someID + " ",
	} {
		if got := s.seen[i]; got.method+" "+got.uri+" "+got.body != want || (got.header.Get("Idempotency-Key") != "") != (i == 0) {
			t.Errorf("request %d: %s %s %s, want %s", i+1, got.method, got.uri, got.body, want)
		}
	}
}

func TestWebhookEndpointsRefuseBeforeSending(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, reply(http.StatusOK, one(hook)))
	if _, err := c.CreateWebhookEndpoint(testContext(t), "", WebhookEndpointRequest{}); err == nil {
		t.Error("an empty key was accepted")
	}
	if _, err := c.WebhookEndpoint(testContext(t), ".."); err == nil {
		t.Error("a path was accepted as an id")
	}
	if err := c.DeleteWebhookEndpoint(testContext(t), ""); err == nil || len(s.seen) != 0 {
		t.Errorf("an empty id was accepted: %v", err)
	}
}

// A rotation is retried only when the service certainly did not execute it.
func TestRotationIsRetriedOnlyAfterARefusal(t *testing.T) {
	t.Parallel()
	good := reply(http.StatusOK, one(hook))
	for name, tt := range map[string]struct {
		first http.HandlerFunc
		sent  int
	}{
		"a lost answer":      {drop, 1},
		"an unknown outcome": {reply(503, failure(CodeServiceUnavailable), "Retry-After", "1"), 1},
		"too many requests":  {reply(429, failure(CodeRateLimited), "Retry-After", "1"), 2},
	} {
		c, s := start(t, nil, tt.first, good)
		_, err := c.RotateWebhookSecret(testContext(t), someID)
		if s.sent() != tt.sent || (err == nil) != (tt.sent == 2) {
			t.Errorf("%s: %v after %d requests", name, err, s.sent())
		}
	}
}

func (s *script) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}
