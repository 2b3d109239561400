// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package objecttest makes objects of manifests, for tests.
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

// Of manifests in YAML, in the namespace shop unless they say another. Fields that a kind
// does not have fail the test.
type Of func(t testing.TB, manifests ...string) []client.Object

// With the kinds of a scheme; others become unstructured. Scheme is called once, when it
// is needed.
func With(scheme func() (*runtime.Scheme, error)) Of {
	// It is made once, for it takes long.
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
