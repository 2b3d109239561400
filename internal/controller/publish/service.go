// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/redact"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// owner is the field manager of this package.
const owner = client.FieldOwner("tailscale-gateway-publish")

// repeat is the interval at which an event about a problem is repeated. Kubernetes keeps events for an hour.
const repeat = 30 * time.Minute

// Reasons of events on a Service about what this package has done.
const (
	// reasonCreated means that the Service is being published.
	reasonCreated event.Reason = "CreatedTailscaleServices"

	// reasonPublished means that clients reach the Service.
	reasonPublished event.Reason = "Published"

	// reasonRefused means that the API server refuses what would publish the Service.
	reasonRefused event.Reason = "CannotPublish"
)

// services reads Services from caches, each of which has a part of them.
type services []client.Reader

// get returns a Service, or nil if no cache has it.
func (s services) get(ctx context.Context, key types.NamespacedName) (*corev1.Service, error) {
	for _, c := range s {
		o := &corev1.Service{}
		err := c.Get(ctx, key, o)
		if err == nil {
			return o, nil
		}
		if !kerrors.IsNotFound(err) {
			return nil, errors.Wrapf(err, "cannot get Service %q", key.Name)
		}
	}
	return nil, nil //nolint:nilnil // No Service is an answer.
}

// requests returns a request for each Service of the caches.
func (s services) requests(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	var out []reconcile.Request
	for _, c := range s {
		l := &corev1.ServiceList{}
		if err := c.List(ctx, l, opts...); err != nil {
			// The list comes from a cache.
			continue
		}
		for i := range l.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
		}
	}
	return out
}

// A reconciler publishes a Service by a TailscaleServices.
type reconciler struct {
	// kube reads the metadata of our kinds from a cache, and writes.
	kube client.Client

	services services

	// ours is a cache of the objects that this package has created.
	ours client.Reader

	grants    granter
	recorder  event.Recorder
	announced announcements
	clock     func() time.Time

	// operator reports whether what Tailscale's operator reads counts.
	operator bool
}

// Reconcile brings the TailscaleServices and the status of a Service to what the Service asks for.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	f, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	p, err := r.act(ctx, f, decide(f))
	return r.announce(req.NamespacedName, f, p, err), err
}

// observe returns the facts about a Service.
func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{operator: r.operator}
	var err error
	if f.service, err = r.services.get(ctx, key); err != nil {
		return f, err
	}
	own := &gatewayv1alpha1.TailscaleServices{}
	switch err := r.ours.Get(ctx, key, own); {
	case err == nil:
		f.own = own
	case !kerrors.IsNotFound(err):
		return f, errors.Wrapf(err, "cannot get TailscaleServices %q", key.Name)
	}
	if f.service == nil || !asks(f.service, f.operator) {
		return f, nil
	}
	named, err := r.metadata(ctx, gatewayv1alpha1.TailscaleServicesKind, key)
	if err != nil {
		return f, err
	}
	f.foreign = named != nil && !owns(named)
	wanted, refusal := requestOf(f.service, f.operator)
	if refusal != nil {
		return f, nil
	}
	return f, r.observeProxies(ctx, &f, wanted)
}

// observeProxies adds to the facts which proxies there are, and whether others could be created.
func (r *reconciler) observeProxies(ctx context.Context, f *facts, wanted *request) error {
	key := types.NamespacedName{Namespace: f.service.GetNamespace(), Name: wanted.endpoints}
	found, err := r.metadata(ctx, gatewayv1alpha1.TailscaleEndpointsKind, key)
	if err != nil {
		return err
	}
	f.proxies = found != nil && found.GetDeletionTimestamp() == nil
	if found != nil && owns(found) {
		o := &gatewayv1alpha1.TailscaleEndpoints{}
		switch err := r.ours.Get(ctx, key, o); {
		case err == nil:
			f.endpoints = o
		case !kerrors.IsNotFound(err):
			return errors.Wrapf(err, "cannot get TailscaleEndpoints %q", key.Name)
		}
	}
	if f.proxies || wanted.explicit || f.own != nil || f.foreign {
		return nil
	}
	f.tailnet, err = tailnetProblem(ctx, r.kube, r.grants, key.Namespace, wanted.tailnet)
	return err
}

// metadata returns the metadata of an object of one of our kinds, or nil if there is none.
func (r *reconciler) metadata(ctx context.Context, kind string, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	o := composite(kind)
	err := r.kube.Get(ctx, key, o)
	if kerrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // No object is an answer.
	}
	return o, errors.Wrapf(err, "cannot get %s %q", kind, key.Name)
}

// composite returns an object of one of our kinds for its metadata.
func composite(kind string) *metav1.PartialObjectMetadata {
	return setup.Metadata(gatewayv1alpha1.SchemeGroupVersion.WithKind(kind))
}

// act takes the steps of a plan. It returns the plan without an object that it has not created, and with the problem
// that the API server refuses a write, and errors that another attempt may repair.
func (r *reconciler) act(ctx context.Context, f facts, p plan) (plan, error) {
	var err error
	switch {
	case p.remove != nil:
		err = remove(ctx, r.kube, gatewayv1alpha1.TailscaleServicesKind, p.remove)
	case p.create != nil:
		var created bool
		if created, err = r.create(ctx, p.create); !created {
			p.create = nil
		}
	case p.update != nil:
		err = r.update(ctx, f.own, p.update)
	}
	refusal, err := refusalOf(err)
	if refusal != nil {
		p.problem = refusal
	}
	if p.report {
		err = errors.Join(err, r.report(ctx, f.service, p.ingress))
	}
	return p, err
}

// remove deletes an object of one of our kinds, unless another one has its name.
func remove(ctx context.Context, kube client.Writer, kind string, o client.Object) error {
	m := composite(kind)
	m.SetNamespace(o.GetNamespace())
	m.SetName(o.GetName())
	err := kube.Delete(ctx, m, client.Preconditions{UID: ptr.To(o.GetUID())})
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot delete %s %q", kind, o.GetName())
}

// create creates a TailscaleServices, and reports whether it did. One that exists, of which the cache does not know
// yet, stays as it is: its event requests the Service again.
func (r *reconciler) create(ctx context.Context, o *gatewayv1alpha1.TailscaleServices) (bool, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return false, errors.Wrapf(err, "cannot convert TailscaleServices %q", o.GetName())
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	err = r.kube.Create(ctx, u, owner)
	if kerrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, errors.Wrapf(err, "cannot create TailscaleServices %q", o.GetName())
}

// update gives a TailscaleServices of this package what it should have.
func (r *reconciler) update(ctx context.Context, own, want *gatewayv1alpha1.TailscaleServices) error {
	patch, err := patchOf(own, want)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleServicesKind))
	u.SetNamespace(own.GetNamespace())
	u.SetName(own.GetName())
	err = r.kube.Patch(ctx, u, client.RawPatch(types.MergePatchType, patch), owner)
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot patch TailscaleServices %q", own.GetName())
}

// refusalOf returns an error about a write as a problem if only a person can repair it. A namespace that is
// being deleted needs nothing.
func refusalOf(err error) (*problem, error) {
	switch {
	case err == nil, kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, nil
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err):
		return &problem{reason: reasonRefused, message: messageOf(err)}, nil
	case kerrors.IsForbidden(err):
		// A quota or a permission may change, of which nothing notifies.
		return &problem{reason: reasonRefused, message: messageOf(err)}, err
	}
	return nil, err
}

func messageOf(err error) string {
	return text.Cut(text.Visible(redact.Keys(err.Error())), maxMessage)
}

// report writes the load balancer status of a Service, and nothing else.
func (r *reconciler) report(ctx context.Context, s *corev1.Service, ingress []corev1.LoadBalancerIngress) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.GetUID()},
		"status":   map[string]any{"loadBalancer": map[string]any{"ingress": ingress}},
	})
	if err != nil {
		return errors.Wrap(err, "cannot encode the status")
	}
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.GetNamespace(), Name: s.GetName()}}
	err = r.kube.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), owner)
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot patch the status of Service %q", s.GetName())
}

// announce records an event about what has happened or is to be done, and returns when to look again.
func (r *reconciler) announce(key types.NamespacedName, f facts, p plan, err error) reconcile.Result {
	switch {
	case f.service == nil || !asks(f.service, f.operator):
		r.announced.forget(key)
	case p.problem != nil:
		if r.announced.due(key, p.problem.message, r.clock()) {
			r.recorder.Event(f.service, event.Warning(p.problem.reason, errors.New(p.problem.message)))
		}
		return reconcile.Result{RequeueAfter: cmp.Or(p.problem.wait, repeat)}
	case err != nil:
	case p.create != nil:
		message := fmt.Sprintf("Created TailscaleServices %q, whose conditions show the progress, for the name %s", p.create.GetName(), strings.TrimPrefix(string(p.create.Spec.VIPService.Name), "svc:"))
		if r.announced.due(key, message, r.clock()) {
			r.recorder.Event(f.service, event.Normal(reasonCreated, message))
		}
	case p.published != "":
		message := "Clients in the tailnet reach the Service at " + p.published
		// After a start of the provider, nothing is known to have changed.
		if r.announced.knows(key) && r.announced.due(key, message, time.Time{}) {
			r.recorder.Event(f.service, event.Normal(reasonPublished, message))
		}
	}
	return reconcile.Result{}
}

// announcements are the last events of Services. They may be lost.
type announcements struct {
	mu   sync.Mutex
	last map[types.NamespacedName]announcement
}

// An announcement is the text of an event and its time. An event without a time is not repeated.
type announcement struct {
	text string
	at   time.Time
}

// due reports whether an event is to be recorded: it differs from the last one, or was recorded long ago.
func (a *announcements) due(key types.NamespacedName, message string, at time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, ok := a.last[key]
	if ok && last.text == message && at.Sub(last.at) < repeat {
		return false
	}
	if a.last == nil {
		a.last = map[types.NamespacedName]announcement{}
	}
	a.last[key] = announcement{text: message, at: at}
	return true
}

// knows reports whether there was an event of a Service.
func (a *announcements) knows(key types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.last[key]
	return ok
}

// forget forgets a Service.
func (a *announcements) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, key)
}

// sortedKeys returns the requests once each, sorted.
func sortedKeys(requests []reconcile.Request) []reconcile.Request {
	slices.SortFunc(requests, func(a, b reconcile.Request) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(requests)
}
