package ecf

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A simpleType checks the text of an element. It returns the code of the fault
// and what the text must be, or an empty code when the text is valid. The
// text is never empty.
type simpleType func(text string) (code string, want lang.Message)

// xmlSpace is the white space of XML. The schemas ignore it around numbers only.
const xmlSpace = " \t\n\r"

func trimXML(s string) string {
	if s == "" || s[0] > ' ' && s[len(s)-1] > ' ' {
		return s
	}
	return strings.Trim(s, xmlSpace)
}

// trimmed is a type that ignores white space around the text. The summary has
// such types where the e-CF has plain texts.
func trimmed(check simpleType) simpleType {
	return func(text string) (string, lang.Message) { return check(trimXML(text)) }
}

func mustBe(what any) lang.Message { return lang.Messagef("must be %s", "debe ser %s", what) }

// textType is any text of least to most characters (not bytes).
func textType(least, most int) simpleType {
	short, long := lang.Messagef("must have at least %d characters", "debe tener un mínimo de %d caracteres", least), fiscal.AtMost(most)
	return func(text string) (string, lang.Message) {
		switch {
		case !fits(text, most):
			return fiscal.CodeTooLong, long
		case least > 1 && utf8.RuneCountInString(text) < least:
			return fiscal.CodeTooShort, short
		}
		return "", lang.Message{}
	}
}

func enumType(values ...string) simpleType {
	want := mustBe(lang.OneOf(values))
	return func(text string) (string, lang.Message) {
		for _, v := range values {
			if v == text {
				return "", lang.Message{}
			}
		}
		return fiscal.CodeInvalidEnum, want
	}
}

// incomeType is 01 to 06.
func incomeType(text string) (code string, want lang.Message) {
	if len(text) != 2 || text[0] != '0' || text[1] < '1' || text[1] > '6' {
		return fiscal.CodeInvalidEnum, lang.Messagef("must be 01, 02, 03, 04, 05 or 06", "debe ser 01, 02, 03, 04, 05 o 06")
	}
	return "", lang.Message{}
}

const maxAdditionalTax = 39

// additionalTaxCode reads a code from 001 to 039. It returns 0 for other texts.
func additionalTaxCode(text string) int {
	if !isDigits(text, 3) || text[0] != '0' {
		return 0
	}
	if n := int(text[1]-'0')*10 + int(text[2]-'0'); n <= maxAdditionalTax {
		return n
	}
	return 0
}

func additionalTaxType(text string) (code string, want lang.Message) {
	if additionalTaxCode(text) == 0 {
		return fiscal.CodeInvalidEnum, lang.Messagef("must be one of the codes 001 to 039", "debe ser uno de los códigos 001 a 039")
	}
	return "", lang.Message{}
}

func regionType(text string) (code string, want lang.Message) {
	if RegionName(text) == "" {
		return fiscal.CodeInvalidEnum, lang.Messagef(
			"must be a code of the table of provinces and municipalities", "debe ser un código de la tabla de provincias y municipios")
	}
	return "", lang.Message{}
}

func encfType(text string) (code string, want lang.Message) {
	if _, err := fiscal.ParseENCF(text); err != nil {
		return fiscal.CodeInvalidFormat, lang.Messagef(
			"must be the letter E, the type 31 or 32 and ten digits that are not all zero",
			"debe ser la letra E, el tipo 31 o 32 y diez dígitos que no sean todos cero")
	}
	return "", lang.Message{}
}

func rncWanted() lang.Message {
	return lang.Messagef("must be an RNC of 9 digits or a cédula of 11 digits", "debe ser un RNC de 9 dígitos o una cédula de 11 dígitos")
}

func rncType(text string) (code string, want lang.Message) {
	if !fiscal.IsRNC(text) {
		return fiscal.CodeInvalidFormat, rncWanted()
	}
	return "", lang.Message{}
}

func phoneType(text string) (code string, want lang.Message) {
	if len(text) != 12 || text[3] != '-' || text[7] != '-' ||
		!isDigits(text[:3], 3) || !isDigits(text[4:7], 3) || !isDigits(text[8:], 4) {
		return fiscal.CodeInvalidFormat, lang.Messagef(
			"must be a telephone number such as 809-555-0100", "debe ser un teléfono como 809-555-0100")
	}
	return "", lang.Message{}
}

// isWord reports whether \w in a pattern matches a character. In XML Schema, \w
// is everything but punctuation, separators and controls; in .NET, which the
// authority uses, it is letters, marks, digits and connectors. isWord accepts
// only the characters that both accept.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return isAlphanumeric(byte(r)) //nolint:gosec // it is ASCII
	}
	return unicode.IsLetter(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Nd, r)
}

func termType(text string) (code string, want lang.Message) {
	if !fits(text, 15) {
		return fiscal.CodeTooLong, fiscal.AtMost(15)
	}
	for _, r := range text {
		if !isWord(r) && !strings.ContainsRune(xmlSpace, r) {
			return fiscal.CodeInvalidFormat, lang.Messagef(
				"must have only letters, digits and spaces", "debe tener solo letras, dígitos y espacios")
		}
	}
	return "", lang.Message{}
}

func lettersType(text string) (code string, want lang.Message) {
	if !fits(text, 20) {
		return fiscal.CodeTooLong, fiscal.AtMost(20)
	}
	for _, r := range text {
		isPlainLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !isPlainLetter && !strings.ContainsRune("ñÑáéíóúÁÉÍÓÚ,"+xmlSpace, r) {
			return fiscal.CodeInvalidFormat, lang.Messagef(
				"must have only Spanish letters, commas and spaces", "debe tener solo letras del español, comas y espacios")
		}
	}
	return "", lang.Message{}
}

func mailType(text string) (code string, want lang.Message) {
	if !fits(text, 80) {
		return fiscal.CodeTooLong, fiscal.AtMost(80)
	}
	local, domain, _ := strings.Cut(text, "@")
	if !isWordList(local, "-+.") || !isWordList(domain, "-.") || strings.IndexByte(domain, '.') < 0 {
		return fiscal.CodeInvalidFormat, lang.Messagef(
			"must be an e-mail address of letters and digits with single . - or + between them",
			"debe ser un correo electrónico de letras y dígitos con un solo . - o + entre ellos")
	}
	return "", lang.Message{}
}

// isWordList reports whether s is a list of words with one separator between each
// two.
func isWordList(s, separators string) bool {
	inWord := false
	for _, r := range s {
		switch {
		case isWord(r):
			inWord = true
		case inWord && strings.ContainsRune(separators, r):
			inWord = false
		default:
			return false
		}
	}
	return inWord
}

// securityCodeType is six characters without line breaks.
func securityCodeType(text string) (code string, want lang.Message) {
	if utf8.RuneCountInString(text) != codeLength || strings.ContainsAny(text, "\r\n") {
		return fiscal.CodeInvalidFormat, lang.Messagef("must have 6 characters", "debe tener 6 caracteres")
	}
	return "", lang.Message{}
}

func dateType(text string) (code string, want lang.Message) {
	if day, rest := readDay(text); day == 0 || rest != "" {
		return fiscal.CodeInvalidDate, lang.Messagef("must be a date: dd-MM-yyyy", "debe ser una fecha: dd-MM-aaaa")
	}
	return "", lang.Message{}
}

// readDay reads a date at the beginning of a text. It returns the date as the
// number yyyyMMdd, so that later dates are greater, and 0 when there is none. As
// in the schemas, the day and the month may have one digit; unlike them, readDay
// refuses a day that the month does not have.
func readDay(s string) (day int, rest string) {
	d, s, ok := readTwoDigits(s)
	if !ok || s == "" || s[0] != '-' {
		return 0, ""
	}
	m, s, ok := readTwoDigits(s[1:])
	if !ok || len(s) < 5 || s[0] != '-' || !isDigits(s[1:5], 4) {
		return 0, ""
	}
	y := int(s[1]-'0')*1000 + int(s[2]-'0')*100 + int(s[3]-'0')*10 + int(s[4]-'0')
	if y < 1900 || y > 2099 || m < 1 || m > 12 || d < 1 || d > daysIn(m, y) {
		return 0, ""
	}
	return y*10_000 + m*100 + d, s[5:]
}

func daysIn(month, year int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// readTwoDigits reads one or two digits.
func readTwoDigits(s string) (n int, rest string, ok bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, "", false
	}
	n = int(s[0] - '0')
	if len(s) == 1 || s[1] < '0' || s[1] > '9' {
		return n, s[1:], true
	}
	return n*10 + int(s[1]-'0'), s[2:], true
}

// instantType is a date, with days and months of two digits, and a time of day.
func instantType(text string) (code string, want lang.Message) {
	if !isInstant(text) {
		return fiscal.CodeInvalidDate, lang.Messagef("must be a time: dd-MM-yyyy HH:mm:ss", "debe ser una fecha y hora: dd-MM-aaaa HH:mm:ss")
	}
	return "", lang.Message{}
}

func isInstant(s string) bool {
	if len(s) < 11 || s[10] != ' ' {
		return false
	}
	if day, rest := readDay(s[:10]); day == 0 || rest != "" {
		return false
	}
	hour, s, ok := readTwoDigits(s[11:])
	if !ok || hour > 23 || s == "" || s[0] != ':' {
		return false
	}
	minute, s, ok := readTwoDigits(s[1:])
	if !ok || minute > 59 || s == "" || s[0] != ':' {
		return false
	}
	second, s, ok := readTwoDigits(s[1:])
	return ok && second <= 59 && s == ""
}
