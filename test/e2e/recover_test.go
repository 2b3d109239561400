// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// expireKey makes a device log in again, as an expired key does.
func expireKey(t *testing.T, nodeID string) {
	t.Helper()
	tailnetOne.post(t, "device/"+nodeID+"/expire", "")
}

// recovers removes from each of several proxies another part of its registration. Each must come
// back without help, as another device, and leave nothing behind. There are several machines
// because kubelet waits longer before each restart of a container.
func recovers(t *testing.T) {
	losses := []struct {
		name string
		lose func(t *testing.T, machine, nodeID string)
	}{
		{"DeletedDevice", func(t *testing.T, _, nodeID string) {
			t.Helper()
			if err := tailnetClient(t).Devices().Delete(t.Context(), nodeID); err != nil {
				t.Fatalf("cannot delete the device: %v", err)
			}
		}},
		{"ExpiredKey", func(t *testing.T, _, nodeID string) {
			t.Helper()
			expireKey(t, nodeID)
		}},
		{"LostState", func(t *testing.T, machine, _ string) {
			t.Helper()
			kubectl(t, "delete", "secret", machine, "-n", namespace, "--wait=false")
		}},
	}
	scale(t, len(losses))
	t.Run("Parallel", func(t *testing.T) {
		for i, loss := range losses {
			t.Run(loss.name, func(t *testing.T) {
				t.Parallel()
				machine := fmt.Sprintf("proxies-ingress-%d", i)
				previous := jsonpath(t, "machines", machine, "{.status.atProvider.nodeID}")
				loss.lose(t, machine, previous)
				took := eventually(t, 4*time.Minute, "another device in place of "+previous, func() string {
					current := jsonpath(t, "machines", machine, "{.status.atProvider.nodeID}")
					ready := jsonpath(t, "machines", machine, "{.status.conditions[?(@.type=='Ready')].status}")
					if current == previous || ready != "True" {
						return fmt.Sprintf("node %s, Ready %s", current, ready)
					}
					return ""
				})
				t.Logf("back after %s", took.Round(time.Second))
			})
		}
	})
	// All serve again, and the old devices and keys are gone.
	scale(t, len(losses))
	answered(t, "web", "web", 2*time.Minute)
}
