// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package composetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A case begins with the license, the reason and the base.
const (
	prefixLicense = "# Copyright 2026 The Tailscale Gateway Authors\n# SPDX-License-Identifier: Apache-2.0\n"
	prefixReason  = "# "
	prefixBase    = "# base: "
)

// The key and the value that delete an object of the base.
const (
	directive       = "$patch"
	directiveDelete = "delete"
)

// A Case is a test case of a function.
type Case struct {
	// Name of the file, without the extension.
	Name string

	// Reason for the case.
	Reason string

	// Base is the name of the case whose objects this one changes. It is empty for a case whose file
	// contains all objects.
	Base string

	// Objects of the case. The first is the composite.
	Objects []map[string]any
}

// ReadCase reads the file of a case: a comment with the license, a comment with the reason for the
// case, and the objects, the composite first. If the line "# base: NAME" follows the reason, the case
// has the objects of the case NAME of the same folder, with changes. Each document of the file is one
// of these:
//
//   - An RFC 7386 merge patch of the object with the same API version, kind, namespace and name.
//   - An object that the base lacks.
//   - The API version, kind, namespace and name of an object that the case lacks, and
//     "$patch: delete".
//
// A base has no base itself. ReadCase fails the test for a change without effect.
func ReadCase(t *testing.T, path string) *Case {
	t.Helper()
	c, err := readCase(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return c
}

// readCases reads the cases of a folder. Those without a base come first: -update has to write their
// golden files before those that state the difference to them.
func readCases(t *testing.T, dir string) []*Case {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var whole, based []*Case
	for _, f := range files {
		c := ReadCase(t, filepath.Join(dir, f.Name()))
		if c.Base == "" {
			whole = append(whole, c)
		} else {
			based = append(based, c)
		}
	}
	return append(whole, based...)
}

func readCase(path string) (*Case, error) {
	c, err := parseCase(path)
	if err != nil || c.Base == "" {
		return c, err
	}
	base, err := parseCase(filepath.Join(filepath.Dir(path), c.Base+filepath.Ext(path)))
	if err != nil {
		return nil, errors.Wrapf(err, "base %s", c.Base)
	}
	if base.Base != "" {
		return nil, errors.Errorf("the base %s has the base %s itself", c.Base, base.Base)
	}
	objects := base.Objects
	for _, change := range c.Objects {
		if objects, err = apply(objects, change); err != nil {
			return nil, errors.Wrap(err, identify(change).String())
		}
	}
	c.Objects = objects
	return c, nil
}

// parseCase reads the file of a case, with the file's documents as objects.
func parseCase(path string) (*Case, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read a case")
	}
	text, ok := strings.CutPrefix(string(b), prefixLicense)
	if !ok {
		return nil, errors.New("the license is missing at the top")
	}
	c := &Case{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	var reason []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if c.Base, ok = strings.CutPrefix(line, prefixBase); ok {
			break
		}
		c.Base = ""
		words, ok := strings.CutPrefix(line, prefixReason)
		if !ok {
			break
		}
		reason = append(reason, words)
	}
	if c.Reason = strings.Join(reason, " "); c.Reason == "" {
		return nil, errors.New("the reason for the case is missing below the license")
	}
	if c.Objects, err = documents(text); err != nil {
		return nil, err
	}
	seen := map[identity]bool{}
	for _, o := range c.Objects {
		if seen[identify(o)] {
			return nil, errors.Errorf("%s occurs twice", identify(o))
		}
		seen[identify(o)] = true
	}
	return c, nil
}

// documents parses YAML. It skips documents without content.
func documents(text string) ([]map[string]any, error) {
	var out []map[string]any
	for doc := range strings.SplitSeq(text, "\n---\n") {
		m := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(doc), &m); err != nil {
			return nil, errors.Wrap(err, "cannot parse YAML")
		}
		if len(m) > 0 {
			out = append(out, m)
		}
	}
	return out, nil
}

// An identity distinguishes the objects of a case.
type identity struct{ apiVersion, kind, namespace, name string }

func identify(object map[string]any) identity {
	o := &unstructured.Unstructured{Object: object}
	return identity{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}
}

func (i identity) String() string {
	return fmt.Sprintf("%s %s %s", i.apiVersion, i.kind, strings.TrimPrefix(i.namespace+"/"+i.name, "/"))
}

// with returns fields together with those of the identity.
func (i identity) with(fields map[string]any) map[string]any {
	o := &unstructured.Unstructured{Object: maps.Clone(fields)}
	o.SetAPIVersion(i.apiVersion)
	o.SetKind(i.kind)
	o.SetNamespace(i.namespace)
	o.SetName(i.name)
	return o.Object
}

// apply applies one document of a case with a base to the objects of the base.
func apply(objects []map[string]any, change map[string]any) ([]map[string]any, error) {
	id := identify(change)
	i := slices.IndexFunc(objects, func(o map[string]any) bool { return identify(o) == id })
	if _, ok := change[directive]; ok {
		switch {
		case !cmp.Equal(change, id.with(map[string]any{directive: directiveDelete})):
			return nil, errors.Errorf("want only what identifies the object beside %s: %s", directive, directiveDelete)
		case i < 0:
			return nil, errors.New("the base does not have the object to delete")
		case i == 0:
			return nil, errors.New("the composite cannot be deleted")
		}
		return slices.Delete(objects, i, i+1), nil
	}
	if i < 0 {
		return append(objects, change), nil
	}
	object, err := patched(objects[i], change)
	if err != nil {
		return nil, err
	}
	objects[i] = object
	return objects, nil
}

// patched returns an object with a merge patch applied. It returns an error if a shorter patch has
// the same effect.
func patched(object, patch map[string]any) (map[string]any, error) {
	original, err := json.Marshal(object)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode the object")
	}
	patchJSON, err := json.Marshal(patch)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode the patch")
	}
	result, err := jsonpatch.MergePatch(original, patchJSON)
	if err != nil {
		return nil, errors.Wrap(err, "cannot apply the patch")
	}
	shortest, err := jsonpatch.CreateMergePatch(original, result)
	if err != nil {
		return nil, errors.Wrap(err, "cannot compare the object with the base's")
	}
	changes, out := map[string]any{}, map[string]any{}
	if err := json.Unmarshal(shortest, &changes); err != nil {
		return nil, errors.Wrap(err, "cannot decode the changes")
	}
	if err := json.Unmarshal(result, &out); err != nil {
		return nil, errors.Wrap(err, "cannot decode the object")
	}
	if len(changes) == 0 {
		return nil, errors.New("the patch has no effect")
	}
	if diff := cmp.Diff(identify(object).with(changes), patch); diff != "" {
		return nil, errors.Errorf("parts of the patch have no effect: -shortest, +patch:\n%s", diff)
	}
	return out, nil
}
