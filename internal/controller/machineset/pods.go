// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
)

// fieldManager applies the objects.
const fieldManager = client.FieldOwner("provider-tailscale/machineset")

// hint extends the errors of the API server's role-based access control. Quotas and admission
// webhooks also return Forbidden.
const hint = "if the provider's service account is not allowed to, install or upgrade the chart tailscale-gateway"

// Pods is the state of the pods that run a set's Machines.
type Pods struct {
	// StatefulSet is the StatefulSet in the cluster. It is nil if the set has none, or if that is
	// not known.
	StatefulSet *appsv1.StatefulSet

	// Problem describes, for the user, why the cluster does not match the set's spec. It is empty
	// if it matches.
	Problem string

	// stale reports that the StatefulSet does not match the set, so that any of its pods may run.
	stale bool
}

// pods applies the StatefulSet and the PodDisruptionBudget of a set. Problems that the user must
// fix go into the result; other errors are returned.
func (r *reconciler) pods(ctx context.Context, set *v1alpha1.MachineSet) (Pods, error) {
	allowed, err := r.watch(ctx)
	if err != nil {
		return Pods{}, err
	}
	if !allowed && set.Spec.Pods == nil {
		return Pods{}, nil
	}
	if !allowed {
		return Pods{Problem: "The provider is not allowed to list and watch StatefulSets and PodDisruptionBudgets; install or upgrade the chart tailscale-gateway", stale: true}, nil
	}

	if set.Spec.Pods == nil {
		return r.remainingPods(ctx, set)
	}
	beyond, err := r.beyondGrant(ctx, set)
	if err != nil {
		return Pods{}, err
	}
	if beyond != "" {
		out, err := r.remainingPods(ctx, set)
		out.Problem, out.stale = beyond, true
		return out, err
	}
	want, err := StatefulSet(set, r.images)
	if err != nil {
		return Pods{}, err
	}
	sts := &appsv1.StatefulSet{}
	exists, err := r.sync(ctx, set, want, sts)
	out := Pods{stale: err != nil}
	if exists {
		out.StatefulSet = sts
	}
	if err != nil {
		if !isForStatus(err) {
			return Pods{}, err
		}
		out.Problem = sentence(err.Error())
		// Without pods there is nothing to protect.
		return out, nil
	}
	if want, err = podDisruptionBudget(set); err != nil {
		return Pods{}, err
	}
	if _, err := r.sync(ctx, set, want, &policyv1.PodDisruptionBudget{}); err != nil {
		if !isForStatus(err) {
			return Pods{}, err
		}
		out.Problem = sentence(err.Error())
	}
	return out, nil
}

// beyondGrant describes, for the user, how the pods of a set exceed the grant of its namespace. It
// returns an empty string if they do not.
func (r *reconciler) beyondGrant(ctx context.Context, set *v1alpha1.MachineSet) (string, error) {
	ref := set.Spec.ProviderConfigReference
	g, err := r.grant(ctx, set.GetNamespace(), ref)
	var ce *clients.CredentialsError
	switch {
	case errors.As(err, &ce):
		return sentence(ce.Message), nil
	case kerrors.IsNotFound(err):
		return fmt.Sprintf("%s %q does not exist; pods stay as they are until it does", ref.Kind, ref.Name), nil
	case err != nil:
		return "", err
	}
	if v := g.Pods("spec.pods", set.Spec.Pods.PodSettings, r.images.Tailscale); v != nil {
		return fmt.Sprintf("%s %q: %v", ref.Kind, ref.Name, v), nil
	}
	return "", nil
}

// remainingPods returns the pods of a set that stay unchanged: the set's spec exceeds the grant, or
// it has no pods yet, because its function is older than the provider and writes them later. Any of
// the pods may run.
func (r *reconciler) remainingPods(ctx context.Context, set *v1alpha1.MachineSet) (Pods, error) {
	sts := &appsv1.StatefulSet{}
	exists, err := r.find(ctx, set, set.GetName(), false, sts)
	if err != nil {
		return Pods{}, errors.Wrapf(err, "cannot get StatefulSet %q", set.GetName())
	}
	if !exists || !metav1.IsControlledBy(sts, set) {
		return Pods{}, nil
	}
	return Pods{StatefulSet: sts, stale: true}, nil
}

// A refusal is a problem that the user must fix.
type refusal string

func (r refusal) Error() string { return string(r) }

// isForStatus reports whether an error belongs in the status, because it does not pass by itself.
func isForStatus(err error) bool {
	if r := refusal(""); errors.As(err, &r) {
		return true
	}
	switch kerrors.ReasonForError(err) {
	case metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonInternalError,
		metav1.StatusReasonNotAcceptable, metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonRequestEntityTooLarge:
		return true
	}
	return false
}

// sync applies an object with the name of a set, or deletes it if want is nil. It reads the API
// server's version into o, and returns whether that belongs to the set.
func (r *reconciler) sync(ctx context.Context, set *v1alpha1.MachineSet, want *unstructured.Unstructured, o client.Object) (bool, error) {
	return r.syncNamed(ctx, set, set.GetName(), want, o)
}

// syncNamed does the same as sync for an object with another name.
func (r *reconciler) syncNamed(ctx context.Context, set *v1alpha1.MachineSet, name string, want *unstructured.Unstructured, o client.Object) (bool, error) {
	gvk, err := r.kube.GroupVersionKindFor(o)
	if err != nil {
		return false, errors.Wrap(err, "cannot find the kind of an object")
	}
	exists, err := r.find(ctx, set, name, want != nil, o)
	if err != nil {
		return false, errors.Wrapf(hinted(err), "cannot get %s %q", gvk.Kind, name)
	}
	own := exists && metav1.IsControlledBy(o, set)
	if want == nil {
		if !own || o.GetDeletionTimestamp() != nil {
			return own, nil
		}
		// The object stays until its pods are gone.
		err := r.kube.Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationForeground))
		return true, errors.Wrapf(hinted(client.IgnoreNotFound(err)), "cannot delete %s %q", gvk.Kind, name)
	}
	if exists && !own {
		return false, refusal(gvk.Kind + " " + name + " exists and does not belong to these proxies; delete it, or give these another name")
	}
	if own && o.GetDeletionTimestamp() != nil {
		return true, nil
	}

	// The owner reference blocks a foreground deletion until the pods are gone; Machines go after
	// them.
	if err := controllerutil.SetControllerReference(set, want, r.kube.Scheme()); err != nil {
		return own, errors.Wrapf(err, "cannot own %s %q", gvk.Kind, name)
	}
	if own {
		same, err := covers(o, gvk, want)
		if err != nil || same {
			return true, err
		}
		// Do not apply to an object that was made again in the meantime.
		want.SetUID(o.GetUID())
	}
	r.log.Debug("Applying an object", "kind", gvk.Kind, "object", client.ObjectKeyFromObject(want))
	if err := r.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), fieldManager, client.ForceOwnership); err != nil {
		return own, errors.Wrapf(hinted(err), "cannot apply %s %q", gvk.Kind, name)
	}
	return true, errors.Wrapf(runtime.DefaultUnstructuredConverter.FromUnstructured(want.Object, o), "cannot read %s %q", gvk.Kind, name)
}

// find reads an object of a set. The cache only has objects with the set's label, and may lack new
// ones. With live, find asks the API server for an object that the cache lacks, as a caller that
// may create it needs.
func (r *reconciler) find(ctx context.Context, set *v1alpha1.MachineSet, name string, live bool, o client.Object) (bool, error) {
	key := types.NamespacedName{Namespace: set.GetNamespace(), Name: name}
	err := r.kube.Get(ctx, key, o)
	if kerrors.IsNotFound(err) && live {
		err = r.live.Get(ctx, key, o)
	}
	return err == nil, client.IgnoreNotFound(err)
}

func hinted(err error) error {
	if !kerrors.IsForbidden(err) {
		return err
	}
	return errors.Wrap(err, hint)
}

// shrinking reports whether there may be more pods than the set wants. The status is only valid
// once Kubernetes' controller has observed the spec, and the spec once it matches the set.
func (p Pods) shrinking() bool {
	s := p.StatefulSet
	if s == nil || p.stale {
		return p.stale
	}
	return s.GetDeletionTimestamp() != nil || !observed(s) || s.Status.Replicas > ptr.Deref(s.Spec.Replicas, 1)
}

// observed reports whether Kubernetes' controller has observed a StatefulSet's current spec.
func observed(s *appsv1.StatefulSet) bool { return s.Status.ObservedGeneration >= s.GetGeneration() }
