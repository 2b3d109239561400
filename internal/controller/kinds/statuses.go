// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// CleanStatuses returns a client that cleans the messages of all conditions that it writes, and the
// statuses of MachineSets. They contain what Tailscale's API, users of the tailnet or agents wrote. It
// does not send a status that the object already has.
func CleanStatuses(c client.Client) client.Client { return statusClient{c} }

type statusClient struct{ client.Client }

// Status returns a writer that cleans statuses.
func (c statusClient) Status() client.SubResourceWriter {
	return statusWriter{SubResourceWriter: c.Client.Status(), reader: c.Client}
}

type statusWriter struct {
	client.SubResourceWriter

	reader client.Reader
}

// Update cleans and updates a status.
func (w statusWriter) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	w.clean(ctx, o)
	if len(opts) == 0 && w.unchanged(ctx, o) {
		return nil
	}
	return w.SubResourceWriter.Update(ctx, o, opts...)
}

// Patch cleans and patches a status.
func (w statusWriter) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	w.clean(ctx, o)
	return w.SubResourceWriter.Patch(ctx, o, p, opts...)
}

// clean cleans the conditions of an object. A condition that is then equal to the existing one keeps
// its time: otherwise each reconciliation would write it.
func (w statusWriter) clean(ctx context.Context, o client.Object) {
	if set, ok := o.(*v1alpha1.MachineSet); ok && walk(reflect.ValueOf(&set.Status).Elem(), false) {
		// A copy, because the cache may share parts of it.
		status := set.Status.DeepCopy()
		walk(reflect.ValueOf(status).Elem(), true)
		set.Status = *status
	}
	var existing []xpv2.Condition
	for i, c := range conditions(o) {
		clean := text.Clean(c.Message)
		if clean == c.Message {
			continue
		}
		if existing == nil {
			existing = w.existing(ctx, o)
		}
		c.Message = clean
		for _, e := range existing {
			if e.Type == c.Type && e.Equal(c) {
				c.LastTransitionTime = e.LastTransitionTime
			}
		}
		conditions(o)[i] = c
	}
}

// unchanged reports whether an object has the status already, in the version that the write names. The
// reconciler of managed resources updates each status in each poll (crossplane-runtime v2.4.0
// pkg/reconciler/managed, Reconcile). The API server stores no equal object, but a request costs it as much
// as any other, and many objects at rest would send one each.
func (w statusWriter) unchanged(ctx context.Context, o client.Object) bool {
	want := statusOf(o)
	if !want.IsValid() || o.GetResourceVersion() == "" {
		return false
	}
	e, ok := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	if !ok || w.reader.Get(ctx, client.ObjectKeyFromObject(o), e) != nil {
		return false
	}
	return e.GetUID() == o.GetUID() && e.GetResourceVersion() == o.GetResourceVersion() &&
		equality.Semantic.DeepEqual(statusOf(e).Interface(), want.Interface())
}

// statusOf returns the status of an object that is a struct. It returns an invalid value if the object has
// none.
func statusOf(o client.Object) reflect.Value {
	v := reflect.ValueOf(o)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	if s := v.Elem().FieldByName("Status"); s.IsValid() && s.Kind() == reflect.Struct {
		return s
	}
	return reflect.Value{}
}

// existing returns the conditions of the existing object. It returns none if it cannot be read.
func (w statusWriter) existing(ctx context.Context, o client.Object) []xpv2.Condition {
	e, ok := o.DeepCopyObject().(client.Object)
	if !ok || w.reader.Get(ctx, client.ObjectKeyFromObject(o), e) != nil {
		return nil
	}
	return conditions(e)
}

// conditions returns status.conditions of an object. It returns nil if the object has none.
func conditions(o client.Object) []xpv2.Condition {
	status := statusOf(o)
	if !status.IsValid() {
		return nil
	}
	f := status.FieldByName("Conditions")
	if !f.IsValid() {
		return nil
	}
	out, _ := f.Interface().([]xpv2.Condition)
	return out
}
