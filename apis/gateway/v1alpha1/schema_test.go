// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/tailscale-gateway/tailscale-gateway/package/configuration"
	claims "github.com/tailscale-gateway/tailscale-gateway/package/configuration-claims"
)

// A served is a kind as the API server serves it, from the CustomResourceDefinition that
// Crossplane creates.
type served struct {
	crd        *extv1.CustomResourceDefinition
	internal   *apiextensions.JSONSchemaProps
	structural *schema.Structural

	// claims are the kind in the configuration of claims: the claim, and the composite that
	// receives the fields of the claim.
	claims []served

	// Both are expensive to build. The second is nil for a kind without rules.
	schema validation.SchemaValidator
	rules  *schemacel.Validator
}

// loaded caches kinds by plural name, because the cost estimation of rules takes seconds.
var loaded = map[string]served{}

// load returns a kind by its plural name. It fails unless an API server accepts it in both
// configurations, including the cost of its rules.
func load(t *testing.T, plural string) served {
	t.Helper()
	if s, ok := loaded[plural]; ok {
		return s
	}
	composites, err := configuration.Files()
	if err != nil {
		t.Fatal(err)
	}
	legacy, err := claims.Files()
	if err != nil {
		t.Fatal(err)
	}
	xrd := definition(t, composites, plural)
	crd, err := xcrd.ForCompositeResource(xrd)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, crd)
	if xrd = definition(t, legacy, plural); xrd.OffersClaim() {
		claim, err := xcrd.ForCompositeResourceClaim(xrd)
		if err != nil {
			t.Fatal(err)
		}
		composite, err := xcrd.ForCompositeResource(xrd)
		if err != nil {
			t.Fatal(err)
		}
		s.claims = []served{serve(t, claim), serve(t, composite)}
		checkSame(t, crd, claim)
	}
	loaded[plural] = s
	return s
}

// checkSame fails unless a claim and a composite have the same schema for users.
func checkSame(t *testing.T, composite, claim *extv1.CustomResourceDefinition) {
	t.Helper()
	names := func(crd *extv1.CustomResourceDefinition) extv1.CustomResourceDefinitionNames {
		n := *crd.Spec.Names.DeepCopy()
		n.Categories = slices.DeleteFunc(n.Categories, func(c string) bool { return c == xcrd.CategoryClaim || c == xcrd.CategoryComposite })
		return n
	}
	if diff := cmp.Diff(names(composite), names(claim)); diff != "" {
		t.Errorf("names: -composite, +claim:\n%s", diff)
	}
	if diff := cmp.Diff(composite.Spec.Scope, claim.Spec.Scope); diff != "" {
		t.Errorf("scope: -composite, +claim:\n%s", diff)
	}
	if diff := cmp.Diff(composite.Spec.Versions[0].Subresources, claim.Spec.Versions[0].Subresources); diff != "" {
		t.Errorf("subresources: -composite, +claim:\n%s", diff)
	}
}

// definition returns a definition of a configuration's folder.
func definition(t *testing.T, files map[string][]byte, plural string) *xpextv1.CompositeResourceDefinition {
	t.Helper()
	b, ok := files["xrds/gateway.tailscale.com_"+plural+".yaml"]
	if !ok {
		t.Fatalf("no XRD defines %s", plural)
	}
	xrd := &xpextv1.CompositeResourceDefinition{}
	if err := yaml.Unmarshal(b, xrd); err != nil {
		t.Fatal(err)
	}
	return xrd
}

// serve builds a kind as an API server does.
func serve(t *testing.T, crd *extv1.CustomResourceDefinition) served {
	t.Helper()
	// The API server sets these, and Crossplane sets the owner's UID.
	crd.OwnerReferences = nil
	crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	extv1.SetDefaults_CustomResourceDefinition(crd)
	extv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	c := &apiextensions.CustomResourceDefinition{}
	if err := extv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), c, nil); err != nil {
		t.Fatal(err)
	}
	for _, e := range extvalidation.ValidateCustomResourceDefinition(t.Context(), c) {
		t.Errorf("an API server would not take the definition: %v", e)
	}
	s := served{crd: crd, internal: &apiextensions.JSONSchemaProps{}}
	var err error
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, s.internal, nil); err != nil {
		t.Fatal(err)
	}
	if s.structural, err = schema.NewStructural(s.internal); err != nil {
		t.Fatal(err)
	}
	if s.schema, _, err = validation.NewSchemaValidator(s.internal); err != nil {
		t.Fatal(err)
	}
	s.rules = schemacel.NewValidator(s.structural, true, cel.PerCallLimit)
	return s
}

// create validates an object as the API server does when it is created.
func (s served) create(t *testing.T, spec string) field.ErrorList {
	t.Helper()
	manifest := "apiVersion: " + s.crd.Spec.Group + "/" + s.crd.Spec.Versions[0].Name + "\nkind: " + s.crd.Spec.Names.Kind + "\nmetadata: {name: web, namespace: default}\nspec: " + spec
	return s.validate(t, parse(t, manifest), nil)
}

// parse returns an object, and nil for an empty text.
func parse(t *testing.T, y string) map[string]any {
	t.Helper()
	if y == "" {
		return nil
	}
	j, err := yaml.YAMLToJSON([]byte(y))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	// Whole numbers are integers, as the API server reads them.
	if err := utiljson.Unmarshal(j, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// validate returns the errors of creating an object, or of updating old to it. It fails if the
// errors of a claim differ.
func (s served) validate(t *testing.T, o, old map[string]any) field.ErrorList {
	t.Helper()
	original, previous := runtime.DeepCopyJSON(o), runtime.DeepCopyJSON(old)
	errs := s.answer(t, o, old)
	for _, c := range s.claims {
		claim := runtime.DeepCopyJSON(original)
		got := c.answer(t, claim, runtime.DeepCopyJSON(previous))
		if diff := cmp.Diff(messages(errs), messages(got)); diff != "" {
			t.Errorf("answers: -%s, +%s of claims:\n%s", s.crd.Spec.Names.Kind, c.crd.Spec.Names.Kind, diff)
		}
		// Crossplane adds the deletion policy of claims.
		if spec, ok := claim["spec"].(map[string]any); ok {
			delete(spec, "compositeDeletePolicy")
		}
		if diff := cmp.Diff(o, claim); diff != "" {
			t.Errorf("defaults: -%s, +%s of claims:\n%s", s.crd.Spec.Names.Kind, c.crd.Spec.Names.Kind, diff)
		}
	}
	return errs
}

// messages returns the sorted messages of errors.
func messages(errs field.ErrorList) []string {
	out := make([]string, 0, len(errs))
	for _, e := range errs {
		out = append(out, e.Error())
	}
	slices.Sort(out)
	return out
}

// answer returns the errors of the API server for creating an object, or for updating old to it.
func (s served) answer(t *testing.T, o, old map[string]any) field.ErrorList {
	t.Helper()
	defaulting.Default(o, s.structural)
	errs := validation.ValidateCustomResource(nil, o, s.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, o)...)
	if s.rules == nil {
		return errs
	}
	var previous any
	if old != nil {
		defaulting.Default(old, s.structural)
		previous = old
	}
	more, _ := s.rules.Validate(t.Context(), nil, s.structural, o, previous, cel.RuntimeCELCostBudget)
	return append(errs, more...)
}

// judge fails unless the errors contain all wanted texts. Without wanted texts, the object must
// be valid.
func judge(t *testing.T, reason string, errs field.ErrorList, want ...string) {
	t.Helper()
	want = slices.DeleteFunc(slices.Clone(want), func(w string) bool { return w == "" })
	switch err := errs.ToAggregate(); {
	case len(want) == 0 && err != nil:
		t.Errorf("%s: refused: %v", reason, err)
	case len(want) > 0 && err == nil:
		t.Errorf("%s: the object is valid", reason)
	case err != nil:
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: the errors do not contain %q: %v", reason, w, err)
			}
		}
	}
}

// TestServed checks that an API server accepts every definition of the configuration.
func TestServed(t *testing.T) {
	for _, plural := range []string{"tailscaleendpoints", "tailscalegateways", "tailscaleproxygroups", "tailscaleservices", "tailscaletailnets"} {
		t.Run(plural, func(t *testing.T) { load(t, plural) })
	}
}

// TestScale checks the paths that kubectl scale reads and writes.
func TestScale(t *testing.T) {
	for plural, path := range map[string]string{
		"tailscaleendpoints":   ".spec.proxy.replicas",
		"tailscaleproxygroups": ".spec.replicas",
	} {
		t.Run(plural, func(t *testing.T) { scale(t, load(t, plural), path) })
	}
}

func scale(t *testing.T, s served, specPath string) {
	t.Helper()
	got := s.crd.Spec.Versions[0].Subresources.Scale
	want := &extv1.CustomResourceSubresourceScale{
		SpecReplicasPath:   specPath,
		StatusReplicasPath: ".status.replicas",
		LabelSelectorPath:  ptr.To(".status.selector"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want, +got:\n%s", diff)
	}
	for _, path := range []string{got.SpecReplicasPath, got.StatusReplicasPath, *got.LabelSelectorPath} {
		p := *s.crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, f := range strings.Split(path, ".")[1:] {
			var ok bool
			if p, ok = p.Properties[f]; !ok {
				t.Errorf("%s is not in the schema", path)
			}
		}
	}
}
