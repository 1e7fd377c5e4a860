package main

import (
	"errors"
	"io"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/console"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/node"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type userCmd struct {
	Create  userCreateCmd  `cmd:"" help:"Create a person of the console. Prints a link, valid for 24 hours and once, where the person sets a password."`
	List    userListCmd    `cmd:"" help:"List the people of the console."`
	Disable userDisableCmd `cmd:"" help:"Disable a person: end the sessions and refuse new sign-ins."`
	Reset   userResetCmd   `cmd:"" help:"Remove password and second factor, end the sessions, enable the person, and print a new link."`
	Role    userRoleCmd    `cmd:"" help:"Give a person another role, and end the sessions of the person."`
}

// userView is a person in JSON. Link is set only when it is new.
type userView struct {
	ID           string             `json:"id"`
	Name         string             `json:"name"`
	Email        string             `json:"email"`
	Role         store.Role         `json:"role"`
	Taxpayers    []string           `json:"taxpayers"`
	Link         string             `json:"link,omitempty"`
	Environment  fiscal.Environment `json:"environment,omitempty"`
	SecondFactor bool               `json:"second_factor"`
	CreatedAt    string             `json:"created_at"`
	LastSignInAt *string            `json:"last_sign_in_at"`
	DisabledAt   *string            `json:"disabled_at"`
}

func newUserView(u store.User) userView {
	return userView{
		ID: u.ID, Name: u.Name, Email: u.Email, Role: u.Role, Taxpayers: append([]string{}, u.TaxpayerIDs...), Environment: u.Environment,
		SecondFactor: !u.SecondFactorAt.IsZero(), CreatedAt: formatTime(u.CreatedAt),
		LastSignInAt: optionalTime(u.LastSignInAt), DisabledAt: optionalTime(u.DisabledAt),
	}
}

// withPeople opens the database and runs fn with the people of the console.
func (t *terminal) withPeople(fn func(*store.Store, *people.People) error) error {
	return t.withKeys(func(s *store.Store, keys *seal.Keys, _ *access.Keyring) error {
		all, err := node.NewPeople(s, keys)
		if err != nil {
			return err
		}
		return fn(s, all)
	})
}

// linkFlag names the console that a link opens.
type linkFlag struct {
	ConsoleBaseURL string `name:"console-base-url" help:"Public address of the console, for the link. By default that of the server that started last." placeholder:"URL"`
}

func (f linkFlag) check() error {
	if f.ConsoleBaseURL == "" {
		return nil
	}
	return checkConsoleURL(f.ConsoleBaseURL)
}

// answer prints a person with a new link.
func (f linkFlag) answer(t *terminal, s *store.Store, u store.User, token people.Token) error {
	base := strings.TrimRight(f.ConsoleBaseURL, "/")
	if base == "" {
		var err error
		if base, err = s.ConsoleAddress(t.ctx, u.Environment); err != nil {
			return err
		}
	}
	if base == "" {
		base = "http://127.0.0.1:8080"
		t.warn(lang.Messagef("no server with a console has used this database: the link has the address %s; name another one with --console-base-url",
			"ningún servidor con consola ha usado esta base de datos: el enlace tiene la dirección %s; indique otra con --console-base-url", base))
	}
	v := newUserView(u)
	v.Link = console.WelcomeAddress(base, token)
	return t.answer(v, func(w io.Writer) {
		line(w, "id", v.ID)
		line(w, "link", v.Link)
		line(w, "", lang.Messagef("Send it to the person now: it is valid for 24 hours and once, and is not shown again.",
			"Envíelo a la persona ahora: vale por 24 horas y una sola vez, y no se muestra otra vez.").In(t.language))
	})
}

type userCreateCmd struct {
	Name        string   `required:"" help:"Name of the person, which the audit log shows." placeholder:"NAME"`
	Email       string   `required:"" help:"Email address, with which the person signs in." placeholder:"EMAIL"`
	Role        string   `required:"" help:"operator, auditor, accountant or developer." enum:"operator,auditor,accountant,developer"`
	Taxpayer    []string `help:"Id of a taxpayer that an accountant or a developer works for; may be repeated. Operators and auditors see all taxpayers." placeholder:"ID"`
	Environment string   `help:"sandbox, certification or production. By default the person may use the console of every environment." enum:",sandbox,certification,production" default:""`
	linkFlag
}

// Run creates a person.
func (c userCreateCmd) Run(t *terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	in := people.Invitation{
		Name: c.Name, Email: c.Email, Role: store.Role(c.Role), Environment: fiscal.Environment(c.Environment), TaxpayerIDs: splitList(c.Taxpayer),
	}
	return t.withPeople(func(s *store.Store, all *people.People) error {
		u, token, err := all.Create(t.ctx, in)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return errMissingTaxpayer
		case errors.Is(err, store.ErrEmailTaken):
			return lang.Errorf("another person has the email address %s: see fiscalhub user list",
				"otra persona tiene el correo electrónico %s: vea fiscalhub user list", c.Email)
		case err != nil:
			return err
		}
		t.warnWithoutTaxpayer(u)
		return c.answer(t, s, u, token)
	})
}

var errMissingTaxpayer = lang.Errorf("there is no such taxpayer: see fiscalhub taxpayer list", "no existe ese contribuyente: vea fiscalhub taxpayer list")

// warnWithoutTaxpayer warns when a person sees no taxpayer.
func (t *terminal) warnWithoutTaxpayer(u store.User) {
	if !u.Role.AllTaxpayers() && len(u.TaxpayerIDs) == 0 {
		t.warn(lang.Messagef("%s sees no taxpayer: name some with fiscalhub user role %s --role %s --taxpayer ID",
			"%s no ve ningún contribuyente: indique algunos con fiscalhub user role %s --role %s --taxpayer ID", u.Name, u.ID, u.Role))
	}
}

type userListCmd struct{}

// Run lists the people of the console.
func (userListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := s.Users(t.ctx)
		if err != nil {
			return err
		}
		b := newTable("PERSON", "NAME", "EMAIL", "ROLE", "STATE", "TAXPAYERS")
		for _, u := range all {
			state, taxpayers := lang.Messagef("active", "activa"), strings.Join(u.TaxpayerIDs, ",")
			switch {
			case !u.DisabledAt.IsZero():
				state = lang.Messagef("disabled", "deshabilitada")
			case u.PasswordHash == "":
				state = lang.Messagef("invited", "invitada")
			}
			if u.Role.AllTaxpayers() {
				taxpayers = lang.Messagef("all", "todos").In(t.language)
			}
			b.add(u.ID, u.Name, u.Email, string(u.Role), state.In(t.language), taxpayers)
		}
		return t.list(mapEach(all, newUserView), b)
	})
}

type userDisableCmd struct {
	ID string `arg:"" help:"Id of the person."`
	reasonFlag
}

// Run disables a person.
func (c userDisableCmd) Run(t *terminal) error {
	return t.withPeople(func(_ *store.Store, all *people.People) error {
		u, err := all.Disable(c.context(t.ctx), c.ID)
		if err != nil {
			return missing(err, "user", c.ID)
		}
		return t.confirm(newUserView(u), lang.Messagef("disabled; all sessions of the person end within 5 seconds", "deshabilitada; todas las sesiones de la persona terminan en 5 segundos"))
	})
}

type userResetCmd struct {
	ID string `arg:"" help:"Id of the person."`
	linkFlag
	reasonFlag
}

// Run makes a person start again.
func (c userResetCmd) Run(t *terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	return t.withPeople(func(s *store.Store, all *people.People) error {
		u, token, err := all.Reset(c.context(t.ctx), c.ID)
		if err != nil {
			return missing(err, "user", c.ID)
		}
		return c.answer(t, s, u, token)
	})
}

type userRoleCmd struct {
	ID       string   `arg:"" help:"Id of the person."`
	Role     string   `required:"" help:"operator, auditor, accountant or developer." enum:"operator,auditor,accountant,developer"`
	Taxpayer []string `help:"Id of a taxpayer that the person works for from now on; may be repeated. By default the taxpayers stay." placeholder:"ID"`
	reasonFlag
}

// Run changes the role of a person.
func (c userRoleCmd) Run(t *terminal) error {
	return t.withPeople(func(s *store.Store, all *people.People) error {
		if _, err := s.User(t.ctx, c.ID); err != nil {
			return missing(err, "user", c.ID)
		}
		u, err := all.ChangeRole(c.context(t.ctx), c.ID, store.Role(c.Role), splitList(c.Taxpayer))
		if errors.Is(err, store.ErrNotFound) {
			return errMissingTaxpayer
		}
		if err != nil {
			return err
		}
		t.warnWithoutTaxpayer(u)
		return t.confirm(newUserView(u), lang.Messagef("role changed; all sessions of the person end within 5 seconds", "rol cambiado; todas las sesiones de la persona terminan en 5 segundos"))
	})
}
