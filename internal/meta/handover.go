// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationHandover is on a config Secret, which pods cannot write: a Handover, as JSON.
const AnnotationHandover = "gateway.tailscale.com/handover"

// A Handover is the provider's answer to a machine whose pod is being stopped: the services that it
// need not keep advertised.
type Handover struct {
	// StopTime is the machine's stoppingSince. An answer to an earlier stop means nothing.
	StopTime metav1.Time `json:"since"`

	// Services have another host that is advertised and accepted, or none will come.
	Services []string `json:"services,omitempty"`

	// Hosted are those of the services that have another host: control moves their addresses to it.
	Hosted []string `json:"hosted,omitempty"`
}
