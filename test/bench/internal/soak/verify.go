// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
)

const (
	// freshLimit is how long Envoy may take to get all resources after a start.
	freshLimit = 20 * time.Second

	// healthyLimit is how long endpoints may take to count as healthy: 20 probes at the longest
	// interval, twice.
	healthyLimit = 5 * time.Minute
)

// right waits until each rule of each route is answered by its target, and returns the rules that
// are not.
func (w *Environment) right(ctx context.Context) (wrong []string) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c := w.gateway.Client()
	defer c.CloseIdleConnections()
	for _, r := range w.model.routes {
		for _, t := range r.rules {
			if err := until(ctx, func(ctx context.Context) error { return w.probe(ctx, c, r, t) }); err != nil {
				wrong = append(wrong, err.Error())
			}
		}
	}
	return wrong
}

// healthy waits until no replica considers an endpoint unhealthy. Lists have unhealthy endpoints
// last, and a score remembers failures for 20 probes (extension/health), so after an outage, or
// while probes are late on a busy machine, lists differ from those after a start.
func (w *Environment) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthyLimit)
	defer cancel()
	return until(ctx, func(ctx context.Context) error {
		for _, r := range w.replicas {
			b, err := r.get(ctx, "/endpoints", "application/json")
			if err != nil {
				return err
			}
			var targets []health.Target
			if err := json.Unmarshal(b, &targets); err != nil {
				return errors.Wrapf(err, "cannot read the endpoints of replica %d", r.index)
			}
			for _, t := range targets {
				for _, e := range t.Endpoints {
					if !e.IsHealthy {
						return errors.Errorf("replica %d considers endpoint %s of %s unhealthy: score %d, %s", r.index, e.Address, t.Cluster, e.HealthScore, e.Reason)
					}
				}
			}
		}
		return nil
	})
}

// sameAsFresh compares Envoy's resources with those after a fresh start of all processes. It
// returns the differences by name.
func (w *Environment) sameAsFresh(ctx context.Context) (map[string]string, error) {
	if err := w.healthy(ctx); err != nil {
		return nil, err
	}
	long, err := w.config(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.restart(ctx); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, freshLimit)
	defer cancel()
	var out map[string]string
	// Endpoints arrive after their cluster.
	err = until(limited, func(ctx context.Context) error {
		fresh, err := w.config(ctx)
		if err != nil {
			return err
		}
		out = differences(fresh, long)
		if len(out) > 0 {
			return errors.Errorf("%d resources differ", len(out))
		}
		return nil
	})
	if err != nil && out == nil {
		return nil, err
	}
	return out, nil
}

// differences returns the differences by name.
func differences(want, actual map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{want, actual} {
		for name := range m {
			if diff := cmp.Diff(want[name], actual[name]); diff != "" {
				out[name] = diff
			}
		}
	}
	return out
}

// restart ends the replicas, Envoy Gateway and Envoy, and starts them again.
func (w *Environment) restart(ctx context.Context) error {
	if err := w.gateway.KillEnvoy(); err != nil {
		return err
	}
	for _, r := range w.replicas {
		if err := r.running().Kill(); err != nil {
			return err
		}
		if err := r.start(ctx); err != nil {
			return err
		}
	}
	if err := w.gateway.Restart(ctx); err != nil {
		return err
	}
	if err := w.gateway.StartEnvoy(ctx); err != nil {
		return err
	}
	if err := w.answers(ctx); err != nil {
		return err
	}
	if wrong := w.right(ctx); len(wrong) > 0 {
		return errors.Errorf("%d rules have no response after a start, the first: %s", len(wrong), wrong[0])
	}
	return nil
}

// config returns the content of each of Envoy's resources, without their time of arrival and the
// health of endpoints.
func (w *Environment) config(ctx context.Context) (map[string]string, error) {
	b, err := w.gateway.Admin(ctx, "/config_dump?include_eds")
	if err != nil {
		return nil, err
	}
	var dump struct {
		Configs []map[string]any `json:"configs"`
	}
	if err := json.Unmarshal(b, &dump); err != nil {
		return nil, errors.Wrap(err, "cannot read Envoy's resources")
	}
	out := map[string]string{}
	for _, c := range dump.Configs {
		kind, _ := c["@type"].(string)
		if strings.Contains(kind, "Bootstrap") || strings.Contains(kind, "Secrets") {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(c)) {
			list, ok := c[key].([]any)
			if !ok {
				continue
			}
			for _, resource := range list {
				plain := settled(resource)
				b, err := json.Marshal(plain)
				if err != nil {
					return nil, errors.Wrap(err, "cannot encode Envoy's resources")
				}
				out[key+" "+nameOf(plain)] = string(b)
			}
		}
	}
	return out, nil
}

// settled returns v without the fields that differ from run to run.
func settled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, value := range v {
			switch k {
			case "last_updated", "version_info", "health_status", "client_status":
			default:
				out[k] = settled(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = settled(v[i])
		}
		return out
	}
	return v
}

// nameOf returns the name of the resource in an entry of a dump.
func nameOf(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	for _, k := range []string{"name", "cluster_name"} {
		if n, ok := m[k].(string); ok {
			return n
		}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if nested, ok := m[k].(map[string]any); ok {
			return nameOf(nested)
		}
	}
	return ""
}
