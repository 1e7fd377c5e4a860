package notify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

const (
	maxDescription = 200
	maxProblems    = 100 // of the list of kinds
)

// check returns all problems of a new endpoint as fiscal.Problems, with the field names
// of the API.
func (n EndpointSpec) check(guard netguard.Guard) error {
	var all fiscal.Problems
	add := func(field, code, message string) {
		all = append(all, fiscal.Problem{Field: field, Code: code, Message: message})
	}
	switch {
	case !utf8.ValidString(n.Description) || strings.ContainsFunc(n.Description, unicode.IsControl):
		add("description", fiscal.CodeInvalidCharacters, "must not contain control characters")
	case utf8.RuneCountInString(n.Description) > maxDescription:
		add("description", fiscal.CodeTooLong, fmt.Sprintf("must have at most %d characters", maxDescription))
	}
	known := event.Kinds()
	for i, kind := range n.Kinds {
		field := "events." + strconv.Itoa(i)
		switch {
		case kind != event.All && !slices.Contains(known, kind):
			add(field, fiscal.CodeInvalidEnum, "must be * or a kind of event")
		case slices.Contains(n.Kinds[:i], kind):
			add(field, fiscal.CodeDuplicated, "must not occur twice")
		}
		if len(all) == maxProblems {
			break
		}
	}
	if len(n.Kinds) == 0 {
		add("events", fiscal.CodeTooFewItems, "must name * or at least one kind of event")
	}
	switch err := webhook.CheckURL(n.URL, guard); {
	case n.URL == "":
		add("url", fiscal.CodeRequired, "is required")
	case len(n.URL) > netguard.MaxURL:
		add("url", fiscal.CodeTooLong, fmt.Sprintf("must have at most %d characters", netguard.MaxURL))
	case n.URL != strings.TrimSpace(n.URL):
		add("url", fiscal.CodeInvalidFormat, "must not begin or end with blanks")
	case err != nil:
		add("url", fiscal.CodeInvalidFormat, "must be an https address of a public host at port 443: "+err.Error())
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
