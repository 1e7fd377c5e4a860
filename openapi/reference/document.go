package reference

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// document is everything that the page shows.
type document struct {
	Language lang.Language
	Words    map[string]string
	Root     string // relative address of the folder that /docs is in: "" or "../"
	Title    string
	Version  string
	Summary  string
	Intro    template.HTML
	Setup    []sample
	Groups   []group
	Webhooks group
	Guides   []guide
	Errors   catalogue
}

// group is the operations with one tag.
type group struct {
	ID, Title  string
	Text       template.HTML
	Operations []operation
}

// operation is a request that a client sends, or that the service sends to a webhook
// endpoint.
type operation struct {
	ID, Method, Path, Summary string
	Text                      template.HTML
	Public                    bool // needs no credential
	Webhook                   bool
	Scopes                    []string
	Parameters                []field
	BodyText                  template.HTML
	Body                      []field
	Samples                   []sample
	Requests                  []example
	Answers                   []answer
	Refusals                  []refusal
}

// answer is a success of an operation or, for a webhook, an answer of the endpoint.
type answer struct {
	Status, MediaType string
	Text              template.HTML
	Headers           []field
	Body              []field
	Examples          []example
}

// refusal is an HTTP status of an operation that is an error, with its codes.
type refusal struct {
	Status string
	Text   template.HTML
	Codes  []string
}

// example is a body.
type example struct {
	Summary, Plain string
	Code           template.HTML
}

// guide is a section of the description.
type guide struct {
	ID, Title string
	Text      template.HTML
}

// builder makes a document from the OpenAPI document.
type builder struct {
	root  *tree
	words map[string]string
	md    markdown
}

// build returns what the page shows in a language. It fails when the OpenAPI document
// has no example for an operation, or cannot be read.
func build(text []byte, language lang.Language) (*document, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	b := &builder{root: root, words: wordsOf(language)}
	b.md = markdown{anchors: b.anchors(), rows: map[string]func(string) string{
		"Detail `code`": detailAnchor, "`status`": statusAnchor, "`type`": eventAnchor,
	}}
	info := root.get("info")
	d := &document{
		Language: language, Words: b.words, Title: info.get("title").text(),
		Version: info.get("version").text(), Summary: info.get("summary").text(),
	}
	if d.Setup, err = samples("setup"); err != nil {
		return nil, err
	}
	if err := b.operations(d); err != nil {
		return nil, err
	}
	intro, sections, _ := strings.Cut("\n"+info.get("description").text(), "\n## ")
	d.Intro = b.md.block(intro)
	for section := range strings.SplitSeq(sections, "\n## ") {
		title, text, _ := strings.Cut(section, "\n")
		if title == "Errors" {
			d.Errors = b.catalogue(text, d.Groups)
			continue
		}
		d.Guides = append(d.Guides, guide{ID: slug(title), Title: title, Text: b.md.block(text)})
	}
	return d, nil
}

// Anchors of codes on the page.
func errorAnchor(code string) string  { return "error-" + code }
func detailAnchor(code string) string { return "detail-" + code }
func statusAnchor(code string) string { return "status-" + code }
func eventAnchor(kind string) string  { return "event-" + kind }

// anchors returns the anchor of each code that the page explains.
func (b *builder) anchors() map[string]string {
	anchors := map[string]string{}
	add := func(schema string, anchor func(string) string) {
		known, _ := b.values(b.root.get("components", "schemas", schema))
		for _, code := range known {
			if code != "*" {
				anchors[code] = anchor(code)
			}
		}
	}
	add("EventKind", eventAnchor)
	add("DetailCode", detailAnchor)
	add("Status", statusAnchor)
	add("ErrorCode", errorAnchor)
	// A word that is also plain JSON or a value elsewhere would be linked everywhere.
	delete(anchors, "required")
	for _, kind := range []string{"webhook.test", "webhook_endpoint.disabled", "credential.expiring", "credential.refused"} {
		delete(anchors, kind) // each has a section of its own and no table
	}
	return anchors
}

// operations fills the groups and the webhooks of a document.
func (b *builder) operations(d *document) error {
	for _, tag := range b.root.get("tags").items {
		name := tag.get("name").text()
		d.Groups = append(d.Groups, group{ID: slug(name), Title: name, Text: b.md.line(tag.get("description").text())})
	}
	var problem error
	b.root.get("paths").each(func(path string, item *tree) {
		item.each(func(method string, op *tree) {
			if method == "parameters" || problem != nil {
				return
			}
			o := b.operation(strings.ToUpper(method), path, item, op)
			if o.Samples, problem = samples(o.ID); problem != nil {
				return
			}
			tag := op.get("tags").texts()[0]
			at := slices.IndexFunc(d.Groups, func(g group) bool { return g.Title == tag })
			if at < 0 {
				problem = fmt.Errorf("reference: the tag %s of %s is not declared", tag, o.ID)
				return
			}
			d.Groups[at].Operations = append(d.Groups[at].Operations, o)
		})
	})
	d.Webhooks = group{ID: "webhooks", Title: b.words["Webhooks"]}
	b.root.get("webhooks").each(func(_ string, item *tree) {
		o := b.operation("POST", "", item, item.get("post"))
		o.Webhook = true
		d.Webhooks.Operations = append(d.Webhooks.Operations, o)
	})
	return problem
}

func (b *builder) operation(method, path string, item, op *tree) operation {
	o := operation{
		ID: op.get("operationId").text(), Method: method, Path: path,
		Summary: op.get("summary").text(), Text: b.md.block(op.get("description").text()),
	}
	security := op.get("security")
	o.Public = security != nil && len(security.items) == 0
	if !o.Public && security != nil {
		o.Scopes = security.items[0].get("bearer").texts()
	}
	for _, list := range []*tree{item.get("parameters"), op.get("parameters")} {
		if list == nil {
			continue
		}
		for _, p := range list.items {
			o.Parameters = append(o.Parameters, b.parameter(p.resolve(b.root)))
		}
	}
	slices.SortStableFunc(o.Parameters, func(a, c field) int { return parameterOrder(a) - parameterOrder(c) })
	if body := op.get("requestBody").resolve(b.root); body != nil {
		content := body.get("content", "application/json")
		o.BodyText = b.md.line(body.get("description").text())
		o.Body = b.members(content.get("schema"), 0)
		o.Requests = b.examples(content)
	}
	op.get("responses").each(func(status string, r *tree) { b.response(&o, status, r.resolve(b.root)) })
	return o
}

// parameterOrder sorts the path first and the request id, which every operation has, last.
func parameterOrder(f field) int {
	if f.Name == "X-Request-Id" {
		return 9
	}
	return slices.Index([]string{"path", "query", "header"}, f.In)
}

// response adds an answer of an operation to it.
func (b *builder) response(o *operation, status string, r *tree) {
	text := b.md.block(r.get("description").text())
	if status >= "400" && status < "600" && o.Path != "" {
		refused := refusal{Status: status, Text: text}
		for _, part := range r.get("content", "application/json", "schema", "allOf").items {
			refused.Codes = append(refused.Codes, part.get("properties", "error", "properties", "code", "enum").texts()...)
		}
		o.Refusals = append(o.Refusals, refused)
		return
	}
	a := answer{Status: status, Text: text}
	r.get("headers").each(func(name string, h *tree) {
		if name == "X-Request-Id" || strings.HasPrefix(name, "RateLimit-") {
			return // every answer has these
		}
		h = h.resolve(b.root)
		f := b.schema(name, h.get("schema"), 0)
		f.Text, f.Required = b.md.line(h.get("description").text()), h.get("required").text() == "true"
		a.Headers = append(a.Headers, f)
	})
	r.get("content").each(func(mediaType string, content *tree) {
		a.MediaType = mediaType
		if schema := content.get("schema"); schema != nil {
			a.Body = b.members(schema, 0)
		}
		a.Examples = b.examples(content)
	})
	o.Answers = append(o.Answers, a)
}

func (b *builder) examples(content *tree) []example {
	var list []example
	content.get("examples").each(func(name string, e *tree) {
		e = e.resolve(b.root)
		summary := e.get("summary").text()
		if summary == "" {
			summary = name
		}
		body := e.get("value").indented()
		list = append(list, example{Summary: summary, Plain: body, Code: highlight("json", body)})
	})
	return list
}

// slug returns the anchor of a title.
func slug(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }
