// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// annotationRecord is on a DNS that has written something: its value is a record
// in JSON. It is no status: a status may be lost.
const annotationRecord = "tailnet.gateway.tailscale.com/dns-record"

// A record says which parts are an object's own, and which values it has given
// them. It is written before the parts are, so that a crash between the two
// leaves no part that nobody knows. Several values of a part mean that the last
// write of it may not have happened. A record of MagicDNS means that it must be
// turned on again.
type record map[string][][]string

// readRecord returns the record of an object, empty if there is none.
func readRecord(o metav1.Object) (record, error) {
	r := record{}
	v := o.GetAnnotations()[annotationRecord]
	if v == "" {
		return r, nil
	}
	return r, errors.Wrapf(json.Unmarshal([]byte(v), &r), "cannot read annotation %s; remove it, and what the object set stays in the tailnet", annotationRecord)
}

// encode returns the annotation's value, empty if there is nothing to record.
func (r record) encode() (string, error) {
	if len(r) == 0 {
		return "", nil
	}
	b, err := json.Marshal(r)
	return string(b), errors.Wrap(err, "cannot encode the record")
}

// gave reports whether the object has given a part these values.
func (r record) gave(part string, values []string) bool {
	return slices.ContainsFunc(r[part], func(v []string) bool { return slices.Equal(v, values) })
}
