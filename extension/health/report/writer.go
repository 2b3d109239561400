// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"reflect"
	"sync"
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
	// pause between two writes of one report: each has a function run, and counts
	// against its composite in Crossplane's circuit breaker.
	pause = 5 * time.Second

	// retry after a write that failed.
	retry = 30 * time.Second

	// warmUp is how long probes go on before anything is reported: at first all look
	// well to who has just started.
	warmUp = 20 * time.Second

	// recheck whether another extension still reports of an object.
	recheck = time.Minute

	// timeout of a request.
	timeout = 10 * time.Second

	// manager of the fields that are applied.
	manager = client.FieldOwner("tailscale-gateway-extension")
)

// Targets that are probed. A health.Prober has them.
type Targets interface {
	Targets() []health.Target
}

// gatewayKey of the annotation of a report that the extension of one Gateway writes.
const gatewayKey = "gateway.tailscale.com/gateway"

// errOthers says that another extension writes a report.
var errOthers = errors.New("another extension reports of it")

// A Writer keeps HealthReports up to date while it runs.
type Writer struct {
	targets Targets
	kube    client.Client
	objects client.Reader
	only    *types.NamespacedName
	log     logging.Logger

	wake chan struct{}

	// mu guards what follows.
	mu sync.Mutex

	// running is how often Run does: the next time may begin before the last has ended.
	running int

	// pending are the objects to look at. While another replica writes there are none: as
	// nobody takes them, they would only grow.
	pending map[Object]struct{}
}

// A report that was written, or is to be.
type report struct {
	spec tailnetv1alpha1.HealthReportSpec

	// next is when it may be written again.
	next time.Time
}

// NewWriter returns one that writes nothing until it runs. Kube writes reports, and lists
// them once each time the Writer runs; objects has our kinds, from a cache. Only is the
// Gateway whose extension this is; nil stands for the one that is installed for all. That
// one's reports come first: the other tells of what is in its namespace and nobody else
// reports of.
func NewWriter(t Targets, kube client.Client, objects client.Reader, only *types.NamespacedName, log logging.Logger) *Writer {
	return &Writer{targets: t, kube: kube, objects: objects, only: only, log: log, wake: make(chan struct{}, 1), pending: map[Object]struct{}{}}
}

// mine reports whether this extension writes a report that is there.
func (w *Writer) mine(r *tailnetv1alpha1.HealthReport) bool {
	if w.only == nil {
		return r.Annotations[gatewayKey] == ""
	}
	return r.Annotations[gatewayKey] == w.only.Name
}

// leave a report to who writes it. The installed extension takes over what another one
// began, for that stands back.
func (w *Writer) leave(ctx context.Context, o Object) error {
	if w.only == nil {
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

// Scheme of what a Writer reads and writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	b := runtime.NewSchemeBuilder(corev1.AddToScheme, gatewayv1alpha1.AddToScheme, tailnetv1alpha1.AddToScheme)
	return s, errors.Wrap(b.AddToScheme(s), "cannot make a scheme")
}

// Changed says which targets have endpoints of another health, or are others, or are
// gone. It never blocks.
func (w *Writer) Changed(of []ir.TargetKey) {
	if !w.note(of) {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// note what changed for who writes, if anybody does here.
func (w *Writer) note(of []ir.TargetKey) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == 0 {
		return false
	}
	for _, k := range of {
		w.pending[ObjectOf(k)] = struct{}{}
	}
	return true
}

// begin to note what changes.
func (w *Writer) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running++
}

// end with what was noted, unless it runs once more.
func (w *Writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running--; w.running == 0 {
		w.pending = map[Object]struct{}{}
	}
}

// take what is pending.
func (w *Writer) take() map[Object]struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.pending
	w.pending = map[Object]struct{}{}
	return out
}

// Run until ctx ends. Reports that are there already are listed, and those of objects
// that no route names any more are deleted.
func (w *Writer) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(warmUp):
	}
	// What changes from here on is noted: all there is is looked at once.
	w.begin()
	defer w.end()
	known, err := w.list(ctx)
	if err != nil {
		return err
	}
	due := map[Object]struct{}{}
	for o := range known {
		due[o] = struct{}{}
	}
	for _, t := range w.targets.Targets() {
		due[ObjectOf(t.Key)] = struct{}{}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-timer.C:
		}
		for o := range w.take() {
			due[o] = struct{}{}
		}
		timer.Reset(w.write(ctx, due, known))
	}
}

// list reports that are there.
func (w *Writer) list(ctx context.Context) (map[Object]*report, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	l := &tailnetv1alpha1.HealthReportList{}
	var in []client.ListOption
	if w.only != nil {
		in = append(in, client.InNamespace(w.only.Namespace))
	}
	if err := w.kube.List(ctx, l, in...); err != nil {
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

// write what is due and may be written, and return how long to wait for the rest.
func (w *Writer) write(ctx context.Context, due map[Object]struct{}, known map[Object]*report) time.Duration {
	wait := time.Hour
	if len(due) == 0 {
		return wait
	}
	by := map[Object][]health.Target{}
	for _, t := range w.targets.Targets() {
		o := ObjectOf(t.Key)
		by[o] = append(by[o], t)
	}
	for o := range due {
		now := time.Now()
		if r := known[o]; r != nil && now.Before(r.next) {
			wait = min(wait, r.next.Sub(now))
			continue
		}
		err := w.settle(ctx, o, by[o], known)
		if errors.Is(err, errOthers) {
			delete(known, o)
			if len(by[o]) == 0 {
				delete(due, o)
				continue
			}
			known[o] = &report{next: now.Add(recheck)}
			wait = min(wait, recheck)
			continue
		}
		if err != nil {
			w.log.Info("Cannot report health", "kind", o.kind(), "object", o.String(), "error", err)
			if known[o] == nil {
				known[o] = &report{}
			}
			known[o].next = now.Add(retry)
			wait = min(wait, retry)
			continue
		}
		delete(due, o)
	}
	return wait
}

// settle the report of one object.
func (w *Writer) settle(ctx context.Context, o Object, of []health.Target, known map[Object]*report) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if len(of) == 0 && known[o] == nil {
		return nil
	}
	if len(of) == 0 {
		if err := w.leave(ctx, o); err != nil {
			return err
		}
		n := o.report()
		r := &tailnetv1alpha1.HealthReport{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}}
		if err := client.IgnoreNotFound(w.kube.Delete(ctx, r)); err != nil {
			return errors.Wrap(err, "cannot delete HealthReport")
		}
		delete(known, o)
		return nil
	}
	spec := build(o, of)
	if r := known[o]; r != nil && r.spec.For.Name != "" {
		// Seconds are what the API keeps.
		spec.Failover = failover(&r.spec, &spec, metav1.Now().Rfc3339Copy())
	}
	if r := known[o]; r != nil && reflect.DeepEqual(r.spec, spec) {
		return nil
	}
	if err := w.leave(ctx, o); err != nil {
		return err
	}
	owner, err := w.owner(ctx, o)
	if kerrors.IsNotFound(err) {
		// It goes, and its report with it.
		delete(known, o)
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
	if w.only != nil {
		u.Annotations = map[string]string{gatewayKey: w.only.Name}
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(u)
	if err != nil {
		return errors.Wrap(err, "cannot convert HealthReport")
	}
	if err := w.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: raw}), manager, client.ForceOwnership); err != nil {
		return errors.Wrap(err, "cannot apply HealthReport")
	}
	known[o] = &report{spec: spec, next: time.Now().Add(pause)}
	return nil
}

// owner that the report goes with.
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
