// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// hasSet reports whether the object has set these values of a part.
func (r values) hasSet(part string, vs []string) bool {
	return slices.ContainsFunc(r[part], func(v []string) bool { return slices.Equal(v, vs) })
}
