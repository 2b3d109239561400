// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/machineset"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// heldFinalizer is a finalizer that keeps a deleted pod.
const heldFinalizer = "example.org/held"

// A podSet is a MachineSet with a StatefulSet. The API server's StatefulSet controller runs; the
// test acts as kubelet.
type podSet struct {
	*machineSet
}

// newPodSet returns a set without applying it.
func newPodSet(t *testing.T, n int) *podSet {
	t.Helper()
	s := &podSet{machineSet: &machineSet{env: newEnv(t)}}
	runPods(s.env)
	s.set = &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: subject},
		Spec: v1alpha1.MachineSetSpec{
			ProviderConfigReference: xpv2.ProviderConfigReference{Kind: v1alpha1.ProviderConfigKind, Name: configName},
			Tags:                    []v1alpha1.Tag{"tag:k8s"},
		},
	}
	s.want(n)
	go s.kubelet()
	return s
}

// want sets the number of machines and pods.
func (s *podSet) want(n int, change ...func(*v1alpha1.MachineSetPods)) {
	s.Helper()
	s.set.Spec.Machines = members(n)
	s.set.Spec.Pods = &v1alpha1.MachineSetPods{Replicas: int32(n), Direction: v1alpha1.DirectionIngress, Endpoints: subject, ServiceName: subject}
	for _, c := range change {
		c(s.set.Spec.Pods)
	}
}

// built returns the StatefulSet that the provider builds for the set.
func (s *podSet) built() *appsv1.StatefulSet {
	s.Helper()
	u, err := machineset.StatefulSet(s.set, images)
	s.must(err)
	sts := &appsv1.StatefulSet{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, sts))
	return sts
}

// scale scales the set, with another template if there is a change.
func (s *podSet) scale(n int, change ...func(*v1alpha1.MachineSetPods)) {
	s.Helper()
	s.must(retry.RetryOnConflict(conflicts, func() error {
		if err := shared.kube.Get(s.Context(), client.ObjectKeyFromObject(s.set), s.set); err != nil {
			return err
		}
		s.want(n, change...)
		return shared.kube.Update(s.Context(), s.set)
	}))
}

// kubelet makes every pod ready until the test ends.
func (s *podSet) kubelet() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.Context().Done():
			return
		case <-tick.C:
		}
		pods := &corev1.PodList{}
		// The next tick retries failures.
		if err := shared.kube.List(s.Context(), pods, client.InNamespace(s.namespace)); err != nil {
			continue
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if len(p.Status.Conditions) > 0 {
				continue
			}
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
			_ = shared.kube.Status().Update(s.Context(), p)
		}
	}
}

// runs returns an error unless exactly n pods are ready, with n machines.
func (s *podSet) runs(n int) error {
	if err := s.settled(n); err != nil {
		return err
	}
	got := s.set.Status.StatefulSet
	want := int32(n)
	if got == nil || !got.Observed || got.Message != "" || got.Replicas != want || got.ReadyReplicas != want || got.UpdatedReplicas != want || got.CreatedAt == nil {
		return errors.Errorf("status.statefulSet: %+v", got)
	}
	err := shared.kube.Get(s.Context(), client.ObjectKeyFromObject(s.set), &policyv1.PodDisruptionBudget{})
	if n > 1 {
		return err
	}
	if !kerrors.IsNotFound(err) {
		return errors.Errorf("there is a PodDisruptionBudget: %v", err)
	}
	return nil
}

func (s *podSet) statefulSet() *appsv1.StatefulSet {
	s.Helper()
	sts := &appsv1.StatefulSet{}
	s.must(shared.kube.Get(s.Context(), client.ObjectKeyFromObject(s.set), sts))
	return sts
}

// hasMessage waits until the status has the reason for missing pods.
func (s *podSet) hasMessage(words ...string) {
	s.Helper()
	s.eventually(fmt.Sprintf("the status contains %q", words), func() error {
		if err := shared.kube.Get(s.Context(), client.ObjectKeyFromObject(s.set), s.set); err != nil {
			return err
		}
		got := s.set.Status.StatefulSet
		if got == nil {
			return errors.New("there is no status.statefulSet")
		}
		for _, w := range words {
			if !strings.Contains(got.Message, w) {
				return errors.Errorf("the message is %q", got.Message)
			}
		}
		return nil
	})
}

// TestMachineSetPods creates pods, scales them, and deletes them.
func TestMachineSetPods(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 5)
	writes := s.countWrites()
	s.create(s.set)
	s.eventually("five pods run", func() error { return s.runs(5) })
	up, most := writes()
	if up > max(4, most) {
		t.Errorf("five machines and pods need %d writes of the set", up)
	}

	// A pod that terminates slowly keeps all Machines that are to be deleted.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: subject + "-3"}}
	hold := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["`+heldFinalizer+`"]}}`))
	s.must(shared.kube.Patch(t.Context(), pod, hold))
	writes = s.countWrites()
	s.scale(1)
	s.eventually("all pods other than the held one are gone", func() error {
		if n := s.statefulSet().Status.Replicas; n != 2 {
			return errors.Errorf("there are %d pods", n)
		}
		return nil
	})
	s.eventually("the status reports the kept machines", func() error {
		if err := shared.kube.Get(t.Context(), client.ObjectKeyFromObject(s.set), s.set); err != nil {
			return err
		}
		if st := s.set.Status; st.ObservedGeneration != s.set.GetGeneration() || len(st.Machines) != 5 || st.ReadyMachines != 1 {
			return errors.Errorf("%d machines, %d wanted ones ready", len(st.Machines), st.ReadyMachines)
		}
		return nil
	})
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	s.must(shared.kube.Patch(t.Context(), pod, free))
	s.eventually("one pod runs, and nothing is left of the others", func() error { return s.runs(1) })
	down, most := writes()
	if down > max(5, most) {
		t.Errorf("scaling in needs %d writes of the set", down)
	}
	t.Logf("writes of the set: %d to create five, %d to scale to one, with the spec's", up, down)

	s.scale(2)
	s.eventually("two pods run", func() error { return s.runs(2) })
	s.must(shared.kube.Delete(t.Context(), s.set))
	s.eventually("nothing is left", func() error {
		if err := s.left(0, nil); err != nil {
			return err
		}
		for _, l := range []client.ObjectList{&appsv1.StatefulSetList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.PodList{}} {
			if err := shared.kube.List(t.Context(), l, client.InNamespace(s.namespace)); err != nil {
				return err
			}
			if n := apimeta.LenList(l); n > 0 {
				return errors.Errorf("%d items are left in a %T", n, l)
			}
		}
		return nil
	})
}

// countWrites counts writes of the set from now on. The returned function returns their number,
// including the test's writes, and how many the time allows: while Machines and pods change, which
// takes long on a slow machine, the provider writes every four seconds.
func (s *podSet) countWrites() func() (writes, most int) {
	s.Helper()
	c, err := client.NewWithWatch(shared.config, client.Options{Scheme: shared.kube.Scheme()})
	s.must(err)
	ctx, cancel := context.WithCancel(s.Context())
	w, err := c.Watch(ctx, &v1alpha1.MachineSetList{}, client.InNamespace(s.namespace))
	s.must(err)
	start := time.Now()
	counted := make(chan int, 1)
	go func() {
		n := 0
		for e := range w.ResultChan() {
			if e.Type == watch.Modified {
				n++
			}
		}
		counted <- n
	}()
	return func() (int, int) {
		cancel()
		return <-counted, int(time.Since(start) / (4 * time.Second))
	}
}

// TestMachineSetDrift changes a StatefulSet and deletes a budget by hand.
func TestMachineSetDrift(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 2)
	s.create(s.set)
	s.eventually("two pods run", func() error { return s.runs(2) })
	sts := s.statefulSet()
	uid := sts.GetUID()

	change := `{"metadata":{"labels":{"gateway.tailscale.com/machine-set":null}},"spec":{"replicas":0,"template":{"spec":{"containers":[{"name":"tailscale","image":"other"}]}}}}`
	s.must(shared.kube.Patch(t.Context(), sts, client.RawPatch("application/strategic-merge-patch+json", []byte(change))))
	s.must(shared.kube.Delete(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: subject}}))
	s.eventually("the StatefulSet is restored", func() error {
		sts := s.statefulSet()
		if n, image := ptr.Deref(sts.Spec.Replicas, 1), sts.Spec.Template.Spec.Containers[0].Image; n != 2 || image != images.Tailscale {
			return errors.Errorf("%d replicas of %s", n, image)
		}
		return s.runs(2)
	})
	s.must(shared.kube.Delete(t.Context(), s.statefulSet()))
	s.eventually("another StatefulSet is created", func() error {
		sts := &appsv1.StatefulSet{}
		if err := shared.kube.Get(t.Context(), client.ObjectKeyFromObject(s.set), sts); err != nil {
			return err
		}
		if sts.GetUID() == uid {
			return errors.New("the StatefulSet is the same")
		}
		return s.runs(2)
	})
	rest := written(s.statefulSet())
	s.scale(2)
	s.eventually("all is at rest", func() error { return s.runs(2) })
	if diff := cmp.Diff(rest, written(s.statefulSet())); diff != "" {
		t.Errorf("an up-to-date StatefulSet was written: -before, +after:\n%s", diff)
	}
}

// written returns the managers of an object, except for those of its status, with their times.
func written(o client.Object) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(o.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" })
}

// TestMachineSetTaken checks that the provider does not change a StatefulSet of another owner.
func TestMachineSetTaken(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 1)
	foreign := s.built()
	foreign.Spec.Template.Spec.Containers[0].Image = "foreign"
	s.create(foreign)
	s.create(s.set)
	s.hasMessage("exists and does not belong to these proxies")
	if got := s.statefulSet().Spec.Template.Spec.Containers[0].Image; got != "foreign" {
		t.Errorf("the StatefulSet of another owner has image %s now", got)
	}
	s.must(shared.kube.Delete(t.Context(), foreign, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	s.eventually("the set creates its own", func() error { return s.runs(1) })
}

// forbidPods makes the API server reject StatefulSets as without the provider's role.
const forbidPods = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: pods-%[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: ["*"], resources: [statefulsets], operations: [CREATE]}
  validations:
  - {expression: "false", message: the provider may not, reason: Forbidden}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: pods-%[1]s}
spec: {policyName: pods-%[1]s, validationActions: [Deny]}
`

// TestMachineSetHostile has users who may write MachineSets request pods beyond the fields of a
// MachineSet.
func TestMachineSetHostile(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 1)
	s.apply(fmt.Sprintf(`
apiVersion: %[1]s
kind: MachineSet
metadata: {name: raw, namespace: %[2]s}
spec:
  providerConfigRef: {kind: ProviderConfig, name: %[3]s}
  statefulSet:
    apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: raw}
    spec:
      selector: {matchLabels: {app: raw}}
      template:
        metadata: {labels: {app: raw}}
        spec:
          hostPID: true
          serviceAccountName: somebody
          containers: [{name: evil, image: evil, securityContext: {privileged: true}}]
`, v1alpha1.SchemeGroupVersion, s.namespace, configName))
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.MachineSetKind))
	s.must(shared.kube.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "raw"}, stored))
	if _, ok, _ := unstructured.NestedMap(stored.Object, "spec", "statefulSet"); ok {
		t.Error("a pod template is kept")
	}
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.MachineSetPods)
	}{
		"Root": {
			reason: "Root is for networking Kernel only",
			change: func(p *v1alpha1.MachineSetPods) {
				p.SecurityContext = &v1alpha1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}
			},
		},
		"RootGroup": {
			reason: "The root group is for networking Kernel only",
			change: func(p *v1alpha1.MachineSetPods) {
				p.SecurityContext = &v1alpha1.PodSecurityContext{SupplementalGroups: []int64{0}}
			},
		},
		"SELinux": {
			reason: "A context without restrictions is refused",
			change: func(p *v1alpha1.MachineSetPods) {
				p.SecurityContext = &v1alpha1.PodSecurityContext{SELinuxOptions: &v1alpha1.SELinuxOptions{Type: "spc_t"}}
			},
		},
		"AppArmor": {
			reason: "Kubernetes converts the annotation to a profile",
			change: func(p *v1alpha1.MachineSetPods) {
				p.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/tailscale": "unconfined"}
			},
		},
		"Labels": {
			reason: "Pods have their own supplemental groups only",
			change: func(p *v1alpha1.MachineSetPods) {
				p.Labels = map[string]v1alpha1.LabelValue{meta.LabelEndpoints: "other"}
			},
		},
		"Env": {
			reason: "Containerboot is configured by the provider",
			change: func(p *v1alpha1.MachineSetPods) {
				p.Env = []v1alpha1.EnvVar{{Name: "TS_KUBE_SECRET", Value: "other"}}
			},
		},
	}
	s.must(shared.kube.Create(t.Context(), s.set.DeepCopy(), client.DryRunAll))
	for name, tc := range cases {
		s.want(1, tc.change)
		if err := shared.kube.Create(t.Context(), s.set.DeepCopy(), client.DryRunAll); !kerrors.IsInvalid(err) {
			t.Errorf("%s: %s: want it refused, got %v", name, tc.reason, err)
		}
	}
	// The provider handles the set above before this one.
	s.want(1)
	s.create(s.set)
	s.eventually("another set's pod runs", func() error { return s.runs(1) })
	if err := shared.kube.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "raw"}, &appsv1.StatefulSet{}); !kerrors.IsNotFound(err) {
		t.Errorf("want no StatefulSet of the template, got %v", err)
	}
}

// TestMachineSetUpgrade keeps pods running while the function that describes them is older than the
// provider.
func TestMachineSetUpgrade(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 2)
	s.create(s.set)
	s.eventually("two pods run", func() error { return s.runs(2) })
	previous := s.statefulSet()
	s.must(shared.kube.Get(t.Context(), client.ObjectKeyFromObject(s.set), s.set))
	s.set.Spec.Pods = nil
	s.must(shared.kube.Update(t.Context(), s.set))
	s.eventually("the provider has processed the set", func() error {
		if err := shared.kube.Get(t.Context(), client.ObjectKeyFromObject(s.set), s.set); err != nil {
			return err
		}
		if s.set.Status.ObservedGeneration < s.set.GetGeneration() {
			return errors.New("the provider has not processed the set")
		}
		return s.runs(2)
	})
	if diff := cmp.Diff(previous.Spec, s.statefulSet().Spec); diff != "" || s.statefulSet().GetUID() != previous.GetUID() {
		t.Errorf("the StatefulSet was changed or created again: -before, +after:\n%s", diff)
	}
	s.scale(0)
	s.eventually("no pod runs", func() error { return s.runs(0) })
}

// TestMachineSetRefused checks that the status has the API server's error, and that the provider
// continues once it may.
func TestMachineSetRefused(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 1)
	policy := s.parse(fmt.Sprintf(forbidPods, s.namespace))
	s.apply(fmt.Sprintf(forbidPods, s.namespace))
	s.eventually("the policy is in effect", func() error {
		if err := shared.kube.Create(t.Context(), s.built(), client.DryRunAll); !kerrors.IsForbidden(err) {
			return errors.Errorf("a StatefulSet may be created: %v", err)
		}
		return nil
	})
	s.create(s.set)
	s.hasMessage("the provider may not", "the chart tailscale-gateway")
	for _, o := range policy {
		s.must(shared.kube.Delete(t.Context(), o))
	}
	s.eventually("the StatefulSet is created once the provider may", func() error { return s.runs(1) })

	s.scale(1, func(p *v1alpha1.MachineSetPods) { p.NodeSelector = map[string]string{"not a key": "x"} })
	s.hasMessage("nodeSelector")
	s.scale(1, func(p *v1alpha1.MachineSetPods) { p.ServiceName = "other" })
	s.hasMessage("updates to statefulset spec for fields other than")
	s.scale(1)
	s.eventually("the pods run again", func() error { return s.runs(1) })
}
