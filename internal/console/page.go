package console

import (
	"net/http"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// page is one row of the table of pages: an address, a method, and who may use it. A role
// that may not see a page gets 404; one that may see it but may not act gets 403.
type page struct {
	method  string
	address string       // segments in braces are parameters, see request.PathValue
	see     []store.Role // who may see the page
	act     []store.Role // who may send the form; only for methods that change something
	handle  func(*request) error

	public   bool  // needs no session
	own      bool  // the person's own account, open also to an operator without a second factor
	fragment bool  // a live fragment, which does not count as use of the session
	maxBody  int64 // of a form, in bytes; 0: 64 KiB

	parts []string // segments of the address
}

const defaultMaxBody = 64 << 10

// changes reports whether the page changes something.
func (p page) changes() bool { return p.method != http.MethodGet }

// get returns a row for a page that is only read.
func get(address string, see []store.Role, handle func(*request) error) page {
	return page{method: http.MethodGet, address: address, see: see, handle: handle}
}

// post returns a row for a form that changes something.
func post(address string, see, act []store.Role, handle func(*request) error) page {
	return page{method: http.MethodPost, address: address, see: see, act: act, handle: handle}
}

// live returns a row for the fragment of a page that updates itself.
func live(address string, see []store.Role, handle func(*request) error) page {
	p := get(address, see, handle)
	p.fragment = true
	return p
}

// on returns the handler of a page of one object: read returns the object of the address,
// and fails when the person does not see it.
func on[T any](read func(*request) (T, error), handle func(*request, T) error) func(*request) error {
	return func(x *request) error {
		found, err := read(x)
		if err != nil {
			return err
		}
		return handle(x, found)
	}
}

// updates returns the handler of a fragment that updates itself: a template with what read
// returns.
func updates[T any](name string, read func(*request) (T, error)) func(*request) error {
	return on(read, func(x *request, data T) error { return x.fragment(name, data) })
}

// everyone returns all roles.
func everyone() []store.Role { return store.Roles() }

// documentReaders returns the roles that see documents. Developers see documents of the sandbox
// only.
func (c *Console) documentReaders() []store.Role {
	if c.o.Environment == fiscal.Sandbox {
		return everyone()
	}
	return []store.Role{store.RoleOperator, store.RoleAuditor, store.RoleAccountant}
}

// overseers returns the roles that see all taxpayers.
func overseers() []store.Role { return []store.Role{store.RoleOperator, store.RoleAuditor} }

// operators returns the role of operators alone.
func operators() []store.Role { return []store.Role{store.RoleOperator} }

// integrators returns the roles that see keys, webhooks and requests.
func integrators() []store.Role {
	return []store.Role{store.RoleOperator, store.RoleAuditor, store.RoleDeveloper}
}

// integrationEditors returns the roles that change keys and webhooks.
func integrationEditors() []store.Role { return []store.Role{store.RoleOperator, store.RoleDeveloper} }

// match finds the page of a request. When there is none it returns the pages that the
// address has with other methods. An address with fixed segments wins over one with
// parameters.
func (c *Console) match(x *request) (found *page, others []*page) {
	path := x.URL.EscapedPath()
	if strings.ContainsAny(path, "%;") {
		return nil, nil
	}
	parts := strings.Split(path[1:], "/")
	method := x.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	best := -1
	for i := range c.pages {
		fixed, ok := c.pages[i].fixedParts(parts)
		if !ok {
			continue
		}
		if c.pages[i].method != method {
			others = append(others, &c.pages[i])
			continue
		}
		if fixed > best {
			best, found = fixed, &c.pages[i]
		}
	}
	if found != nil {
		for i, part := range found.parts {
			if strings.HasPrefix(part, "{") {
				x.SetPathValue(strings.Trim(part, "{}"), parts[i])
			}
		}
		return found, nil
	}
	return nil, others
}

// fixedParts returns how many segments of a path are written in the address, and false
// when the path is not of this address.
func (p *page) fixedParts(parts []string) (fixed int, ok bool) {
	if len(parts) != len(p.parts) {
		return 0, false
	}
	for i, want := range p.parts {
		switch {
		case want == parts[i]:
			fixed++
		case !strings.HasPrefix(want, "{") || parts[i] == "" || parts[i] == "." || parts[i] == "..":
			return 0, false
		}
	}
	return fixed, true
}

// mayUse reports whether a role may use the page with this method and address.
func (c *Console) mayUse(role store.Role, method, address string) bool {
	return slices.ContainsFunc(c.pages, func(p page) bool {
		return p.method == method && p.address == address && !p.public && slices.Contains(p.see, role) &&
			(!p.changes() || slices.Contains(p.act, role))
	})
}

// navGroup is a group of links to pages.
type navGroup struct {
	Label string
	Links []navLink
}

type navLink struct {
	Address, Label, Icon string
	Current              bool // the page itself, or one below it
}

// navigation returns the links to the pages that a role may see.
func (c *Console) navigation(role store.Role, path string, language lang.Language) []navGroup {
	text := func(key string) string {
		word, _ := c.texts.Text(language, key) // a test compares the keys with the texts
		return word
	}
	var shown []navGroup
	for _, group := range navGroups() {
		one := navGroup{Label: text("nav." + group.name)}
		for _, name := range group.pages {
			address := "/console/" + name
			seen := address
			if name == "overview" {
				address, seen = "/console/", overviewLive
			}
			if c.mayUse(role, http.MethodGet, seen) {
				one.Links = append(one.Links, navLink{
					Address: address, Label: text("nav." + name), Icon: name,
					Current: path == address || address != "/console/" && strings.HasPrefix(path, address+"/"),
				})
			}
		}
		if len(one.Links) > 0 {
			shown = append(shown, one)
		}
	}
	return shown
}

// navGroups returns the names of all pages with a link, in the order of the navigation.
func navGroups() []struct {
	name  string
	pages []string
} {
	return []struct {
		name  string
		pages []string
	}{
		{"daily", []string{"overview", "documents", "work", "exports"}},
		{"integration", []string{"requests", "webhooks", "keys"}},
		{"service", []string{"taxpayers", "authority", "users", "audit"}},
	}
}
