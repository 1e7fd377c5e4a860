package dgii

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// hidden replaces a token or a seed in what a server has sent.
const hidden = "[token]"

// hide replaces a secret of ours in a response, also where it is escaped. In a response
// that is incomplete it also removes the beginning of the secret from the end. An empty
// secret changes nothing.
func hide(body []byte, secret string, incomplete bool) []byte {
	if secret == "" {
		return body
	}
	for _, form := range formsOf(secret) {
		body = bytes.ReplaceAll(body, []byte(form), []byte(hidden))
	}
	const least = 4 // fewer characters say nothing
	for n := min(len(secret)-1, len(body)); incomplete && n >= least; n-- {
		if bytes.HasSuffix(body, []byte(secret[:n])) {
			return body[:len(body)-n]
		}
	}
	return body
}

// hideInError returns the error without the secret. net/http quotes an answer that is not
// HTTP. An error that has the secret loses its chain, because the inner errors have it too.
func hideInError(err error, secret string) error {
	if err == nil || secret == "" {
		return err
	}
	text := err.Error()
	if clean := hide([]byte(text), secret, false); string(clean) != text {
		return errors.New(string(clean))
	}
	return err
}

// formsOf returns how a text may be written: as it is, in JSON, in a URL, and quoted by Go.
func formsOf(secret string) []string {
	encoded, _ := json.Marshal(secret) // a string can always be encoded
	return []string{
		secret, strings.ReplaceAll(secret, "/", `\/`), strings.Trim(string(encoded), `"`),
		url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(strconv.Quote(secret), `"`),
	}
}
