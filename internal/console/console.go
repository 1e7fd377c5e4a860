// Package console serves the pages of the service for people in a browser: operators,
// auditors, accountants and developers. The server renders every page; scripts only add
// live updates and comfort.
//
// To add a page called NAME:
//
//   - page_NAME.go has a method NAMEPages that returns the rows of the table of pages, and
//     the handlers. A handler gets a *request. It reads data only for request.viewer, and
//     ends with request.render, request.fragment, request.redirect or an error.
//   - templates/NAME.html defines the templates that the handler names. Dot is a view.
//   - texts_NAME.go has a function NAMETexts that returns the texts of the page in both
//     languages. The template writes them with {{t "NAME.key"}}. A text that several pages
//     share is a "word." of texts_layout.go.
//   - The method is a line of Console.table, the function a line of allTexts, and the
//     address a line of navigation. Tests check every row of the table for every role.
package console

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/export"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	liveplan "github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Options are what a Console needs. All fields but Limit, RequireSecondFactor, Trusted,
// ReceiverURL and the fields of the authority are required.
type Options struct {
	Store       *store.Store
	People      *people.People
	Keyring     *access.Keyring
	Environment fiscal.Environment
	BaseURL     string // public address of the console, without a slash at the end
	Clients     *capacity.ClientFinder
	Capacity    *capacity.Capacity // of the forms of people and of strangers
	Now         func() time.Time
	Log         *slog.Logger

	// Limit reports whether a request without a session may be served. Without Limit all
	// are served.
	Limit func(*http.Request) bool

	// RequireSecondFactor makes operators set up a second factor before anything else.
	RequireSecondFactor bool

	Certificates *access.Certificates // of taxpayers
	Endpoints    *notify.Endpoints    // of webhooks
	// Trusted says that this node has roots for the signatures of others, and ReceiverURL
	// is the public address of the services that other taxpayers call. Both are empty in
	// the sandbox.
	Trusted     bool
	ReceiverURL string

	Pipeline *pipeline.Pipeline // registers invoices, and has the files of documents
	// Circuits returns which services of the authority this node does not call now; nil
	// in the sandbox.
	Circuits func() map[string]bool

	Exports *export.Jobs // makes the files of the page of exports

	// Services returns what this node has seen of the services of the authority; nil in
	// the sandbox.
	Services func() ([]overview.ServiceFigures, error)
	// AuthorityClock returns by how much the authority's clock is ahead of this node's,
	// and false when it is not known; nil in the sandbox.
	AuthorityClock func() (ahead time.Duration, known bool)
	// Release releases the fenced number ranges of a taxpayer, as the command reconcile
	// does; nil in the sandbox.
	Release func(ctx context.Context, scope store.Scope) error
}

func (o Options) check() error {
	switch {
	case o.Store == nil || o.People == nil || o.Keyring == nil || o.Clients == nil || o.Capacity == nil || o.Now == nil || o.Log == nil:
		return errors.New("console: options: Store, People, Keyring, Clients, Capacity, Now and Log are required")
	case o.Certificates == nil || o.Endpoints == nil:
		return errors.New("console: options: Certificates and Endpoints are required")
	case o.Pipeline == nil:
		return errors.New("console: options: Pipeline is required")
	case o.Exports == nil:
		return errors.New("console: options: Exports is required")
	case o.BaseURL == "" || strings.HasSuffix(o.BaseURL, "/"):
		return fmt.Errorf("console: options: BaseURL %q must be an address without a slash at the end", o.BaseURL)
	}
	_, err := fiscal.ParseEnvironment(string(o.Environment))
	return err
}

// Console is the HTTP handler of the console.
type Console struct {
	o        Options
	basePath string // of o.BaseURL

	pages     []page
	texts     lang.Texts
	templates map[lang.Language]*template.Template
	assets    *assets
	crossSite *http.CrossOriginProtection

	credentials *access.Credentials
	searcher    *overview.Searcher
	reporter    *overview.Reporter
	overviews   *overview.Shared
	fragments   overviewFragments
	resolver    *liveplan.Resolver
	releases    releases
}

// New returns a console. It fails when an option is missing, or an embedded template or
// text is not valid.
func New(o Options) (*Console, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Console{
		o: o, basePath: pathOf(o.BaseURL), crossSite: http.NewCrossOriginProtection(),
	}
	if c.o.Limit == nil {
		c.o.Limit = func(*http.Request) bool { return true }
	}
	c.credentials = access.NewCredentials(o.Store, o.Keyring, o.Now)
	c.pages = c.table()
	for i := range c.pages {
		c.pages[i].parts = strings.Split(c.pages[i].address[1:], "/")
	}
	var err error
	if c.texts, err = joinTexts(allTexts()...); err != nil {
		return nil, err
	}
	if c.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	c.searcher = overview.NewSearcher(o.Store, func() cursor.Keys { return o.Keyring.Cursors() }, o.Now)
	c.resolver = liveplan.NewResolver(o.Store, o.Now, o.Log)
	if c.reporter, err = overview.NewReporter(overview.Options{Store: o.Store, Now: o.Now, Circuits: o.Circuits}); err != nil {
		return nil, err
	}
	c.overviews = overview.NewShared(c.reporter)
	c.templates, err = c.parseTemplates()
	return c, err
}

// table returns every page of the console.
func (c *Console) table() []page {
	return slices.Concat(
		c.signInPages(),
		c.overviewPages(),
		c.documentPages(),
		c.issuePages(),
		c.requestPages(),
		c.webhookPages(),
		c.keyPages(),
		c.taxpayerPages(),
		c.workPages(),
		c.authorityPages(),
		c.exportPages(),
		c.userPages(),
		c.auditPages(),
		c.accountPages(),
	)
}

// allTexts returns the texts of every page.
func allTexts() []lang.Texts {
	return []lang.Texts{
		layoutTexts(),
		signInTexts(),
		overviewTexts(),
		documentsTexts(),
		documentTexts(),
		timelineTexts(),
		issueTexts(),
		requestTexts(),
		webhookTexts(),
		keyTexts(),
		taxpayerTexts(),
		workTexts(),
		authorityTexts(),
		exportTexts(),
		userTexts(),
		auditTexts(),
		accountTexts(),
	}
}

// Serves reports whether the console serves a path.
func Serves(path string) bool { return path == "/console" || strings.HasPrefix(path, "/console/") }

// Home sends a browser that opens / to the console at the public address baseURL, and leaves
// every other request to next.
func Home(baseURL string, next http.Handler) http.Handler {
	address := pathOf(baseURL) + "/console/"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && acceptsHTML(r) {
			setSecurityHeaders(w.Header())
			http.Redirect(w, r, address, http.StatusSeeOther)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// acceptsHTML reports whether a request names HTML among what it accepts. Programs do not.
func acceptsHTML(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Accept"), func(value string) bool {
		return strings.Contains(strings.ToLower(value), "text/html")
	})
}

// ServeHTTP answers one request. On a listener of its own the console also answers / and
// every other path.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	x := c.begin(w, r)
	defer c.recoverPanic(x)
	defer x.release()
	if err := c.serve(x); err != nil {
		c.answerError(x, err)
	}
}

// serve makes the checks of a request in one order: origin, address, session, limit, role.
func (c *Console) serve(x *request) error {
	if capacity.HasLengthAndChunks(x.Request) {
		return errBadRequest
	}
	if err := c.crossSite.Check(x.Request); err != nil {
		return errCrossSite
	}
	path := x.URL.EscapedPath()
	switch {
	case path == "/" || path == "/console":
		return x.redirect("/console/")
	case strings.HasPrefix(path, assetPrefix):
		return c.assets.serve(x)
	}
	if err := c.identify(x); err != nil {
		return err
	}
	if !x.signedIn() && !c.o.Limit(x.Request) {
		return errLimited
	}
	found, others := c.match(x)
	allow := x.allowed(others)
	switch {
	case found == nil && len(others) == 0:
		return errNotFound
	case found != nil && found.public:
		x.page = found
		return x.run()
	case !x.signedIn() && len(allow) == 0:
		return x.redirect(signInAddress(x.Request))
	case found == nil && len(allow) == 0:
		return errNotFound
	case found == nil:
		x.w.Header().Set("Allow", strings.Join(allow, ", "))
		return errMethod
	}
	x.page = found
	if err := c.authorize(x); err != nil {
		return err
	}
	return x.run()
}

// allowed returns the methods of pages that the person may see.
func (x *request) allowed(pages []*page) (methods []string) {
	for _, p := range pages {
		if p.public || x.signedIn() && slices.Contains(p.see, x.viewer.Role()) {
			methods = append(methods, p.method)
		}
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}

// authorize checks the role of the person. What a role may not see does not exist for it.
func (c *Console) authorize(x *request) error {
	role := x.viewer.Role()
	switch {
	case !slices.Contains(x.page.see, role):
		return errNotFound
	case x.page.changes() && !slices.Contains(x.page.act, role):
		return errForbidden
	case c.lacksSecondFactor(x) && !x.page.own && !x.page.changes():
		return x.redirectInstead("/console/account")
	case c.lacksSecondFactor(x) && !x.page.own:
		return errForbidden
	}
	return nil
}

// lacksSecondFactor reports whether the person must set up a second factor first.
func (c *Console) lacksSecondFactor(x *request) bool {
	return c.o.RequireSecondFactor && x.viewer.Role() == store.RoleOperator && x.viewer.user.SecondFactorAt.IsZero()
}

func (c *Console) recoverPanic(x *request) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	// The value may contain a password or other data of the person; its type and the stack
	// do not.
	c.o.Log.Error("A panic has stopped a request of the console.", "request_id", x.id, "type", fmt.Sprintf("%T", cause), "stack", string(debug.Stack()))
	c.answerError(x, errors.New("panic"))
}
