// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfragment

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// warned holds Tailscale's warnings about the policy file when each object last wrote it. A
// condition that Create sets is lost: the managed reconciler then writes an annotation, and
// replaces the object with the response, which has the previous status.
type warned struct {
	mu      sync.Mutex
	entries map[types.UID][]string
}

func (w *warned) set(uid types.UID, warnings []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.entries == nil {
		w.entries = map[types.UID][]string{}
	}
	w.entries[uid] = warnings
}

// get returns the warnings of the object's last write, and whether there was one since the process
// started.
func (w *warned) get(uid types.UID) ([]string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	warnings, ok := w.entries[uid]
	return warnings, ok
}

func (w *warned) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.entries, uid)
}

// warn sets a condition with Tailscale's warnings about the policy file that the object wrote. The
// warnings may concern any part of the file.
func warn(mg *v1alpha1.PolicyFragment, warnings []string) {
	c := xpv2.Condition{Type: meta.TypePolicyWarnings, LastTransitionTime: metav1.Now()}
	switch {
	case len(warnings) > 0:
		c.Status, c.Reason = corev1.ConditionTrue, meta.ReasonWarnings
		c.Message = "Tailscale took the policy file with warnings, which may be about other parts of it: " + strings.Join(warnings[:min(len(warnings), maxShown)], "; ")
		if len(warnings) > maxShown {
			c.Message += "; and more"
		}
	case mg.GetCondition(meta.TypePolicyWarnings).Status == corev1.ConditionTrue:
		c.Status, c.Reason = corev1.ConditionFalse, meta.ReasonNoWarnings
	default:
		return
	}
	mg.SetConditions(c)
}
