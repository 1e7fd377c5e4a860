package console

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// form is what a person has entered into a form, with the errors at their fields.
type form struct {
	values url.Values
	errors []fieldError
}

// fieldError is an error of a field; of the whole form when the name is empty. AtField is
// its text next to the field, where it differs from the one in the list of all errors.
type fieldError struct{ Name, Text, AtField string }

// newForm returns a form with values to begin with. values may be nil.
func newForm(values url.Values) *form { return &form{values: values} }

// sentForm returns the form that the person has sent.
func (x *request) sentForm() *form { return newForm(x.PostForm) }

// Value returns what was entered into a field, without spaces around it.
func (f *form) Value(name string) string {
	if f == nil {
		return ""
	}
	return strings.TrimSpace(f.values.Get(name))
}

// Has reports whether a field has a value, for fields that may be repeated.
func (f *form) Has(name, value string) bool {
	if f == nil {
		return false
	}
	for _, one := range f.values[name] {
		if one == value {
			return true
		}
	}
	return false
}

// fail records an error of a field, or of the whole form when the name is empty.
func (f *form) fail(name, text string) {
	f.errors = append(f.errors, fieldError{Name: name, Text: text})
}

// ok reports whether the form has no error.
func (f *form) ok() bool { return len(f.errors) == 0 }

// Errors returns the errors of the form.
func (f *form) Errors() []fieldError {
	if f == nil {
		return nil
	}
	return f.errors
}

// Error returns the first error of a field.
func (f *form) Error(name string) string {
	for _, e := range f.Errors() {
		if e.Name == name {
			return cmp.Or(e.AtField, e.Text)
		}
	}
	return ""
}

// option is a choice of a field.
type option struct{ Value, Label string }

// fieldView is a field of a form, for the template "field".
type fieldView struct {
	Name, ID, Label, Hint, Type, Value, Error  string
	Autocomplete, Placeholder, InputMode       string
	Required, Autofocus, Wide, Plain, Multiple bool
	Apart                                      bool // the page shows the error at another place
	Rows                                       int
	Options                                    []option
	form                                       *form
}

// Selected reports whether an option is chosen.
func (v fieldView) Selected(o option) bool {
	if v.Multiple {
		return v.form.Has(v.Name, o.Value)
	}
	return v.Value == o.Value
}

// DescribedBy returns the ids of the texts that belong to the field.
func (v fieldView) DescribedBy() string {
	var ids []string
	if v.Hint != "" {
		ids = append(ids, v.ID+"-hint")
	}
	if v.Error != "" {
		ids = append(ids, v.ID+"-error")
	}
	return strings.Join(ids, " ")
}

// newField returns a field of a form. The pairs after the name set fields of fieldView:
// id, label, hint, type (text, email, password, date, textarea, select, checkboxes, file,
// …), value, autocomplete, placeholder, inputmode, required, autofocus, wide,
// plain (a filter, where every field is optional), apart (the page shows the error of the
// field elsewhere, with the id NAME-error), rows, options.
// Passwords, codes and files are never sent back to the browser.
func newField(f *form, name string, pairs ...any) (fieldView, error) {
	set, err := dict(pairs...)
	if err != nil {
		return fieldView{}, err
	}
	v := fieldView{Name: name, ID: name, Type: "text", Value: f.Value(name), Error: f.Error(name), Rows: 4, form: f}
	for key, value := range set {
		if err := v.set(key, value); err != nil {
			return fieldView{}, err
		}
	}
	switch v.Type {
	case "password", "file":
		v.Value = ""
	case "checkboxes":
		v.Multiple = true
	}
	return v, nil
}

func (v *fieldView) set(key string, value any) error {
	switch one := value.(type) {
	case string:
		for name, field := range map[string]*string{
			"id": &v.ID, "label": &v.Label, "hint": &v.Hint, "type": &v.Type, "value": &v.Value,
			"autocomplete": &v.Autocomplete, "placeholder": &v.Placeholder, "inputmode": &v.InputMode,
		} {
			if name == key {
				*field = one
				return nil
			}
		}
	case bool:
		for name, field := range map[string]*bool{"required": &v.Required, "autofocus": &v.Autofocus, "wide": &v.Wide, "plain": &v.Plain, "apart": &v.Apart} {
			if name == key {
				*field = one
				return nil
			}
		}
	case int:
		if key == "rows" {
			v.Rows = one
			return nil
		}
	case []option:
		if key == "options" {
			v.Options = one
			return nil
		}
	}
	return fmt.Errorf("console: a field has no setting %q of type %T", key, value)
}

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
