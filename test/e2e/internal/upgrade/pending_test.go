// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// list returns a list of kubectl get -o json.
func list(items ...string) []byte {
	return []byte(`{"kind": "List", "apiVersion": "v1", "items": [` + strings.Join(items, ",") + `]}`)
}

func provider(version, healthy string) string {
	return fmt.Sprintf(`{"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "p"}, "spec": {"package": "example.org/p:%[1]s"},
		"status": {"currentIdentifier": "example.org/p:%[1]s", "conditions": [{"type": "Installed", "status": "True", "reason": "ActivePackageRevision"}, {"type": "Healthy", "status": "%[2]s", "reason": "X"}]}}`, version, healthy)
}

func revision(name, state, healthy string) string {
	return fmt.Sprintf(`{"apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision", "metadata": {"name": "%s", "labels": {"pkg.crossplane.io/package": "p"}}, "spec": {"desiredState": "%s"},
		"status": {"conditions": [{"type": "RuntimeHealthy", "status": "%s", "reason": "X"}]}}`, name, state, healthy)
}

func runtimePod(revision string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "system", "name": "%[1]s", "labels": {"pkg.crossplane.io/revision": "%[1]s"}}}`, revision)
}

func TestPending(t *testing.T) {
	cases := map[string]struct {
		reason                    string
		packages, revisions, pods []byte
		want                      []string
	}{
		"Done": {
			reason:   "An inactive revision without a pod is Crossplane's history.",
			packages: list(provider("v2", "True")), revisions: list(revision("p-1", "Inactive", "False"), revision("p-2", "Active", "True")), pods: list(runtimePod("p-2")),
		},
		"Earlier": {
			reason:   "The package has another version.",
			packages: list(provider("v1", "True")), revisions: list(revision("p-2", "Active", "True")), pods: list(runtimePod("p-2")),
			want: []string{"Provider p: the package is example.org/p:v1, of which Crossplane has example.org/p:v1"},
		},
		"Unhealthy": {
			reason:   "Package and active revision must be healthy.",
			packages: list(provider("v2", "False")), revisions: list(revision("p-2", "Active", "False")), pods: list(runtimePod("p-2")),
			want: []string{`Provider p: Healthy is "False/X"`, "ProviderRevision p-2: RuntimeHealthy is False/X"},
		},
		"Stale": {
			reason:   "A pod of an inactive revision is left behind.",
			packages: list(provider("v2", "True")), revisions: list(revision("p-1", "Inactive", "True"), revision("p-2", "Active", "True")), pods: list(runtimePod("p-1"), runtimePod("p-2")),
			want: []string{`Pod system/p-1 runs revision "p-1", which is not active`},
		},
		"TwoActive": {
			reason:   "One revision of a package is active.",
			packages: list(provider("v2", "True")), revisions: list(revision("p-1", "Active", "True"), revision("p-2", "Active", "True")), pods: list(runtimePod("p-1"), runtimePod("p-2")),
			want: []string{"Provider p: the active revisions are [p-1 p-2]"},
		},
		"NoPod": {
			reason:   "An active revision has a pod.",
			packages: list(provider("v2", "True")), revisions: list(revision("p-2", "Active", "True")), pods: list(),
			want: []string{"ProviderRevision p-2 has no pod"},
		},
		"NoPackage": {reason: "Something must be installed.", packages: list(), revisions: list(), pods: list(), want: []string{"no package is installed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Pending(tc.packages, tc.revisions, tc.pods, "v2")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nPending(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := Pending([]byte("no list"), list(), list(), "v2"); err == nil {
		t.Error("Pending(...): a text that is no list has no error")
	}
}

func TestOutdated(t *testing.T) {
	pod := func(image, ready, more string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web-0"%[3]s},
			"spec": {"initContainers": [{"image": "%[1]s"}], "containers": [{"image": "docker.io/tailscale/tailscale:v1"}]},
			"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "%[2]s", "reason": ""}]}}`, image, ready, more)
	}
	const ours = "10.0.0.1:5000/tailscale-gateway/agent:"
	cases := map[string]struct {
		reason string
		pods   []byte
		want   []string
	}{
		"Done":      {reason: "The pod runs the version and is ready.", pods: list(pod(ours+"v2", "True", ""))},
		"Earlier":   {reason: "The pod was not replaced.", pods: list(pod(ours+"v1", "True", "")), want: []string{"Pod shop/web-0 runs " + ours + "v1"}},
		"NotReady":  {reason: "The pod is starting.", pods: list(pod(ours+"v2", "False", "")), want: []string{`Pod shop/web-0: Ready is "False/"`}},
		"Stopping":  {reason: "The pod is stopping.", pods: list(pod(ours+"v2", "True", `, "deletionTimestamp": "2026-01-01T00:00:00Z"`)), want: []string{"Pod shop/web-0 is stopping"}},
		"OtherPods": {reason: "Pods without our images do not count, and ours must exist.", pods: list(pod("docker.io/library/agent:v1", "False", "")), want: []string{"no pod runs an image of ours"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Outdated(tc.pods, "v2", "agent", "extension")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nOutdated(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
