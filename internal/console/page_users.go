package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const usersAddress = "/console/users"

func (c *Console) userPages() []page {
	see, act := overseers(), operators()
	return []page{
		get(usersAddress, see, c.showUsers),
		post(usersAddress, see, act, c.createUser),
		get(usersAddress+"/{id}", see, c.showUser),
		post(usersAddress+"/{id}/role", see, act, c.changeUserRole),
		post(usersAddress+"/{id}/reset", see, act, c.resetUser),
		post(usersAddress+"/{id}/disable", see, act, c.disableUser),
	}
}

// usersView is the data of the page of all people.
type usersView struct {
	Users        []userView
	Form         *form
	Environments []option
	Taxpayers    []option
}

// userView is a person with the names of the taxpayers.
type userView struct {
	store.User
	TaxpayerNames []string
}

// AllTaxpayers reports whether the person sees every taxpayer.
func (v userView) AllTaxpayers() bool { return v.Role.AllTaxpayers() }

// WithoutTaxpayers reports whether the person can sign in and sees no taxpayer, which is of
// no use.
func (v userView) WithoutTaxpayers() bool {
	return !v.AllTaxpayers() && len(v.TaxpayerIDs) == 0 && !v.Disabled()
}

// Invited reports whether the person has not set a password yet.
func (v userView) Invited() bool { return v.PasswordHash == "" && v.DisabledAt.IsZero() }

// Disabled reports whether the person is disabled.
func (v userView) Disabled() bool { return !v.DisabledAt.IsZero() }

func (c *Console) showUsers(x *request) error { return x.renderUsers(http.StatusOK, newForm(nil)) }

func (x *request) renderUsers(status int, f *form) error {
	all, err := x.console.o.Store.Users(x.Context())
	if err != nil {
		return err
	}
	taxpayers, names, err := x.taxpayerOptions()
	if err != nil {
		return err
	}
	view := usersView{Form: f, Environments: x.environmentsOfPeople(), Taxpayers: taxpayers}
	for _, u := range all {
		view.Users = append(view.Users, newUserView(u, names))
	}
	return x.renderStatus(status, "users", x.text("nav.users"), view)
}

// environmentsOfPeople returns the environments for which the viewer may invite a person.
func (x *request) environmentsOfPeople() []option {
	if x.viewer.user.Environment != "" {
		return x.environmentOptions()
	}
	all := []option{{"", x.text("users.every_environment")}}
	for _, env := range []fiscal.Environment{fiscal.Sandbox, fiscal.Certification, fiscal.Production} {
		all = append(all, option{string(env), x.text("environment." + string(env))})
	}
	return all
}

func newUserView(u store.User, names map[string]string) userView {
	v := userView{User: u}
	for _, id := range u.TaxpayerIDs {
		v.TaxpayerNames = append(v.TaxpayerNames, names[id])
	}
	slices.Sort(v.TaxpayerNames)
	return v
}

// taxpayerOptions returns the taxpayers that the viewer sees, as choices of a field and by
// id.
func (x *request) taxpayerOptions() (choices []option, names map[string]string, err error) {
	all, err := x.console.o.Store.TaxpayersWithoutLogos(x.Context())
	if err != nil {
		return nil, nil, err
	}
	names = make(map[string]string, len(all))
	for _, t := range all {
		if x.viewer.Sees(t.ID) {
			names[t.ID] = t.LegalName
			choices = append(choices, option{t.ID, t.LegalName + " · " + t.RNC})
		}
	}
	return choices, names, nil
}

// chooseTaxpayer returns the choices of the field taxpayer of a form. A single taxpayer is
// chosen already.
func (x *request) chooseTaxpayer(f *form) ([]option, error) {
	all, _, err := x.taxpayerOptions()
	if f.Value("taxpayer") == "" && len(all) == 1 {
		f.values.Set("taxpayer", all[0].Value)
	}
	if len(all) > 1 {
		all = append([]option{{"", x.text("word.choose_a_taxpayer")}}, all...)
	}
	return all, err
}

// createUser stores a new person, and shows the link once.
func (c *Console) createUser(x *request) error {
	f := x.sentForm()
	in := people.Invitation{
		Name: f.Value("name"), Email: f.Value("email"), Role: store.Role(f.Value("role")),
		Environment: cmp.Or(fiscal.Environment(f.Value("environment")), x.viewer.user.Environment), TaxpayerIDs: x.PostForm["taxpayer"],
	}
	if in.Environment != "" {
		if _, err := fiscal.ParseEnvironment(string(in.Environment)); err != nil {
			return errBadRequest
		}
	}
	if !x.viewer.Manages(store.User{Environment: in.Environment}) {
		return errForbidden
	}
	u, link, err := c.o.People.Create(x.Context(), in)
	switch {
	case errors.Is(err, people.ErrName):
		f.fail("name", x.text("users.wrong_name"))
	case errors.Is(err, people.ErrEmail):
		f.fail("email", x.text("users.wrong_email"))
	case errors.Is(err, store.ErrEmailTaken):
		f.fail("email", x.text("users.email_taken"))
	default:
		if err := x.failRole(f, err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return x.renderUsers(http.StatusUnprocessableEntity, f)
	}
	return x.renderUser(http.StatusCreated, u.ID, nil, c.linkAddress(link))
}

// failRole turns an error about the role or the taxpayers of a person into an error of the
// form. It returns other errors as they are.
func (x *request) failRole(f *form, err error) error {
	switch {
	case errors.Is(err, people.ErrRole):
		f.fail("role", x.text("users.wrong_role"))
	case errors.Is(err, store.ErrNotFound):
		f.fail("taxpayer", x.text("users.wrong_taxpayer"))
	default:
		return err
	}
	return nil
}

// linkAddress returns the address with which a person sets a password.
func (c *Console) linkAddress(token people.Token) string { return WelcomeAddress(c.o.BaseURL, token) }

// WelcomeAddress returns the address with which a person sets a password, at a console with
// a public address.
func WelcomeAddress(baseURL string, token people.Token) string {
	return baseURL + "/console/welcome/" + token.Reveal()
}

// userDetail is the data of the page of one person.
type userDetail struct {
	User      userView
	Form      *form
	Taxpayers []option
	Link      string // shown once
	Self      bool   // the person looks at the own row
	Managed   bool   // the viewer's environment lets the viewer change the person
}

func (c *Console) showUser(x *request) error {
	return x.renderUser(http.StatusOK, x.PathValue("id"), nil, "")
}

func (x *request) renderUser(status int, id string, f *form, link string) error {
	u, err := x.console.o.Store.User(x.Context(), id)
	if err != nil {
		return err
	}
	taxpayers, names, err := x.taxpayerOptions()
	if err != nil {
		return err
	}
	if f == nil {
		f = newForm(url.Values{"role": {string(u.Role)}, "taxpayer": u.TaxpayerIDs})
	}
	return x.renderStatus(status, "user", u.Name, userDetail{newUserView(u, names), f, taxpayers, link, u.ID == x.viewer.user.ID, x.viewer.Manages(u)})
}

// changeUserRole gives a person another role and other taxpayers.
func (c *Console) changeUserRole(x *request) error {
	id, f := x.PathValue("id"), x.sentForm()
	if err := x.mayChange(id); err != nil {
		return err
	}
	_, err := c.o.People.ChangeRole(x.Context(), id, store.Role(f.Value("role")), append([]string{}, x.PostForm["taxpayer"]...))
	if err := x.failRole(f, err); err != nil {
		return err
	}
	if !f.ok() {
		return x.renderUser(http.StatusUnprocessableEntity, id, f, "")
	}
	return x.done(usersAddress+"/"+id, "users.role")
}

// resetUser makes a person start again, and shows the new link once.
func (c *Console) resetUser(x *request) error {
	id := x.PathValue("id")
	if err := x.mayChange(id); err != nil {
		return err
	}
	_, link, err := c.o.People.Reset(x.Context(), id)
	if err != nil {
		return err
	}
	return x.renderUser(http.StatusOK, id, nil, c.linkAddress(link))
}

// disableUser keeps a person from signing in.
func (c *Console) disableUser(x *request) error {
	id := x.PathValue("id")
	if err := x.mayChange(id); err != nil {
		return err
	}
	if _, err := c.o.People.Disable(x.Context(), id); err != nil {
		return err
	}
	return x.done(usersAddress+"/"+id, "users.disable")
}

// mayChange fails with errForbidden when the viewer may not change a person: an operator
// would take away the own access, or is limited to another environment.
func (x *request) mayChange(id string) error {
	u, err := x.console.o.Store.User(x.Context(), id)
	if err == nil && (id == x.viewer.user.ID || !x.viewer.Manages(u)) {
		return errForbidden
	}
	return err
}
