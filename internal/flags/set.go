// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// negation begins the name of a flag that sets another one to false.
const negation = "no-"

// A set has the flags of a struct.
type set struct {
	*pflag.FlagSet

	// groups are the flags by heading. Those without one come first.
	groups []group

	fields []field
}

// A group has the flags below one heading.
type group struct {
	*pflag.FlagSet

	name string
}

// A field of the struct.
type field struct {
	name string // Of the flag.
	tag  reflect.StructTag
}

// newSet returns the flags of the struct that a pointer leads to.
func newSet(pointer any, vars map[string]string) (*set, error) {
	s := &set{FlagSet: pflag.NewFlagSet("", pflag.ContinueOnError)}
	s.Usage = func() {}
	s.group("")
	return s, s.addStruct(reflect.ValueOf(pointer).Elem(), vars)
}

// group returns the flags below a heading.
func (s *set) group(name string) *pflag.FlagSet {
	i := slices.IndexFunc(s.groups, func(g group) bool { return g.name == name })
	if i < 0 {
		i = len(s.groups)
		s.groups = append(s.groups, group{FlagSet: pflag.NewFlagSet(name, pflag.ContinueOnError), name: name})
		s.groups[i].SortFlags = false
	}
	return s.groups[i].FlagSet
}

// addStruct adds the fields of a struct, and of those that it embeds.
func (s *set) addStruct(v reflect.Value, vars map[string]string) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			if err := s.addStruct(v.Field(i), vars); err != nil {
				return err
			}
			continue
		}
		name := f.Tag.Get("name")
		if name == "" {
			name = dashed(f.Name)
		}
		s.fields = append(s.fields, field{name: name, tag: f.Tag})
		if err := s.addFlag(name, f.Tag, v.Field(i).Addr().Interface(), vars); err != nil {
			return errors.Wrapf(err, "cannot make flag --%s", name)
		}
	}
	return nil
}

// addFlag adds a flag that sets the variable that a pointer leads to.
func (s *set) addFlag(name string, tag reflect.StructTag, pointer any, vars map[string]string) error {
	short, usage := tag.Get("short"), tag.Get("help")
	if env := tag.Get("env"); env != "" {
		usage += " ($" + env + ")"
	}
	def := os.Expand(tag.Get("default"), func(v string) string { return vars[v] })
	switch p := pointer.(type) {
	case *bool:
		s.BoolVarP(p, name, short, false, usage)
		if _, ok := tag.Lookup("negatable"); ok {
			s.BoolFunc(negation+name, "Set --"+name+" to false.", func(v string) error {
				negative, err := strconv.ParseBool(v)
				*p = !negative
				return err
			})
		}
	case *string:
		s.StringVarP(p, name, short, def, usage)
	case *int:
		s.IntVarP(p, name, short, 0, usage)
	case *float64:
		s.Float64VarP(p, name, short, 0, usage)
	case *time.Duration:
		s.DurationVarP(p, name, short, 0, usage)
	case *[]string:
		var values []string
		if def != "" {
			values = strings.Split(def, ",")
		}
		// The first value replaces these.
		s.StringSliceVarP(p, name, short, values, usage)
	default:
		return errors.Errorf("%T is not the type of a flag", pointer)
	}
	f := s.Lookup(name)
	if _, list := pointer.(*[]string); !list && def != "" {
		if err := f.Value.Set(def); err != nil {
			return errors.Wrapf(err, "cannot set it to its default, %q", def)
		}
		f.DefValue = f.Value.String()
	}
	if p := tag.Get("placeholder"); p != "" {
		f.Value = placeholder{Value: f.Value, name: p}
	}
	g := s.group(tag.Get("group"))
	g.AddFlag(f)
	if opposite := s.Lookup(negation + name); opposite != nil {
		g.AddFlag(opposite)
	}
	return nil
}

// A placeholder is a value with another name in the help text.
type placeholder struct {
	pflag.Value

	name string
}

// Type returns the name, which pflag shows.
func (p placeholder) Type() string { return p.name }

// complete sets the flags that the command line does not have from the environment, and checks all.
func (s *set) complete(lookup func(string) (string, bool)) error {
	exclusive := map[string]string{}
	for _, f := range s.fields {
		if err := s.completeField(f, lookup, exclusive); err != nil {
			return err
		}
	}
	return nil
}

// completeField sets and checks the flag of a field. exclusive are the flags of the command line by the sets of
// which it has one.
func (s *set) completeField(f field, lookup func(string) (string, bool), exclusive map[string]string) error {
	p, opposite := s.Lookup(f.name), s.Lookup(negation+f.name)
	present := p.Changed || opposite != nil && opposite.Changed
	if x := f.tag.Get("xor"); x != "" && present {
		if other := exclusive[x]; other != "" {
			return errors.Errorf("--%s and --%s exclude each other", other, f.name)
		}
		exclusive[x] = f.name
	}
	if env := f.tag.Get("env"); env != "" && !present {
		v, ok := lookup(env)
		if ok {
			if err := s.Set(f.name, v); err != nil {
				return errors.Wrapf(err, "cannot use environment variable %s", env)
			}
		}
		present = ok
	}
	value := p.Value.String()
	if _, required := f.tag.Lookup("required"); required && !present {
		return errors.Errorf("--%s is required", f.name)
	}
	if enum := f.tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), value) {
		return errors.Errorf("--%s must be one of %s, and is %q", f.name, strings.ReplaceAll(enum, ",", ", "), value)
	}
	if f.tag.Get("type") == "existingdir" && value != "" {
		if i, err := os.Stat(value); err != nil || !i.IsDir() {
			return errors.Errorf("--%s %q is not a directory", f.name, value)
		}
	}
	return nil
}

// words are the places in a field's name at which a word begins.
var words = regexp.MustCompile("([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])")

// dashed returns the name of a flag for a field: api-rate for APIRate.
func dashed(name string) string { return strings.ToLower(words.ReplaceAllString(name, "$1$3-$2$4")) }
