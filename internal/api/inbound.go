package api

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/envelope"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// maxInbound is the size in bytes of the largest message of a source.
const maxInbound = 256 << 10

var errSignature = unauthorized(`Signature realm="fh-inbound"`,
	lang.Messagef("the message needs a valid signature of this source, with a timestamp within five minutes of now",
		"el mensaje necesita una firma válida de esta fuente, con una hora a menos de cinco minutos de la actual"))

// receivedResource is the answer to an inbound message.
type receivedResource struct {
	EventID   string `json:"event_id"`
	Duplicate bool   `json:"duplicate"`
}

// receiveInbound receives a message that a source forwards. The signature over
// the bytes of the body authenticates the source; the body is not parsed before
// the signature is verified.
func (a *API) receiveInbound(x *exchange) error {
	id, ok := parseUUID(x.params["source_id"])
	if !ok || a.o.Environment == fiscal.Sandbox || a.o.Sources == nil || a.o.Inbox == nil {
		return notFound()
	}
	body, err := a.readBody(x, maxInbound)
	if err != nil {
		return err
	}
	if err := checkMediaType(x.r.Header); err != nil {
		return err
	}
	ctx, cancel := x.deadline()
	defer cancel()
	source, secrets, err := a.o.Sources.Find(ctx, a.o.Environment, id)
	if err != nil {
		return err
	}
	if err := webhook.Verify(x.r.Header, body, a.o.Now(), secrets...); err != nil {
		a.refuseSource(x, source, err)
		return a.failedAuthentication(x, errSignature)
	}
	if err := a.countSource(x, source); err != nil {
		return err
	}
	message, err := readInbound(x.r.Header.Get(webhook.HeaderID), body)
	if err != nil {
		return err
	}
	message.Source = source
	received, err := a.o.Inbox.Receive(ctx, message)
	if err != nil {
		return err
	}
	return x.respondAs(http.StatusAccepted, receivedResource{received.EventID, received.Duplicate}, envelope.Meta{RequestID: x.id})
}

// countSource counts a message in the rate-limit window of its source.
func (a *API) countSource(x *exchange, source store.Source) error {
	x.authenticated, x.scope = true, source.Scope
	allowed := false
	x.window, allowed = a.rateLimiter.countCredential(x.r.Context(), "source "+source.ID, a.o.RateLimit)
	x.counted = true
	if !allowed {
		return a.rateLimitExceeded(x)
	}
	return nil
}

// readInbound parses a message. It ignores unknown members, because the gateways
// of other vendors add their own.
func readInbound(id string, body []byte) (inbox.Message, error) {
	message := inbox.Message{MessageID: id}
	if strings.IndexFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		return message, badRequest(lang.Messagef("the header %s %s", "el encabezado %s %s", webhook.HeaderID, onlyPrintableASCII()),
			fiscal.Problem{Field: webhook.HeaderID, Code: fiscal.CodeInvalidCharacters, Message: onlyPrintableASCII()})
	}
	document, err := strictjson.Parse(body)
	if err != nil {
		return message, err
	}
	if document.Truncated() {
		return message, badRequest(lang.Messagef("the message has too many members or items", "el mensaje tiene demasiados campos o elementos"))
	}
	var problems fiscal.Problems
	text := func(object strictjson.Node, path, name string) string {
		if n, ok := member(object, name); ok && n.Kind() == strictjson.String {
			return n.Text()
		}
		problems = append(problems, fiscal.Problem{Field: path + name, Code: fiscal.CodeRequired, Message: lang.Messagef("must be a string", "debe ser un texto entre comillas")})
		return ""
	}
	root, encoded := document.Root(), ""
	if data, ok := member(root, "data"); ok {
		message.ENCF = text(data, "data.", "encf")
		encoded = text(data, "data.", "xml_base64")
	} else {
		problems = append(problems, fiscal.Problem{Field: "data", Code: fiscal.CodeRequired, Message: lang.Messagef("must be an object", "debe ser un objeto")})
	}
	message.Kind = text(root, "", "type")
	if len(problems) > 0 {
		return message, badRequest(lang.Messagef("the message does not have the required members; see details",
			"al mensaje le faltan campos obligatorios; vea los detalles (details)"), problems...)
	}
	if message.XML, err = base64.StdEncoding.DecodeString(encoded); err != nil {
		return message, invalid(fiscal.Problem{Field: "data.xml_base64", Code: fiscal.CodeInvalidFormat, Message: lang.Messagef("must be base64", "debe ser base64")})
	}
	return message, nil
}

// member returns a member of an object.
func member(n strictjson.Node, name string) (strictjson.Node, bool) {
	for found, value := range n.Members() {
		if found == name {
			return value, true
		}
	}
	return strictjson.Node{}, false
}
