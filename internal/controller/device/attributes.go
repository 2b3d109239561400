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
	// annotationAttributes lists the posture attributes that a Device has set, or was
	// about to, separated by commas: those to remove when it names them no more.
	annotationAttributes = "tailnet.gateway.tailscale.com/posture-attributes"

	// attributesMaxAge is how long posture attributes are believed. The API has
	// them per device only, so asking at each poll would cost a call each.
	attributesMaxAge = 10 * time.Minute

	// attributesInterval and attributesBurst bound how often they are read again
	// that are as wanted, over all devices: what somebody else changed of them
	// may be seen later than attributesMaxAge if there are many.
	attributesInterval = 6 * time.Second
	attributesBurst    = 5
)

// attributesAPI is what attributes need of a tailnet.
type attributesAPI interface {
	DeviceAttributes(ctx context.Context, nodeID string) (map[string]any, error)
	SetDeviceAttribute(ctx context.Context, nodeID, key string, value any) error
	DeleteDeviceAttribute(ctx context.Context, nodeID, key string) error
}

// attributes remembers which devices' posture attributes were read, and when.
// What they were is in the objects' status.
type attributes struct {
	limiter *rate.Limiter

	mu   sync.Mutex
	read map[string]time.Time
}

func newAttributes() *attributes {
	return &attributes{limiter: rate.NewLimiter(rate.Every(attributesInterval), attributesBurst), read: map[string]time.Time{}}
}

// due reports whether a device's attributes, which are as wanted, are to be read.
func (a *attributes) due(nodeID string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return now.Sub(a.read[nodeID]) > attributesMaxAge && a.limiter.AllowN(now, 1)
}

func (a *attributes) setRead(nodeID string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Devices that are gone are forgotten now and then.
	for id, at := range a.read {
		if now.Sub(at) > 24*time.Hour {
			delete(a.read, id)
		}
	}
	a.read[nodeID] = now
}

// observeAttributes reads the attributes that an object manages, or managed until
// now, if they are not as wanted or have not been read for a while.
func (e *external) observeAttributes(ctx context.Context, mg *v1alpha1.Device) error {
	want, have := byKey(mg.Spec.ForProvider.PostureAttributes), byKey(mg.Status.AtProvider.PostureAttributes)
	ours := union(want, owned(mg))
	if len(ours) == 0 {
		mg.Status.AtProvider.PostureAttributes = nil
		return nil
	}
	id := mg.Status.AtProvider.NodeID
	// What may not be put right need not be looked at oftener either.
	asWanted := equality.Semantic.DeepEqual(want, have) && len(ours) == len(want)
	if (asWanted || !updates(mg)) && !e.attributes.due(id, e.now()) {
		return nil
	}
	all, err := e.api.DeviceAttributes(ctx, id)
	if err != nil {
		return errors.Wrap(err, "cannot get posture attributes of the device")
	}
	e.attributes.setRead(id, e.now())
	var out []v1alpha1.PostureAttribute
	for _, k := range ours {
		if v, ok := decode(k, all[k]); ok {
			out = append(out, v)
		}
	}
	mg.Status.AtProvider.PostureAttributes = out
	return nil
}

// attributeChanges returns what is to be set, and what to be removed since the
// object does not name it any more. It also notes the keys that the object owns from
// then on, with those that it may be about to make.
func (e *external) attributeChanges(mg *v1alpha1.Device) []change {
	want, have := byKey(mg.Spec.ForProvider.PostureAttributes), byKey(mg.Status.AtProvider.PostureAttributes)
	id := mg.Status.AtProvider.NodeID
	var out []change
	e.own = nil
	for _, k := range union(want, owned(mg)) {
		w, wanted := want[k]
		h, there := have[k]
		if wanted || there {
			e.own = append(e.own, k)
		}
		switch {
		case !wanted && !there:
		case !wanted:
			out = append(out, change{what: k, do: func(ctx context.Context) error { return e.api.DeleteDeviceAttribute(ctx, id, k) }})
		case !there || !equality.Semantic.DeepEqual(w, h):
			out = append(out, change{what: k, do: func(ctx context.Context) error { return e.api.SetDeviceAttribute(ctx, id, k, value(w)) }})
		}
	}
	return out
}

func byKey(in []v1alpha1.PostureAttribute) map[string]v1alpha1.PostureAttribute {
	out := make(map[string]v1alpha1.PostureAttribute, len(in))
	for _, a := range in {
		out[a.Key] = a
	}
	return out
}

// owned are the keys of attributes that the object has set, or was about to.
func owned(mg *v1alpha1.Device) []string {
	v := mg.GetAnnotations()[annotationAttributes]
	if v == "" {
		return nil
	}
	return strings.Split(v, ",")
}

// union of the wanted keys and others, sorted.
func union(want map[string]v1alpha1.PostureAttribute, others []string) []string {
	return plain(slices.AppendSeq(slices.Clone(others), maps.Keys(want)))
}

// value of an attribute for the API.
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

// decode a value of the API. Values that we cannot have set are ignored.
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
