// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// held keeps a pod that is deleted.
const held = "example.org/held"

// A podSet is a MachineSet that has a StatefulSet. The API server's StatefulSet
// controller runs; the test plays kubelet.
type podSet struct {
	*machineSet
}

// newPodSet makes a set without applying it.
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

// want that many machines and pods, and a budget for more than one.
func (s *podSet) want(n int, change ...func(*appsv1.StatefulSet)) {
	s.Helper()
	labels := map[string]string{"app": subject}
	sts := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Name: subject, Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            ptr.To(int32(n)),
			Selector:            &metav1.LabelSelector{MatchLabels: labels},
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy", Image: "proxy:test"}}},
			},
		},
	}
	for _, c := range change {
		c(sts)
	}
	s.set.Spec.Machines = members(n)
	s.set.Spec.StatefulSet = s.raw(sts)
	s.set.Spec.PodDisruptionBudget = nil
	if n > 1 {
		s.set.Spec.PodDisruptionBudget = s.raw(&policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: metav1.ObjectMeta{Name: subject, Labels: labels},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
		})
	}
}

func (s *podSet) raw(o runtime.Object) *runtime.RawExtension {
	s.Helper()
	j, err := json.Marshal(o)
	s.must(err)
	return &runtime.RawExtension{Raw: j}
}

// scale to that many, with another template if there is a change.
func (s *podSet) scale(n int, change ...func(*appsv1.StatefulSet)) {
	s.Helper()
	s.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := world.kube.Get(s.Context(), client.ObjectKeyFromObject(s.set), s.set); err != nil {
			return err
		}
		s.want(n, change...)
		return world.kube.Update(s.Context(), s.set)
	}))
}

// kubelet has every pod ready, as long as the test runs.
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
		// What fails is tried again.
		if err := world.kube.List(s.Context(), pods, client.InNamespace(s.namespace)); err != nil {
			continue
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if len(p.Status.Conditions) > 0 {
				continue
			}
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
			_ = world.kube.Status().Update(s.Context(), p)
		}
	}
}

// runs tells what differs from n pods that are ready, and n machines.
func (s *podSet) runs(n int) error {
	if err := s.settled(n); err != nil {
		return err
	}
	got := s.set.Status.StatefulSet
	want := int32(n)
	if got == nil || !got.Observed || got.Message != "" || got.Replicas != want || got.ReadyReplicas != want || got.UpdatedReplicas != want || got.CreatedAt == nil {
		return errors.Errorf("status.statefulSet: %+v", got)
	}
	err := world.kube.Get(s.Context(), client.ObjectKeyFromObject(s.set), &policyv1.PodDisruptionBudget{})
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
	s.must(world.kube.Get(s.Context(), client.ObjectKeyFromObject(s.set), sts))
	return sts
}

// told waits until the status gives a reason for there being no pods as wanted.
func (s *podSet) told(words ...string) {
	s.Helper()
	s.eventually(fmt.Sprintf("the status says %q", words), func() error {
		if err := world.kube.Get(s.Context(), client.ObjectKeyFromObject(s.set), s.set); err != nil {
			return err
		}
		got := s.set.Status.StatefulSet
		if got == nil {
			return errors.New("there is no status.statefulSet")
		}
		for _, w := range words {
			if !strings.Contains(got.Message, w) {
				return errors.Errorf("it says %q", got.Message)
			}
		}
		return nil
	})
}

// TestMachineSetPods brings pods up, scales them, and deletes them.
func TestMachineSetPods(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 5)
	writes := s.countWrites()
	s.create(s.set)
	s.eventually("five pods run", func() error { return s.runs(5) })
	up := writes()
	if up > 4 {
		t.Errorf("five machines and pods cost %d writes of the set", up)
	}

	// A pod that takes its time holds all Machines that are to go.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: subject + "-3"}}
	hold := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["`+held+`"]}}`))
	s.must(world.kube.Patch(t.Context(), pod, hold))
	writes = s.countWrites()
	s.scale(1)
	s.eventually("all pods but the one that is held have gone", func() error {
		if n := s.statefulSet().Status.Replicas; n != 2 {
			return errors.Errorf("there are %d pods", n)
		}
		return nil
	})
	s.eventually("the status tells of the machines that are kept", func() error {
		if err := world.kube.Get(t.Context(), client.ObjectKeyFromObject(s.set), s.set); err != nil {
			return err
		}
		if st := s.set.Status; st.ObservedGeneration != s.set.GetGeneration() || len(st.Machines) != 5 || st.ReadyMachines != 1 {
			return errors.Errorf("%d machines, %d wanted ones ready", len(st.Machines), st.ReadyMachines)
		}
		return nil
	})
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	s.must(world.kube.Patch(t.Context(), pod, free))
	s.eventually("one pod runs, and nothing is left of the others", func() error { return s.runs(1) })
	in := writes()
	if in > 5 {
		t.Errorf("scaling in costs %d writes of the set", in)
	}
	t.Logf("writes of the set: %d to bring five up, %d to scale to one, with the spec's", up, in)

	s.scale(2)
	s.eventually("two pods run", func() error { return s.runs(2) })
	s.must(world.kube.Delete(t.Context(), s.set))
	s.eventually("nothing is left", func() error {
		if err := s.left(0, nil); err != nil {
			return err
		}
		for _, l := range []client.ObjectList{&appsv1.StatefulSetList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.PodList{}} {
			if err := world.kube.List(t.Context(), l, client.InNamespace(s.namespace)); err != nil {
				return err
			}
			if n := apimeta.LenList(l); n > 0 {
				return errors.Errorf("%d items are left in a %T", n, l)
			}
		}
		return nil
	})
}

// countWrites of the set from now on. What it returns tells how many there were,
// the test's own included.
func (s *podSet) countWrites() func() int {
	s.Helper()
	c, err := client.NewWithWatch(world.config, client.Options{Scheme: world.kube.Scheme()})
	s.must(err)
	ctx, cancel := context.WithCancel(s.Context())
	w, err := c.Watch(ctx, &v1alpha1.MachineSetList{}, client.InNamespace(s.namespace))
	s.must(err)
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
	return func() int {
		cancel()
		return <-counted
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

	change := `{"metadata":{"labels":{"gateway.tailscale.com/machine-set":null}},"spec":{"replicas":0,"template":{"spec":{"containers":[{"name":"proxy","image":"other"}]}}}}`
	s.must(world.kube.Patch(t.Context(), sts, client.RawPatch("application/strategic-merge-patch+json", []byte(change))))
	s.must(world.kube.Delete(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: subject}}))
	s.eventually("the StatefulSet is as it was", func() error {
		sts := s.statefulSet()
		if n, image := ptr.Deref(sts.Spec.Replicas, 1), sts.Spec.Template.Spec.Containers[0].Image; n != 2 || image != "proxy:test" {
			return errors.Errorf("%d replicas of %s", n, image)
		}
		return s.runs(2)
	})
	s.must(world.kube.Delete(t.Context(), s.statefulSet()))
	s.eventually("another StatefulSet is made", func() error {
		sts := &appsv1.StatefulSet{}
		if err := world.kube.Get(t.Context(), client.ObjectKeyFromObject(s.set), sts); err != nil {
			return err
		}
		if sts.GetUID() == uid {
			return errors.New("it is the same")
		}
		return s.runs(2)
	})
	rest := written(s.statefulSet())
	s.scale(2)
	s.eventually("all is at rest", func() error { return s.runs(2) })
	if diff := cmp.Diff(rest, written(s.statefulSet())); diff != "" {
		t.Errorf("a StatefulSet that is as it should be was written: -before, +after:\n%s", diff)
	}
}

// written tells who wrote an object, but for its status, and when.
func written(o client.Object) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(o.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" })
}

// TestMachineSetTaken leaves a StatefulSet of somebody else alone.
func TestMachineSetTaken(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 1)
	foreign := &appsv1.StatefulSet{}
	s.must(json.Unmarshal(s.set.Spec.StatefulSet.Raw, foreign))
	foreign.SetNamespace(s.namespace)
	foreign.Spec.Template.Spec.Containers[0].Image = "foreign"
	s.create(foreign)
	s.create(s.set)
	s.told("exists and does not belong to these proxies")
	if got := s.statefulSet().Spec.Template.Spec.Containers[0].Image; got != "foreign" {
		t.Errorf("the StatefulSet of somebody else has image %s now", got)
	}
	s.must(world.kube.Delete(t.Context(), foreign, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	s.eventually("the set makes its own", func() error { return s.runs(1) })
}

// forbidPods is what the API server says who lacks our role for the provider.
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

// TestMachineSetKinds has the schema refuse what is not a StatefulSet.
func TestMachineSetKinds(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 2)
	s.must(world.kube.Create(t.Context(), s.set.DeepCopy(), client.DryRunAll))
	for _, raw := range []*runtime.RawExtension{s.set.Spec.StatefulSet, s.set.Spec.PodDisruptionBudget} {
		good := raw.Raw
		raw.Raw = []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + subject + `"}}`)
		if err := world.kube.Create(t.Context(), s.set.DeepCopy(), client.DryRunAll); !kerrors.IsInvalid(err) {
			t.Errorf("a Pod is taken for %s: %v", good, err)
		}
		raw.Raw = good
	}
}

// TestMachineSetRefused tells what the API server says, and goes on once it may.
func TestMachineSetRefused(t *testing.T) {
	t.Parallel()
	s := newPodSet(t, 1)
	policy := s.parse(fmt.Sprintf(forbidPods, s.namespace))
	s.apply(fmt.Sprintf(forbidPods, s.namespace))
	s.eventually("the policy counts", func() error {
		sts := &appsv1.StatefulSet{}
		s.must(json.Unmarshal(s.set.Spec.StatefulSet.Raw, sts))
		sts.SetNamespace(s.namespace)
		if err := world.kube.Create(t.Context(), sts, client.DryRunAll); !kerrors.IsForbidden(err) {
			return errors.Errorf("a StatefulSet may be made: %v", err)
		}
		return nil
	})
	s.create(s.set)
	s.told("the provider may not", "rbac.yaml")
	for _, o := range policy {
		s.must(world.kube.Delete(t.Context(), o))
	}
	s.eventually("the StatefulSet is made once it may", func() error { return s.runs(1) })

	s.scale(1, func(sts *appsv1.StatefulSet) { sts.Spec.Template.Spec.PriorityClassName = "Not A Name" })
	s.told("priorityClassName")
	s.scale(1, func(sts *appsv1.StatefulSet) { sts.Spec.ServiceName = "other" })
	s.told("updates to statefulset spec for fields other than")
	s.scale(1)
	s.eventually("all is well again", func() error { return s.runs(1) })
}
