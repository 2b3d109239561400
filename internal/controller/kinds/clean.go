// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// sanitizing wraps a connector. Users of the tailnet, or the server that answers for its API, can
// put any characters into names and texts; sanitizing cleans them before they reach a status.
type sanitizing[T resource.ModernManaged] struct {
	managed.TypedExternalConnector[T]
}

// Connect returns a client that cleans statuses.
func (c *sanitizing[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	e, err := c.TypedExternalConnector.Connect(ctx, mg)
	if err != nil {
		return nil, err
	}
	return &sanitizingClient[T]{TypedExternalClient: e}, nil
}

type sanitizingClient[T resource.ModernManaged] struct {
	managed.TypedExternalClient[T]
}

// Observe calls the client's Observe and cleans the status.
func (c *sanitizingClient[T]) Observe(ctx context.Context, mg T) (managed.ExternalObservation, error) {
	o, err := c.TypedExternalClient.Observe(ctx, mg)
	sanitize(mg)
	return o, err
}

// Create calls the client's Create and cleans the status.
func (c *sanitizingClient[T]) Create(ctx context.Context, mg T) (managed.ExternalCreation, error) {
	o, err := c.TypedExternalClient.Create(ctx, mg)
	sanitize(mg)
	return o, err
}

// Update calls the client's Update and cleans the status.
func (c *sanitizingClient[T]) Update(ctx context.Context, mg T) (managed.ExternalUpdate, error) {
	o, err := c.TypedExternalClient.Update(ctx, mg)
	sanitize(mg)
	return o, err
}

// Delete calls the client's Delete and cleans the status.
func (c *sanitizingClient[T]) Delete(ctx context.Context, mg T) (managed.ExternalDelete, error) {
	o, err := c.TypedExternalClient.Delete(ctx, mg)
	sanitize(mg)
	return o, err
}

// sanitize cleans an object's observation of the tailnet. CleanStatuses cleans its conditions.
func sanitize(mg resource.ModernManaged) {
	o := observation(mg)
	if !o.IsValid() || !walk(o, false) {
		return
	}
	// A copy, because all clients may share the lists.
	if c, ok := mg.DeepCopyObject().(resource.ModernManaged); ok {
		co := observation(c)
		walk(co, true)
		o.Set(co)
	}
}

// observation returns status.atProvider of an object. It is invalid if the object has none.
func observation(mg resource.ModernManaged) reflect.Value {
	status := reflect.ValueOf(mg).Elem().FieldByName("Status")
	if !status.IsValid() {
		return status
	}
	return status.FieldByName("AtProvider")
}

// walk reports whether any text below a value is not clean. With set, it also cleans the texts.
// Types with unexported fields, such as times, stay unchanged.
func walk(v reflect.Value, set bool) bool {
	dirty := false
	switch v.Kind() {
	case reflect.String:
		if s := text.Clean(v.String()); s != v.String() {
			dirty = true
			if set {
				v.SetString(s)
			}
		}
	case reflect.Pointer:
		return !v.IsNil() && walk(v.Elem(), set)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				dirty = walk(v.Field(i), set) || dirty
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			dirty = walk(v.Index(i), set) || dirty
		}
	case reflect.Map:
		return walkMap(v, set)
	}
	return dirty
}

// walkMap does the same for a map of texts, whose entries cannot be changed in place. An entry
// whose key is not clean is removed.
func walkMap(v reflect.Value, set bool) bool {
	if v.Type().Key().Kind() != reflect.String || v.Type().Elem().Kind() != reflect.String {
		return false
	}
	dirty := false
	for _, k := range v.MapKeys() {
		s := v.MapIndex(k).String()
		value, key := text.Clean(s), text.Clean(k.String())
		if value == s && key == k.String() {
			continue
		}
		dirty = true
		switch {
		case !set:
		case key != k.String():
			v.SetMapIndex(k, reflect.Value{})
		default:
			v.SetMapIndex(k, reflect.ValueOf(value).Convert(v.Type().Elem()))
		}
	}
	return dirty
}

// A sanitizingRecorder records events and cleans their messages.
type sanitizingRecorder struct{ event.Recorder }

// Event records an event with a clean message.
func (r sanitizingRecorder) Event(o runtime.Object, e event.Event) {
	e.Message = text.Clean(e.Message)
	r.Recorder.Event(o, e)
}

// WithAnnotations returns a recorder that adds annotations.
func (r sanitizingRecorder) WithAnnotations(kv ...string) event.Recorder {
	return sanitizingRecorder{r.Recorder.WithAnnotations(kv...)}
}
