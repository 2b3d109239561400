// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
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
	switch p := pointer.(type) {
	case *bool:
		s.addBool(name, short, usage, p)
		if _, ok := tag.Lookup("negatable"); ok {
			s.addBool(negation+name, "", "Set --"+name+" to false.", p)
		}
	case *string:
		s.StringVarP(p, name, short, "", usage)
	case *int:
		s.IntVarP(p, name, short, 0, usage)
	case *float64:
		s.Float64VarP(p, name, short, 0, usage)
	case *time.Duration:
		s.DurationVarP(p, name, short, 0, usage)
	case *[]string:
		s.VarP(&list{values: p}, name, short, usage)
	default:
		return errors.Errorf("%T is not the type of a flag", pointer)
	}
	f := s.Lookup(name)
	if err := setDefault(f, tag.Get("default"), vars); err != nil {
		return err
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

// addBool adds a flag that sets a variable to true or false. The name of one that sets it to the opposite begins with
// negation.
func (s *set) addBool(name, short, usage string, p *bool) {
	f := s.VarPF(&boolean{value: p, negated: strings.HasPrefix(name, negation)}, name, short, usage)
	f.NoOptDefVal, f.DefValue = "true", "false"
}

// setDefault sets a flag to its default, in which ${NAME} is a variable.
func setDefault(f *pflag.Flag, text string, vars map[string]string) error {
	var unknown []string
	text = os.Expand(text, func(name string) string {
		v, ok := vars[name]
		if !ok {
			unknown = append(unknown, name)
		}
		return v
	})
	if len(unknown) > 0 {
		return errors.Errorf("the program has no variable %s", strings.Join(unknown, ", "))
	}
	if text == "" {
		return nil
	}
	if err := f.Value.Set(text); err != nil {
		return errors.Wrapf(err, "cannot set it to its default, %q", text)
	}
	f.DefValue = f.Value.String()
	if l, ok := f.Value.(*list); ok {
		l.replaced = false
	}
	return nil
}

// complete sets the flags that the command line does not have from the environment, and checks all.
func (s *set) complete(lookup func(string) (string, bool)) error {
	line := map[string]string{}
	for _, f := range s.fields {
		if err := exclude(line, f, s.isGiven(f.name)); err != nil {
			return err
		}
	}
	environment := map[string]string{}
	for _, f := range s.fields {
		present := s.isGiven(f.name)
		// A variable may be there for other programs: the command line excludes it.
		if env := f.tag.Get("env"); env != "" && !present && line[f.tag.Get("xor")] == "" {
			var v string
			if v, present = lookup(env); present {
				if err := s.Set(f.name, v); err != nil {
					return errors.Wrapf(err, "cannot use environment variable %s", env)
				}
			}
			if err := exclude(environment, f, v != ""); err != nil {
				return err
			}
		}
		if err := s.check(f, present); err != nil {
			return err
		}
	}
	return nil
}

// exclude notes that a flag is present, in its set of flags that exclude each other. It returns an error if another
// one is.
func exclude(sets map[string]string, f field, present bool) error {
	x := f.tag.Get("xor")
	if x == "" || !present {
		return nil
	}
	if other := sets[x]; other != "" {
		return errors.Errorf("--%s and --%s exclude each other", other, f.name)
	}
	sets[x] = f.name
	return nil
}

// isGiven reports whether the command line has a flag, or its negation.
func (s *set) isGiven(name string) bool {
	opposite := s.Lookup(negation + name)
	return s.Lookup(name).Changed || opposite != nil && opposite.Changed
}

// check checks the value of a flag.
func (s *set) check(f field, present bool) error {
	value := s.Lookup(f.name).Value.String()
	if _, required := f.tag.Lookup("required"); required && !present {
		return errors.Errorf("--%s is required", f.name)
	}
	if enum := f.tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), value) {
		return errors.Errorf("--%s must be one of %s, and is %q", f.name, strings.ReplaceAll(enum, ",", ", "), value)
	}
	if f.tag.Get("type") == "existingdir" && value != "" {
		return s.setDirectory(f.name, value)
	}
	return nil
}

// setDirectory sets a flag to the absolute path of a directory, which must exist. A path that begins with ~/ is in the
// user's home directory: a shell does not replace it in --NAME=~/PATH.
func (s *set) setDirectory(name, path string) error {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return errors.Wrapf(err, "cannot find the directory of --%s", name)
		}
		path = filepath.Join(home, rest)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return errors.Wrapf(err, "cannot find the directory of --%s", name)
	}
	if i, err := os.Stat(path); err != nil || !i.IsDir() {
		return errors.Errorf("--%s %q is not a directory", name, path)
	}
	return s.Set(name, path)
}

// words are the places in a field's name at which a word begins.
var words = regexp.MustCompile("([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])")

// dashed returns the name of a flag for a field: api-rate for APIRate.
func dashed(name string) string { return strings.ToLower(words.ReplaceAllString(name, "$1$3-$2$4")) }
