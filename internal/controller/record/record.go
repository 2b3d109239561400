// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package record keeps what a managed object has written to its tailnet in an annotation of the
// object, because a status may be lost. Controllers save the record before they write to the
// tailnet. After a crash between the two, the record still names everything in the tailnet.
package record

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
)

// An Annotation is the key of an annotation that holds records of one kind of objects.
type Annotation string

// Exists reports whether an object has a record.
func (a Annotation) Exists(o metav1.Object) bool { return o.GetAnnotations()[string(a)] != "" }

// Read decodes an object's record into the map that target points to. Without a record the map stays
// unchanged.
func (a Annotation) Read(o metav1.Object, target any) error {
	v := o.GetAnnotations()[string(a)]
	if v == "" {
		return nil
	}
	return errors.Wrapf(json.Unmarshal([]byte(v), target), "cannot read annotation %s; remove it, and what the object set stays in the tailnet", string(a))
}

// Save writes a record to an object, unless the object has it already. An empty record
// removes the annotation.
func Save[M ~map[string]V, V any](ctx context.Context, kube client.Client, o client.Object, a Annotation, r M) error {
	v, err := Encode(r)
	if err != nil {
		return err
	}
	return errors.Wrap(kinds.Annotate(ctx, kube, o, string(a), v), "cannot record what is written")
}

// Correct replaces the record that Save wrote before a write to the tailnet, once an answer shows
// that it is wrong. It also does so if somebody else has changed the object since. Live reads from
// the API server.
func Correct[M ~map[string]V, V any](ctx context.Context, kube client.Client, live client.Reader, o client.Object, a Annotation, r M) error {
	v, err := Encode(r)
	if err != nil {
		return err
	}
	return errors.Wrap(kinds.CorrectAnnotation(ctx, kube, live, o, string(a), v), "cannot correct the record of what is written")
}

// Encode returns the annotation's value for a record. An empty record gives an empty value.
func Encode[M ~map[string]V, V any](r M) (string, error) {
	if len(r) == 0 {
		return "", nil
	}
	b, err := json.Marshal(r)
	return string(b), errors.Wrap(err, "cannot encode the record")
}
