package api

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// maxInbound is the largest message that a source may pass on.
const maxInbound = 256 << 10

var errSignature = unauthorized(`Signature realm="fh-inbound"`,
	"the message is not signed by this source, or not within five minutes of now")

// receivedResource is the answer to an inbound message.
type receivedResource struct {
	EventID   string `json:"event_id"`
	Duplicate bool   `json:"duplicate"`
}

// receiveInbound takes in a message of a source. The signature over its bytes proves
// the source; nothing of the message is read before it is verified.
func (a *API) receiveInbound(x *exchange) error {
	id, ok := parseUUID(x.params["source_id"])
	if !ok || a.Environment == fiscal.Sandbox || a.Sources == nil || a.Inbox == nil {
		return notFound()
	}
	body, err := readBody(x.r, maxInbound)
	if err != nil {
		return err
	}
	if err := mediaType(x.r.Header); err != nil {
		return err
	}
	ctx, cancel := x.deadline()
	defer cancel()
	source, secrets, err := a.Sources.Find(ctx, a.Environment, id)
	if err != nil {
		return err
	}
	if webhook.Verify(x.r.Header, body, a.Now(), secrets...) != nil {
		return a.denied(x, errSignature)
	}
	if err := a.admitSource(x, source); err != nil {
		return err
	}
	message, err := readInbound(x.r.Header.Get(webhook.HeaderID), body)
	if err != nil {
		return err
	}
	message.Source = source
	received, err := a.Inbox.Receive(ctx, message)
	if err != nil {
		return err
	}
	return x.respondAs(http.StatusAccepted, receivedResource{received.EventID, received.Duplicate}, pipeline.Meta{RequestID: x.id})
}

// admitSource counts what a source passes on in a window of its own.
func (a *API) admitSource(x *exchange, source store.Source) error {
	x.authenticated, x.scope = true, source.Scope
	shown, ok := a.windows.take(x.r.Context(), "source "+source.ID, a.RateLimit)
	x.window, x.counted = shown, true
	if !ok {
		return rateLimited(shown.reset-a.Now().Unix(), "the limit of requests in this window is used up")
	}
	return nil
}

// readInbound reads a message. Members that we do not know are passed over here:
// others' gateways add their own.
func readInbound(id string, body []byte) (live.Inbound, error) {
	message := live.Inbound{MessageID: id}
	if strings.IndexFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		return message, badRequest(webhook.HeaderID+" has other than printable ASCII characters",
			fiscal.Problem{Field: webhook.HeaderID, Code: fiscal.CodeInvalidCharacters, Message: "only printable ASCII characters"})
	}
	document, err := strictjson.Parse(body)
	if err != nil {
		return message, err
	}
	var problems fiscal.Problems
	text := func(of strictjson.Node, path, name string) string {
		if n, ok := member(of, name); ok && n.Kind() == strictjson.String {
			return n.Text()
		}
		problems = append(problems, fiscal.Problem{Field: path + name, Code: fiscal.CodeRequired, Message: "want a string"})
		return ""
	}
	root, encoded := document.Root(), ""
	if data, ok := member(root, "data"); ok {
		message.ENCF = text(data, "data.", "encf")
		encoded = text(data, "data.", "xml_base64")
	} else {
		problems = append(problems, fiscal.Problem{Field: "data", Code: fiscal.CodeRequired, Message: "want an object"})
	}
	message.Kind = text(root, "", "type")
	if len(problems) > 0 {
		return message, badRequest("the message is not one of those that a source passes on; see details", problems...)
	}
	if message.XML, err = base64.StdEncoding.DecodeString(encoded); err != nil {
		return message, invalid(fiscal.Problem{Field: "data.xml_base64", Code: fiscal.CodeInvalidFormat, Message: "want base64"})
	}
	return message, nil
}

// member finds a member of an object.
func member(n strictjson.Node, name string) (strictjson.Node, bool) {
	for found, value := range n.Members() {
		if found == name {
			return value, true
		}
	}
	return strictjson.Node{}, false
}
