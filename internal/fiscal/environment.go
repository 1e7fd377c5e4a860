package fiscal

import "fmt"

// An Environment is one of the three separate worlds an invoice can live in.
type Environment string

// The environments.
const (
	Sandbox       Environment = "sandbox"
	Certification Environment = "certification"
	Production    Environment = "production"
)

// ParseEnvironment returns the environment of that name.
func ParseEnvironment(s string) (Environment, error) {
	switch e := Environment(s); e {
	case Sandbox, Certification, Production:
		return e, nil
	}
	return "", fmt.Errorf("fiscal: %q is not an environment; want sandbox, certification or production", cut(s))
}
