// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package errors is what the agent uses of crossplane-runtime's package of that name, with the same
// results. That one imports controller-runtime for a function of controllers, and with it all kinds of
// Kubernetes: a third of the agent, which each proxy pod has.
package errors

import (
	"errors"
	"fmt"

	kerrors "k8s.io/apimachinery/pkg/util/errors"
)

// New returns an error with a text. Each call returns a distinct error.
func New(text string) error { return errors.New(text) }

// Errorf returns an error with a formatted text, which wraps the operand of %w.
func Errorf(format string, a ...any) error { return fmt.Errorf(format, a...) }

// Is reports whether an error in err's tree matches target.
func Is(err, target error) bool { return errors.Is(err, target) }

// As sets target to the first error in err's tree that it can point to, and reports whether there is
// one.
func As(err error, target any) bool { return errors.As(err, target) }

// Wrap puts a message before that of err. It returns nil if err is nil.
func Wrap(err error, message string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", message, err)
}

// Wrapf puts a formatted message before that of err. It returns nil if err is nil.
func Wrapf(err error, format string, a ...any) error {
	if err == nil {
		return nil
	}
	return Wrap(err, fmt.Sprintf(format, a...))
}

// Join returns an error that wraps all errs that are not nil, or nil without one. Its text lists theirs,
// as in [first, second], each once.
func Join(errs ...error) error {
	a := kerrors.NewAggregate(errs)
	if a == nil {
		return nil
	}
	return joinedError{a}
}

// joinedError has the errors of an aggregate, which Is and As see only by Unwrap.
type joinedError struct{ aggregate kerrors.Aggregate }

// Error returns the text of the aggregate.
func (e joinedError) Error() string { return e.aggregate.Error() }

// Unwrap returns the errors of the aggregate.
func (e joinedError) Unwrap() []error { return e.aggregate.Errors() }
