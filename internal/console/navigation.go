package console

import (
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

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
