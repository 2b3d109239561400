// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// withPods adds pods to a set, with a replica for each machine.
func withPods(set *v1alpha1.MachineSet, change ...func(*v1alpha1.MachineSetPods)) *v1alpha1.MachineSet {
	set.Spec.Pods = &v1alpha1.MachineSetPods{
		Replicas: int32(len(set.Spec.Machines)), Direction: v1alpha1.DirectionIngress, Endpoints: "web", ServiceName: key.Name,
	}
	for _, c := range change {
		c(set.Spec.Pods)
	}
	return set
}

func (h *harness) statefulSet(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	s := &appsv1.StatefulSet{}
	if err := h.kube.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// play sets the status of the StatefulSet as its controller does: n pods, all ready.
func (h *harness) play(t *testing.T, n int32) {
	t.Helper()
	s := h.statefulSet(t)
	s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.GetGeneration(), Replicas: n, ReadyReplicas: n, UpdatedReplicas: n}
	writes := h.writes
	if err := h.kube.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	h.writes = writes
}

// update changes the set as its function does.
func (h *harness) update(t *testing.T, fn func(*v1alpha1.MachineSet)) {
	t.Helper()
	s := &v1alpha1.MachineSet{}
	if err := h.kube.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	fn(s)
	s.SetGeneration(s.GetGeneration() + 1)
	if err := h.kube.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// TestPods shows that a set keeps its pods, and keeps surplus Machines until their pods are gone.
func TestPods(t *testing.T) {
	h := newHarness(t, withPods(machineSet("web-ingress-0", "web-ingress-1", "web-ingress-2")))
	applied := 0
	h.kube = interceptor.NewClient(h.kube.(client.WithWatch), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			applied++
			return c.Apply(ctx, o, opts...)
		},
	})
	h.run(t)
	if applied != 2 {
		t.Errorf("want one apply each of a StatefulSet and a PodDisruptionBudget, got %d", applied)
	}
	s := h.statefulSet(t)
	if got := ptr.Deref(s.Spec.Replicas, 0); got != 3 || s.GetLabels()[meta.LabelMachineSet] != key.Name || s.GetLabels()[meta.LabelEndpoints] != "web" {
		t.Errorf("want 3 replicas and our labels, got %d, %v", got, s.GetLabels())
	}
	owner := metav1.GetControllerOf(s)
	if owner == nil || owner.UID != "set" || !ptr.Deref(owner.BlockOwnerDeletion, false) {
		t.Errorf("want the set to be the owner, got %+v", owner)
	}
	h.play(t, 3)
	h.run(t)
	want := &v1alpha1.StatefulSetSummary{Replicas: 3, ReadyReplicas: 3, UpdatedReplicas: 3, Observed: true}
	if diff := cmp.Diff(want, h.status(t).StatefulSet, cmpopts.IgnoreFields(v1alpha1.StatefulSetSummary{}, "CreatedAt")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	h.update(t, func(s *v1alpha1.MachineSet) {
		s.Spec.Machines = s.Spec.Machines[:1]
		withPods(s)
	})
	h.run(t)
	if got := ptr.Deref(h.statefulSet(t).Spec.Replicas, 0); got != 1 {
		t.Errorf("want 1 replica, got %d", got)
	}
	all := []string{"web-ingress-0", "web-ingress-1", "web-ingress-2"}
	if diff := cmp.Diff(all, h.names(t)); diff != "" {
		t.Errorf("want the Machines of pods that may run: -want, +got:\n%s", diff)
	}
	if err := h.kube.Get(t.Context(), key, &policyv1.PodDisruptionBudget{}); !kerrors.IsNotFound(err) {
		t.Errorf("want no PodDisruptionBudget for one pod, got %v", err)
	}
	h.play(t, 2)
	h.run(t)
	if diff := cmp.Diff(all, h.names(t)); diff != "" {
		t.Errorf("want surplus Machines until all surplus pods are gone: -want, +got:\n%s", diff)
	}
	h.play(t, 1)
	h.run(t)
	if diff := cmp.Diff(all[:1], h.names(t)); diff != "" {
		t.Errorf("want no Machines of pods that are gone: -want, +got:\n%s", diff)
	}

	applied = 0
	h.run(t)
	if applied != 0 {
		t.Errorf("want no apply of unchanged objects, got %d", applied)
	}
}

// TestDrift shows that changed fields are corrected and that fields of others stay.
func TestDrift(t *testing.T) {
	set := withPods(machineSet("web-ingress-0"), func(p *v1alpha1.MachineSetPods) { p.Annotations = map[string]string{"team": "edge"} })
	h := newHarness(t, set)
	h.run(t)
	s := h.statefulSet(t)
	s.Spec.Replicas = ptr.To[int32](0)
	s.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
	s.Spec.Template.Spec.Containers[0].Image = "other"
	if err := h.kube.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	h.run(t)
	s = h.statefulSet(t)
	if got, image := ptr.Deref(s.Spec.Replicas, 0), s.Spec.Template.Spec.Containers[0].Image; got != 1 || image != "tailscale:test" {
		t.Errorf("want 1 replica of tailscale:test, got %d of %s", got, image)
	}
	want := map[string]string{"team": "edge", "kubectl.kubernetes.io/restartedAt": "now"}
	if diff := cmp.Diff(want, s.Spec.Template.Annotations); diff != "" {
		t.Errorf("want the restart annotation unchanged: -want, +got:\n%s", diff)
	}
	h.update(t, func(s *v1alpha1.MachineSet) { withPods(s) })
	h.run(t)
	want = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	if diff := cmp.Diff(want, h.statefulSet(t).Spec.Template.Annotations); diff != "" {
		t.Errorf("want removed fields to be removed: -want, +got:\n%s", diff)
	}
}

// TestPodsAbsent shows that pods keep running while the spec has none: the function that writes
// them may be older than the provider.
func TestPodsAbsent(t *testing.T) {
	h := newHarness(t, withPods(machineSet("web-ingress-0", "web-ingress-1")))
	h.run(t)
	h.play(t, 2)
	h.run(t)
	original := h.statefulSet(t)

	h.update(t, func(s *v1alpha1.MachineSet) { s.Spec.Pods, s.Spec.Machines = nil, s.Spec.Machines[:1] })
	h.run(t)
	if diff := cmp.Diff(original, h.statefulSet(t)); diff != "" {
		t.Errorf("want the StatefulSet unchanged while the spec has no pods: -want, +got:\n%s", diff)
	}
	if err := h.kube.Get(t.Context(), key, &policyv1.PodDisruptionBudget{}); err != nil {
		t.Errorf("want the PodDisruptionBudget unchanged: %v", err)
	}
	if diff := cmp.Diff([]string{"web-ingress-0", "web-ingress-1"}, h.names(t)); diff != "" {
		t.Errorf("want the Machines unchanged: -want, +got:\n%s", diff)
	}
	if got := h.status(t).StatefulSet; got == nil || got.ReadyReplicas != 2 || got.Message != "" {
		t.Errorf("want the pods in the status, got %+v", got)
	}

	h.update(t, func(s *v1alpha1.MachineSet) { withPods(s, func(p *v1alpha1.MachineSetPods) { p.Replicas = 0 }) })
	h.run(t)
	if got := ptr.Deref(h.statefulSet(t).Spec.Replicas, 1); got != 0 {
		t.Errorf("want zero replicas, got %d", got)
	}
}

// TestCannotApply shows that a failed apply is reported at once, and affects nothing else.
func TestCannotApply(t *testing.T) {
	errInvalid := kerrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind(), key.Name, nil)
	cases := map[string]struct {
		reason string
		objs   []client.Object
		watch  bool
		apply  error
		want   string
	}{
		"Taken": {
			reason: "A StatefulSet of somebody else is left alone",
			objs:   []client.Object{&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}},
			watch:  true,
			want:   "StatefulSet web-ingress exists and does not belong to these proxies; delete it, or give these another name",
		},
		"Invalid": {
			reason: "The API server says what is wrong",
			watch:  true,
			apply:  errInvalid,
			want:   `Cannot apply StatefulSet "web-ingress": ` + errInvalid.Error(),
		},
		"Forbidden": {
			reason: "The message names the permissions that may be missing",
			watch:  true,
			apply:  kerrors.NewForbidden(appsv1.Resource("statefulsets"), key.Name, errors.New("cannot patch")),
			want:   `Cannot apply StatefulSet "web-ingress": ` + hint + `: statefulsets.apps "web-ingress" is forbidden: cannot patch`,
		},
		"MayNotWatch": {
			reason: "The message names the missing permissions",
			want:   "The provider is not allowed to list and watch StatefulSets and PodDisruptionBudgets; install or upgrade the chart tailscale-gateway",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, append(tc.objs, withPods(machineSet("web-ingress-0", "web-ingress-1")))...)
			h.watch = func(context.Context) (bool, error) { return tc.watch, nil }
			h.kube = interceptor.NewClient(h.kube.(client.WithWatch), interceptor.Funcs{
				Apply: func(_ context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					return tc.apply
				},
			})
			_, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err == nil || !strings.EqualFold(err.Error(), tc.want) {
				t.Errorf("%s\nReconcile(...): want an error that is retried, got %v", tc.reason, err)
			}
			if diff := cmp.Diff(&v1alpha1.StatefulSetSummary{Message: tc.want}, h.status(t).StatefulSet); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if h.writes != 1 {
				t.Errorf("want one write, got %d", h.writes)
			}
			h.update(t, func(s *v1alpha1.MachineSet) { s.Spec.Machines = s.Spec.Machines[:1] })
			if _, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err == nil {
				t.Error("Reconcile(...): want an error that is retried, got none")
			}
			if got := h.names(t); len(got) != 2 {
				t.Errorf("want Machines to stay while pods may run, got %v", got)
			}
		})
	}
}

// TestApplyAgain shows that errors that pass are retried, and not reported.
func TestApplyAgain(t *testing.T) {
	h := newHarness(t, withPods(machineSet("web-ingress-0")))
	h.kube = interceptor.NewClient(h.kube.(client.WithWatch), interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			return kerrors.NewConflict(appsv1.Resource("statefulsets"), key.Name, nil)
		},
	})
	if _, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); !kerrors.IsConflict(err) {
		t.Errorf("Reconcile(...): want a conflict, got %v", err)
	}
	if h.writes != 0 {
		t.Errorf("want no write, got %d", h.writes)
	}
}

// TestSettlePods shows that changes of starting pods cause one write.
func TestSettlePods(t *testing.T) {
	h := newHarness(t, withPods(machineSet("web-ingress-0", "web-ingress-1", "web-ingress-2")))
	h.run(t)
	baseline := h.writes
	for n := range int32(4) {
		h.play(t, n)
		if _, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		h.clock.SetTime(h.clock.Now().Add(settleChanging / 2))
	}
	h.run(t)
	if got := h.writes - baseline; got != 1 {
		t.Errorf("want one write, got %d", got)
	}
}
