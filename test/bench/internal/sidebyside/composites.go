// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// big is a TailscaleEndpoints of many replicas, and the prefix of the names of its services.
const big = "big"

// Counters are Crossplane's counters since its start.
type Counters struct {
	// Opens is how often a circuit breaker opened.
	Opens float64

	// Calls is how often a function was called.
	Calls float64
}

// Counters returns Crossplane's counters from its metrics.
func (l *Lab) Counters(ctx context.Context) (Counters, error) {
	pod, err := l.kubectl(ctx, "get", "pods", "--namespace=crossplane-system", "--selector=app=crossplane", "-o=jsonpath={.items[0].metadata.name}")
	if err != nil {
		return Counters{}, err
	}
	metrics, err := l.kubectl(ctx, "get", "--raw", "/api/v1/namespaces/crossplane-system/pods/"+pod+":8080/proxy/metrics")
	if err != nil {
		return Counters{}, err
	}
	return ParseCounters(metrics)
}

// ParseCounters returns the counters in Crossplane's metrics.
func ParseCounters(metrics string) (Counters, error) {
	c := Counters{}
	for line := range strings.Lines(metrics) {
		name, _, _ := strings.Cut(line, "{")
		var counter *float64
		switch name {
		case "circuit_breaker_opens_total":
			counter = &c.Opens
		case "function_run_function_request_total":
			counter = &c.Calls
		default:
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
		if err != nil {
			return c, errors.Wrapf(err, "cannot read %s", name)
		}
		*counter += v
	}
	return c, nil
}

// runtimeConfig is the DeploymentRuntimeConfig of the function, and functionPods selects its pods.
const (
	runtimeConfig = "deploymentruntimeconfigs.pkg.crossplane.io/tailscale-gateway-function"
	functionPods  = "pkg.crossplane.io/function"
)

// FunctionReplicas scales the function, and waits until all of its pods are ready and no others
// exist.
func (l *Lab) FunctionReplicas(ctx context.Context, n int) error {
	patch := fmt.Sprintf(`{"spec":{"deploymentTemplate":{"spec":{"replicas":%d}}}}`, n)
	if _, err := l.kubectl(ctx, "patch", runtimeConfig, "--type=merge", "--patch="+patch); err != nil {
		return err
	}
	// Crossplane v2.4.0 does not notice a change of a runtime configuration that an ImageConfig names,
	// as for packages that are dependencies (packages.enabled=false of the chart), before it reconciles
	// the revision for another reason: EnqueuePackageRevisionsForRuntimeConfig
	// (internal/controller/pkg/runtime/watch.go) compares only spec.runtimeConfigRef.
	if _, err := l.kubectl(ctx, "annotate", "functionrevisions.pkg.crossplane.io", "--all", "--overwrite", fmt.Sprintf("bench.example.org/replicas=%d", n)); err != nil {
		return err
	}
	return l.until(ctx, fmt.Sprintf("%d pods of the function", n), func(ctx context.Context) error {
		out, err := l.kubectl(ctx, "get", "pods", "--namespace=crossplane-system", "--selector="+functionPods,
			`-o=jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}`)
		if err != nil {
			return err
		}
		if conditions := strings.Fields(out); len(conditions) != n || strings.Count(out, "True") != n {
			return errors.Errorf("pods are ready: %v", conditions)
		}
		return nil
	})
}

// Big creates this many proxies for both directions, and waits until all are ready and no others
// exist.
func (o *Ours) Big(ctx context.Context, replicas int) error {
	p := o.proxies(big, "bidirectional", "target")
	p.replicas = replicas
	if err := o.lab.apply(ctx, p.manifest()); err != nil {
		return err
	}
	want := fmt.Sprintf("%[1]d/%[1]d True True", 2*replicas)
	return o.lab.until(ctx, fmt.Sprintf("%d proxies", 2*replicas), func(ctx context.Context) error {
		status, err := o.lab.kubectl(ctx, "get", "--namespace="+Namespace, "tailscaleendpoints/"+big,
			`-o=jsonpath={.status.healthyEndpoints}/{.status.totalEndpoints} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="EgressReady")].status}`)
		if err != nil {
			return err
		}
		machines, err := o.lab.kubectl(ctx, "get", "--namespace="+Namespace, "machines", "--selector=gateway.tailscale.com/endpoints="+big, "-o=name")
		if err != nil {
			return err
		}
		if n := len(strings.Fields(machines)); status != want || n != 2*replicas {
			return errors.Errorf("%s, %d machines", status, n)
		}
		return nil
	})
}

// BigServices creates services on the proxies of Big, and waits until all are hosted.
func (o *Ours) BigServices(ctx context.Context, n int) error {
	var out strings.Builder
	for i := range n {
		out.WriteString(hosted(fmt.Sprintf("%s-%d", big, i), big, portHTTP))
	}
	if err := o.lab.apply(ctx, out.String()); err != nil {
		return err
	}
	return o.lab.until(ctx, fmt.Sprintf("%d services", n), func(ctx context.Context) error {
		conditions, err := o.lab.kubectl(ctx, "get", "--namespace="+Namespace, "tailscaleservices", "--selector=app="+big,
			`-o=jsonpath={.items[*].status.conditions[?(@.type=="Advertised")].status}`)
		if err != nil {
			return err
		}
		if hosted := strings.Count(conditions, "True"); hosted != n {
			return errors.Errorf("%d services are hosted", hosted)
		}
		return nil
	})
}

// Quiet waits until no function has been called for a while.
func (l *Lab) Quiet(ctx context.Context, d time.Duration) error {
	last, lastChange := -1.0, time.Now()
	return l.until(ctx, "functions at rest", func(ctx context.Context) error {
		c, err := l.Counters(ctx)
		if err != nil {
			return err
		}
		if c.Calls != last {
			last, lastChange = c.Calls, time.Now()
		}
		if time.Since(lastChange) < d {
			return errors.Errorf("%g calls, the last %s ago", last, time.Since(lastChange).Round(time.Second))
		}
		return nil
	})
}
