package ecf

import (
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// Check checks an issuer against the limits of the e-CF format. Its error is of
// type fiscal.Problems, with fields named as in JSON.
func (i Issuer) Check() error {
	var p fiscal.Problems
	add := func(field, code string, message lang.Message) {
		p = append(p, fiscal.Problem{Field: field, Code: code, Message: message})
	}
	if !fiscal.IsRNC(i.RNC) {
		add("rnc", fiscal.CodeInvalidFormat, rncWanted())
	}
	for _, f := range []struct {
		name, text string
		most       int
		required   bool
	}{
		{"legal_name", i.LegalName, 150, true},
		{"trade_name", i.TradeName, 150, false},
		{"branch", i.Branch, 20, false},
		{"address", i.Address, 100, true},
		{"website", i.Website, 50, false},
		{"economic_activity", i.EconomicActivity, 100, false},
	} {
		text := clean(f.text)
		switch {
		case f.required && text == "":
			add(f.name, fiscal.CodeRequired, lang.Messagef("must have 1 to %d characters", "debe tener de 1 a %d caracteres", f.most))
		case !fits(text, f.most):
			add(f.name, fiscal.CodeTooLong, fiscal.AtMost(f.most))
		case strings.ContainsFunc(f.text, func(r rune) bool { return r < ' ' || r == 0xfffe || r == 0xffff }):
			add(f.name, fiscal.CodeInvalidCharacters, lang.Messagef("must have no control characters", "no debe tener caracteres de control"))
		}
	}
	t := regions()
	if level := t.regions[i.Municipality].level; i.Municipality != "" && level != levelMunicipality && level != levelDistrict {
		add("municipality", fiscal.CodeInvalidEnum, lang.Messagef(
			"must be the six-digit code of a municipality or municipal district", "debe ser el código de seis dígitos de un municipio o distrito municipal"))
	}
	if i.Province != "" && t.regions[i.Province].level != levelProvince {
		add("province", fiscal.CodeInvalidEnum, lang.Messagef(
			"must be the six-digit code of a province, as in 010000", "debe ser el código de seis dígitos de una provincia, como 010000"))
	}
	if len(i.Phones) > maxPhones {
		add("phones", fiscal.CodeTooManyItems, lang.Messagef("must have at most 3 numbers", "debe tener un máximo de 3 números"))
	}
	for n, phone := range i.Phones {
		if code, want := phoneType(phone); code != "" {
			add("phones."+strconv.Itoa(n), code, want)
		}
	}
	if i.Email != "" && email(i.Email) == "" {
		add("email", fiscal.CodeInvalidFormat, lang.Messagef(
			"must be an e-mail address of at most 80 characters: letters and digits with single - + . between them",
			"debe ser un correo electrónico de un máximo de 80 caracteres: letras y dígitos con un solo - + . entre ellos"))
	}
	if code, want := incomeType(i.IncomeType); code != "" {
		add("income_type", code, want)
	}
	if p == nil {
		return nil
	}
	return p
}

const maxPhones = 3

// clean returns the issuer with its texts normalised for the XML.
func (i Issuer) clean() Issuer {
	for _, text := range []*string{&i.LegalName, &i.TradeName, &i.Branch, &i.Address, &i.Website, &i.EconomicActivity, &i.Email} {
		*text = clean(*text)
	}
	return i
}
