// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package machineset manages the Machines of a MachineSet and the StatefulSet whose pods run them.
// It summarizes their state in the set's status once the state has settled. Package machine manages
// a Machine's device in the tailnet, and internal/proxy builds the pods.
package machineset

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// A change of Machines and pods is written to the status after it has lasted settleReady or
// settleChanging; further changes delay the write until settleAtMost. Crossplane charges a
// composite for each write of the status, and starting machines change several times within
// seconds.
const (
	settleReady    = time.Second
	settleChanging = 4 * time.Second
	settleAtMost   = 15 * time.Second
)

const (
	reasonCannotDelete = event.Reason(meta.ReasonCannotDeleteMachine)
	reasonCannotApply  = event.Reason(meta.ReasonCannotApplyStatefulSet)
)

type reconciler struct {
	kube client.Client

	// live reads from the API server, not from the cache.
	live client.Reader

	// watch starts to watch StatefulSets and PodDisruptionBudgets. It returns false while the
	// provider lacks the permission.
	watch func(context.Context) (bool, error)

	// watchStatic starts to watch Services of static endpoints and Nodes. It returns false while
	// the provider lacks the permission.
	watchStatic func(context.Context) (bool, error)

	// grant returns what a provider config grants a namespace.
	grant func(ctx context.Context, namespace string, ref xpv2.ProviderConfigReference) (*allow.Grant, error)

	// images are the images of the pods' containers.
	images proxy.Images

	log    logging.Logger
	record event.Recorder
	clock  func() time.Time

	// mu protects pending.
	mu      sync.Mutex
	pending map[types.NamespacedName]pending
}

// A pending status has yet to be written.
type pending struct {
	status v1alpha1.MachineSetStatus

	// start is the time of the first unwritten change, changed that of the last.
	start, changed time.Time
}

// Reconcile applies a MachineSet's Machines and pods, and writes its status.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.log.Debug("Reconciling", "request", req)
	set := &v1alpha1.MachineSet{}
	if err := r.kube.Get(ctx, req.NamespacedName, set); err != nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot get MachineSet")
	}
	// Kubernetes' garbage collector deletes Machines and pods after their owner.
	if set.GetDeletionTimestamp() != nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	owned, err := r.machines(ctx, set)
	if err != nil {
		return reconcile.Result{}, err
	}

	static, err := r.static(ctx, set, owned)
	if err != nil {
		return reconcile.Result{}, err
	}
	problems := map[string]string{}
	for _, m := range set.Spec.Machines {
		problem, err := r.ensure(ctx, set, owned[m.Name], m, static)
		if err != nil {
			return reconcile.Result{}, err
		}
		if problem != "" {
			problems[m.Name] = problem
		}
	}
	pods, err := r.pods(ctx, set)
	if err != nil {
		return reconcile.Result{}, err
	}
	pods.Problem = cmp.Or(pods.Problem, static.problem)
	// A problem with the pods must not keep the status from being written.
	refused := r.recordEvent(set, pods)
	// If a Machine were deleted before its pod, the pod would be left with a revoked key.
	if !pods.shrinking() {
		refused = errors.Join(refused, r.removeSurplus(ctx, set, owned, problems))
	}

	status := Summarize(set, owned, problems, pods)
	wait := r.settle(req.NamespacedName, set.Status, status)
	if wait > 0 && refused == nil {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if wait > 0 || equality.Semantic.DeepEqual(set.Status, status) {
		return reconcile.Result{}, refused
	}
	set.Status = status
	if err := r.kube.Status().Update(ctx, set); err != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot update the status")
	}
	return reconcile.Result{}, refused
}

// machines returns the Machines that the set owns, by name.
func (r *reconciler) machines(ctx context.Context, set *v1alpha1.MachineSet) (map[string]*v1alpha1.Machine, error) {
	l := &v1alpha1.MachineList{}
	if err := r.kube.List(ctx, l, client.InNamespace(set.GetNamespace()), client.MatchingFields{indexOwner: set.GetName()}); err != nil {
		return nil, errors.Wrap(err, "cannot list Machines")
	}
	out := make(map[string]*v1alpha1.Machine, len(l.Items))
	for i := range l.Items {
		if m := &l.Items[i]; metav1.IsControlledBy(m, set) {
			out[m.GetName()] = m
		}
	}
	return out, nil
}

// recordEvent records an event for a new problem with the pods. It returns the problem as an error,
// so that the reconciler retries.
func (r *reconciler) recordEvent(set *v1alpha1.MachineSet, pods Pods) error {
	if pods.Problem == "" {
		return nil
	}
	err := errors.New(pods.Problem)
	if problemOf(set.Status) != pods.Problem {
		r.record.Event(set, event.Warning(reasonCannotApply, err))
	}
	return err
}

// removeSurplus deletes the Machines that the set no longer has. If one cannot be deleted, it
// reports the reason in an event, in a condition of the Machine, and in problems, by name.
func (r *reconciler) removeSurplus(ctx context.Context, set *v1alpha1.MachineSet, owned map[string]*v1alpha1.Machine, problems map[string]string) error {
	var refused error
	for _, m := range surplus(set, owned) {
		err := r.remove(ctx, m)
		if err == nil {
			continue
		}
		r.record.Event(set, event.Warning(reasonCannotDelete, err))
		refused = err
		if !isForStatus(err) {
			continue
		}
		problems[m.GetName()] = sentence(err.Error())
		if err := r.setDeletable(ctx, m, problems[m.GetName()]); err != nil {
			return err
		}
	}
	return refused
}

// setDeletable sets the condition of a Machine that cannot be deleted. An empty problem removes the
// condition.
func (r *reconciler) setDeletable(ctx context.Context, m *v1alpha1.Machine, problem string) error {
	condition := m.GetCondition(meta.TypeDeletable)
	if (condition.Status == corev1.ConditionFalse) == (problem != "") && condition.Message == problem {
		return nil
	}
	if problem == "" {
		m.Status.Conditions = slices.DeleteFunc(m.Status.Conditions, func(c xpv2.Condition) bool { return c.Type == meta.TypeDeletable })
	} else {
		m.SetConditions(xpv2.Condition{
			Type: meta.TypeDeletable, Status: corev1.ConditionFalse, Reason: meta.ReasonCannotDeleteMachine,
			Message: problem, LastTransitionTime: metav1.NewTime(r.clock()),
		})
	}
	return errors.Wrapf(r.kube.Status().Update(ctx, m), "cannot update the status of Machine %q", m.GetName())
}

// remove deletes a Machine. Crossplane's roles for providers do not include the permission, so the
// provider needs a further role.
func (r *reconciler) remove(ctx context.Context, m *v1alpha1.Machine) error {
	if m.GetDeletionTimestamp() != nil {
		return nil
	}
	r.log.Debug("Deleting a Machine", "machine", client.ObjectKeyFromObject(m))
	err := r.kube.Delete(ctx, m, client.Preconditions{UID: ptr.To(m.GetUID())})
	if kerrors.IsForbidden(err) {
		return errors.Wrapf(err, "cannot delete Machine %q; let the provider's service account delete machines, as the chart tailscale-gateway does", m.GetName())
	}
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot delete Machine %q", m.GetName())
}

// ensure creates or updates a Machine so that it matches the set. If that is impossible, it returns
// the reason for the user.
func (r *reconciler) ensure(ctx context.Context, set *v1alpha1.MachineSet, m *v1alpha1.Machine, member v1alpha1.MachineSetMember, s static) (string, error) {
	if m == nil {
		m = Compose(set, member)
		m.Spec.ForProvider.StaticEndpoints = s.endpoints[member.Name]
		if err := controllerutil.SetControllerReference(set, m, r.kube.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
			return "", errors.Wrap(err, "cannot own a Machine")
		}
		err := r.kube.Create(ctx, m)
		if kerrors.IsAlreadyExists(err) {
			return r.adopt(ctx, set, member)
		}
		return "", errors.Wrapf(err, "cannot create Machine %q", member.Name)
	}
	if m.GetDeletionTimestamp() != nil {
		return "", nil
	}
	if err := r.setDeletable(ctx, m, ""); err != nil {
		return "", err
	}
	old := m.DeepCopy()
	apply(set, member, m)
	if e, ok := s.endpoints[member.Name]; ok {
		m.Spec.ForProvider.StaticEndpoints = e
	}
	if equality.Semantic.DeepEqual(old, m) {
		return "", nil
	}
	return "", errors.Wrapf(r.kube.Update(ctx, m), "cannot update Machine %q", member.Name)
}

// adopt takes over an existing Machine of a backup, or returns, for the user, that the Machine
// belongs to somebody else. If it is the set's own, it was just made and is not in the cache yet.
func (r *reconciler) adopt(ctx context.Context, set *v1alpha1.MachineSet, member v1alpha1.MachineSetMember) (string, error) {
	m, name := &v1alpha1.Machine{}, member.Name
	err := r.kube.Get(ctx, types.NamespacedName{Namespace: set.GetNamespace(), Name: name}, m)
	switch {
	case kerrors.IsNotFound(err):
		return "", errors.Errorf("Machine %q is not in the cache yet", name)
	case err != nil:
		return "", errors.Wrapf(err, "cannot get Machine %q", name)
	case metav1.IsControlledBy(m, set):
		return "", nil
	case isBackup(set, m):
		if err := controllerutil.SetControllerReference(set, m, r.kube.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
			return "", errors.Wrap(err, "cannot own a Machine")
		}
		controllerutil.AddFinalizer(m, meta.FinalizerManaged)
		apply(set, member, m)
		return "", errors.Wrapf(r.kube.Update(ctx, m), "cannot take over Machine %q", name)
	}
	return "Machine " + name + " exists and does not belong to these proxies; delete it, or give these another name", nil
}

// isBackup reports whether a Machine was restored from a backup of a set with this name: it has the
// set's label and tailnet, and no owner. Only administrators and the provider write Machines.
func isBackup(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	ref := m.Spec.ProviderConfigReference
	return len(m.GetOwnerReferences()) == 0 && m.GetDeletionTimestamp() == nil &&
		m.GetLabels()[meta.LabelMachineSet] == set.GetName() && ref != nil && *ref == set.Spec.ProviderConfigReference
}

// settle returns how long to wait before a status may be written.
func (r *reconciler) settle(key types.NamespacedName, old, status v1alpha1.MachineSetStatus) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if equality.Semantic.DeepEqual(old, status) {
		delete(r.pending, key)
		return 0
	}
	at := r.clock()
	p, ok := r.pending[key]
	if !ok {
		p.start = at
	}
	if !ok || !equality.Semantic.DeepEqual(p.status, status) {
		p.status, p.changed = status, at
		r.pending[key] = p
	}
	pause := settleChanging
	if settled(status) {
		pause = settleReady
	}
	wait := min(p.changed.Add(pause).Sub(at), p.start.Add(settleAtMost).Sub(at))
	if problem := problemOf(status); problem != "" && problem != problemOf(old) {
		wait = 0
	}
	if wait <= 0 {
		delete(r.pending, key)
	}
	return wait
}

func (r *reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, key)
}
