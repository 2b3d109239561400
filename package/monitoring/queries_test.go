// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// A rule of a group.
type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	Duration    string            `json:"for,omitempty"`
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
	if err := yaml.UnmarshalStrict(charts.Rules, &g); err != nil {
		t.Fatal(err)
	}
	var out []rule
	for _, ruleGroup := range g.Groups {
		out = append(out, ruleGroup.Rules...)
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
	if err := json.Unmarshal(charts.Dashboard, &d); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			// Grafana fills in a duration.
			out[p.Title] = append(out[p.Title], strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
	}
	return out
}

// reference is the page that lists all metrics, which TestPage of hack/metricsgen compares with
// the code.
const reference = "../../docs/reference/metrics.md"

// known returns the names of all series of our processes.
func known(t *testing.T) map[string]bool {
	t.Helper()
	b, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(b), -1) {
		if row[2] != "histogram" {
			out[row[1]] = true
			continue
		}
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			out[row[1]+suffix] = true
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s lists no metrics", reference)
	}
	return out
}

// metric finds names of metrics of ours, and of Crossplane's.
var metric = regexp.MustCompile(`\b(?:tailscale_gateway|crossplane)_[a-z_]+\b`)

// TestMetricsExist checks that the metrics of alerts and panels exist, because a query of an
// unknown metric is empty for ever.
func TestMetricsExist(t *testing.T) {
	documented := known(t)
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
				if !documented[n] {
					t.Errorf("%q is over %s, which the reference does not list", title, n)
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
