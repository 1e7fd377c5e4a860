package console

import (
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// formToken returns the token of a form that creates a secret or an export. A browser that
// sends the form again, after a second click or a reload, creates nothing. A form without a
// token comes from no page of the console and has no such protection.
func (x *request) formToken() (store.Form, error) {
	token := x.PostForm.Get("form_token")
	if len(token) > 64 {
		return store.Form{}, errBadRequest
	}
	return store.Form{Token: token}, nil
}

// momentField returns the instant in a field: a day, a day with the time of the clock in
// the country, or an instant with its zone. lastMoment makes a day mean its end. A wrong
// text is an error of the field.
func (x *request) momentField(f *form, name string, lastMoment bool) time.Time {
	text := f.Value(name)
	if text == "" {
		return time.Time{}
	}
	if day, err := fiscal.ParseDate(text); err == nil {
		if lastMoment {
			return day.End()
		}
		start, _ := time.ParseInLocation(time.DateOnly, text, fiscal.Zone()) // ParseDate has checked it
		return start
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err := time.ParseInLocation(layout, text, fiscal.Zone()); err == nil {
			return at
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.fail(name, x.text("form.wrong_moment"))
	}
	return at
}
