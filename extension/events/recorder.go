// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package events

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
)

// Reasons of events.
const (
	reasonNotServed = "BackendNotServed"
	reasonServed    = "BackendServed"
)

const (
	// maxMessage is the limit of the API server (validation of events in k8s.io/kubernetes).
	maxMessage = 1024

	// maxName leaves room for the hash in the name of an event.
	maxName = 200
)

// An EventRecorder is a Recorder that writes events on routes.
type EventRecorder struct {
	writer client.Client
	routes client.Reader
}

// NewEventRecorder returns an EventRecorder that writes with a client, and gets routes from a
// reader.
func NewEventRecorder(w client.Client, routes client.Reader) *EventRecorder {
	return &EventRecorder{writer: w, routes: routes}
}

// RecordProblem implements Recorder.
func (e *EventRecorder) RecordProblem(ctx context.Context, route ir.RouteKey, message string) error {
	return e.write(ctx, route, corev1.EventTypeWarning, reasonNotServed, message)
}

// RecordServed implements Recorder.
func (e *EventRecorder) RecordServed(ctx context.Context, route ir.RouteKey) error {
	return e.write(ctx, route, corev1.EventTypeNormal, reasonServed, "All Tailscale backends of the route are served")
}

// write creates an event, or updates the time of the existing event with the same text.
func (e *EventRecorder) write(ctx context.Context, route ir.RouteKey, kind, reason, message string) error {
	message = strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
	o := object(route.Kind)
	if o == nil {
		return errors.Errorf("cannot record an event of a %s", route.Kind)
	}
	if err := e.routes.Get(ctx, route.NamespacedName, o); err != nil {
		// A route that is gone needs no event.
		return errors.Wrap(client.IgnoreNotFound(err), "cannot get the route")
	}
	gvk, err := e.writer.GroupVersionKindFor(o)
	if err != nil {
		return errors.Wrap(err, "cannot get the kind of the route")
	}
	at := metav1.NewTime(time.Now().Truncate(time.Second))
	ev := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: route.Namespace, Name: eventName(o, kind+message)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind,
			Namespace: route.Namespace, Name: route.Name, UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		},
		Type: kind, Reason: reason, Message: message,
		Source:              corev1.EventSource{Component: ir.ManagedBy},
		ReportingController: ir.ManagedBy,
		FirstTimestamp:      at, LastTimestamp: at, Count: 1,
	}
	err = e.writer.Create(ctx, ev)
	if !apierrors.IsAlreadyExists(err) {
		return errors.Wrap(err, "cannot create an event")
	}
	patch := fmt.Appendf(nil, `{"lastTimestamp":%q}`, at.UTC().Format(time.RFC3339))
	return errors.Wrap(e.writer.Patch(ctx, ev, client.RawPatch(types.MergePatchType, patch)), "cannot update an event")
}

// eventName returns a name that depends on the route and the text only.
func eventName(o client.Object, text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(o.GetUID()) + "/" + text)) // It never fails.
	name := o.GetName()
	return fmt.Sprintf("%s.%016x", strings.TrimRight(name[:min(len(name), maxName)], ".-"), h.Sum64())
}

// object returns an empty route of a kind, and nil for other kinds.
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
