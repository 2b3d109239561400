// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const (
	// drainRate is the number of new connections a second while pods are deleted, and drainWorkers
	// the maximum of open ones: enough to keep the rate while some hang.
	drainRate, drainWorkers = 25, 250

	// untouchedRate is the number of new connections a second to a service whose pods stay.
	untouchedRate = 5

	// drainTimeout is how long a client waits for a response.
	drainTimeout = 10 * time.Second
)

// Drained holds the results for new connections while ingress pods were deleted.
type Drained struct {
	Deletions, Requests int

	// Lost are lost requests, without the Cut ones that were in flight while control moved the
	// service's addresses.
	Lost, Cut []load.Failure

	// Moves of the addresses.
	Moves int

	// Longest deletion.
	Longest time.Duration
}

// Add adds the results of another set of proxies.
func (d *Drained) Add(o Drained) {
	d.Deletions += o.Deletions
	d.Requests += o.Requests
	d.Lost = append(d.Lost, o.Lost...)
	d.Cut = append(d.Cut, o.Cut...)
	d.Moves += o.Moves
	d.Longest = max(d.Longest, o.Longest)
}

// primary returns the machine that has a service's addresses. It is empty if there is none.
func (l *Lab) primary(ctx context.Context, service string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.env["TAILNET_API"]+"/sim/state", http.NoBody)
	if err != nil {
		return "", errors.Wrap(err, "cannot create request")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", errors.Wrap(err, "cannot read the tailnet's state")
	}
	defer res.Body.Close()
	var st struct {
		Services []struct{ Name, Primary string }
	}
	if err := json.NewDecoder(res.Body).Decode(&st); err != nil {
		return "", errors.Wrap(err, "cannot decode the tailnet's state")
	}
	for _, s := range st.Services {
		if s.Name == "svc:"+service {
			return s.Primary, nil
		}
	}
	return "", errors.Errorf("the tailnet has no svc:%s", service)
}

// Drain deletes the two ingress pods in turn, each once both host a service, while new connections
// arrive. The journal has the logs of the pods and the moves of the addresses.
func (o *Ours) Drain(ctx context.Context, deletions int, j *Journal) (Drained, error) {
	name := o.name + "-drained"
	if err := o.ApplyIngress(ctx, name); err != nil {
		return Drained{}, err
	}
	if err := o.hosting(ctx, name); err != nil {
		return Drained{}, err
	}
	out, m := Drained{}, &load.Events{}
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	last := ""
	wg.Go(func() {
		m.WatchMoves(watching, func(ctx context.Context) (string, error) {
			host, err := o.lab.primary(ctx, name)
			if err == nil && host != last {
				j.Note(name, "host %q in place of %q", host, last)
				last = host
			}
			return host, err
		})
	})
	pods := make([]string, replicas)
	for i := range pods {
		pods[i] = fmt.Sprintf("%s-ingress-%d", o.ingress(), i)
		j.Follow(watching, Namespace, pods[i])
	}
	defer wg.Wait()
	defer stop()
	t, err := o.connect(ctx, name, drainRate, deletions)
	if err != nil {
		return out, err
	}
	failed := pause(ctx, settled)
	for i := 0; i < deletions && failed == nil; i++ {
		began, pod := time.Now(), pods[i%replicas]
		j.Note(name, "deleting %s", pod)
		failed = o.lab.rollPod(ctx, Namespace, pod)
		out.Longest = max(out.Longest, time.Since(began))
		if failed == nil {
			j.Note(name, "%s is ready", pod)
			j.Follow(watching, Namespace, pod)
			failed = o.hosting(ctx, name)
		}
		out.Deletions++
		o.lab.progress("drain: %s: deletion %d of %d after %s", o.name, out.Deletions, deletions, time.Since(began).Round(time.Second))
	}
	if failed == nil {
		failed = pause(ctx, settled)
	}
	stopped := t.Stop()
	r, err := t.Wait()
	err = errors.Join(err, complete(r))
	stop()
	wg.Wait()
	out.Requests, out.Moves = r.Requests, m.Count()
	out.Lost, out.Cut = m.Split(r.Failures)
	return out, errors.Join(failed, stopped, err, m.Err())
}

// Untouched sends new connections to a service whose pods stay, until the returned function is called,
// which returns the lost requests. They show outages of the machine, of the tailnet and of the client,
// which no deletion causes.
func (o *Ours) Untouched(ctx context.Context, deletions int) (func() ([]load.Failure, error), error) {
	name := o.name + "-untouched"
	if err := o.ApplyIngress(ctx, name); err != nil {
		return nil, err
	}
	if err := o.hosting(ctx, name); err != nil {
		return nil, err
	}
	t, err := o.connect(ctx, name, untouchedRate, deletions)
	if err != nil {
		return nil, err
	}
	return func() ([]load.Failure, error) {
		stopped := t.Stop()
		r, err := t.Wait()
		return r.Failures, errors.Join(stopped, err, complete(r))
	}, nil
}

// complete returns an error if a report omits failures, so that no number of lost requests is too small.
func complete(r load.Report) error {
	if omitted := r.Lost - len(r.Failures); omitted > 0 {
		return errors.Errorf("the report omits %d failures", omitted)
	}
	return nil
}

// connect opens new connections to a service from the tailnet, at a rate per second, for no longer than
// this many deletions may take.
func (o *Ours) connect(ctx context.Context, name string, rate, deletions int) (*load.Process, error) {
	return o.lab.start(ctx, "tailnet", o.IngressURL(name), "--new-connections", "--workers="+strconv.Itoa(drainWorkers),
		"--rate="+strconv.Itoa(rate), "--timeout="+drainTimeout.String(), "--for="+(time.Duration(deletions)*upLimit).String())
}

// hosting waits until all machines host a service.
func (o *Ours) hosting(ctx context.Context, name string) error {
	kube, err := o.lab.client()
	if err != nil {
		return err
	}
	kind := gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleServicesKind)
	return o.lab.untilObject(ctx, kube, kind, types.NamespacedName{Namespace: Namespace, Name: name}, func(u *unstructured.Unstructured) error {
		healthy, _, err := unstructured.NestedInt64(u.Object, "status", "healthyBackends")
		if err == nil && healthy != replicas {
			err = errors.Errorf("%d of %d machines host the service", healthy, replicas)
		}
		return err
	})
}
