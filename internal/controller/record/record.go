// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package record keeps what a managed object has written to its tailnet in an annotation of
// the object. A status may be lost; a record is not. Controllers save it before they write,
// so that a crash between the two leaves nothing in the tailnet that no record names.
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

// Read decodes an object's record into the map that into points to. It leaves the map as it
// is if there is none.
func (a Annotation) Read(o metav1.Object, into any) error {
	v := o.GetAnnotations()[string(a)]
	if v == "" {
		return nil
	}
	return errors.Wrapf(json.Unmarshal([]byte(v), into), "cannot read annotation %s; remove it, and what the object set stays in the tailnet", string(a))
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

// Encode returns the value of the annotation with a record, empty if the record is.
func Encode[M ~map[string]V, V any](r M) (string, error) {
	if len(r) == 0 {
		return "", nil
	}
	b, err := json.Marshal(r)
	return string(b), errors.Wrap(err, "cannot encode the record")
}
