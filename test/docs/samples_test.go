// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/tailscale-gateway/tailscale-gateway/package/function/input"
)

// domain ends the API groups of our kinds.
const domain = "gateway.tailscale.com"

// separator is the line between two documents of a YAML stream.
var separator = regexp.MustCompile(`(?m)^---\n`)

// A sample is one document of a YAML block, and the line of the block's fence.
type sample struct {
	line int
	text string
}

// samples returns the documents of a page's YAML blocks.
func samples(page string) []sample {
	var out []sample
	var block []string
	start, indent, inside := 0, "", false
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case !inside && trimmed == "```yaml":
			start, inside, block = i+1, true, nil
			indent, _, _ = strings.Cut(line, "`")
		case inside && trimmed == "```":
			inside = false
			for _, d := range separator.Split(strings.Join(block, "\n"), -1) {
				out = append(out, sample{line: start, text: d})
			}
		case inside:
			block = append(block, strings.TrimPrefix(line, indent))
		}
	}
	return out
}

// A kind validates objects as the API server that serves it does.
type kind struct {
	structural *schema.Structural
	openAPI    validation.SchemaValidator
	rules      *schemacel.Validator
}

// newKind returns the validator of a definition's only version.
func newKind(crd *extv1.CustomResourceDefinition) (*kind, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, errors.Wrap(err, "cannot convert the schema")
	}
	k := &kind{}
	var err error
	if k.structural, err = schema.NewStructural(internal); err != nil {
		return nil, errors.Wrap(err, "the schema is not structural")
	}
	if k.openAPI, _, err = validation.NewSchemaValidator(internal); err != nil {
		return nil, errors.Wrap(err, "cannot build a validator")
	}
	k.rules = schemacel.NewValidator(k.structural, true, cel.PerCallLimit)
	return k, nil
}

// validate returns the reasons why an object is invalid. Unknown fields are among them.
func (k *kind) validate(t *testing.T, o map[string]any) []string {
	t.Helper()
	var out []string
	for _, f := range pruning.PruneWithOptions(o, k.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		out = append(out, f+": unknown field")
	}
	defaulting.Default(o, k.structural)
	errs := validation.ValidateCustomResource(nil, o, k.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, o)...)
	// Rules expect an object that is valid according to the schema.
	if k.rules != nil && len(errs) == 0 {
		errs, _ = k.rules.Validate(t.Context(), nil, k.structural, o, nil, cel.RuntimeCELCostBudget)
	}
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}

// definitions returns our kinds, by apiVersion and kind: managed kinds, composites, and those of
// the extension.
func definitions(t *testing.T) map[string]*extv1.CustomResourceDefinition {
	t.Helper()
	out := map[string]*extv1.CustomResourceDefinition{}
	add := func(path string, b []byte) {
		crd, err := parseDefinition(b)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out[crd.Spec.Group+"/"+crd.Spec.Versions[0].Name+" "+crd.Spec.Names.Kind] = crd
	}
	for _, pattern := range []string{"package/provider/crds/*.yaml", "package/charts/*/files/crds/*.yaml", "package/configuration/xrds/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no definitions match %s: %v", pattern, err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			add(path, b)
		}
	}
	inputs, err := input.Files()
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range inputs {
		add(path, b)
	}
	return out
}

// parseDefinition parses a CustomResourceDefinition, or derives the one that Crossplane creates from a
// CompositeResourceDefinition.
func parseDefinition(b []byte) (*extv1.CustomResourceDefinition, error) {
	crd := &extv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(b, crd); err != nil {
		return nil, errors.Wrap(err, "cannot parse the definition")
	}
	if crd.Kind != xpextv1.CompositeResourceDefinitionKind {
		return crd, nil
	}
	xrd := &xpextv1.CompositeResourceDefinition{}
	if err := yaml.Unmarshal(b, xrd); err != nil {
		return nil, errors.Wrap(err, "cannot parse the definition")
	}
	return xcrd.ForCompositeResource(xrd)
}

// A checker validates samples, and keeps the validators that it has built: they take a while.
type checker struct {
	definitions map[string]*extv1.CustomResourceDefinition
	kinds       map[string]*kind
}

// faults returns what is wrong with a sample, and whether it is an object of our kinds. Fragments
// and objects of other projects only need to be YAML.
func (c *checker) faults(t *testing.T, text string) ([]string, bool) {
	t.Helper()
	j, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return []string{err.Error()}, false
	}
	o := map[string]any{}
	// Lists, which begin some fragments, are no objects.
	if err := utiljson.Unmarshal(j, &o); err != nil {
		return nil, false
	}
	version, ok := o["apiVersion"].(string)
	group, _, _ := strings.Cut(version, "/")
	if !ok || group != domain && !strings.HasSuffix(group, "."+domain) {
		return nil, false
	}
	id := fmt.Sprintf("%s %v", version, o["kind"])
	crd, ok := c.definitions[id]
	if !ok {
		return []string{"no such kind: " + id}, true
	}
	if c.kinds[id] == nil {
		if c.kinds[id], err = newKind(crd); err != nil {
			return []string{err.Error()}, true
		}
	}
	return c.kinds[id].validate(t, o), true
}

func TestSamples(t *testing.T) {
	c := &checker{definitions: definitions(t), kinds: map[string]*kind{}}
	count := 0
	for _, name := range files(t, ".", ".md") {
		if strings.HasPrefix(name, "docs/reference/") {
			continue // These show files of examples/managed, which other tests apply.
		}
		for _, s := range samples(text(t, name)) {
			faults, ours := c.faults(t, s.text)
			for _, f := range faults {
				t.Errorf("%s:%d: %s", name, s.line, f)
			}
			if ours {
				count++
			}
		}
	}
	if count == 0 {
		t.Error("no samples")
	}
}

func TestSampleFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		page   string
		want   []string
	}{
		"Good": {
			reason: "An object, a fragment and an object of another project are good.",
			page:   "```yaml\napiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleServices\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: proxies}}\n---\nkind: Secret\napiVersion: v1\n```\n\n```yaml\n- {name: a}\n```\n",
		},
		"UnknownField": {
			reason: "A misspelled field is reported, also in a block of a list's item.",
			page:   "- item\n\n  ```yaml\n  apiVersion: gateway.tailscale.com/v1alpha1\n  kind: TailscaleServices\n  metadata: {name: web}\n  spec:\n    selector: {matchLabels: {app: proxies}}\n    selektor: {}\n  ```\n",
			want:   []string{"spec.selektor: unknown field"},
		},
		"UnknownKind": {
			reason: "A kind that does not exist is reported.",
			page:   "```yaml\napiVersion: tailnet.gateway.tailscale.com/v1alpha1\nkind: Nothing\n```\n",
			want:   []string{"no such kind: tailnet.gateway.tailscale.com/v1alpha1 Nothing"},
		},
		"NoYAML": {
			reason: "A key twice is no YAML.",
			page:   "```yaml\na: 1\na: 2\n```\n",
			want:   []string{"yaml: unmarshal errors:\n  line 2: key \"a\" already set in map"},
		},
	}
	c := &checker{definitions: definitions(t), kinds: map[string]*kind{}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range samples(tc.page) {
				faults, _ := c.faults(t, s.text)
				got = append(got, faults...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nfaults(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
