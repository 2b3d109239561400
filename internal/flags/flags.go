// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package flags parses the command lines of the programs that run in pods. Flags are fields of a struct, with
// the tags of github.com/alecthomas/kong, which the tools for people use.
//
// Programs in pods do not use kong because it looks methods up by name: the linker then keeps every exported
// method of every type, whether called or not (https://github.com/alecthomas/kong/issues/547). That is half of
// the agent and of the extension, and a third of the function.
//
// The tags of a flag are:
//
//	name, short   its names; the default is the field's name in lower case with dashes
//	help          its description
//	default       its value, in which ${NAME} is a variable of the Program
//	env           the environment variable to use if the flag is not given
//	placeholder   the name of its value in the help text
//	group         the heading above it in the help text
//	enum          the permitted values, separated by commas
//	required      it must be given
//	negatable     --no-NAME sets it to false
//	xor           the name of a set of flags of which the command line has one
//	type          existingdir: the value must be a directory, if there is one
package flags

import (
	"fmt"
	"go/doc/comment"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// A Runner is a struct with flags that runs a command. If it also is a Validator, its flags are validated
// before it runs.
type Runner interface{ Run() error }

// A Validator returns an error for flags that contradict each other.
type Validator interface{ Validate() error }

// A Command is a command of a program.
type Command struct {
	// Name of the command, and Help about it.
	Name, Help string

	// Flags is a pointer to a struct whose fields are flags.
	Flags Runner
}

// A Program has one or several commands.
type Program struct {
	// Name of the program, its Description, and its Version, which --version prints.
	Name, Description, Version string

	// Vars are variables in the tags of flags.
	Vars map[string]string

	// Commands of the program. The first is also run if none is named. If it is the only one, it needs no
	// name.
	Commands []Command
}

// Main parses the command line, and runs the command in it. It exits if either fails, and after --help and
// --version.
func (p Program) Main() {
	run, err := p.Parse(os.Args[1:], os.LookupEnv)
	var info *infoError
	if errors.As(err, &info) {
		_, _ = io.WriteString(os.Stdout, info.text)
		os.Exit(0)
	}
	if err != nil {
		p.exit(errors.Wrapf(err, "cannot parse the command line (%s --help describes it)", p.Name))
	}
	if err := run.Run(); err != nil {
		p.exit(err)
	}
}

func (p Program) exit(err error) {
	_, _ = fmt.Fprintf(os.Stderr, "%s: error: %s\n", p.Name, err)
	os.Exit(1)
}

// An infoError says that the command line asks for a text, such as that of --help, and for nothing else.
type infoError struct{ text string }

// Error implements error.
func (e *infoError) Error() string { return e.text }

// Parse sets the flags of the command that arguments name, and returns it. lookup returns environment
// variables.
func (p Program) Parse(args []string, lookup func(string) (string, bool)) (Runner, error) {
	c := p.Commands[0]
	if len(args) > 0 {
		if i := slices.IndexFunc(p.Commands, func(c Command) bool { return c.Name != "" && c.Name == args[0] }); i >= 0 {
			c, args = p.Commands[i], args[1:]
		}
	}
	s, err := newSet(c.Flags, p.Vars)
	if err != nil {
		return nil, err
	}
	help := s.BoolP("help", "h", false, "Print this text and exit.")
	version := s.Bool("version", false, "Print the version and exit.")
	s.group("").AddFlag(s.Lookup("help"))
	s.group("").AddFlag(s.Lookup("version"))
	if err := s.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case *help:
		return nil, &infoError{text: p.usage(c, s, width())}
	case *version:
		return nil, &infoError{text: p.Version + "\n"}
	case s.NArg() > 0:
		return nil, errors.Errorf("unexpected argument %q", s.Arg(0))
	}
	if err := s.complete(lookup); err != nil {
		return nil, err
	}
	if v, ok := c.Flags.(Validator); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	return c.Flags, nil
}

// usage returns the text of --help.
func (p Program) usage(c Command, s *set, width int) string {
	var out strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&out, format, args...) }
	switch {
	case len(p.Commands) == 1:
		line("Usage: %s [flags]\n\n%s\n", p.Name, wrap(p.Description, "", width))
	case c.Name == p.Commands[0].Name:
		line("Usage: %s [command] [flags]\n\n%s\n\nCommands:\n", p.Name, wrap(p.Description, "", width))
		for _, c := range p.Commands {
			line("  %s\n%s\n", c.Name, wrap(c.Help, "      ", width))
		}
	default:
		line("Usage: %s %s [flags]\n\n%s\n", p.Name, c.Name, wrap(c.Help, "", width))
	}
	for _, g := range s.groups {
		title := "Flags"
		if g.name != "" {
			title = g.name
		}
		line("\n%s:\n%s", title, g.FlagUsagesWrapped(width))
	}
	return out.String()
}

// wrap returns a text in lines of at most a width, each after an indent.
func wrap(text, indent string, width int) string {
	printer := comment.Printer{TextPrefix: indent, TextWidth: width - len(indent)}
	return strings.TrimSuffix(string(printer.Text((&comment.Parser{}).Parse(text))), "\n")
}

// width returns the width of the terminal, or 80.
func width() int {
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}
