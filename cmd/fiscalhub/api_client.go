package main

import (
	"strings"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// apiBase returns the address of a service. A user may add the version of the API, as serve
// prints it.
func apiBase(url string) string {
	return strings.TrimRight(strings.TrimSuffix(strings.TrimRight(url, "/"), "/v1"), "/")
}

// newAPIClient returns a client of the API for a command that has the flags --base-url,
// --taxpayer and --key. The errors do not show the values: any of them may contain a secret
// by mistake.
func newAPIClient(baseURL, key, taxpayer string, options ...client.Option) (*client.Client, error) {
	api, err := client.New(apiBase(baseURL), key, taxpayer, options...)
	hidden := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case err == nil:
		return api, nil
	case len(taxpayer) != 36 || uuid.Validate(taxpayer) != nil:
		return nil, usageError{lang.Messagef("--taxpayer: must be the id of a taxpayer, which is a UUID; you got it with the API key",
			"--taxpayer: debe ser el id de un contribuyente, que es un UUID; lo recibió con la clave de API")}
	case key == "" || strings.ContainsFunc(key, hidden):
		return nil, usageError{lang.Messagef("--key: the API key is empty or has characters that no key has; copy it again",
			"--key: la clave de API está vacía o tiene caracteres que ninguna clave tiene; cópiela otra vez")}
	default:
		return nil, usageError{lang.Messagef("--base-url: must be an address with http or https and a host, such as https://api.example.com, without user, query and fragment",
			"--base-url: debe ser una dirección con http o https y un servidor, como https://api.example.com, sin usuario, parámetros ni fragmento")}
	}
}
