// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// retryInterval between two attempts to watch kinds that are not there yet.
const retryInterval = 10 * time.Second

// outlast is how long a route is known after it was deleted. Envoy Gateway hears of that
// too, and has it no more soon after. If it translated the route once more while it is
// unknown here, it would give Envoy a cluster of its own for it, and take it away with
// the next translation: Envoy then waits 15 seconds for that cluster's endpoints, and
// takes no other change of clusters meanwhile (seen with Envoy 1.39.1).
const outlast = 3 * time.Second

// Scheme of all kinds that a Store takes, except for BackendTrafficPolicy, which is
// unstructured.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	b := runtime.NewSchemeBuilder(
		corev1.AddToScheme,
		discoveryv1.AddToScheme,
		gwapiv1.Install,
		gwapiv1beta1.Install,
		gatewayv1alpha1.AddToScheme,
		tailnetv1alpha1.AddToScheme,
	)
	return s, errors.Wrap(b.AddToScheme(s), "cannot make a scheme")
}

// Kinds that a Store takes, by the name that people know.
func Kinds() map[string]client.Object {
	p := &unstructured.Unstructured{}
	p.SetGroupVersionKind(schema.GroupVersionKind{Group: groupEnvoyGateway, Version: "v1alpha1", Kind: kindTrafficPolicy})
	return map[string]client.Object{
		"HTTPRoute":            &gwapiv1.HTTPRoute{},
		"GRPCRoute":            &gwapiv1.GRPCRoute{},
		"TCPRoute":             &gwapiv1.TCPRoute{},
		"UDPRoute":             &gwapiv1.UDPRoute{},
		"TLSRoute":             &gwapiv1.TLSRoute{},
		kindGateway:            &gwapiv1.Gateway{},
		kindListenerSet:        &gwapiv1.ListenerSet{},
		"ReferenceGrant":       &gwapiv1beta1.ReferenceGrant{},
		"BackendTLSPolicy":     &gwapiv1.BackendTLSPolicy{},
		kindTrafficPolicy:      p,
		kindTailscaleServices:  &gatewayv1alpha1.TailscaleServices{},
		kindTailscaleEndpoints: &gatewayv1alpha1.TailscaleEndpoints{},
		kindRoutePolicy:        &gatewayv1alpha1.TailscaleRoutePolicy{},
		"TailscaleGateway":     &gatewayv1alpha1.TailscaleGateway{},
		"ProxySet":             &tailnetv1alpha1.ProxySet{},
		"ServiceAttachment":    &tailnetv1alpha1.ServiceAttachment{},
		"Discovery":            &tailnetv1alpha1.Discovery{},
		kindService:            &corev1.Service{},
		"EndpointSlice":        &discoveryv1.EndpointSlice{},
		kindConfigMap:          &corev1.ConfigMap{},
	}
}

// KindSecurityPolicy is that of Envoy Gateway's policies about who may ask.
const KindSecurityPolicy = "SecurityPolicy"

// SecurityPolicies is a list of none, of which the items' type is known.
func SecurityPolicies() *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: groupEnvoyGateway, Version: "v1alpha1", Kind: KindSecurityPolicy + "List"})
	return l
}

// NewCache returns a cache that holds of each object what a Store needs, of all namespaces
// unless some are named.
func NewCache(cfg *rest.Config, namespaces ...string) (cache.Cache, error) {
	s, err := Scheme()
	if err != nil {
		return nil, err
	}
	o := cache.Options{Scheme: s, DefaultTransform: strip}
	for _, n := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[n] = cache.Config{}
	}
	c, err := cache.New(cfg, o)
	return c, errors.Wrap(err, "cannot make a cache")
}

// strip an object of what nothing here reads: that is most of it.
func strip(in any) (any, error) {
	o, ok := in.(client.Object)
	if !ok {
		return in, nil
	}
	o.SetManagedFields(nil)
	o.SetAnnotations(nil)
	o.SetOwnerReferences(nil)
	switch o := o.(type) {
	case *gwapiv1.HTTPRoute:
		stripRouteStatus(&o.Status.RouteStatus)
	case *gwapiv1.GRPCRoute:
		stripRouteStatus(&o.Status.RouteStatus)
	case *gwapiv1.TCPRoute:
		stripRouteStatus(&o.Status.RouteStatus)
	case *gwapiv1.UDPRoute:
		stripRouteStatus(&o.Status.RouteStatus)
	case *gwapiv1.TLSRoute:
		stripRouteStatus(&o.Status.RouteStatus)
	case *gwapiv1.Gateway:
		o.Status = gwapiv1.GatewayStatus{}
	case *gwapiv1.GatewayClass:
		o.Status = gwapiv1.GatewayClassStatus{}
	case *gwapiv1.ListenerSet:
		o.Status = gwapiv1.ListenerSetStatus{}
	case *gwapiv1.BackendTLSPolicy:
		o.Status = gwapiv1.PolicyStatus{}
	case *gatewayv1alpha1.TailscaleServices:
		stripServicesStatus(o)
	case *gatewayv1alpha1.TailscaleEndpoints:
		o.Spec.Proxy = gatewayv1alpha1.Proxy{}
		stripEndpointsStatus(o)
	case *gatewayv1alpha1.TailscaleGateway:
		o.Status = gatewayv1alpha1.TailscaleGatewayStatus{}
	case *tailnetv1alpha1.Discovery:
		stripDiscovery(o)
	case *gatewayv1alpha1.TailscaleRevision:
		o.Status = gwapiv1.PolicyStatus{}
	case *corev1.Service:
		o.Status, o.Spec.Selector = corev1.ServiceStatus{}, nil
	case *corev1.ConfigMap:
		stripConfigMap(o)
	case *unstructured.Unstructured:
		stripPolicy(o)
	}
	return o, nil
}

// stripPolicy of Envoy Gateway of what nothing here reads: of a SecurityPolicy all but what
// it is attached to.
func stripPolicy(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "status")
	spec, ok := o.Object["spec"].(map[string]any)
	if !ok {
		return
	}
	switch o.GetKind() {
	case kindEnvoyProxy:
		stripEnvoyProxy(spec)
		return
	case KindSecurityPolicy:
	default:
		return
	}
	maps.DeleteFunc(spec, func(k string, _ any) bool { return k != "targetRef" && k != "targetRefs" && k != "targetSelectors" })
}

// stripRouteStatus of all but what each parent says of the route as a whole, and why
// if that is not well. Nothing of it changes while that does not.
func stripRouteStatus(s *gwapiv1.RouteStatus) {
	for i := range s.Parents {
		var of []metav1.Condition
		for _, c := range s.Parents[i].Conditions {
			if c.Type != string(gwapiv1.RouteConditionAccepted) && c.Type != string(gwapiv1.RouteConditionResolvedRefs) {
				continue
			}
			kept := metav1.Condition{Type: c.Type, Status: c.Status}
			if c.Status != metav1.ConditionTrue {
				kept.Reason, kept.Message = c.Reason, c.Message
			}
			of = append(of, kept)
		}
		s.Parents[i].Conditions = of
	}
}

// stripConfigMap of all but the certificates that a BackendTLSPolicy may name, and Envoy
// Gateway's configuration.
func stripConfigMap(o *corev1.ConfigMap) {
	maps.DeleteFunc(o.Data, func(k, _ string) bool { return k != caKey && k != configKey })
	o.BinaryData = nil
}

// Informers that a Source takes objects from. A cache.Cache is one.
type Informers interface {
	GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

// A Source feeds a Store from informers.
type Source struct {
	informers Informers
	store     *Store
	log       logging.Logger

	// all are the kinds to be watched.
	all map[string]client.Object

	// mu guards what follows.
	mu sync.Mutex

	// kinds that are not watched yet, with why.
	kinds map[string]error

	// listing are the kinds that are watched and not listed yet.
	listing map[string]struct{}

	pending []Change

	// leaving are routes that were deleted, with when they are to be forgotten.
	leaving map[routeID]leave

	wake   chan struct{}
	synced chan struct{}
}

// A routeID is kind and name of a route.
type routeID struct {
	kind reflect.Type
	client.ObjectKey
}

// A leave is a deletion to be applied later.
type leave struct {
	change Change
	at     time.Time
}

// NewSource returns one that feeds a store with objects of some kinds once it is started.
func NewSource(i Informers, kinds map[string]client.Object, s *Store, log logging.Logger) *Source {
	out := &Source{
		informers: i,
		all:       kinds,
		store:     s,
		log:       log,
		kinds:     map[string]error{},
		listing:   map[string]struct{}{},
		leaving:   map[routeID]leave{},
		wake:      make(chan struct{}, 1),
		synced:    make(chan struct{}),
	}
	for k := range kinds {
		out.kinds[k] = errors.New("is not watched yet")
	}
	return out
}

// Start feeding the store, until the context ends. The first Snapshot is made when
// every kind that the API server knows is listed: half of the objects would be taken
// for all. A kind whose CRD comes later is picked up within 10 seconds.
func (s *Source) Start(ctx context.Context) error {
	retry := time.NewTicker(retryInterval)
	defer retry.Stop()
	s.watch(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-retry.C:
			s.watch(ctx)
		case <-s.wake:
		}
		s.flush()
	}
}

// Synced is closed when the first Snapshot is made.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// HasSynced reports whether the first Snapshot is made.
func (s *Source) HasSynced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// Waiting are the kinds that are not there or not listed yet, with why, sorted: for
// people, and for who reports whether the extension is ready.
func (s *Source) Waiting() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for k, err := range s.kinds {
		out = append(out, fmt.Sprintf("%s: %v", k, err))
	}
	for k := range s.listing {
		out = append(out, k+": is not listed yet; may the extension list and watch it?")
	}
	slices.Sort(out)
	return out
}

// watch the kinds that are not watched yet.
func (s *Source) watch(ctx context.Context) {
	s.mu.Lock()
	missing := slices.Sorted(maps.Keys(s.kinds))
	s.mu.Unlock()
	for _, k := range missing {
		err := s.watchKind(ctx, k, s.all[k])
		s.mu.Lock()
		if err == nil {
			delete(s.kinds, k)
		} else {
			s.kinds[k] = err
		}
		s.mu.Unlock()
		if err != nil && !meta.IsNoMatchError(err) && ctx.Err() == nil {
			s.log.Info("Cannot watch a kind, and will try again", "kind", k, "error", err)
		}
	}
	s.wakeUp()
}

func (s *Source) watchKind(ctx context.Context, kind string, o client.Object) error {
	i, err := s.informers.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot get an informer")
	}
	s.mu.Lock()
	s.listing[kind] = struct{}{}
	s.mu.Unlock()
	r, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(now any) { s.changed(now, false) },
		UpdateFunc: func(old, now any) {
			if !same(old, now) {
				s.changed(now, false)
			}
		},
		DeleteFunc: func(old any) { s.changed(old, true) },
	})
	if err != nil {
		return errors.Wrap(err, "cannot add an event handler")
	}
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-r.HasSyncedChecker().Done():
		}
		s.mu.Lock()
		delete(s.listing, kind)
		s.mu.Unlock()
		s.wakeUp()
	}()
	return nil
}

// same reports whether an update changed only what nothing here reads, such as status.
// Kinds without generations are never the same.
func same(old, now any) bool {
	a, ok := old.(client.Object)
	b, also := now.(client.Object)
	if ok && also && !sameFound(a, b) {
		return false
	}
	if e, ok := now.(*gatewayv1alpha1.TailscaleEndpoints); ok {
		// A status that is read.
		was, isOne := old.(*gatewayv1alpha1.TailscaleEndpoints)
		if !isOne || !maps.Equal(offline(was), offline(e)) {
			return false
		}
	}
	return ok && also && a.GetUID() == b.GetUID() && b.GetGeneration() != 0 && a.GetGeneration() == b.GetGeneration() && maps.Equal(a.GetLabels(), b.GetLabels())
}

func (s *Source) changed(in any, gone bool) {
	if t, ok := in.(toolscache.DeletedFinalStateUnknown); ok {
		in = t.Obj
	}
	o, ok := in.(client.Object)
	if !ok {
		s.log.Info("Cannot take what an informer tells", "type", fmt.Sprintf("%T", in))
		return
	}
	s.mu.Lock()
	s.take(Change{Object: o, Gone: gone})
	s.mu.Unlock()
	s.wakeUp()
}

// take a change, but let deleted routes be for a moment. The lock is held.
func (s *Source) take(c Change) {
	if !isRoute(c.Object) {
		s.pending = append(s.pending, c)
		return
	}
	id := routeID{kind: reflect.TypeOf(c.Object), ObjectKey: client.ObjectKeyFromObject(c.Object)}
	if !c.Gone {
		// It is back.
		delete(s.leaving, id)
		s.pending = append(s.pending, c)
		return
	}
	s.leaving[id] = leave{change: c, at: time.Now().Add(outlast)}
	time.AfterFunc(outlast, s.wakeUp)
}

func isRoute(o client.Object) bool {
	switch o.(type) {
	case *gwapiv1.HTTPRoute, *gwapiv1.GRPCRoute, *gwapiv1.TCPRoute, *gwapiv1.UDPRoute, *gwapiv1.TLSRoute:
		return true
	}
	return false
}

// left are the deletions whose time has come. The lock is held.
func (s *Source) left() []Change {
	var out []Change
	now := time.Now()
	for id, l := range s.leaving {
		if !l.at.After(now) {
			out = append(out, l.change)
			delete(s.leaving, id)
		}
	}
	return out
}

func (s *Source) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// flush what has come into the store.
func (s *Source) flush() {
	s.mu.Lock()
	if !s.HasSynced() && !s.listed() {
		s.mu.Unlock()
		return
	}
	changes := slices.Concat(s.pending, s.left())
	s.pending = nil
	s.mu.Unlock()
	if len(changes) > 0 {
		if err := s.store.Apply(changes...); err != nil {
			s.log.Info("Cannot use an object; the others are", "error", err)
		}
	}
	if !s.HasSynced() {
		close(s.synced)
	}
}

// listed reports whether every kind that the API server knows is listed.
func (s *Source) listed() bool {
	for _, err := range s.kinds {
		if !meta.IsNoMatchError(err) {
			return false
		}
	}
	return len(s.listing) == 0
}
