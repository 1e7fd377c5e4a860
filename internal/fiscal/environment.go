package fiscal

import "fmt"

// An Environment is one of the three separate environments of an invoice. No
// data is shared between them.
type Environment string

// The environments.
const (
	Sandbox       Environment = "sandbox"
	Certification Environment = "certification"
	Production    Environment = "production"
)

// ParseEnvironment returns the environment of a name, and fails on any other
// name.
func ParseEnvironment(s string) (Environment, error) {
	switch e := Environment(s); e {
	case Sandbox, Certification, Production:
		return e, nil
	}
	return "", fmt.Errorf("fiscal: environment %q: must be sandbox, certification or production", cut(s))
}
