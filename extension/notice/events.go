// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/keep"
)

// Reasons of events.
const (
	reasonNotServed = "BackendNotServed"
	reasonServed    = "BackendServed"
)

const (
	// maxMessage is what the API server takes (events' validation in k8s.io/kubernetes).
	maxMessage = 1024

	// maxName leaves place in an event's name for the sum.
	maxName = 200
)

// Events are a Speaker that tells by events on routes.
type Events struct {
	writer client.Client
	routes client.Reader
}

// NewEvents returns Events that a client writes, and that find routes by a reader.
func NewEvents(w client.Client, routes client.Reader) *Events {
	return &Events{writer: w, routes: routes}
}

// Tell implements Speaker.
func (e *Events) Tell(ctx context.Context, route ir.RouteKey, message string) error {
	return e.write(ctx, route, corev1.EventTypeWarning, reasonNotServed, message)
}

// TellServed implements Speaker.
func (e *Events) TellServed(ctx context.Context, route ir.RouteKey) error {
	return e.write(ctx, route, corev1.EventTypeNormal, reasonServed, "All Tailscale backends of the route are served")
}

// write an event, or bring the one up to date that says the same.
func (e *Events) write(ctx context.Context, route ir.RouteKey, kind, reason, message string) error {
	message = strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
	o := object(route.Kind)
	if o == nil {
		return errors.Errorf("cannot tell of a %s", route.Kind)
	}
	if err := e.routes.Get(ctx, route.NamespacedName, o); err != nil {
		// It goes, and what was to be told with it.
		return errors.Wrap(client.IgnoreNotFound(err), "cannot get the route")
	}
	gvk, err := e.writer.GroupVersionKindFor(o)
	if err != nil {
		return errors.Wrap(err, "cannot tell the kind of the route")
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	ev := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: route.Namespace, Name: eventName(o, kind+message)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind,
			Namespace: route.Namespace, Name: route.Name, UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		},
		Type: kind, Reason: reason, Message: message,
		Source:              corev1.EventSource{Component: keep.ManagedBy},
		ReportingController: keep.ManagedBy,
		FirstTimestamp:      now, LastTimestamp: now, Count: 1,
	}
	err = e.writer.Create(ctx, ev)
	if !apierrors.IsAlreadyExists(err) {
		return errors.Wrap(err, "cannot create an event")
	}
	patch := fmt.Appendf(nil, `{"lastTimestamp":%q}`, now.UTC().Format(time.RFC3339))
	return errors.Wrap(e.writer.Patch(ctx, ev, client.RawPatch(types.MergePatchType, patch)), "cannot update an event")
}

// eventName follows from the route and from what is said.
func eventName(o client.Object, said string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(o.GetUID()) + "/" + said)) // It never fails.
	name := o.GetName()
	return fmt.Sprintf("%s.%016x", strings.TrimRight(name[:min(len(name), maxName)], ".-"), h.Sum64())
}

// object of a kind of routes. Nil for others.
func object(k ir.RouteKind) client.Object {
	switch k {
	case ir.KindHTTPRoute:
		return &gwapiv1.HTTPRoute{}
	case ir.KindGRPCRoute:
		return &gwapiv1.GRPCRoute{}
	case ir.KindTCPRoute:
		return &gwapiv1.TCPRoute{}
	case ir.KindUDPRoute:
		return &gwapiv1.UDPRoute{}
	case ir.KindTLSRoute:
		return &gwapiv1.TLSRoute{}
	}
	return nil
}
