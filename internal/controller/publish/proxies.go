// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// proxiesFacts are the input of a plan for a TailscaleEndpoints.
type proxiesFacts struct {
	// exists reports whether there is a TailscaleEndpoints of the name. own is that object if this package has
	// created it.
	exists bool
	own    *gatewayv1alpha1.TailscaleEndpoints

	// used reports whether a TailscaleServices of this package selects it.
	used bool

	// asking is a Service whose TailscaleServices does, and that does not say that the TailscaleEndpoints is the
	// user's. It is nil if there is none. wanted is its request.
	asking *corev1.Service
	wanted *request
}

// linger is how long proxies stay that nothing uses. A backup restores them before the objects that use them, and tools
// replace objects by deleting and creating them.
const linger = time.Minute

// A proxiesPlan is the step for a TailscaleEndpoints. An object to remove is removed after linger.
type proxiesPlan struct{ create, remove bool }

// decideProxies returns the plan for facts. An object that exists is never changed: its fields are the user's.
func decideProxies(f proxiesFacts) proxiesPlan {
	return proxiesPlan{
		create: !f.exists && f.asking != nil,
		// A service that moves away, or gets another name, keeps the proxies for the next one.
		remove: f.own != nil && f.own.DeletionTimestamp == nil && !f.used,
	}
}

// A proxiesReconciler creates the TailscaleEndpoints whose proxies host published Services, and deletes it with the
// last of them. It has no owner: a list of all Services would have to be written with each.
type proxiesReconciler struct {
	kube     client.Client
	services services
	ours     client.Reader
	recorder event.Recorder
	clock    func() time.Time
	idle     idleTimes
	operator bool
}

// idleTimes are the times since which nothing has used proxies. They may be lost.
type idleTimes struct {
	mu    sync.Mutex
	begin map[types.NamespacedName]time.Time
}

// start returns the time since which proxies are idle: the given one, unless they were idle then.
func (i *idleTimes) start(key types.NamespacedName, at time.Time) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if t, ok := i.begin[key]; ok {
		return t
	}
	if i.begin == nil {
		i.begin = map[types.NamespacedName]time.Time{}
	}
	i.begin[key] = at
	return at
}

// end forgets proxies.
func (i *idleTimes) end(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.begin, key)
}

// Reconcile creates or deletes a TailscaleEndpoints.
func (r *proxiesReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	f, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	p := decideProxies(f)
	if !p.remove {
		r.idle.end(req.NamespacedName)
	}
	switch {
	case p.create:
		err := r.kube.Create(ctx, newProxies(req.NamespacedName, f.wanted.tailnet), owner)
		if kerrors.IsAlreadyExists(err) {
			return reconcile.Result{}, nil
		}
		refusal, err := refusalOf(errors.Wrapf(err, "cannot create TailscaleEndpoints %q", req.Name))
		if refusal != nil {
			r.recorder.Event(f.asking, event.Warning(refusal.reason, errors.New(refusal.message)))
			return reconcile.Result{RequeueAfter: repeat}, err
		}
		return reconcile.Result{}, err
	case p.remove:
		at := r.clock()
		if wait := linger - at.Sub(r.idle.start(req.NamespacedName, at)); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		return reconcile.Result{}, remove(ctx, r.kube, gatewayv1alpha1.TailscaleEndpointsKind, f.own)
	}
	return reconcile.Result{}, nil
}

// newProxies returns a TailscaleEndpoints. Without a tailnet, it joins the only one that allows the namespace.
func newProxies(key types.NamespacedName, tailnet string) *unstructured.Unstructured {
	spec := map[string]any{}
	if tailnet != "" {
		spec["tailnet"] = tailnet
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleEndpointsKind))
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	o.SetLabels(map[string]string{meta.LabelManagedBy: meta.ManagedByPublish})
	return o
}

// observe returns the facts about a TailscaleEndpoints.
func (r *proxiesReconciler) observe(ctx context.Context, key types.NamespacedName) (proxiesFacts, error) {
	f := proxiesFacts{}
	switch err := r.kube.Get(ctx, key, composite(gatewayv1alpha1.TailscaleEndpointsKind)); {
	case err == nil:
		f.exists = true
	case !kerrors.IsNotFound(err):
		return f, errors.Wrapf(err, "cannot get TailscaleEndpoints %q", key.Name)
	}
	own := &gatewayv1alpha1.TailscaleEndpoints{}
	switch err := r.ours.Get(ctx, key, own); {
	case err == nil:
		f.own = own
	case !kerrors.IsNotFound(err):
		return f, errors.Wrapf(err, "cannot get TailscaleEndpoints %q", key.Name)
	}
	l := &gatewayv1alpha1.TailscaleServicesList{}
	if err := r.ours.List(ctx, l, client.InNamespace(key.Namespace)); err != nil {
		return f, errors.Wrap(err, "cannot list TailscaleServices")
	}
	for i := range l.Items {
		o := &l.Items[i]
		if o.Spec.Selector.MatchLabels[meta.LabelEndpoints] != key.Name {
			continue
		}
		f.used = true
		if f.exists || f.asking != nil || o.DeletionTimestamp != nil {
			continue
		}
		if err := r.ask(ctx, &f, client.ObjectKeyFromObject(o), key.Name); err != nil {
			return f, err
		}
	}
	return f, nil
}

// ask adds a Service to the facts if it wants the TailscaleEndpoints to be created.
func (r *proxiesReconciler) ask(ctx context.Context, f *proxiesFacts, service types.NamespacedName, endpoints string) error {
	s, err := r.services.get(ctx, service)
	if err != nil || s == nil || !asks(s, r.operator) {
		return err
	}
	if wanted, refusal := requestOf(s, r.operator); refusal == nil && !wanted.explicit && wanted.endpoints == endpoints {
		f.asking, f.wanted = s, wanted
	}
	return nil
}
