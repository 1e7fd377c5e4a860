package api

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// maxBody is the size in bytes of the largest JSON body of an integrator.
const maxBody = 1 << 20

// maxKey is the length in bytes of the longest idempotency key.
const maxKey = 200

// creationKey checks that a creation has no query parameters and no If-Match that fails,
// and returns its idempotency key.
func creationKey(x *exchange) (string, error) {
	if _, err := readQuery(x.r); err != nil {
		return "", err
	}
	key, err := idempotencyKey(x.r.Header)
	if err != nil {
		return "", err
	}
	x.keyDigest = shortDigest(key)
	return key, x.checkIfMatch()
}

// idempotencyKey reads the header Idempotency-Key: one line of printable ASCII.
func idempotencyKey(h http.Header) (string, error) {
	refuse := func(code string, message lang.Message) (string, error) {
		return "", badRequest(lang.Messagef("Idempotency-Key: %s", "Idempotency-Key: %s", message),
			fiscal.Problem{Field: "Idempotency-Key", Code: code, Message: message})
	}
	lines := h.Values("Idempotency-Key")
	if len(lines) > 1 {
		return refuse(fiscal.CodeDuplicated, lang.Messagef("send the header only once", "envíe el encabezado una sola vez"))
	}
	if len(lines) == 0 || strings.Trim(lines[0], " \t") == "" {
		return refuse(fiscal.CodeRequired, lang.Messagef(
			"is required; send a key of 1 to 200 characters, a new one for each creation",
			"es obligatorio; envíe una clave de 1 a 200 caracteres, una nueva para cada creación"))
	}
	key := strings.Trim(lines[0], " \t")
	if len(key) > maxKey {
		return refuse(fiscal.CodeTooLong, tooLongText())
	}
	for _, c := range []byte(key) {
		if c < 0x20 || c > 0x7e {
			return refuse(fiscal.CodeInvalidCharacters, onlyPrintableASCII())
		}
	}
	return key, nil
}

func onlyPrintableASCII() lang.Message {
	return lang.Messagef("must have only printable ASCII characters", "debe tener solo caracteres ASCII imprimibles")
}

// readJSON reads and parses a body of the media type application/json. It returns
// the bytes as they were sent, too.
func (a *API) readJSON(x *exchange) (raw []byte, document *strictjson.Document, err error) {
	if raw, err = a.readJSONBytes(x); err != nil {
		return nil, nil, err
	}
	document, err = strictjson.Parse(raw)
	return raw, document, err
}

// readJSONBytes reads a body of the media type application/json. It does not
// parse it.
func (a *API) readJSONBytes(x *exchange) ([]byte, error) {
	if err := checkMediaType(x.r.Header); err != nil {
		return nil, err
	}
	return a.readBody(x, maxBody)
}

// checkMediaType accepts only application/json in UTF-8 without compression.
func checkMediaType(h http.Header) error {
	lines := h.Values("Content-Type")
	if len(lines) != 1 {
		return unsupportedMedia(lang.Messagef("send one header Content-Type: application/json", "envíe un solo encabezado Content-Type: application/json"))
	}
	kind, params, err := mime.ParseMediaType(lines[0])
	if err != nil || kind != "application/json" {
		return unsupportedMedia(lang.Messagef("send Content-Type: application/json", "envíe Content-Type: application/json"))
	}
	for name, value := range params {
		if name == "charset" && !strings.EqualFold(value, "utf-8") && !strings.EqualFold(value, "utf8") {
			return unsupportedMedia(lang.Messagef("the charset of Content-Type must be utf-8", "el charset de Content-Type debe ser utf-8"))
		}
	}
	for _, coding := range h.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			e := unsupportedMedia(lang.Messagef(
				"send the body without compression and without Content-Encoding", "envíe el cuerpo sin compresión y sin Content-Encoding"))
			e.headers = map[string]string{"Accept-Encoding": "identity"}
			return e
		}
	}
	return nil
}

// maxProblems is how many problems one error answer lists.
const maxProblems = 100

func onlyFirstProblems() lang.Message {
	return lang.Messagef("only the first %d problems are listed", "la lista tiene solo los primeros %d problemas", maxProblems)
}

// bodyDecoder reads the members of a small JSON body and collects their
// problems. Invoices have a decoder of their own in package fiscal.
type bodyDecoder struct{ problems fiscal.Problems }

func (d *bodyDecoder) add(field, code string, message lang.Message) {
	if len(d.problems) <= maxProblems { // one more than are listed: err then says that there are more
		d.problems = append(d.problems, fiscal.Problem{Field: field, Code: code, Message: message})
	}
}

// err returns the collected problems, sorted by member, or nil when there are
// none.
func (d *bodyDecoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	more := len(d.problems) > maxProblems
	list := d.problems[:min(len(d.problems), maxProblems)]
	slices.SortStableFunc(list, func(a, b fiscal.Problem) int { return cmp.Compare(topMember(a.Field), topMember(b.Field)) })
	if more {
		list = append(list, fiscal.Problem{Code: fiscal.CodeTooManyErrors, Message: onlyFirstProblems()})
	}
	return invalid(list...)
}

func topMember(field string) string {
	name, _, _ := strings.Cut(field, ".")
	return name
}

// document returns the members of the object that a body is. It reports members
// that are not in known, and returns nil when the body is not an object or has too
// many members.
func (d *bodyDecoder) document(body *strictjson.Document, known ...string) map[string]strictjson.Node {
	members := d.object(body.Root(), known...)
	if body.Truncated() {
		d.add("", fiscal.CodeTooManyItems, lang.Messagef(
			"has more members or items than this request can have",
			"tiene más campos o elementos de los que esta solicitud puede tener"))
		return nil
	}
	return members
}

// object returns the members of an object. It reports members that are not in
// known, and returns nil when n is not an object.
func (d *bodyDecoder) object(n strictjson.Node, known ...string) map[string]strictjson.Node {
	if n.Kind() != strictjson.Object {
		d.add("", fiscal.CodeInvalidType, lang.Messagef("must be an object", "debe ser un objeto"))
		return nil
	}
	found := make(map[string]strictjson.Node)
	for name, value := range n.Members() {
		if slices.Contains(known, name) {
			found[name] = value
		} else {
			d.add(shorten(name), fiscal.CodeUnknownField, fiscal.UnknownMember(name, known))
		}
	}
	return found
}

// text returns a string that must not be empty or blank.
func (d *bodyDecoder) text(n strictjson.Node, field string) string {
	text := ""
	switch {
	case n.Kind() != strictjson.String:
		d.add(field, fiscal.CodeInvalidType, lang.Messagef("must be a string", "debe ser un texto entre comillas"))
	case n.Text() == "":
		d.add(field, fiscal.CodeTooShort, lang.Messagef("must have at least 1 character", "debe tener por lo menos 1 carácter"))
	case strings.TrimSpace(n.Text()) == "":
		d.add(field, fiscal.CodeBlank, lang.Messagef("must not be blank", "no debe estar en blanco"))
	default:
		text = n.Text()
	}
	return text
}

// texts returns an array of strings.
func (d *bodyDecoder) texts(n strictjson.Node, field string) []string {
	if n.Kind() != strictjson.Array {
		d.add(field, fiscal.CodeInvalidType, lang.Messagef("must be an array of strings", "debe ser una lista de textos"))
		return nil
	}
	list := make([]string, 0, min(n.Len(), maxProblems))
	for i, item := range n.Items() {
		list = append(list, d.text(item, field+"."+strconv.Itoa(i)))
	}
	return list
}
