// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// A placeholder is a value with another name in the help text.
type placeholder struct {
	pflag.Value

	name string
}

// Type returns the name, which pflag shows.
func (p placeholder) Type() string { return p.name }

// A boolean is a value that also accepts yes and no, in any case. A negated one sets the variable to the opposite.
type boolean struct {
	value   *bool
	negated bool
}

// Set implements pflag.Value.
func (b *boolean) Set(text string) error {
	v, err := strconv.ParseBool(strings.ToLower(text))
	switch strings.ToLower(text) {
	case "yes":
		v, err = true, nil
	case "no":
		v, err = false, nil
	}
	if err != nil {
		return errors.New("must be true or false")
	}
	*b.value = v != b.negated
	return nil
}

// String implements pflag.Value.
func (b *boolean) String() string { return strconv.FormatBool(*b.value != b.negated) }

// Type implements pflag.Value. Values of this type have no name in the help text.
func (*boolean) Type() string { return "bool" }

// A list has values that are separated by commas. It is no stringSlice of pflag, which reads CSV: a quote in a value
// would be an error, a comma at the end would add an empty value, and the second line of a variable would get lost.
type list struct {
	values *[]string

	// replaced reports whether values were set, which further ones do not replace.
	replaced bool
}

// Set implements pflag.Value.
func (l *list) Set(text string) error {
	if !l.replaced {
		*l.values = nil
	}
	l.replaced = true
	for v := range strings.SplitSeq(text, ",") {
		if v = strings.TrimSpace(v); v != "" {
			*l.values = append(*l.values, v)
		}
	}
	return nil
}

// String implements pflag.Value.
func (l *list) String() string { return strings.Join(*l.values, ",") }

// Type implements pflag.Value.
func (*list) Type() string { return "strings" }
