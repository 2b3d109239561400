// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package objecttest decodes objects from manifests and applies them, for tests.
package objecttest

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Of decodes manifests in YAML. Objects without a namespace get the namespace shop. A field
// that a kind does not have fails the test.
type Of func(t testing.TB, manifests ...string) []client.Object

// With returns a decoder for the kinds of a scheme. Objects of other kinds become
// unstructured. With calls scheme once, when it is first needed.
func With(scheme func() (*runtime.Scheme, error)) Of {
	// The decoder is shared because it takes long to build.
	decoder := sync.OnceValues(func() (runtime.Decoder, error) {
		s, err := scheme()
		if err != nil {
			return nil, err
		}
		return serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer(), nil
	})
	return func(t testing.TB, manifests ...string) []client.Object {
		t.Helper()
		d, err := decoder()
		if err != nil {
			t.Fatal(err)
		}
		var out []client.Object
		for _, m := range manifests {
			r := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(m)))
			for {
				doc, err := r.Read()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if len(bytes.TrimSpace(doc)) > 0 {
					out = append(out, object(t, d, doc))
				}
			}
		}
		return out
	}
}

func object(t testing.TB, d runtime.Decoder, doc []byte) client.Object {
	t.Helper()
	decoded, _, err := d.Decode(doc, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		u := &unstructured.Unstructured{}
		err = yaml.Unmarshal(doc, &u.Object)
		decoded = u
	}
	if err != nil {
		t.Fatalf("cannot decode\n%s\n%v", doc, err)
	}
	o, ok := decoded.(client.Object)
	if !ok {
		t.Fatalf("%T is no object", decoded)
	}
	if o.GetNamespace() == "" {
		o.SetNamespace("shop")
	}
	return o
}
