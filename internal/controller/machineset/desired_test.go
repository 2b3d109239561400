// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

// composed returns, by name, the MachineSets that the function of TailscaleEndpoints composes in
// one of its test cases.
func composed(t *testing.T, name string) map[string]*v1alpha1.MachineSet {
	t.Helper()
	b, err := golden.Read(filepath.Join("..", "..", "..", "functions", "tailscaleendpoints", "testdata", "out", name))
	if err != nil {
		t.Fatal(err)
	}
	rsp := struct {
		Desired struct {
			// Resources are objects, or lines with their digests.
			Resources map[string]any `json:"resources"`
		} `json:"desired"`
	}{}
	if err := yaml.Unmarshal(b, &rsp); err != nil {
		t.Fatal(err)
	}
	out := map[string]*v1alpha1.MachineSet{}
	for _, r := range rsp.Desired.Resources {
		o, ok := r.(map[string]any)
		if !ok {
			continue
		}
		resource, ok := o["resource"].(map[string]any)
		if !ok || resource["kind"] != v1alpha1.MachineSetKind {
			continue
		}
		s := &v1alpha1.MachineSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(resource, s); err != nil {
			t.Fatal(err)
		}
		out[s.GetName()] = s
	}
	return out
}

// TestUpgrade compares the objects that the provider builds with those that functions composed when
// they still wrote StatefulSets and PodDisruptionBudgets: a difference would restart every proxy on
// an upgrade. testdata/before has the MachineSets of that version, for the same cases.
func TestUpgrade(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "before", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			sets := composed(t, filepath.Base(f))
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for doc := range strings.SplitSeq(string(b), "\n---\n") {
				old := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(doc), &old.Object); err != nil {
					t.Fatal(err)
				}
				set := sets[old.GetName()]
				if set == nil {
					t.Fatalf("there is no MachineSet %q any more", old.GetName())
				}
				sts, err := StatefulSet(set, proxy.Images{Tailscale: "tailscale:test", Agent: "agent:test"})
				if err != nil {
					t.Fatal(err)
				}
				budget, err := podDisruptionBudget(set)
				if err != nil {
					t.Fatal(err)
				}
				same(t, old, "statefulSet", sts)
				same(t, old, "podDisruptionBudget", budget)
			}
		})
	}
}

// same compares an object from an older set's spec with the object that is applied now.
func same(t *testing.T, set *unstructured.Unstructured, field string, got *unstructured.Unstructured) {
	t.Helper()
	o, ok, err := unstructured.NestedMap(set.Object, "spec", field)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		if got != nil {
			t.Errorf("%s: want none, got one", field)
		}
		return
	}
	want := changedSince(t, &unstructured.Unstructured{Object: o})
	xpmeta.AddLabels(want, map[string]string{meta.LabelMachineSet: set.GetName()})
	got = got.DeepCopy()
	got.SetAnnotations(nil)
	if diff := cmp.Diff(encode(t, want), encode(t, got)); diff != "" {
		t.Errorf("%s: -before, +after:\n%s", field, diff)
	}
}

// changedSince applies the later changes to a StatefulSet that justified a restart of each proxy:
//   - Keepalives in netstack: vanished clients are noticed within minutes, not hours.
//   - Keys of certificates have a separate volume: they shared one with tailscaled's config, and
//     when they filled it, services were no longer advertised.
//   - With Kernel networking, UDP clients reach new targets: the agent makes the kernel drop old
//     flows, which needs a capability.
//   - The agent listens on all addresses of the pod: the Services of egress targets have those of
//     both families.
//   - With Kernel networking, a container finds out what the node lacks.
//   - A node that cannot log in for a moment keeps its identity: the agent answers the liveness probe
//     of its container, which a container that is not logged in must have, too, and containerboot
//     does not give up after a minute.
//   - The agent reports the Kubernetes node of the pod: machines of one node fail together, so they do not
//     watch each other.
func changedSince(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if o.GetKind() != "StatefulSet" {
		return o
	}
	s := &appsv1.StatefulSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, s); err != nil {
		t.Fatal(err)
	}
	spec := &s.Spec.Template.Spec
	agent := &spec.InitContainers[len(spec.InitContainers)-1]
	insert(&agent.Env, proxy.EnvPodIP, corev1.EnvVar{Name: proxy.EnvPodIPs, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIPs"}}})
	insert(&agent.Env, proxy.EnvPodIPs, corev1.EnvVar{Name: proxy.EnvNodeName, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"}}})
	kernel := slices.ContainsFunc(agent.Env, func(e corev1.EnvVar) bool { return e.Name == proxy.EnvNetworking })
	if kernel {
		agent.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	}
	if s.GetLabels()[meta.LabelDirection] != proxy.DirectionEgress {
		addIngress(spec, agent)
	}
	if kernel {
		addCheck(spec, s.GetLabels()[meta.LabelDirection])
	}
	tailscale := &spec.Containers[0]
	insert(&tailscale.Env, "HOME", corev1.EnvVar{Name: "TS_BOOT_TIMEOUT", Value: "15m"})
	for _, e := range tailscale.Env {
		if e.Name == "HTTPS_PROXY" {
			// The agent asks the control server by the same proxy.
			e.Name = proxy.EnvControlHTTPSProxy
			agent.Env = append(agent.Env, e)
		}
	}
	tailscale.StartupProbe.HTTPGet.Path = "/metrics"
	p := tailscale.LivenessProbe
	p.HTTPGet.Path, p.HTTPGet.Port = sidecar.PathTailscale, intstr.FromInt(sidecar.PortAgent)
	p.PeriodSeconds, p.FailureThreshold = 10, 9
	out := &unstructured.Unstructured{}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out.Object); err != nil {
		t.Fatal(err)
	}
	delete(out.Object, "status")
	dropNulls(out.Object)
	return out
}

// addCheck adds the container that checks the node, before the agent. It has the rights and the
// resources of the tailscale container.
func addCheck(spec *corev1.PodSpec, direction string) {
	c := corev1.Container{Name: "check", Image: "agent:test", Args: []string{"check"}, SecurityContext: spec.Containers[0].SecurityContext,
		Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("10m"), "memory": resource.MustParse("32Mi")}},
		VolumeMounts: []corev1.VolumeMount{{Name: "tailscale-run", MountPath: "/var/run/tailscale"}},
	}
	if direction != proxy.DirectionEgress {
		c.Args = append(c.Args, "--services")
	}
	spec.InitContainers = slices.Insert(spec.InitContainers, len(spec.InitContainers)-1, c)
}

// addIngress applies the changes that only affect ingress pods.
func addIngress(spec *corev1.PodSpec, agent *corev1.Container) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "agent-tls", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("16Mi"))},
	}})
	agent.VolumeMounts = append(agent.VolumeMounts, corev1.VolumeMount{Name: "agent-tls", MountPath: proxy.DirTLS})
	spec.TerminationGracePeriodSeconds = ptr.To[int64](120)
	for i := range agent.Env {
		if agent.Env[i].Name == proxy.EnvGracePeriod {
			agent.Env[i].Value = "120s"
		}
	}
	insert(&agent.Env, proxy.EnvGracePeriod, corev1.EnvVar{Name: proxy.EnvTLSDir, Value: proxy.DirTLS})
	insert(&spec.Containers[0].Env, "HOME",
		corev1.EnvVar{Name: "TS_NETSTACK_KEEPALIVE_IDLE", Value: "60s"}, corev1.EnvVar{Name: "TS_NETSTACK_KEEPALIVE_INTERVAL", Value: "15s"})
}

// insert adds variables after another one.
func insert(env *[]corev1.EnvVar, behind string, add ...corev1.EnvVar) {
	i := slices.IndexFunc(*env, func(e corev1.EnvVar) bool { return e.Name == behind })
	*env = slices.Insert(*env, i+1, add...)
}

func encode(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	b, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPrivilege sets every field of a set's pods, and checks the privileges of the pods.
func TestPrivilege(t *testing.T) {
	cases := map[string]struct {
		reason     string
		networking v1alpha1.Networking
		forwarding v1alpha1.Forwarding
		kernel     *v1alpha1.KernelSettings
		privileged []string
		want       []corev1.Capability
	}{
		"Userspace": {
			reason:     "No field gives pods with Userspace networking any privilege",
			networking: v1alpha1.NetworkingUserspace,
			kernel:     &v1alpha1.KernelSettings{Privileged: ptr.To(true)},
		},
		"Kernel": {
			reason:     "One container is privileged, and its command comes from the provider's configuration",
			networking: v1alpha1.NetworkingKernel,
			privileged: []string{proxy.ContainerNetwork},
			want:       []corev1.Capability{"NET_ADMIN", "NET_RAW", "MKNOD", "NET_ADMIN", "NET_ADMIN", "NET_RAW", "MKNOD"},
		},
		"KernelPrivileged": {
			reason:     "One field makes tailscaled's container privileged, which a grant must allow (TestGrant)",
			networking: v1alpha1.NetworkingKernel,
			kernel:     &v1alpha1.KernelSettings{Privileged: ptr.To(true)},
			privileged: []string{proxy.ContainerNetwork, proxy.ContainerCheck, proxy.ContainerTailscale},
			want:       []corev1.Capability{"NET_ADMIN"},
		},
		"KernelPodSysctl": {
			reason:     "With the pod's sysctl no container is privileged",
			networking: v1alpha1.NetworkingKernel,
			forwarding: v1alpha1.ForwardingPodSysctl,
			want:       []corev1.Capability{"NET_ADMIN", "NET_RAW", "MKNOD", "NET_ADMIN", "NET_ADMIN", "NET_RAW", "MKNOD"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := machineSet("web-ingress-0")
			set.Spec.Pods = &v1alpha1.MachineSetPods{
				Replicas: 1, Direction: v1alpha1.DirectionIngress, Endpoints: "web", ServiceName: "web", DNSConfigMap: "zone",
				PodSettings: v1alpha1.PodSettings{
					Networking: tc.networking, Forwarding: tc.forwarding, Kernel: tc.kernel, Image: "tenant:evil",
					Labels: map[string]v1alpha1.LabelValue{meta.LabelEndpoints: "other"}, Annotations: map[string]string{"a": "b"},
					Env:             []v1alpha1.EnvVar{{Name: "TS_KUBE_SECRET", Value: "other"}},
					SecurityContext: &v1alpha1.PodSecurityContext{RunAsUser: ptr.To[int64](0), SupplementalGroups: []int64{0}},
				},
			}
			u, err := StatefulSet(set, proxy.Images{Tailscale: "tailscale:test", Agent: "agent:test"})
			if err != nil {
				t.Fatal(err)
			}
			template, _, err := unstructured.NestedMap(u.Object, "spec", "template")
			if err != nil {
				t.Fatal(err)
			}
			pod := &corev1.PodTemplateSpec{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, pod); err != nil {
				t.Fatal(err)
			}
			if pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC || pod.Spec.ServiceAccountName != set.GetName() {
				t.Errorf("want the pod's own namespaces and the set's account, got %+v", pod.Spec)
			}
			for _, v := range pod.Spec.Volumes {
				if v.EmptyDir == nil {
					t.Errorf("want empty directories alone, got %+v", v)
				}
			}
			var capabilities []corev1.Capability
			var privileged []string
			for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				s := c.SecurityContext
				if s.Capabilities != nil {
					capabilities = append(capabilities, s.Capabilities.Add...)
				}
				if ptr.Deref(s.Privileged, false) {
					privileged = append(privileged, c.Name)
				}
				if c.Name != proxy.ContainerTailscale && c.Image != "agent:test" {
					t.Errorf("container %s runs %s", c.Name, c.Image)
				}
			}
			if diff := cmp.Diff(tc.privileged, privileged); diff != "" {
				t.Errorf("%s: -want privileged, +got privileged:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, capabilities); diff != "" {
				t.Errorf("%s: -want capabilities, +got capabilities:\n%s", tc.reason, diff)
			}
		})
	}
}
