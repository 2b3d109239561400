// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// joined returns a machine that is in its tailnet.
func joined(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.settle()
	w.api.use("k1", "n1", now)
	w.write(map[string]string{"device_id": "n1"})
	w.settle()
	if w.ready().Status != corev1.ConditionTrue {
		t.Fatalf("want the machine to be Ready, got %v", w.ready())
	}
	return w
}

// TestTailnetChanged changes the tailnet of a machine's provider config.
func TestTailnetChanged(t *testing.T) {
	w := joined(t)
	before := w.api
	w.api = newAPI()
	w.api.devices["theirs"] = tailscale.Device{NodeID: "theirs", Name: "theirs.other.ts.net"}
	w.now = w.now.Add(time.Hour)

	// The node stays logged in to the first tailnet. It requests no key, and would get none.
	w.settle()
	if c := w.ready(); c.Reason != meta.ReasonTailnetChanged || c.Status != corev1.ConditionFalse {
		t.Errorf("want the condition to say that the tailnet changed, got %v", c)
	}
	w.write(map[string]string{"device_id": "n1", "reissue_authkey": ""})
	w.settle()
	if w.api.minted != 0 {
		t.Error("a key was minted in the other tailnet")
	}
	deleted := metav1.NewTime(w.now)
	w.mg.DeletionTimestamp = &deleted
	if _, err := w.external().Delete(t.Context(), w.mg); err == nil {
		t.Error("Delete(...): want an error: the device is in the tailnet from before")
	}
	if o, err := w.external().Observe(t.Context(), w.mg); err != nil || !o.ResourceExists {
		t.Errorf("Observe(...): want the machine to exist, got %v, %v", o, err)
	}

	// The config leads back to the first tailnet.
	w.api = before
	w.settle()
	w.empty()
}

// TestTailnetRenamed changes the DNS name of the tailnet, as an admin does.
func TestTailnetRenamed(t *testing.T) {
	w := joined(t)
	d := w.api.devices["n1"]
	d.Name = "default-edge-ingress-0.renamed.ts.net"
	w.api.devices["n1"] = d
	w.settle()
	if got := w.mg.GetAnnotations()[annotationTailnet]; w.ready().Status != corev1.ConditionTrue || got != "renamed.ts.net" {
		t.Errorf("want the machine to be Ready in the tailnet's new name, got %q, %v", got, w.ready())
	}
	deleted := metav1.NewTime(w.now)
	w.mg.DeletionTimestamp = &deleted
	w.settle()
	w.empty()
}
