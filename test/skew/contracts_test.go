// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// contracts are the types that one component writes and another reads, by their names in
// docs/skew.md.
var contracts = []struct {
	name  string
	value any
}{
	{"MachineSet spec", tailnetv1alpha1.MachineSetSpec{}},
	{"MachineSet status", tailnetv1alpha1.MachineSetStatus{}},
	{"Machine status", tailnetv1alpha1.MachineStatus{}},
	{"ServiceAttachment spec", tailnetv1alpha1.ServiceAttachmentSpec{}},
	{"ProxySet spec", tailnetv1alpha1.ProxySetSpec{}},
	{"GatewayReport spec", tailnetv1alpha1.GatewayReportSpec{}},
	{"HealthReport spec", tailnetv1alpha1.HealthReportSpec{}},
	{"TailscaleRevision spec", gatewayv1alpha1.TailscaleRevisionSpec{}},
	{"Egress ports", egress.Config{}},
	{"Zone", zone.Zone{}},
	{"Record of a cluster", registry.Record{}},
}

// names are the names by which components find each other's objects and values.
var names = map[string]string{
	"ConfigMap key of egress ports":     egress.ConfigMapKey,
	"ConfigMap key of the zone":         zone.ConfigMapKey,
	"Secret key of tailscaled's config": meta.ConfigKey,
	"Suffix of a config Secret":         meta.ConfigSecretSuffix,
	"Annotation of a node ID":           meta.AnnotationNodeID,
	"Annotation of a service's owner":   meta.AnnotationOwner,
	"Annotation of a record":            meta.AnnotationRecord,
	"Annotation of the records' schema": meta.AnnotationSchemaVersion,
	"Schema of the records":             meta.SchemaVersion,
	"Agent's ConfigMap of egress ports": proxy.EnvEgressConfigMap,
	"Agent's ConfigMap of the zone":     proxy.EnvDNSConfigMap,
	"Agent's kind of networking":        proxy.EnvNetworking,
}

// TestContracts compares the JSON form of each contract with testdata/contracts.txt.
//
// A new line needs a field that older readers may ignore, and that newer readers may miss. A line
// that changes or disappears breaks components of the previous version: keep the field for one
// more minor version instead, as docs/skew.md describes.
func TestContracts(t *testing.T) {
	const path = "testdata/contracts.txt"
	got := &strings.Builder{}
	for _, c := range contracts {
		fmt.Fprintf(got, "# %s\n", c.name)
		walk(got, "", reflect.TypeOf(c.value))
	}
	fmt.Fprintln(got, "# Names")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(got, "%s: %s\n", name, names[name])
	}
	if golden.Updating() {
		if err := os.WriteFile(path, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("-pinned contracts, +contracts; see docs/skew.md:\n%s", diff)
	}
}

// walk writes a line for each field of a type: its path, its type in JSON, and whether it may be
// absent. Types of other modules are one line, because their own projects keep them compatible.
func walk(out *strings.Builder, path string, t reflect.Type) {
	for f := range fields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported():
			continue
		case tag == "" && (f.Anonymous || strings.Contains(options, "inline")):
			walk(out, path, f.Type)
			continue
		}
		kind, inner := form(f.Type)
		optional := ""
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			optional = ", optional"
		}
		fmt.Fprintf(out, "%s%s: %s%s\n", path, tag, kind, optional)
		if inner != nil {
			walk(out, path+tag+strings.TrimSuffix(kind, "object")+".", inner)
		}
	}
}

// fields returns the fields of a struct.
func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// form returns the type of a value in JSON, with [] for a list and {} for a map before it, and
// the struct whose fields are part of the contract, or nil.
func form(t reflect.Type) (string, reflect.Type) {
	if t.Kind() == reflect.Pointer {
		return form(t.Elem())
	}
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(marshaler), pointer.Implements(textMarshaler):
		return t.String(), nil
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		kind, inner := form(t.Elem())
		return "[]" + kind, inner
	case t.Kind() == reflect.Map:
		kind, inner := form(t.Elem())
		return "{}" + kind, inner
	case t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), "github.com/tailscale-gateway/"):
		return "object", t
	case t.Kind() == reflect.Struct:
		return t.String(), nil
	}
	return t.Kind().String(), nil
}

// TestReaders checks that readers ignore what a newer writer adds, and accept what an older writer
// leaves out.
func TestReaders(t *testing.T) {
	cases := map[string]struct {
		reason string
		read   func(string) (any, error)
		text   string
		want   any
	}{
		"EgressNewer": {
			reason: "An agent ignores fields that a newer function writes.",
			read:   func(s string) (any, error) { return egress.Decode(s) },
			text:   `{"targets":[{"key":"endpoint/db/5432","host":"100.64.0.1","port":5432,"protocol":"TCP","proxyPort":10000,"later":{"a":1}}],"later":[1]}`,
			want:   egress.Config{Targets: []egress.Target{{Key: "endpoint/db/5432", Host: "100.64.0.1", Port: 5432, Protocol: "TCP", ProxyPort: 10000}}},
		},
		"EgressOlder": {
			reason: "An agent accepts a config without optional fields.",
			read:   func(s string) (any, error) { return egress.Decode(s) },
			text:   `{"targets":[]}`,
			want:   egress.Config{Targets: []egress.Target{}},
		},
		"ZoneNewer": {
			reason: "An agent ignores fields that a newer function writes.",
			read:   func(s string) (any, error) { return zone.Decode(s) },
			text:   `{"domains":[{"name":"example.com","later":true}],"later":1}`,
			want:   zone.Zone{Domains: []zone.Domain{{Name: "example.com"}}},
		},
		"ZoneOlder": {
			reason: "An agent accepts a zone without optional fields.",
			read:   func(s string) (any, error) { return zone.Decode(s) },
			text:   `{}`,
			want:   zone.Zone{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.read(tc.text)
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPage checks that docs/skew.md describes every contract.
func TestPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/skew.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contracts {
		if !strings.Contains(string(b), "| "+c.name+" |") {
			t.Errorf("docs/skew.md does not describe %q", c.name)
		}
	}
}
