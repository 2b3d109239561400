// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A chart is what a page of values describes.
type chart struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`

	values *yaml.Node
	schema extv1.JSONSchemaProps
}

// A group is a list of values, with the name and the comment of the object that has them. The first
// one of a page has neither.
type group struct {
	name, comment string
	values        []field
}

// readChart reads the folder of a chart.
func readChart(dir string) (*chart, error) {
	c, values := &chart{}, &yaml.Node{}
	for file, decode := range map[string]func([]byte) error{
		"Chart.yaml":         func(b []byte) error { return yaml.Unmarshal(b, c) },
		"values.yaml":        func(b []byte) error { return yaml.Unmarshal(b, values) },
		"values.schema.json": func(b []byte) error { return json.Unmarshal(b, &c.schema) },
	} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, errors.Wrap(err, "cannot read chart")
		}
		if err := decode(b); err != nil {
			return nil, errors.Wrapf(err, "cannot parse %q", filepath.Join(dir, file))
		}
	}
	if len(values.Content) != 1 || values.Content[0].Kind != yaml.MappingNode {
		return nil, errors.Errorf("%q has no values", dir)
	}
	c.values = values.Content[0]
	return c, nil
}

func (c *chart) file() string { return "values-" + c.Name + ".md" }

// page returns the page of a chart's values, in the order of values.yaml. It fails if a value has no
// comment or is not in the schema, and if the schema has one that neither values.yaml nor itself
// describes.
func (c *chart) page() ([]byte, error) {
	groups := []group{{}}
	if err := c.walk(c.values, c.schema, "", &groups, 0); err != nil {
		return nil, errors.Wrapf(err, "chart %s", c.Name)
	}
	b := &bytes.Buffer{}
	fmt.Fprintf(b, "%s# Values of %s\n\n%s\n\nHelm's options `--set` and `--values` set them. A value that is not here is refused.\n", generated, c.Name, c.Description)
	for _, g := range groups {
		if g.name != "" {
			fmt.Fprintf(b, "\n## %s\n\n%s\n", g.name, g.comment)
		}
		if len(g.values) == 0 {
			continue
		}
		b.WriteString("\n")
		writeFields(b, g.values)
	}
	return b.Bytes(), nil
}

// walk adds the values of an object to a group, by its index. Objects at the top are separate groups.
func (c *chart) walk(object *yaml.Node, schema extv1.JSONSchemaProps, prefix string, groups *[]group, index int) error {
	keys := map[string]bool{}
	for i := 0; i < len(object.Content); i += 2 {
		key, v := object.Content[i], object.Content[i+1]
		path := prefix + key.Value
		keys[key.Value] = true
		p, ok := schema.Properties[key.Value]
		if !ok {
			return errors.Errorf("values.schema.json has no %s", path)
		}
		if p, ok = c.resolve(p); !ok {
			return errors.Errorf("values.schema.json has no definition of %s", path)
		}
		text := comment(key.HeadComment)
		if text == "" {
			return errors.Errorf("%s has no comment in values.yaml", path)
		}
		nested, place := v.Kind == yaml.MappingNode && len(v.Content) > 0 && len(p.Properties) > 0, index
		switch {
		case nested && prefix == "":
			*groups = append(*groups, group{name: key.Value, comment: text})
			place = len(*groups) - 1
		case nested:
			(*groups)[index].values = append((*groups)[index].values, field{name: path, path: path, kind: "object", meaning: text})
		default:
			standard, err := standardOf(v)
			if err != nil {
				return errors.Wrapf(err, "value %s", path)
			}
			(*groups)[index].values = append((*groups)[index].values, valueOf(path, text, standard, p))
		}
		if !nested {
			continue
		}
		if err := c.walk(v, p, path+".", groups, place); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if keys[name] {
			continue
		}
		p, ok := c.resolve(schema.Properties[name])
		if !ok || p.Description == "" {
			return errors.Errorf("%s is neither in values.yaml nor has a description in values.schema.json", prefix+name)
		}
		(*groups)[index].values = append((*groups)[index].values, valueOf(prefix+name, "", "", p))
	}
	return nil
}

// resolve returns the schema that a reference leads to.
func (c *chart) resolve(p extv1.JSONSchemaProps) (extv1.JSONSchemaProps, bool) {
	if p.Ref == nil {
		return p, true
	}
	d, ok := c.schema.Definitions[strings.TrimPrefix(*p.Ref, "#/definitions/")]
	return d, ok
}

// valueOf returns a value. Without a default it is not in values.yaml.
func valueOf(path, comment, standard string, p extv1.JSONSchemaProps) field {
	if p.Type == "" && len(p.Enum) > 0 {
		p.Type = "string"
	}
	p.Description = strings.TrimSpace(comment + " " + p.Description)
	f := field{name: path, path: path, kind: kindOf(p), meaning: meaning(p)}
	if standard != "" {
		f.meaning += " Default: " + standard + "."
	}
	return f
}

// standardOf returns the default of a value as JSON, which is YAML.
func standardOf(v *yaml.Node) (string, error) {
	var content any
	if err := v.Decode(&content); err != nil {
		return "", errors.Wrap(err, "cannot decode default")
	}
	b := &bytes.Buffer{}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(content); err != nil {
		return "", errors.Wrap(err, "cannot encode default")
	}
	return "`" + strings.TrimSpace(b.String()) + "`", nil
}

// otherPage matches a page of the documentation in a comment.
var otherPage = regexp.MustCompile(`\bdocs/([a-z-]+(?:/[a-z-]+)?)\.md`)

// comment returns the text of a comment above a value, without the licence at the start of a file.
func comment(c string) string {
	paragraphs := strings.Split(c, "\n\n")
	var words []string
	for line := range strings.SplitSeq(paragraphs[len(paragraphs)-1], "\n") {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	return otherPage.ReplaceAllString(strings.TrimSpace(strings.Join(words, " ")), "[$0](../$1.md)")
}
