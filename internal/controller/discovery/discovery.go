// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package discovery holds the controller of Discoveries. A Discovery only observes: it makes,
// changes and deletes nothing in Tailscale. internal/discovery decides what matches.
package discovery

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/discovery"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// defaultInterval is the time between two observations if the object sets none.
	defaultInterval = 30 * time.Second

	// maxBackoff limits the time between two observations of a tailnet whose API fails.
	maxBackoff = 2 * time.Minute
)

// reasonChanged is the reason of events about objects that appeared and vanished.
const reasonChanged event.Reason = "DiscoveredChange"

// An api is the part of a tailnet's API that this controller needs.
type api struct {
	devices  devicesAPI
	services servicesAPI
	tailnet  tailnetAPI
}

type devicesAPI interface {
	DevicesAt(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Device, time.Time, error)
}

type servicesAPI interface {
	ServicesAt(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Service, time.Time, error)
}

type tailnetAPI interface {
	Domain(ctx context.Context) (string, error)
}

type external struct {
	kinds.NopDisconnect

	api    api
	record event.Recorder
}

// Observe lists the tailnet's matching objects. If the API fails, the status shows the error and
// keeps the last list, and the interval between observations grows.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.Discovery) (managed.ExternalObservation, error) {
	if xpmeta.WasDeleted(mg) {
		return managed.ExternalObservation{}, nil
	}
	fine := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}
	t, at, err := e.look(ctx, mg)
	if err != nil {
		if tailscale.ClassOf(err) == "" {
			return managed.ExternalObservation{}, err
		}
		mg.SetConditions(xpv2.Unavailable().WithMessage("Cannot look into the tailnet, what is listed is from before: " + err.Error()))
		// An object that is not synced is requeued when its credential is fixed.
		if tailscale.ClassOf(err) == tailscale.ClassUnauthorized {
			return managed.ExternalObservation{}, err
		}
		o := &mg.Status.AtProvider
		// The count stops at the longest backoff, so that an idle status does not change.
		if backoff(interval(mg), o.Failures) < maxBackoff {
			o.Failures++
		}
		return fine, nil
	}
	t.Listed = mg.Status.AtProvider.Discovered
	found, count := discovery.Find(&mg.Spec.ForProvider, t)
	e.recordChange(mg, found)
	n := int32(count)
	mg.Status.AtProvider = v1alpha1.DiscoveryObservation{
		Count:       &n,
		Truncated:   count > len(found),
		Discovered:  found,
		LastChanged: lastChanged(mg.Status.AtProvider, found, at),
	}
	mg.SetConditions(xpv2.Available())
	return fine, nil
}

// lastChanged returns when the list last changed. The time changes only with the list.
func lastChanged(previous v1alpha1.DiscoveryObservation, found []v1alpha1.Discovered, at time.Time) *metav1.Time {
	same := previous.LastChanged != nil && equality.Semantic.DeepEqual(previous.Discovered, found)
	if same || at.IsZero() {
		return previous.LastChanged
	}
	return &metav1.Time{Time: at}
}

// look returns the shared lists that the object needs, and the time of the newer list.
func (e *external) look(ctx context.Context, mg *v1alpha1.Discovery) (t discovery.Tailnet, at time.Time, err error) {
	p := &mg.Spec.ForProvider
	// Jitter may make a poll early: a list from this object's last poll must count as old at the
	// next.
	staleness := tailscale.AtMost(interval(mg) * 8 / 10)
	if discovery.Looks(p, v1alpha1.DiscoverDevices) {
		if t.Devices, at, err = e.api.devices.DevicesAt(ctx, staleness); err != nil {
			return t, at, errors.Wrap(err, "cannot list devices")
		}
	}
	if discovery.Looks(p, v1alpha1.DiscoverServices) {
		var listed time.Time
		if t.Services, listed, err = e.api.services.ServicesAt(ctx, staleness); err != nil {
			return t, at, errors.Wrap(err, "cannot list services")
		}
		if listed.After(at) {
			at = listed
		}
		if t.Domain, err = e.api.tailnet.Domain(ctx); err != nil {
			return t, at, errors.Wrap(err, "cannot learn the tailnet's domain")
		}
	}
	return t, at, nil
}

// recordChange records how many objects appeared and vanished since the last observation.
func (e *external) recordChange(mg *v1alpha1.Discovery, found []v1alpha1.Discovered) {
	previous := map[string]bool{}
	for _, d := range mg.Status.AtProvider.Discovered {
		previous[key(d)] = true
	}
	appeared := 0
	for _, d := range found {
		if !previous[key(d)] {
			appeared++
		}
		delete(previous, key(d))
	}
	if appeared+len(previous) > 0 {
		e.record.Event(mg, event.Normal(reasonChanged, fmt.Sprintf("%d appeared and %d vanished among those listed", appeared, len(previous))))
	}
}

func key(d v1alpha1.Discovered) string { return string(d.Source) + " " + d.Name + " " + d.NodeID }

// Create is never called: a tailnet always exists.
func (e *external) Create(context.Context, *v1alpha1.Discovery) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

// Update is never called: a Discovery is always up to date.
func (e *external) Update(context.Context, *v1alpha1.Discovery) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, nil
}

// Delete is never called: a Discovery that is being deleted has nothing to clean
// up.
func (e *external) Delete(context.Context, *v1alpha1.Discovery) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}

// poll returns when a Discovery is observed again.
func poll(mg resource.Managed, otherwise time.Duration) time.Duration {
	d, ok := mg.(*v1alpha1.Discovery)
	if !ok {
		return otherwise
	}
	return backoff(interval(d), d.Status.AtProvider.Failures)
}

// backoff doubles an interval with each failure, up to maxBackoff. It is never shorter than the
// interval.
func backoff(d time.Duration, failures int32) time.Duration {
	for ; failures > 0 && d < maxBackoff; failures-- {
		d = min(2*d, maxBackoff)
	}
	return d
}

func interval(mg *v1alpha1.Discovery) time.Duration {
	if i := mg.Spec.ForProvider.Interval; i != nil && i.Duration > 0 {
		return i.Duration
	}
	return defaultInterval
}
