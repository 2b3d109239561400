// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

func options() Options {
	return Options{
		Name:      "web-ingress",
		Namespace: "default",
		Tailnet:   "example",
		Pods: v1alpha1.MachineSetPods{
			Replicas:    2,
			Direction:   v1alpha1.DirectionIngress,
			Endpoints:   "web",
			ServiceName: "web-ingress",
		},
		Machines: []string{"web-ingress-0", "web-ingress-1"},
	}
}

// images returns images of the pods' containers.
func images() Images { return Images{Tailscale: "tailscale:test", Agent: "agent:test"} }

func TestStatefulSetIsRestricted(t *testing.T) {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	cases := map[string]struct {
		reason string
		change func(*Options)
	}{
		"Default": {
			reason: "A namespace that enforces restricted must accept the pod",
			change: func(*Options) {},
		},
		"Egress": {
			reason: "A namespace that enforces restricted must accept egress pods, too",
			change: func(o *Options) { o.Pods.Direction = v1alpha1.DirectionEgress },
		},
		"Overridden": {
			reason: "Users must not override the settings that restricted requires",
			change: func(o *Options) {
				o.Pods.SecurityContext = &v1alpha1.PodSecurityContext{
					RunAsUser:      ptr.To[int64](2000),
					SELinuxOptions: &v1alpha1.SELinuxOptions{Type: "container_t"},
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			tc.change(&o)
			pod := StatefulSet(o, images()).Spec.Template
			for _, r := range e.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !r.Allowed {
					t.Errorf("%s: %s: %s", tc.reason, r.ForbiddenReason, r.ForbiddenDetail)
				}
			}
		})
	}
}

// TestStatefulSetOursWin checks that the user's settings never replace those that the group
// depends on.
func TestStatefulSetOursWin(t *testing.T) {
	o := options()
	o.Pods.Labels = map[string]v1alpha1.LabelValue{meta.LabelEndpoints: "other", "team": "edge"}
	o.Pods.Env = []v1alpha1.EnvVar{{Name: "TS_USERSPACE", Value: "false"}, {Name: "PORT", Value: "41641"}}
	s := StatefulSet(o, images())
	want := map[string]string{meta.LabelEndpoints: "web", meta.LabelDirection: DirectionIngress, "team": "edge"}
	if diff := cmp.Diff(want, s.Spec.Template.Labels); diff != "" {
		t.Errorf("labels of pods: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(o.PodLabels(), s.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("a selector is immutable, so it must not contain the user's labels: -want, +got:\n%s", diff)
	}
	got := map[string][]string{}
	for _, e := range s.Spec.Template.Spec.Containers[0].Env {
		got[e.Name] = append(got[e.Name], e.Value)
	}
	if diff := cmp.Diff([]string{"true"}, got["TS_USERSPACE"]); diff != "" {
		t.Errorf("TS_USERSPACE: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"41641"}, got["PORT"]); diff != "" {
		t.Errorf("PORT: -want, +got:\n%s", diff)
	}
}

// TestControlEnvironment checks that the agent asks the control server as tailscaled does, and that the
// variables do not change the agent's own connections.
func TestControlEnvironment(t *testing.T) {
	secret := &v1alpha1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "url"}}
	o := options()
	o.Pods.Env = []v1alpha1.EnvVar{
		{Name: "https_proxy", Value: "http://lower"}, {Name: "HTTPS_PROXY", ValueFrom: secret}, {Name: "no_proxy", Value: ".svc"},
		{Name: "SSL_CERT_FILE", Value: "/ca.pem"}, {Name: "TS_BOOT_TIMEOUT", Value: "1m"},
	}
	spec := StatefulSet(o, images()).Spec.Template.Spec
	agent := spec.InitContainers[len(spec.InitContainers)-1]
	got := map[string]corev1.EnvVar{}
	for _, e := range agent.Env {
		if strings.HasPrefix(e.Name, "CONTROL_") || strings.EqualFold(e.Name, "HTTPS_PROXY") || e.Name == "SSL_CERT_FILE" {
			got[e.Name] = e
		}
	}
	want := map[string]corev1.EnvVar{
		EnvControlHTTPSProxy: {Name: EnvControlHTTPSProxy, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: secret.SecretKeyRef}},
		EnvControlNoProxy:    {Name: EnvControlNoProxy, Value: ".svc"},
		EnvControlCertFile:   {Name: EnvControlCertFile, Value: "/ca.pem"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the agent's environment: -want, +got:\n%s", diff)
	}
	for _, e := range spec.Containers[0].Env {
		if e.Name == envBootTimeout && e.Value != "1m" {
			t.Errorf("%s: the user's value must take precedence, got %q", e.Name, e.Value)
		}
	}
}

// TestCopiedEnvironment checks that the agent's copies of variables have the values that tailscaled gets.
func TestCopiedEnvironment(t *testing.T) {
	secret := &v1alpha1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "password"}}
	source := &corev1.EnvVarSource{SecretKeyRef: secret.SecretKeyRef}
	cases := map[string]struct {
		reason string
		env    []v1alpha1.EnvVar
		want   []corev1.EnvVar
	}{
		"Password": {
			reason: "A proxy's URL refers to the variable with its password.",
			env:    []v1alpha1.EnvVar{{Name: "PASSWORD", ValueFrom: secret}, {Name: "HTTPS_PROXY", Value: "http://u:$(PASSWORD)@proxy:3128"}},
			want: []corev1.EnvVar{
				{Name: "TAILSCALED_PASSWORD", ValueFrom: source},
				{Name: EnvControlHTTPSProxy, Value: "http://u:$(TAILSCALED_PASSWORD)@proxy:3128"},
			},
		},
		"Chain": {
			reason: "A variable can refer to one that refers to another, which is copied once.",
			env: []v1alpha1.EnvVar{
				{Name: "PASSWORD", ValueFrom: secret}, {Name: "LOGIN", Value: "u:$(PASSWORD)"},
				{Name: "HTTP_PROXY", Value: "http://$(LOGIN)@a"}, {Name: "HTTPS_PROXY", Value: "http://$(LOGIN)@b"},
			},
			want: []corev1.EnvVar{
				{Name: "TAILSCALED_PASSWORD", ValueFrom: source},
				{Name: "TAILSCALED_LOGIN", Value: "u:$(TAILSCALED_PASSWORD)"},
				{Name: EnvControlHTTPProxy, Value: "http://$(TAILSCALED_LOGIN)@a"},
				{Name: EnvControlHTTPSProxy, Value: "http://$(TAILSCALED_LOGIN)@b"},
			},
		},
		"Directory": {
			reason: "So does the ACME directory.",
			env:    []v1alpha1.EnvVar{{Name: "HOST", Value: "ca"}, {Name: envACMEDirectory, Value: "https://$(HOST)/dir"}},
			want:   []corev1.EnvVar{{Name: "TAILSCALED_HOST", Value: "ca"}, {Name: EnvACMEDirectory, Value: "https://$(TAILSCALED_HOST)/dir"}},
		},
		"Ours": {
			reason: "The proxy's variables can be referred to, too.",
			env:    []v1alpha1.EnvVar{{Name: "SSL_CERT_FILE", Value: "$(HOME)/ca.pem"}},
			want:   []corev1.EnvVar{{Name: "TAILSCALED_HOME", Value: dirTmp}, {Name: EnvControlCertFile, Value: "$(TAILSCALED_HOME)/ca.pem"}},
		},
		"NotResolved": {
			reason: "Kubelet resolves neither a later variable nor an escaped reference; all containers have those of Services.",
			env:    []v1alpha1.EnvVar{{Name: "NO_PROXY", Value: "$(LATER),$$(LATER),$(KUBERNETES_SERVICE_HOST),$(,$"}, {Name: "LATER", Value: "x"}},
			want:   []corev1.EnvVar{{Name: EnvControlNoProxy, Value: "$(LATER),$$(LATER),$(KUBERNETES_SERVICE_HOST),$(,$"}},
		},
		"Empty": {
			reason: "An upper-case variable without a value does not take precedence.",
			env:    []v1alpha1.EnvVar{{Name: "HTTPS_PROXY"}, {Name: "https_proxy", Value: "http://a"}},
			want:   []corev1.EnvVar{{Name: EnvControlHTTPSProxy, Value: "http://a"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			spec := StatefulSet(o, images()).Spec.Template.Spec
			offset := len(spec.InitContainers[len(spec.InitContainers)-1].Env)
			o.Pods.Env = tc.env
			spec = StatefulSet(o, images()).Spec.Template.Spec
			if diff := cmp.Diff(tc.want, spec.InitContainers[len(spec.InitContainers)-1].Env[offset:]); diff != "" {
				t.Errorf("\n%s\nthe agent's environment: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEgressTraces checks which agents receive the collector of their spans.
func TestEgressTraces(t *testing.T) {
	const collector = "collector.observability:4317"
	for direction, want := range map[v1alpha1.Direction]string{v1alpha1.DirectionEgress: collector, v1alpha1.DirectionIngress: ""} {
		o := options()
		o.Pods.Direction, o.Pods.EgressTraces = direction, collector
		got := ""
		spec := StatefulSet(o, images()).Spec.Template.Spec
		for _, c := range append(spec.InitContainers, spec.Containers...) {
			for _, e := range c.Env {
				if e.Name == EnvEgressTraces && c.Name == ContainerAgent {
					got = e.Value
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got\n%s", direction, diff)
		}
	}
}

// TestVanishedEnds checks the settings that close connections to vanished peers, in both
// directions.
func TestVanishedEnds(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Options)
		want   map[string]string
	}{
		"Ingress": {
			reason: "Tailscaled detects vanished clients within minutes, not hours.",
			change: func(*Options) {},
			want:   map[string]string{envKeepaliveIdle: "60s", envKeepaliveInterval: "15s"},
		},
		"IngressUsers": {
			reason: "The keepalive can be longer for clients that sleep.",
			change: func(o *Options) { o.Pods.Env = []v1alpha1.EnvVar{{Name: envKeepaliveIdle, Value: "2h"}} },
			want:   map[string]string{envKeepaliveIdle: "2h", envKeepaliveInterval: "15s"},
		},
		"Egress": {
			reason: "By default, the agent decides how long connections into the tailnet may be idle.",
			change: func(o *Options) { o.Pods.Direction = v1alpha1.DirectionEgress },
			want:   map[string]string{},
		},
		"EgressIdle": {
			reason: "The agent receives the idle timeout.",
			change: func(o *Options) {
				o.Pods.Direction, o.Pods.EgressIdleTimeout = v1alpha1.DirectionEgress, &metav1.Duration{Duration: time.Hour}
			},
			want: map[string]string{EnvEgressIdle: "1h0m0s"},
		},
		"EgressNeverIdle": {
			reason: "The agent receives that there is no timeout.",
			change: func(o *Options) {
				o.Pods.Direction, o.Pods.EgressIdleTimeout = v1alpha1.DirectionEgress, &metav1.Duration{}
			},
			want: map[string]string{EnvEgressIdle: "0s"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			tc.change(&o)
			spec := StatefulSet(o, images()).Spec.Template.Spec
			got := map[string]string{}
			for _, c := range append(spec.InitContainers, spec.Containers...) {
				for _, e := range c.Env {
					if e.Name == envKeepaliveIdle || e.Name == envKeepaliveInterval || e.Name == EnvEgressIdle {
						got[e.Name] += e.Value
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestVolumesInMemory checks that certificates that fill their volume leave room for
// tailscaled's config, and that tailscaled does not have their keys.
func TestVolumesInMemory(t *testing.T) {
	spec := StatefulSet(options(), images()).Spec.Template.Spec
	limits := map[string]string{}
	for _, v := range spec.Volumes {
		if v.EmptyDir.Medium == corev1.StorageMediumMemory {
			limits[v.Name] = v.EmptyDir.SizeLimit.String()
		}
	}
	if diff := cmp.Diff(map[string]string{volumeTailscaledConfig: "8Mi", volumeTLS: "16Mi"}, limits); diff != "" {
		t.Errorf("volumes in memory: -want, +got:\n%s", diff)
	}
	mounts := map[string]string{}
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		for _, m := range c.VolumeMounts {
			if limits[m.Name] != "" {
				mounts[c.Name+" "+m.MountPath] = m.Name
			}
		}
	}
	want := map[string]string{
		ContainerAgent + " " + sidecar.DirTailscaledConfig:     volumeTailscaledConfig,
		ContainerTailscale + " " + sidecar.DirTailscaledConfig: volumeTailscaledConfig,
		ContainerAgent + " " + DirTLS:                          volumeTLS,
	}
	if diff := cmp.Diff(want, mounts); diff != "" {
		t.Errorf("mounts: -want, +got:\n%s", diff)
	}
}

// TestStatefulSetPullSecrets checks which pull secrets pods have.
func TestStatefulSetPullSecrets(t *testing.T) {
	cases := map[string]struct {
		reason   string
		own      []corev1.LocalObjectReference
		defaults []string
		want     []corev1.LocalObjectReference
	}{
		"None":     {reason: "By default pods have none."},
		"Defaults": {reason: "Pods that set none have the provider's.", defaults: []string{"mirror", "hub"}, want: []corev1.LocalObjectReference{{Name: "mirror"}, {Name: "hub"}}},
		"Own":      {reason: "Pods that set some have no others.", own: []corev1.LocalObjectReference{{Name: "team"}}, defaults: []string{"mirror"}, want: []corev1.LocalObjectReference{{Name: "team"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, img := options(), images()
			o.Pods.ImagePullSecrets, img.PullSecrets = tc.own, tc.defaults
			if diff := cmp.Diff(tc.want, StatefulSet(o, img).Spec.Template.Spec.ImagePullSecrets); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStatefulSetSpread(t *testing.T) {
	theirs := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "edge"}}
	ours := &metav1.LabelSelector{MatchLabels: options().PodLabels()}
	constraints := []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack"}, {MaxSkew: 1, TopologyKey: "row", LabelSelector: theirs}}
	cases := map[string]struct {
		reason string
		spread []corev1.TopologySpreadConstraint
		want   []corev1.TopologySpreadConstraint
	}{
		"Default": {
			reason: "Spread over zones and hosts must never leave a pod unscheduled",
			want: []corev1.TopologySpreadConstraint{
				{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: ours},
				{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: ours},
			},
		},
		"Given": {
			reason: "The user's constraints replace the default, and count the group's pods by default",
			spread: constraints,
			want:   []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", LabelSelector: ours}, {MaxSkew: 1, TopologyKey: "row", LabelSelector: theirs}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Pods.TopologySpreadConstraints = tc.spread
			if diff := cmp.Diff(tc.want, StatefulSet(o, images()).Spec.Template.Spec.TopologySpreadConstraints); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if constraints[0].LabelSelector != nil {
		t.Error("the options were changed")
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
			change: func(o *Options) { o.Pods.Replicas, o.Machines = 5, nil },
			same:   true,
		},
		"Tailnet": {
			reason: "Settings of the tailnet are in Secrets, not in the template",
			change: func(o *Options) { o.Tailnet = "other" },
			same:   true,
		},
		"Image": {
			reason: "A new image must restart pods",
			change: func(o *Options) { o.Pods.Image = "tailscale:new" },
		},
		"Resources": {
			reason: "The user's resources are those of the tailscale container",
			change: func(o *Options) { o.Pods.Resources = &corev1.ResourceRequirements{} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			want := encode(t, StatefulSet(o, images()).Spec.Template)
			tc.change(&o)
			got := encode(t, StatefulSet(o, images()).Spec.Template)
			if diff := cmp.Diff(want, got); (diff == "") != tc.same {
				t.Errorf("%s: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStatefulSetGrace(t *testing.T) {
	// A pod that is stopped together with another one waits for the drain and the stop of that one, and
	// for the start of its successor.
	const agentDrain, openTime, stop, start, agentSpread = 30, 15, 15, 15, 10
	if got := terminationGracePeriodSeconds; got < agentDrain+openTime+start+agentDrain+stop {
		t.Errorf("a pod has a grace period of %d s, which is too short for the handover of a service", got)
	}
	if got := terminationGracePeriodSeconds; got <= int(egressDrain.Seconds())+agentSpread {
		t.Errorf("an egress pod has a grace period of %d s, which is too short for its drain", got)
	}
}

// TestStatefulSetHooks checks that a command in the pod withdraws the services, and that the
// tailscale container outlives the drain.
func TestStatefulSetHooks(t *testing.T) {
	for _, direction := range []v1alpha1.Direction{v1alpha1.DirectionIngress, v1alpha1.DirectionEgress} {
		o := options()
		o.Pods.Direction = direction
		spec := StatefulSet(o, images()).Spec.Template.Spec
		agent, tailscaled := spec.InitContainers[len(spec.InitContainers)-1], spec.Containers[0]
		want := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{fileAgent, "prestop"}}}}
		if diff := cmp.Diff(want, agent.Lifecycle); diff != "" {
			t.Errorf("%s: hooks of the agent: -want, +got:\n%s", direction, diff)
		}
		want = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/drainedz", Port: intstr.FromInt32(sidecar.PortAgent), Scheme: corev1.URISchemeHTTP,
		}}}
		if diff := cmp.Diff(want, tailscaled.Lifecycle); diff != "" {
			t.Errorf("%s: hooks of tailscale: -want, +got:\n%s", direction, diff)
		}
		grace := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
		i := slices.IndexFunc(agent.Env, func(e corev1.EnvVar) bool { return e.Name == EnvGracePeriod })
		if i < 0 {
			t.Fatalf("%s: the agent does not receive the grace period", direction)
		}
		if got, err := time.ParseDuration(agent.Env[i].Value); err != nil || got != grace {
			t.Errorf("%s: want the agent to receive the grace period %s, got %s, %v", direction, grace, got, err)
		}
	}
}

func TestStatefulSetEnvironment(t *testing.T) {
	refused := []string{
		"TS_HOSTNAME", "TS_EXTRA_ARGS", "TS_AUTHKEY", "TS_ROUTES", "TS_ACCEPT_DNS", "TS_CLIENT_ID", "TS_CLIENT_SECRET",
		"TS_ID_TOKEN", "TS_AUDIENCE",
	}
	for _, networking := range []v1alpha1.Networking{v1alpha1.NetworkingUserspace, v1alpha1.NetworkingKernel} {
		for _, direction := range []v1alpha1.Direction{v1alpha1.DirectionIngress, v1alpha1.DirectionEgress} {
			o := options()
			o.Pods.Networking, o.Pods.Direction = networking, direction
			defined := map[string]bool{}
			for _, e := range StatefulSet(o, images()).Spec.Template.Spec.Containers[0].Env {
				if slices.Contains(refused, e.Name) {
					t.Errorf("containerboot refuses variable %s", e.Name)
				}
				if defined[e.Name] {
					t.Errorf("variable %s is set twice", e.Name)
				}
				for _, ref := range references(e.Value) {
					if !defined[ref] {
						t.Errorf("%s refers to %s, which is not defined before it", e.Name, ref)
					}
				}
				defined[e.Name] = true
			}
		}
	}
}

func references(value string) []string {
	var out []string
	for {
		_, rest, found := strings.Cut(value, "$(")
		if !found {
			return out
		}
		name, remainder, _ := strings.Cut(rest, ")")
		out, value = append(out, name), remainder
	}
}

// TestPodMonitor checks that the ports of the monitor are named ports of the containers.
func TestPodMonitor(t *testing.T) {
	o := options()
	o.PodMonitor = PodMonitorOptions{Labels: map[string]string{"release": "prometheus", meta.LabelEndpoints: "other"}, Interval: "15s"}
	m := PodMonitor(o)
	want := map[string]string{
		"release": "prometheus", meta.LabelEndpoints: "web", meta.LabelDirection: DirectionIngress, meta.LabelTailnet: "example",
	}
	if diff := cmp.Diff(want, m.GetLabels()); diff != "" {
		t.Errorf("labels: -want, +got:\n%s", diff)
	}
	named := map[string]bool{}
	pod := StatefulSet(o, images()).Spec.Template.Spec
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		for _, p := range c.Ports {
			named[p.Name] = true
		}
	}
	endpoints, _, err := unstructured.NestedSlice(m.Object, "spec", "podMetricsEndpoints")
	if err != nil || len(endpoints) != len(named) {
		t.Fatalf("want an endpoint for each of the ports %v, got %v, %v", named, endpoints, err)
	}
	for _, e := range endpoints {
		e := e.(map[string]any)
		if !named[e["port"].(string)] || e["path"] != sidecar.PathMetrics || e["interval"] != "15s" {
			t.Errorf("want one of the ports %v, %s, each 15s; got %v", named, sidecar.PathMetrics, e)
		}
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
		reason       string
		direction    v1alpha1.Direction
		machines     []string
		certificates []string
		want         []string
	}{
		"Some": {
			reason:       "Secrets and Machines are granted by name",
			direction:    v1alpha1.DirectionIngress,
			machines:     []string{"web-ingress-0"},
			certificates: []string{"web-cert"},
			want:         []string{"serviceattachments", "events"},
		},
		"Egress": {
			reason:    "The ConfigMap is granted by name",
			direction: v1alpha1.DirectionEgress,
			want:      []string{"serviceattachments", "events"},
		},
		"None": {
			reason:    "A rule without names would grant all, so there must be none",
			direction: v1alpha1.DirectionIngress,
			want:      []string{"serviceattachments", "events"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Pods.Direction, o.Machines, o.CertificateSecrets = tc.direction, tc.machines, tc.certificates
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
