// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
)

// A person answers questions on a terminal.
type person struct {
	// present reports whether a person is there, and hidden reads an answer that the terminal does not show.
	present func() bool
	hidden  func(ctx context.Context) (string, error)
}

// terminal returns the person at the process's terminal.
func terminal() person {
	fd := int(os.Stdin.Fd())
	return person{
		present: func() bool { return term.IsTerminal(fd) },
		hidden: func(ctx context.Context) (string, error) {
			state, err := term.GetState(fd)
			if err != nil {
				return "", errors.Wrap(err, "cannot read from the terminal")
			}
			// An interrupted read leaves the terminal without echo.
			defer term.Restore(fd, state) //nolint:errcheck // There is no other way.
			return interruptible(ctx, func() (string, error) {
				b, err := term.ReadPassword(fd)
				return string(b), err
			})
		},
	}
}

// interruptible reads an answer, unless the command is interrupted before. The read then ends with the process.
func interruptible(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := read()
		answers <- answer{text: text, err: err}
	}()
	select {
	case a := <-answers:
		return a.text, errors.Wrap(a.err, "cannot read the answer")
	case <-ctx.Done():
		return "", errors.Wrap(ctx.Err(), "interrupted")
	}
}

// asks reports whether the command may ask questions.
func (i *installer) asks() bool {
	p := i.session.person
	return !i.cmd.NoInput && p.present != nil && p.present()
}

// question asks, and returns the answer in one line.
func (i *installer) question(text string) (string, error) {
	fmt.Fprint(i.session.errs, text+" ")
	if i.lines == nil {
		i.lines = bufio.NewReader(io.LimitReader(i.session.input, maxAnswers))
	}
	return interruptible(i.session.ctx, func() (string, error) {
		line, err := i.lines.ReadString('\n')
		if line != "" {
			err = nil
		}
		return strings.TrimSpace(line), err
	})
}

// maxAnswers limits all answers of a person, in bytes.
const maxAnswers = 1 << 16

// confirm asks for a yes. Without anybody to ask, the command itself is the yes.
func (i *installer) confirm(text string) (bool, error) {
	if !i.asks() {
		return true, nil
	}
	answer, err := i.question(text + " [y/N]")
	switch strings.ToLower(answer) {
	case "y", "yes":
		return true, err
	}
	return false, err
}

// ask asks for what is missing, before anything changes.
func (i *installer) ask() error {
	if !i.asks() {
		return nil
	}
	o := &i.options
	if !o.Crossplane && i.facts.Cluster.Deployments.Unknown == "" && !check.HasCrossplane(i.facts.Cluster, o.Check) {
		ok, err := i.confirm("Crossplane is not installed. Install it into namespace " + o.Check.CrossplaneNamespace + "?")
		if err != nil {
			return err
		}
		o.Crossplane = ok
	}
	if r := i.facts.Release.Value; o.Tailnet == "" && len(o.Values) == 0 && (r == nil || r.Tailnet == "") {
		name, err := i.question("Name of the first TailscaleTailnet, such as example; empty for none:")
		if err != nil {
			return err
		}
		i.cmd.Tailnet, o.Tailnet = name, name
	}
	if o.Tailnet != "" && o.Secret == "" && !o.Client && o.Completed(i.facts.Release.Value).Secret == "" && !o.CredentialElsewhere(i.facts) {
		id, err := i.question("Client ID of an OAuth client of the tailnet; empty to name a Secret that has one:")
		if err != nil {
			return err
		}
		i.cmd.ClientID, o.Client = id, id != ""
		if id == "" {
			if i.cmd.OAuthSecret, err = i.question("Name of the Secret in namespace " + o.Namespace + ":"); err != nil {
				return err
			}
			o.Secret = i.cmd.OAuthSecret
		}
	}
	return i.cmd.valid()
}
