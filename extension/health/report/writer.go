// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// pause between two writes of one report: each write runs a function, and counts against its
	// composite in Crossplane's circuit breaker.
	pause = 5 * time.Second

	// retry after a write that failed.
	retry = 30 * time.Second

	// warmUp is the time that probes run before anything is reported: at first all endpoints look
	// healthy to a new replica.
	warmUp = 20 * time.Second

	// recheck is the time after which the Writer checks again whether another extension still
	// writes a report.
	recheck = time.Minute

	// timeout of a request.
	timeout = 10 * time.Second
)

// Targets provides the probed targets. A health.Prober implements it.
type Targets interface {
	// Targets returns the wanted targets, sorted. Nil wants all.
	Targets(wanted func(ir.TargetKey) bool) []health.Target
}

// Routes provides the routes that lead to TailscaleServices. index.Routes implements it.
type Routes interface {
	// RoutesTo returns at most so many routes to each of the TailscaleServices that are wanted, sorted. Nil wants
	// all.
	RoutesTo(wanted func(types.NamespacedName) bool, most int) map[types.NamespacedName][]ir.RouteKey
}

// gatewayKey is the annotation of a report with the Gateway whose extension writes it.
const gatewayKey = "gateway.tailscale.com/gateway"

// errOthers is returned if another extension writes a report.
var errOthers = errors.New("another extension writes the report")

// A Writer keeps HealthReports up to date while it runs.
type Writer struct {
	targets Targets
	routes  Routes
	kube    client.Client
	objects client.Reader
	gateway *types.NamespacedName
	log     logging.Logger
	changes *Changes
}

// A report that is written, or is due.
type report struct {
	spec tailnetv1alpha1.HealthReportSpec

	// next is the earliest time of the next write.
	next time.Time
}

// NewWriter returns a Writer of changes that Run starts. kube writes reports, and lists them once for each
// call of Run; objects reads our kinds from a cache. gateway is the Gateway of this extension; nil
// stands for the installed extension, which serves all Gateways. The installed extension's reports
// take precedence: a Gateway's own extension reports only objects of its namespace that the
// installed one does not report.
func NewWriter(t Targets, r Routes, c *Changes, kube client.Client, objects client.Reader, gateway *types.NamespacedName, log logging.Logger) *Writer {
	return &Writer{targets: t, routes: r, kube: kube, objects: objects, gateway: gateway, log: log, changes: c}
}

// mine reports whether this extension writes an existing report.
func (w *Writer) mine(r *tailnetv1alpha1.HealthReport) bool {
	if w.gateway == nil {
		return r.Annotations[gatewayKey] == ""
	}
	return r.Annotations[gatewayKey] == w.gateway.Name
}

// checkWriter returns errOthers if another extension writes the object's report. The installed
// extension takes over reports of others, which then stop.
func (w *Writer) checkWriter(ctx context.Context, o Object) error {
	if w.gateway == nil {
		return nil
	}
	r := &tailnetv1alpha1.HealthReport{}
	err := w.kube.Get(ctx, o.report(), r)
	switch {
	case kerrors.IsNotFound(err):
		return nil
	case err != nil:
		return errors.Wrap(err, "cannot get HealthReport")
	case !w.mine(r):
		return errOthers
	}
	return nil
}

// Scheme returns a scheme of the types that a Writer reads and writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	b := runtime.NewSchemeBuilder(corev1.AddToScheme, gatewayv1alpha1.AddToScheme, tailnetv1alpha1.AddToScheme)
	return s, errors.Wrap(b.AddToScheme(s), "cannot make a scheme")
}

// Run writes reports until ctx ends. It lists existing reports, and deletes those of objects that
// no route names any more.
func (w *Writer) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(warmUp):
	}
	// Changes from here on are recorded, and the first pass covers all objects.
	w.changes.begin()
	defer w.changes.end()
	reports, err := w.list(ctx)
	if err != nil {
		return err
	}
	due := map[Object]struct{}{}
	for o := range reports {
		due[o] = struct{}{}
	}
	for _, t := range w.targets.Targets(nil) {
		due[ObjectOf(t.Key)] = struct{}{}
	}
	for n := range w.routes.RoutesTo(nil, 1) {
		due[servicesOf(n)] = struct{}{}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.changes.wake:
		case <-timer.C:
		}
		for o := range w.changes.take() {
			due[o] = struct{}{}
		}
		timer.Reset(w.write(ctx, due, reports))
	}
}

// list returns the existing reports.
func (w *Writer) list(ctx context.Context) (map[Object]*report, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	l := &tailnetv1alpha1.HealthReportList{}
	var opts []client.ListOption
	if w.gateway != nil {
		opts = append(opts, client.InNamespace(w.gateway.Namespace))
	}
	if err := w.kube.List(ctx, l, opts...); err != nil {
		return nil, errors.Wrap(err, "cannot list HealthReports")
	}
	out := map[Object]*report{}
	for i := range l.Items {
		if o, ok := objectOf(&l.Items[i]); ok && w.mine(&l.Items[i]) {
			out[o] = &report{spec: l.Items[i].Spec}
		}
	}
	return out, nil
}

// write writes the reports that are due, and returns the time until the next one is.
func (w *Writer) write(ctx context.Context, due map[Object]struct{}, reports map[Object]*report) time.Duration {
	wait := time.Hour
	at := time.Now()
	ready := map[Object]struct{}{}
	for o := range due {
		if r := reports[o]; r != nil && at.Before(r.next) {
			wait = min(wait, r.next.Sub(at))
			continue
		}
		ready[o] = struct{}{}
	}
	if len(ready) == 0 {
		return wait
	}
	byObject := map[Object][]health.Target{}
	for _, t := range w.targets.Targets(func(k ir.TargetKey) bool { _, ok := ready[ObjectOf(k)]; return ok }) {
		o := ObjectOf(t.Key)
		byObject[o] = append(byObject[o], t)
	}
	routes := w.routes.RoutesTo(func(n types.NamespacedName) bool { _, ok := ready[servicesOf(n)]; return ok }, maxRoutes)
	for o := range ready {
		start := time.Now()
		var leading []ir.RouteKey
		if o.Kind == ir.TargetServices {
			leading = routes[o.NamespacedName]
		}
		spec := build(o, byObject[o], leading)
		err := w.settle(ctx, o, spec, reports)
		if errors.Is(err, errOthers) {
			delete(reports, o)
			if empty(spec) {
				delete(due, o)
				continue
			}
			reports[o] = &report{next: start.Add(recheck)}
			wait = min(wait, recheck)
			continue
		}
		if err != nil {
			w.log.Info("Cannot report health", "kind", o.kind(), "object", o.String(), "error", err)
			if reports[o] == nil {
				reports[o] = &report{}
			}
			reports[o].next = start.Add(retry)
			wait = min(wait, retry)
			continue
		}
		delete(due, o)
	}
	return wait
}

// empty reports whether a report says nothing.
func empty(s tailnetv1alpha1.HealthReportSpec) bool { return len(s.Ports) == 0 && len(s.Routes) == 0 }

// settle writes or deletes the report of one object.
func (w *Writer) settle(ctx context.Context, o Object, spec tailnetv1alpha1.HealthReportSpec, reports map[Object]*report) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if empty(spec) && reports[o] == nil {
		return nil
	}
	if empty(spec) {
		if err := w.checkWriter(ctx, o); err != nil {
			return err
		}
		n := o.report()
		r := &tailnetv1alpha1.HealthReport{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}}
		if err := client.IgnoreNotFound(w.kube.Delete(ctx, r)); err != nil {
			return errors.Wrap(err, "cannot delete HealthReport")
		}
		delete(reports, o)
		return nil
	}
	if r := reports[o]; r != nil && r.spec.TargetRef.Name != "" {
		// The API keeps whole seconds.
		spec.Failover = failover(&r.spec, &spec, metav1.Now().Rfc3339Copy())
	}
	if r := reports[o]; r != nil && reflect.DeepEqual(r.spec, spec) {
		return nil
	}
	if err := w.checkWriter(ctx, o); err != nil {
		return err
	}
	owner, err := w.owner(ctx, o)
	if kerrors.IsNotFound(err) {
		// The object is being deleted, and its report with it.
		delete(reports, o)
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "cannot get the object")
	}
	n := o.report()
	u := &tailnetv1alpha1.HealthReport{
		TypeMeta:   metav1.TypeMeta{APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(), Kind: tailnetv1alpha1.HealthReportKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       spec,
	}
	if w.gateway != nil {
		u.Annotations = map[string]string{gatewayKey: w.gateway.Name}
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(u)
	if err != nil {
		return errors.Wrap(err, "cannot convert HealthReport")
	}
	if err := w.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: raw}), client.FieldOwner(ir.ManagedBy), client.ForceOwnership); err != nil {
		return errors.Wrap(err, "cannot apply HealthReport")
	}
	reports[o] = &report{spec: spec, next: time.Now().Add(pause)}
	return nil
}

// owner returns the owner reference of a report.
func (w *Writer) owner(ctx context.Context, o Object) (metav1.OwnerReference, error) {
	var obj client.Object = &gatewayv1alpha1.TailscaleServices{}
	if o.Kind == ir.TargetEndpoints {
		obj = &gatewayv1alpha1.TailscaleEndpoints{}
	}
	if err := w.objects.Get(ctx, o.NamespacedName, obj); err != nil {
		return metav1.OwnerReference{}, err
	}
	return metav1.OwnerReference{APIVersion: gatewayv1alpha1.SchemeGroupVersion.String(), Kind: o.kind(), Name: o.Name, UID: obj.GetUID()}, nil
}
