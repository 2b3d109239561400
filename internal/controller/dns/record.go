// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/record"
)

// annotationRecord holds the record of a DNS object.
const annotationRecord record.Annotation = "tailnet.gateway.tailscale.com/dns-record"

// values are the values that an object has set for its parts. Several values of a part mean that
// the result of its last write is unknown. A record of MagicDNS means that it must be turned on
// again.
type values map[string][][]string

// readRecord returns the record of an object. It is empty if there is none.
func readRecord(o metav1.Object) (values, error) {
	r := values{}
	return r, annotationRecord.Read(o, &r)
}

// facts returns the values that an object has set, and, unless it is being deleted, those that it
// wants. A switch is no fact: a deletion at most turns MagicDNS on.
func facts(mg *v1alpha1.DNS) ([]string, error) {
	all, err := readRecord(mg)
	if err != nil {
		return nil, err
	}
	if !xpmeta.WasDeleted(mg) {
		for part, vs := range wantedParts(mg.Spec.ForProvider) {
			all[part] = append(all[part], vs)
		}
	}
	var out []string
	for part, values := range all {
		if isSwitch(part) {
			continue
		}
		for _, vs := range values {
			out = append(out, part+" "+strings.Join(vs, " "))
		}
	}
	return out, nil
}

// hasSet reports whether the object has set these values of a part.
func (r values) hasSet(part string, vs []string) bool {
	return slices.ContainsFunc(r[part], func(v []string) bool { return slices.Equal(v, vs) })
}
