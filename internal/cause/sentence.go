package cause

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// Releases before the kinds stored English sentences, which history keeps for years. A
// sentence is read as its kind only to be shown: nothing is decided by it.

// callSentence is a sentence about a call of the authority: its service, what came of it,
// and details.
var callSentence = regexp.MustCompile(`(?s)^dgii: (?:(\w+): )?(the (?:tax authority|taxpayer|buyer's receiver) [^:]+)(: .*)?$`)

// A sentence is a kind that has words of its own, with an expression that matches its English
// sentence.
type sentence struct {
	*regexp.Regexp
	kind Kind
}

var sentences = sync.OnceValue(func() (all []sentence) {
	for _, kind := range kinds() {
		if english := kind.text.String(); !strings.HasPrefix(english, "%s") {
			text := strings.ReplaceAll(regexp.QuoteMeta(english), "%s", "(.+?)")
			all = append(all, sentence{regexp.MustCompile(`(?s)^` + text + `(?:` + regexp.QuoteMeta(kind.separator()) + `(.*))?$`), kind})
		}
	}
	return all
})

// ofSentence returns the parts of a sentence of an earlier release; false: no kind says it.
func ofSentence(text string) (s stored, ok bool) {
	if call := callSentence.FindStringSubmatch(text); call != nil {
		text = call[2]
		if call[1] != "" {
			text += " (" + call[1] + ")"
		}
		text += call[3]
	}
	for _, one := range sentences() {
		kind, found := one.kind, one.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		args := found[1:]
		if i := len(args) - 1; args[i] == kind.do.String() {
			args[i] = ""
		}
		for _, arg := range slices.DeleteFunc(args, func(arg string) bool { return arg == "" }) {
			s.Args = append(s.Args, argument{lang.Literal(arg)})
		}
		s.Kind = kind.code
		return s, true
	}
	return s, false
}
