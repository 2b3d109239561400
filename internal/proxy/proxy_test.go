// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func options() Options {
	return Options{
		Name:           "web-ingress",
		ServiceName:    "web-ingress",
		Namespace:      "default",
		Endpoints:      "web",
		Tailnet:        "example",
		Direction:      DirectionIngress,
		Replicas:       2,
		Machines:       []string{"web-ingress-0", "web-ingress-1"},
		TailscaleImage: "tailscale:test",
		AgentImage:     "agent:test",
	}
}

func TestStatefulSetIsRestricted(t *testing.T) {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	pod := StatefulSet(options()).Spec.Template
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, r := range e.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
		if !r.Allowed {
			t.Errorf("a namespace that enforces restricted would refuse the pod: %s: %s", r.ForbiddenReason, r.ForbiddenDetail)
		}
	}
}

func TestStatefulSetTemplate(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Options)
		same   bool
	}{
		"Replicas": {
			reason: "Scaling must restart no pod",
			change: func(o *Options) { o.Replicas, o.Machines = 5, nil },
			same:   true,
		},
		"Tailnet": {
			reason: "What concerns the tailnet is in Secrets",
			change: func(o *Options) { o.Tailnet = "other" },
			same:   true,
		},
		"Image": {
			reason: "A new image must restart pods",
			change: func(o *Options) { o.TailscaleImage = "tailscale:new" },
		},
		"Resources": {
			reason: "The user's resources are those of the tailscale container",
			change: func(o *Options) { o.Resources = &corev1.ResourceRequirements{} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			want := encode(t, StatefulSet(o).Spec.Template)
			tc.change(&o)
			got := encode(t, StatefulSet(o).Spec.Template)
			if diff := cmp.Diff(want, got); (diff == "") != tc.same {
				t.Errorf("%s: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStatefulSetGrace(t *testing.T) {
	const agentDrain, containerbootDrain = 25, 25
	if got := *StatefulSet(options()).Spec.Template.Spec.TerminationGracePeriodSeconds; got <= agentDrain+containerbootDrain {
		t.Errorf("a pod has %d s to end, which both drains take", got)
	}
}

// Containerboot refuses these beside a config directory (settings.go).
func TestStatefulSetEnvironment(t *testing.T) {
	refused := []string{
		"TS_HOSTNAME", "TS_EXTRA_ARGS", "TS_AUTHKEY", "TS_ROUTES", "TS_ACCEPT_DNS", "TS_CLIENT_ID", "TS_CLIENT_SECRET",
		"TS_ID_TOKEN", "TS_AUDIENCE",
	}
	c := StatefulSet(options()).Spec.Template.Spec.Containers[0]
	defined := map[string]bool{}
	for _, e := range c.Env {
		for _, r := range refused {
			if e.Name == r {
				t.Errorf("containerboot refuses %s", r)
			}
		}
		for _, ref := range references(e.Value) {
			if !defined[ref] {
				t.Errorf("%s refers to %s, which is not defined before it", e.Name, ref)
			}
		}
		defined[e.Name] = true
	}
}

func references(value string) []string {
	var out []string
	for {
		_, rest, found := strings.Cut(value, "$(")
		if !found {
			return out
		}
		name, after, _ := strings.Cut(rest, ")")
		out, value = append(out, name), after
	}
}

func TestRole(t *testing.T) {
	all := func(o Options) []string {
		var out []string
		for _, r := range Role(o).Rules {
			if grantsAll(r) {
				out = append(out, r.Resources...)
			}
		}
		return out
	}
	cases := map[string]struct {
		reason   string
		machines []string
		want     []string
	}{
		"Some": {
			reason:   "Secrets and Machines are granted by name",
			machines: []string{"web-ingress-0"},
			want:     []string{"serviceattachments", "events"},
		},
		"None": {
			reason: "Without names a rule would grant all, so there must be none",
			want:   []string{"serviceattachments", "events"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Machines = tc.machines
			if diff := cmp.Diff(tc.want, all(o)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func grantsAll(r rbacv1.PolicyRule) bool { return len(r.ResourceNames) == 0 }

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
