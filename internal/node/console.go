package node

import (
	"context"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/console"
	"github.com/fiscalhub/fiscalhub/internal/export"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// openConsole builds the console, if the node serves one.
func (n *Node) openConsole(ctx context.Context) (err error) {
	c, s := n.Config.Console, n.Store
	if c == nil {
		return nil
	}
	if n.People, err = newPeople(s, n.Keys, c.Hasher); err != nil {
		return err
	}
	n.Exports, err = export.NewJobs(export.JobsOptions{
		Store: s, Pipeline: n.Pipeline, Environment: n.Environment, Dir: c.Exports, Now: s.Now, Log: n.Log, Pace: n.Pace,
	})
	if err != nil {
		return err
	}
	o := console.Options{
		Store: s, People: n.People, Keyring: n.Keyring, Environment: n.Environment, BaseURL: c.BaseURL,
		Clients: n.Clients, Capacity: n.Capacity, Limit: n.API.AdmitVisitor, Now: s.Now, Log: n.Log, RequireSecondFactor: c.RequireSecondFactor,
		Certificates: access.NewCertificates(s, n.Keys, s.Now), Endpoints: n.Endpoints, Pipeline: n.Pipeline, Exports: n.Exports,
	}
	if n.live() {
		o.Trusted, o.ReceiverURL = n.Roots != nil, n.ReceiverURL
		if o.ReceiverURL == "" {
			o.ReceiverURL = n.BaseURL
		}
		o.Circuits, o.AuthorityClock, o.Release = n.circuits, n.Authority.Clock, n.release
		o.Services = func() ([]overview.ServiceFigures, error) { return overview.ServicesOf(n.Metrics) }
	}
	if n.Console, err = console.New(o); err != nil {
		return err
	}
	// Commands make links with this address.
	return s.Update(ctx, func(tx *store.Tx) error { return tx.SetConsoleAddress(ctx, n.Environment, c.BaseURL) })
}

// NewPeople returns the people of a database.
func NewPeople(s *store.Store, keys *seal.Keys) (*people.People, error) {
	return newPeople(s, keys, nil)
}

func newPeople(s *store.Store, keys *seal.Keys, h people.Hasher) (*people.People, error) {
	if h == nil {
		h = people.NewArgon2()
	}
	return people.New(people.Options{Store: s, Secrets: access.NewSecrets(s, keys), Hasher: h, Now: s.Now})
}

// circuits returns which services of the authority this node does not call now.
func (n *Node) circuits() map[string]bool {
	all := map[string]bool{}
	for _, c := range n.Authority.Circuits() {
		all[c.Service] = c.Open
	}
	return all
}

// Releaser returns what releases the fenced number ranges of a taxpayer.
func (n *Node) Releaser() fence.Releaser {
	return fence.Releaser{Store: n.Store, Authority: n.Authority, Identities: n.Identities, Fence: n.Fence, Now: n.Store.Now}
}

func (n *Node) release(ctx context.Context, scope store.Scope) error {
	r := n.Releaser()
	_, err := r.Release(ctx, scope)
	return err
}

// mountConsole adds the console to the handler of the API.
func (n *Node) mountConsole(next http.Handler) http.Handler {
	mounted := api.Mount(next, console.Serves, n.Console)
	if !n.live() {
		mounted = console.Home(n.Config.Console.BaseURL, mounted)
	}
	return mounted
}

// ConsoleHandler serves the console alone.
func (n *Node) ConsoleHandler() http.Handler { return below(n.Config.Console.BaseURL, n.Console) }

// InviteOperator creates an operator in a database without people, and returns the link
// with which the person sets a password. It returns an empty text otherwise, and without a
// console.
func (n *Node) InviteOperator(ctx context.Context, name, email string) (link string, err error) {
	if n.Console == nil {
		return "", nil
	}
	all, err := n.Store.Users(ctx)
	if err != nil || len(all) > 0 {
		return "", err
	}
	_, token, err := n.People.Create(ctx, people.Invitation{Name: name, Email: email, Role: store.RoleOperator})
	if err != nil {
		return "", err
	}
	return console.WelcomeAddress(n.Config.Console.BaseURL, token), nil
}
