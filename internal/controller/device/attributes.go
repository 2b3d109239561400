// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

const (
	// annotationAttributes lists the posture attributes that a Device has set, or was about to set,
	// separated by commas. They are removed when the spec no longer has them.
	annotationAttributes = "tailnet.gateway.tailscale.com/posture-attributes"

	// attributesMaxAge is how long posture attributes are cached. The API returns them only per
	// device, so reading them at each poll would need one call per device.
	attributesMaxAge = 10 * time.Minute

	// attributesInterval and attributesBurst limit how often attributes without changes are read
	// again, over all devices. With many devices, a change of another client may be detected later
	// than attributesMaxAge.
	attributesInterval = 6 * time.Second
	attributesBurst    = 5
)

// An attributesAPI is the part of a tailnet's client that attributes use.
type attributesAPI interface {
	DeviceAttributes(ctx context.Context, nodeID string) (map[string]any, error)
	SetDeviceAttribute(ctx context.Context, nodeID, key string, value any) error
	DeleteDeviceAttribute(ctx context.Context, nodeID, key string) error
}

// attributes records when each device's posture attributes were read. Their values are in the
// objects' status.
type attributes struct {
	limiter *rate.Limiter

	mu   sync.Mutex
	read map[string]time.Time
}

func newAttributes() *attributes {
	return &attributes{limiter: rate.NewLimiter(rate.Every(attributesInterval), attributesBurst), read: map[string]time.Time{}}
}

// due reports whether to read a device's attributes again although they match the spec.
func (a *attributes) due(nodeID string, instant time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return instant.Sub(a.read[nodeID]) > attributesMaxAge && a.limiter.AllowN(instant, 1)
}

func (a *attributes) setRead(nodeID string, instant time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Drop old entries, which may be those of deleted devices.
	for id, at := range a.read {
		if instant.Sub(at) > 24*time.Hour {
			delete(a.read, id)
		}
	}
	a.read[nodeID] = instant
}

// observeAttributes reads the attributes that an object manages, or managed until now, if they
// differ from the spec or are due.
func (e *external) observeAttributes(ctx context.Context, mg *v1alpha1.Device) error {
	want, observed := byKey(mg.Spec.ForProvider.PostureAttributes), byKey(mg.Status.AtProvider.PostureAttributes)
	ours := union(want, recorded(mg, annotationAttributes))
	if len(ours) == 0 {
		mg.Status.AtProvider.PostureAttributes = nil
		return nil
	}
	id := mg.Status.AtProvider.NodeID
	// Attributes that the object may not change are not read more often either.
	asWanted := equality.Semantic.DeepEqual(want, observed) && len(ours) == len(want)
	if (asWanted || !updates(mg)) && !e.attributes.due(id, e.clock()) {
		return nil
	}
	all, err := e.api.DeviceAttributes(ctx, id)
	if err != nil {
		return errors.Wrap(err, "cannot get posture attributes of the device")
	}
	e.attributes.setRead(id, e.clock())
	var out []v1alpha1.PostureAttribute
	for _, k := range ours {
		if v, ok := decode(k, all[k]); ok {
			out = append(out, v)
		}
	}
	mg.Status.AtProvider.PostureAttributes = out
	return nil
}

// attributeChanges returns the attributes to set, and those to remove because the spec no longer
// has them. It also records the keys that the object owns from then on, including those that it is
// about to set.
func (e *external) attributeChanges(mg *v1alpha1.Device) []change {
	want, observed := byKey(mg.Spec.ForProvider.PostureAttributes), byKey(mg.Status.AtProvider.PostureAttributes)
	id := mg.Status.AtProvider.NodeID
	var out []change
	e.own = nil
	for _, k := range union(want, recorded(mg, annotationAttributes)) {
		w, wanted := want[k]
		h, exists := observed[k]
		if wanted || exists {
			e.own = append(e.own, k)
		}
		switch {
		case !wanted && !exists:
		case !wanted:
			out = append(out, change{part: k, apply: func(ctx context.Context) error { return e.api.DeleteDeviceAttribute(ctx, id, k) }})
		case !exists || !equality.Semantic.DeepEqual(w, h):
			out = append(out, change{part: k, apply: func(ctx context.Context) error { return e.api.SetDeviceAttribute(ctx, id, k, value(w)) }})
		}
	}
	return out
}

func byKey(attrs []v1alpha1.PostureAttribute) map[string]v1alpha1.PostureAttribute {
	out := make(map[string]v1alpha1.PostureAttribute, len(attrs))
	for _, a := range attrs {
		out[a.Key] = a
	}
	return out
}

// recorded returns what the object has set, or was about to set, according to an annotation.
func recorded(mg *v1alpha1.Device, annotation string) []string {
	v := mg.GetAnnotations()[annotation]
	if v == "" {
		return nil
	}
	return strings.Split(v, ",")
}

// union returns the wanted keys and others, sorted.
func union(want map[string]v1alpha1.PostureAttribute, others []string) []string {
	return plain(slices.AppendSeq(slices.Clone(others), maps.Keys(want)))
}

// value returns the value of an attribute for the API.
func value(a v1alpha1.PostureAttribute) any {
	switch {
	case a.String != nil:
		return *a.String
	case a.Number != nil:
		return *a.Number
	case a.Bool != nil:
		return *a.Bool
	}
	return nil
}

// decode converts a value of the API. It ignores values that this controller cannot have set.
func decode(key string, v any) (v1alpha1.PostureAttribute, bool) {
	a := v1alpha1.PostureAttribute{Key: key}
	switch v := v.(type) {
	case string:
		a.String = &v
	case bool:
		a.Bool = &v
	case float64:
		n := int64(math.Round(v))
		a.Number = &n
	default:
		return a, false
	}
	return a, true
}
