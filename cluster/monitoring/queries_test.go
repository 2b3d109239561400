// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"

	"github.com/tailscale-gateway/tailscale-gateway/extension/eds"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/observe"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A rule of a group.
type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type groups struct {
	Groups []group `json:"groups"`
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var g groups
	if err := yaml.UnmarshalStrict(Rules, &g); err != nil {
		t.Fatal(err)
	}
	var out []rule
	for _, of := range g.Groups {
		out = append(out, of.Rules...)
	}
	return out
}

// panelQueries returns the queries of the dashboard, by panel.
func panelQueries(t *testing.T) map[string][]string {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string `json:"title"`
			Type    string `json:"type"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(Dashboard, &d); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, p := range d.Panels {
		for _, of := range p.Targets {
			// Grafana fills in a duration.
			out[p.Title] = append(out[p.Title], strings.ReplaceAll(of.Expr, "$__rate_interval", "5m"))
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
	}
	return out
}

// known returns the names of all metrics of our processes.
func known() map[string]bool {
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		for _, c := range []prometheus.Collector{
			observe.NewObserver(observe.Options{}, eds.NewServer(nil, eds.Options{}).Metrics(), index.NewStore().Metrics()).Metrics(),
			gateways.NewController(nil, nil, gateways.Options{}).Metrics(),
			tailscale.NewMetrics(), tailscale.NewPool(tailscale.Options{}), agent.NewMetrics().Collector(),
			health.NewProber(index.NewStore(), health.Options{}).Metrics(),
			managed.NewMRMetricRecorder(), statemetrics.NewMRStateMetrics(),
		} {
			c.Describe(ch)
		}
	}()
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	out := map[string]bool{}
	for d := range ch {
		n := name.FindStringSubmatch(d.String())[1]
		// A description does not report whether it is a histogram's.
		for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
			out[n+suffix] = true
		}
	}
	return out
}

// metric finds names of metrics of ours, and of Crossplane's.
var metric = regexp.MustCompile(`\b(?:tailscale_gateway|crossplane)_[a-z_]+\b`)

// TestMetricsExist checks that the metrics of alerts and panels exist, because a query of an
// unknown metric is empty for ever.
func TestMetricsExist(t *testing.T) {
	known := known()
	queries := panelQueries(t)
	for _, r := range alerts(t) {
		queries[r.Alert] = append(queries[r.Alert], r.Expr)
	}
	for _, title := range slices.Sorted(maps.Keys(queries)) {
		for _, q := range queries[title] {
			names := metric.FindAllString(q, -1)
			if len(names) == 0 {
				t.Errorf("%q is over no metric of ours: %s", title, q)
			}
			for _, n := range names {
				if !known[n] {
					t.Errorf("%q is over %s, which no process of ours has", title, n)
				}
			}
		}
	}
}

func TestAlertMessages(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range alerts(t) {
		if seen[r.Alert] {
			t.Errorf("%s is there twice", r.Alert)
		}
		seen[r.Alert] = true
		if r.Labels["severity"] != "warning" && r.Labels["severity"] != "critical" {
			t.Errorf("%s has severity %q", r.Alert, r.Labels["severity"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s does not say what is wrong and where to look", r.Alert)
		}
	}
	if len(seen) == 0 {
		t.Error("there are no alerts")
	}
}
