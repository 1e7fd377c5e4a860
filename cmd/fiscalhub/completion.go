package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// The scripts ask the program itself what may follow, so that they never differ from it.
const (
	bashCompletion = `_fiscalhub() {
  local IFS=$'\n'
  COMPREPLY=($(fiscalhub complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}
complete -o default -F _fiscalhub fiscalhub
`
	zshCompletion = `#compdef fiscalhub
_fiscalhub() {
  local -a found
  found=("${(@f)$(fiscalhub complete -- "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
  if [[ -n $found ]]; then compadd -Q -- $found; else _files; fi
}
compdef _fiscalhub fiscalhub
`
	fishCompletion = `function __fiscalhub
  set -l words (commandline -opc) (commandline -ct)
  fiscalhub complete -- $words[2..-1] 2>/dev/null
end
complete -c fiscalhub -a '(__fiscalhub)'
`
)

// Run prints the script that completes command lines in a shell.
func (c completionCmd) Run(t *terminal) error {
	script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := fmt.Fprint(t.out, script)
	return err
}

// completeCmd prints what may stand instead of the last word of a command line. The
// scripts of completion call it.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"Words of the command line; the last one is not complete."`
}

// Run prints one candidate a line.
func (c completeCmd) Run(t *terminal, parser *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, candidate := range candidates(parser.Model.Node, words) {
		if _, err := fmt.Fprintln(t.out, candidate); err != nil {
			return err
		}
	}
	return nil
}

// candidates returns the commands, flags and values that may stand instead of the last
// word.
func candidates(root *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last, at, value := words[len(words)-1], root, (*kong.Value)(nil)
	for _, word := range words[:len(words)-1] {
		switch child := findCommand(at, word); {
		case value != nil:
			value = nil // the word is the value of the flag before it
		case child != nil:
			at = child
		case strings.HasPrefix(word, "--") && !strings.Contains(word, "="):
			if f := findFlag(at, strings.TrimPrefix(word, "--")); f != nil && !f.IsBool() {
				value = f.Value
			}
		}
	}
	var all []string
	switch {
	case value != nil:
		all = values(value)
	case strings.HasPrefix(last, "-"):
		for _, f := range flagsOf(at) {
			all = append(all, "--"+f.Name)
		}
	default:
		for _, child := range at.Children {
			if !child.Hidden {
				all = append(all, child.Name)
			}
		}
		for _, p := range at.Positional {
			all = append(all, values(p)...)
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, last) })
	slices.Sort(all)
	return all
}

// values returns the values that a flag or an argument may have, if they are few.
func values(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return strings.Split(v.Enum, ",")
}

func findCommand(n *kong.Node, name string) *kong.Node {
	for _, child := range n.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// flagsOf returns the flags of a command, and those that all commands share.
func flagsOf(n *kong.Node) []*kong.Flag {
	var list []*kong.Flag
	for ; n != nil; n = n.Parent {
		list = append(list, n.Flags...)
	}
	return slices.DeleteFunc(list, func(f *kong.Flag) bool { return f.Hidden })
}

func findFlag(n *kong.Node, name string) *kong.Flag {
	for _, f := range flagsOf(n) {
		if f.Name == name {
			return f
		}
	}
	return nil
}
