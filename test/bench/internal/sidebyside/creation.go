// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// A Creation is what a watch of the API server saw of objects, from their creation until some time
// after the last became ready.
type Creation struct {
	// Flips is how often a ready object became unready.
	Flips int

	// Writes is how often each object was written, its creation included, in ascending order.
	Writes []int

	// Took is how long after its creation each object became ready for the last time, in ascending
	// order.
	Took []time.Duration
}

// A created object is the state of an object in a Creation.
type created struct {
	writes         int
	ready          bool
	flips          int
	began, readyAt time.Time
}

// creation gathers the events of a watch.
type creation map[string]*created

// see records an event at a time.
func (c creation) see(e watch.Event, at time.Time) error {
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok || e.Type != watch.Added && e.Type != watch.Modified {
		return errors.Errorf("unexpected event %s of a %T: %v", e.Type, e.Object, e.Object)
	}
	s := c[u.GetName()]
	if s == nil {
		s = &created{began: at}
		c[u.GetName()] = s
	}
	s.writes++
	ready := conditionOf(u, string(xpv2.TypeReady)) == "True"
	switch {
	case ready && !s.ready:
		s.readyAt = at
	case !ready && s.ready:
		s.flips++
	}
	s.ready = ready
	return nil
}

// settled reports whether this many objects exist, and all have been ready for some time.
func (c creation) settled(n int, at time.Time, d time.Duration) bool {
	if len(c) < n {
		return false
	}
	for _, s := range c {
		if !s.ready || at.Sub(s.readyAt) < d {
			return false
		}
	}
	return true
}

func (c creation) result() Creation {
	out := Creation{}
	for _, s := range c {
		out.Flips += s.flips
		out.Writes = append(out.Writes, s.writes)
		out.Took = append(out.Took, s.readyAt.Sub(s.began))
	}
	slices.Sort(out.Writes)
	slices.Sort(out.Took)
	return out
}

// conditionOf returns the status of an object's condition.
func conditionOf(u *unstructured.Unstructured, conditionType string) string {
	cs, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return ""
	}
	for _, c := range cs {
		if m, ok := c.(map[string]any); ok && m["type"] == conditionType {
			return fmt.Sprint(m["status"])
		}
	}
	return ""
}

// CreateServices creates services on the proxies of Big at once, and watches them until all have
// been ready for some time.
func (o *Ours) CreateServices(ctx context.Context, prefix string, n int, settle time.Duration) (Creation, error) {
	ctx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	kube, err := o.lab.client()
	if err != nil {
		return Creation{}, err
	}
	w, err := watchServices(ctx, kube, client.InNamespace(Namespace), client.MatchingLabels{"creation": prefix})
	if err != nil {
		return Creation{}, err
	}
	defer w.Stop()

	var manifest strings.Builder
	for i := range n {
		manifest.WriteString(hosted(fmt.Sprintf("%s-%d", prefix, i), big, portHTTP, "creation: "+prefix))
	}
	// Read events meanwhile: the API server ends the watch of a client that does not, and the time of
	// an event is that of its read.
	applied := make(chan error, 1)
	go func() { applied <- o.lab.apply(ctx, manifest.String()) }()
	seen := creation{}
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for !seen.settled(n, time.Now(), settle) {
		select {
		case <-ctx.Done():
			return Creation{}, errors.Wrapf(ctx.Err(), "%d services: %+v", n, seen.result())
		case <-t.C:
		case err := <-applied:
			if err != nil {
				return Creation{}, err
			}
		case e, ok := <-w.ResultChan():
			if !ok {
				return Creation{}, errors.New("the watch of services ended")
			}
			if err := seen.see(e, time.Now()); err != nil {
				return Creation{}, err
			}
		}
	}
	return seen.result(), nil
}

// watchServices watches services from now on. The API server ends a watch whenever it wants to, such as on
// a change of the definition of the kind; the watch then goes on where it ended.
func watchServices(ctx context.Context, kube client.WithWatch, o ...client.ListOption) (watch.Interface, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleServicesKind))
	if err := kube.List(ctx, list, o...); err != nil {
		return nil, errors.Wrap(err, "cannot list services")
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return kube.Watch(ctx, list, append(slices.Clone(o), &client.ListOptions{Raw: &raw})...)
		},
	})
	return w, errors.Wrap(err, "cannot watch services")
}

// DeleteServices deletes the services of CreateServices, and waits until they are gone.
func (o *Ours) DeleteServices(ctx context.Context, prefix string) error {
	_, err := o.lab.kubectl(ctx, "delete", "--namespace="+Namespace, "tailscaleservices", "--selector=creation="+prefix, "--cascade=foreground")
	return err
}
