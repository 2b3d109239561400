// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package splitdns

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// annotationRecord is on a SplitDNS that has written something: its value says in JSON
// which nameservers the object has added, by domain. It is no status: a status may be
// lost. It is written before the nameservers are, so that a crash between the two leaves
// none that nobody knows.
const annotationRecord = "tailnet.gateway.tailscale.com/splitdns-record"

// readRecord returns what an object has added, empty if that is nothing.
func readRecord(o metav1.Object) (servers, error) {
	r := servers{}
	v := o.GetAnnotations()[annotationRecord]
	if v == "" {
		return r, nil
	}
	return r, errors.Wrapf(json.Unmarshal([]byte(v), &r), "cannot read annotation %s; remove it, and what the object added stays in the tailnet", annotationRecord)
}

// encode returns the annotation's value, empty if there is nothing to record.
func (s servers) encode() (string, error) {
	if len(s) == 0 {
		return "", nil
	}
	b, err := json.Marshal(s)
	return string(b), errors.Wrap(err, "cannot encode the record")
}
