package notify

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

const (
	maxDescription = 200
	maxProblems    = 100 // of the list of kinds
)

// Check returns all problems of a new endpoint, with the field names of the API.
func (s *Endpoints) Check(n EndpointSpec) fiscal.Problems {
	var all fiscal.Problems
	add := func(field, code string, message lang.Message) {
		all = append(all, fiscal.Problem{Field: field, Code: code, Message: message})
	}
	switch {
	case !utf8.ValidString(n.Description) || strings.ContainsFunc(n.Description, unicode.IsControl):
		add("description", fiscal.CodeInvalidCharacters, lang.Messagef("must not contain control characters", "no debe tener caracteres de control"))
	case utf8.RuneCountInString(n.Description) > maxDescription:
		add("description", fiscal.CodeTooLong, fiscal.AtMost(maxDescription))
	}
	known := event.Kinds()
	for i, kind := range n.Kinds {
		field := "events." + strconv.Itoa(i)
		switch {
		case kind != event.All && !slices.Contains(known, kind):
			add(field, fiscal.CodeInvalidEnum, lang.Messagef("must be * or a kind of event", "debe ser * o un tipo de evento"))
		case slices.Contains(n.Kinds[:i], kind):
			add(field, fiscal.CodeDuplicated, lang.Messagef("must not occur twice", "no debe aparecer dos veces"))
		}
		if len(all) == maxProblems {
			break
		}
	}
	if len(n.Kinds) == 0 {
		add("events", fiscal.CodeTooFewItems, lang.Messagef("must name * or at least one kind of event", "debe nombrar * o por lo menos un tipo de evento"))
	}
	switch err := webhook.CheckURL(n.URL, s.o.Guard); {
	case n.URL == "":
		add("url", fiscal.CodeRequired, lang.Messagef("is required", "es obligatorio"))
	case len(n.URL) > netguard.MaxURL:
		add("url", fiscal.CodeTooLong, fiscal.AtMost(netguard.MaxURL))
	case n.URL != strings.TrimSpace(n.URL):
		add("url", fiscal.CodeInvalidFormat, lang.Messagef("must not begin or end with blanks", "no debe comenzar ni terminar con espacios"))
	case err != nil:
		add("url", fiscal.CodeInvalidFormat, lang.Messagef(
			"must be an https address of a public host at port 443: %s",
			"debe ser una dirección https de un servidor público en el puerto 443: %s", err))
	}
	return all
}
