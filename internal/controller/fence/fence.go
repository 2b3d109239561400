// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/fence"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Reasons of events.
const (
	reasonFenced   event.Reason = "FencedHost"
	reasonUnfenced event.Reason = "ClearedFence"
)

const (
	// pollSuspected is the time between two looks at the records of other clusters while a witness has lost a
	// host, and pollFenced that while a host is fenced.
	// pollSuspectedLater is it once that has lasted.
	pollSuspected      = time.Second
	pollSuspectedLater = 30 * time.Second
	suspectedLong      = 30 * time.Second
	pollFenced         = time.Minute

	// tryAgain is how long no host of a service is fenced after the API did not withdraw an approval.
	tryAgain = 10 * time.Minute

	// checkWatches is how long it counts what a config Secret was found to say.
	checkWatches = 10 * time.Minute

	// settled is how long no host is fenced after a request to a tailnet failed: a witness that was without a network
	// reports that hosts answer again within it.
	settled = fence.AnswersFor + 5*time.Second

	// checkRecord is how long it counts what the record of this cluster was found to say.
	checkRecord = 24 * time.Hour
)

// A tailnetAPI is the part of a tailnet's API that fences need.
type tailnetAPI interface {
	Service(ctx context.Context, name string) (*tailscale.Service, error)
	PutService(ctx context.Context, s tailscale.Service) (*tailscale.Service, error)
	ServicesAt(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Service, time.Time, error)
	HostApproval(ctx context.Context, service, nodeID string) (tailscale.HostApproval, error)
	ApproveHost(ctx context.Context, service, nodeID string) (bool, error)
	RefuseHost(ctx context.Context, service, nodeID string) (bool, error)
}

// A connection is a tailnet and this cluster's ID in it.
type connection struct {
	api     tailnetAPI
	cluster string
}

type reconciler struct {
	kube    client.Client
	connect func(ctx context.Context, v *v1alpha1.VIPService) (connection, error)

	// cluster returns this cluster's ID in the tailnet of a service, without a request to the tailnet.
	cluster func(ctx context.Context, v *v1alpha1.VIPService) (string, error)

	// election is that of the replica that fences.
	election *election
	record   event.Recorder
	clock    func() time.Time

	// stated has which records of this cluster say something about hosts, by the UID of the VIPService. The record of
	// another one is not known.
	stated *cache.Expiring

	// failed is when a request to a tailnet failed last. Witnesses of a cluster without a network lose all others,
	// and report it when the network is back.
	failed atomic.Int64

	// written has what the config Secrets of machines say: they are read from the API server.
	written *cache.Expiring
}

// Reconcile distributes the watches of a service's hosts among machines, and fences the host that they have
// lost.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	v := &v1alpha1.VIPService{}
	if err := r.kube.Get(ctx, req.NamespacedName, v); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if xpmeta.IsPaused(v) {
		return reconcile.Result{}, nil
	}
	wanted := v.Spec.ForProvider.Fencing && !xpmeta.WasDeleted(v) && v.Status.AtProvider.Name != "" &&
		!managed.NewManagementPoliciesResolver(true, v.GetManagementPolicies()).ShouldOnlyObserve()
	if !wanted && !began(v) || !r.election.leads() {
		return reconcile.Result{}, nil
	}
	l := &v1alpha1.MachineList{}
	if err := r.kube.List(ctx, l, client.InNamespace(v.GetNamespace())); err != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot list machines")
	}
	machines := machinesOf(v, l.Items)
	if !wanted {
		return reconcile.Result{}, r.end(ctx, v, machines)
	}
	cluster, err := r.cluster(ctx, v)
	if err != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot learn the ID of this cluster")
	}
	s := situationOf(v, machines, cluster)
	status := outcome{fence: v.Status.AtProvider.Fence, condition: s.condition()}
	var failed error
	if stated, ok := r.stated.Get(v.GetUID()); !ok || stated == true || s.notable() || v.Status.AtProvider.Fence != nil {
		status, failed = r.decide(ctx, v, s)
		if failed != nil {
			r.failed.Store(r.clock().Unix())
			status.pause = 0
		}
	}
	return reconcile.Result{RequeueAfter: status.pause}, errors.Join(failed, r.report(ctx, v, status), r.watch(ctx, v, machines, s.watches))
}

// An outcome is what a reconcile reports.
type outcome struct {
	fence     *v1alpha1.HostFence
	condition xpv2.Condition

	// pause is how long to wait before the next look. Zero means after the next change.
	pause time.Duration
}

// began reports whether the controller has begun to watch the hosts of a service.
func began(v *v1alpha1.VIPService) bool {
	c := v.GetCondition(meta.TypeFencingReady)
	return v.Status.AtProvider.Fence != nil || c.Status == corev1.ConditionTrue || c.Status == corev1.ConditionFalse
}

// end ends the watches of a service, and clears the fence of this cluster.
func (r *reconciler) end(ctx context.Context, v *v1alpha1.VIPService, machines []v1alpha1.Machine) error {
	if err := r.watch(ctx, v, machines, nil); err != nil {
		return err
	}
	if f := v.Status.AtProvider.Fence; f != nil {
		conn, err := r.connect(ctx, v)
		if err != nil {
			return err
		}
		if err := r.clear(ctx, v, conn, situation{}, f.NodeID, nil); err != nil {
			return err
		}
	}
	if xpmeta.WasDeleted(v) {
		return nil
	}
	return r.report(ctx, v, outcome{condition: ready(corev1.ConditionUnknown, meta.ReasonNotRequested, "The service has no fencing")})
}

// A watchKey is the key of an annotation of a machine's config Secret.
type watchKey struct {
	machine    types.UID
	annotation string
}

// watch writes to the config Secrets of machines which hosts they are to watch.
func (r *reconciler) watch(ctx context.Context, v *v1alpha1.VIPService, machines []v1alpha1.Machine, watches map[string][]string) error {
	key := meta.AnnotationWatch(string(v.Spec.ForProvider.Name))
	for i := range machines {
		m := &machines[i]
		text := strings.Join(slices.Sorted(slices.Values(watches[m.GetName()])), " ")
		entry := watchKey{machine: m.GetUID(), annotation: key}
		if written, ok := r.written.Get(entry); ok && written == text {
			continue
		}
		s := &corev1.Secret{}
		if err := r.kube.Get(ctx, types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName() + meta.ConfigSecretSuffix}, s); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue // A machine that was just created has none yet.
			}
			return errors.Wrapf(err, "cannot get config Secret of machine %q", m.GetName())
		}
		if !metav1.IsControlledBy(s, m) {
			continue
		}
		if s.GetAnnotations()[key] != text {
			original := s.DeepCopy()
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, text)
			if text == "" {
				delete(s.Annotations, key)
			}
			if err := r.kube.Patch(ctx, s, client.MergeFrom(original)); err != nil {
				return errors.Wrapf(err, "cannot annotate config Secret of machine %q", m.GetName())
			}
		}
		r.written.Set(entry, text, checkWatches)
	}
	return nil
}

// decide asks other clusters what their machines have lost, and fences a host or clears a fence.
func (r *reconciler) decide(ctx context.Context, v *v1alpha1.VIPService, s situation) (outcome, error) {
	out := outcome{fence: v.Status.AtProvider.Fence, condition: s.condition()}
	conn, err := r.connect(ctx, v)
	if err != nil {
		return out, err
	}
	_, at, err := conn.api.ServicesAt(ctx, tailscale.Cached)
	if err != nil {
		return out, errors.Wrap(err, "cannot list services")
	}
	f := fence.Facts{Hosts: slices.Clone(s.hosts), Votes: s.votes, Cluster: conn.cluster, Time: at}
	if mine := v.Status.AtProvider.Fence; mine != nil {
		f.Fences = append(f.Fences, fence.Fence{Node: mine.NodeID, Cluster: conn.cluster, Deadline: mine.Deadline.Time})
	}
	// The record of this cluster comes first: of two clusters of which each has one witness, one sees both.
	if err := r.publish(ctx, v, conn, s, out.fence, at); err != nil {
		return out, err
	}
	if len(fence.Suspected(s.votes)) == 0 && out.fence == nil {
		return out, nil
	}
	if err := others(ctx, v, conn, s, &f); err != nil {
		return out, err
	}
	d := fence.Plan(f)
	for _, ended := range d.Clear {
		if err := r.clear(ctx, v, conn, s, ended.Node, f.Fences); err != nil {
			return out, err
		}
		out.fence = nil
	}
	fresh := d.Fence != "" && !r.unavailable(v) && r.clock().Sub(time.Unix(r.failed.Load(), 0)) >= settled
	if fresh {
		// The fence is recorded before the approval is withdrawn, so that nobody approves the host again. Of two
		// clusters that do so at the same time, one sees the other.
		out.fence = newFence(v, conn.cluster, d, at)
		out.condition = ready(corev1.ConditionTrue, meta.ReasonHostFenced, out.fence.Message)
		current := fence.Facts{Time: at}
		if err := errors.Join(r.report(ctx, v, out), r.publish(ctx, v, conn, s, out.fence, at), others(ctx, v, conn, s, &current)); err != nil {
			return out, err
		}
		if slices.ContainsFunc(current.Fences, func(o fence.Fence) bool { return o.Node != d.Fence && o.Holds(at) }) {
			out = outcome{condition: s.condition(), pause: pollSuspected}
			return out, r.publish(ctx, v, conn, s, nil, at)
		}
	}
	switch {
	case out.fence != nil:
		return r.enforce(ctx, v, conn, s, out, fresh, at)
	case len(fence.Suspected(s.votes)) > 0:
		out.pause = pollSuspected
		if c := v.GetCondition(meta.TypeFencingReady); c.Reason == meta.ReasonHostLost && r.clock().Sub(c.LastTransitionTime.Time) > suspectedLong {
			out.pause = pollSuspectedLater
		}
	}
	if r.unavailable(v) {
		out.condition, out.pause = v.GetCondition(meta.TypeFencingReady), pollSuspectedLater
	}
	return out, nil
}

// notable reports whether the record of this cluster has to say something about hosts.
func (s situation) notable() bool { return len(fence.Suspected(s.votes))+len(s.leaving) > 0 }

// unavailable reports whether the API did not withdraw an approval lately.
func (r *reconciler) unavailable(v *v1alpha1.VIPService) bool {
	c := v.GetCondition(meta.TypeFencingReady)
	return c.Reason == meta.ReasonFencingUnavailable && r.clock().Sub(c.LastTransitionTime.Time) < tryAgain
}

// newFence returns the fence of a decision.
func newFence(v *v1alpha1.VIPService, cluster string, d fence.Decision, at time.Time) *v1alpha1.HostFence {
	return &v1alpha1.HostFence{
		NodeID: d.Fence, ClusterID: cluster, Deadline: metav1.NewTime(at.Add(fence.Lasts).Truncate(time.Second)),
		Message: fmt.Sprintf("Machines in %s have lost %s, so cluster %s has withdrawn its approval as a host; it serves again once it answers", placesOf(d.Votes), hostName(v, d.Fence), cluster),
	}
}

// hostName returns the name of a host for messages.
func hostName(v *v1alpha1.VIPService, node string) string {
	for _, h := range v.Status.AtProvider.Hosts {
		if h.NodeID == node {
			return nameOf(h)
		}
	}
	return node
}

// enforce withdraws the approval of the fenced host, unless it is withdrawn. If autoApprovers keep it approved, there
// is no fence.
func (r *reconciler) enforce(ctx context.Context, v *v1alpha1.VIPService, conn connection, s situation, out outcome, fresh bool, at time.Time) (outcome, error) {
	service, node := string(v.Spec.ForProvider.Name), out.fence.NodeID
	out.pause = pollFenced
	out.condition = ready(corev1.ConditionTrue, meta.ReasonHostFenced, out.fence.Message)
	if !fresh {
		a, err := conn.api.HostApproval(ctx, service, node)
		if err != nil || !a.Approved {
			return out, errors.Wrapf(err, "cannot get the approval of device %q as a host", node)
		}
	}
	_, err := conn.api.RefuseHost(ctx, service, node)
	if tailscale.ClassOf(err) == tailscale.ClassForbidden {
		return r.abandon(ctx, v, conn, s, at, fmt.Sprintf("Tailscale does not let the provider withdraw the approval of hosts of %s; give its credential the scopes services and devices:core", service))
	}
	if err != nil {
		return out, errors.Wrapf(err, "cannot withdraw the approval of device %q as a host", node)
	}
	a, err := conn.api.HostApproval(ctx, service, node)
	switch {
	case err != nil:
		return out, errors.Wrapf(err, "cannot get the approval of device %q as a host", node)
	case a.Approved && a.AutoApproved:
		// The refusal may take effect later.
		if _, err := conn.api.ApproveHost(ctx, service, node); err != nil {
			return out, errors.Wrapf(err, "cannot approve device %q as a host again", node)
		}
		return r.abandon(ctx, v, conn, s, at, fmt.Sprintf(
			"Tailscale still approves %s as a host of %s after its approval was withdrawn, by autoApprovers of the policy file; to use fencing, remove %s from them: the provider approves its hosts", hostName(v, node), service, service))
	case a.Approved:
		out.pause = pollSuspected // Another provider has approved it, which had not read of the fence.
	}
	if fresh {
		r.record.Event(v, event.Warning(reasonFenced, errors.New(out.fence.Message)))
	}
	return out, nil
}

// abandon ends a fence that has no effect.
func (r *reconciler) abandon(ctx context.Context, v *v1alpha1.VIPService, conn connection, s situation, at time.Time, message string) (outcome, error) {
	return outcome{condition: ready(corev1.ConditionFalse, meta.ReasonFencingUnavailable, message), pause: tryAgain}, r.publish(ctx, v, conn, s, nil, at)
}

// clear ends this cluster's fence, and approves the host again, unless another cluster keeps it fenced or the host
// is gone.
func (r *reconciler) clear(ctx context.Context, v *v1alpha1.VIPService, conn connection, s situation, node string, fences []fence.Fence) error {
	service := string(v.Spec.ForProvider.Name)
	_, at, err := conn.api.ServicesAt(ctx, tailscale.Cached)
	if err != nil {
		return errors.Wrap(err, "cannot list services")
	}
	if !slices.ContainsFunc(fences, func(o fence.Fence) bool { return o.Cluster != conn.cluster && o.Node == node && o.Holds(at) }) {
		ok, err := conn.api.ApproveHost(ctx, service, node)
		if err != nil && !tailscale.IsNotFound(err) {
			return errors.Wrapf(err, "cannot approve device %q as a host again", node)
		}
		if err == nil && !ok {
			return errors.Errorf("cannot approve device %q as a host again: Tailscale does not say that it is approved", node)
		}
	}
	if !xpmeta.WasDeleted(v) {
		if err := r.publish(ctx, v, conn, s, nil, at); err != nil {
			return err
		}
	}
	r.record.Event(v, event.Normal(reasonUnfenced, "Approved device "+node+" as a host of "+service+" again"))
	return nil
}
