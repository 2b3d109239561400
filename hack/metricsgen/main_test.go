// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/test/retry"
)

// TestPage checks that the committed page is the one that the code generates.
func TestPage(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run make generate: -want page, +got page:\n%s", diff)
	}
}

func TestScanDir(t *testing.T) {
	const imports = "package p\n\nimport prom \"" + client + "\"\n\n"
	cases := map[string]struct {
		reason string
		source string
		want   map[string]string
		fails  string
	}{
		"Constructors": {
			reason: "The name of a constructor shows the type, and constants of the package are resolved.",
			source: imports + `const sub = "sub"
var a, b = prom.NewCounterVec(prom.CounterOpts{Namespace: "ns", Subsystem: sub, Name: "a_total"}, nil), prom.NewHistogram(prom.HistogramOpts{Name: "b"})
func f() { _ = prom.NewGaugeFunc(prom.GaugeOpts{Name: "c"}, nil) }`,
			want: map[string]string{"ns_sub_a_total": counter, "b": histogram, "c": gauge},
		},
		"Descs": {
			reason: "A Desc has the type of the metrics that are created with it, directly or by a function.",
			source: imports + `var (
	a = prom.NewDesc("a", "", nil, nil)
	b = prom.NewDesc("b", "", nil, nil)
	c = prom.NewDesc("c_total", "", nil, nil)
)
func f(ch chan<- prom.Metric) {
	set := func(d *prom.Desc, v float64) { ch <- prom.MustNewConstMetric(d, prom.GaugeValue, v) }
	set(a, 1)
	ch <- prom.MustNewConstHistogram(b, 1, 1, nil)
	ch <- prom.MustNewConstMetric(c, prom.CounterValue, 1)
}`,
			want: map[string]string{"a": gauge, "b": histogram, "c_total": counter},
		},
		"UnusedDesc": {
			reason: "A Desc whose type nothing shows is an error.",
			source: imports + `var a = prom.NewDesc("a", "", nil, nil)`,
			fails:  `no call shows the type of metric "a"`,
		},
		"ComputedName": {
			reason: "A name that cannot be read is an error, and is not left out.",
			source: imports + `func f(n string) { _ = prom.NewGauge(prom.GaugeOpts{Name: n}) }`,
			fails:  "the name of a metric must be a literal",
		},
		"ComputedOptions": {
			reason: "Options that cannot be read are an error.",
			source: imports + `func f(o prom.GaugeOpts) { _ = prom.NewGauge(o) }`,
			fails:  "the options of NewGauge must be a literal",
		},
		"NoMetrics": {
			reason: "A file that does not import the client creates no metrics.",
			source: "package p\n\nvar prom struct{ NewGauge func() }\n\nfunc f() { prom.NewGauge() }",
			want:   map[string]string{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(tc.source), 0o600); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			err := scanDir(dir, got)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.fails, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	proc := process{name: "P", collectors: []prometheus.Collector{prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "a_total", Help: "Things | \"parts\""}, []string{"x", "y"})}}
	cases := map[string]struct {
		reason  string
		process process
		types   map[string]string
		want    []metric
		fails   string
	}{
		"Listed": {
			reason:  "Name, help and labels are those of the collector, and the type is the source's.",
			process: proc,
			types:   map[string]string{prefix + "a_total": counter},
			want:    []metric{{name: prefix + "a_total", kind: counter, help: "Things | \"parts\"", labels: []string{"x", "y"}}},
		},
		"NotRegistered": {
			reason:  "A metric that the source creates and no process registers is an error.",
			process: proc,
			types:   map[string]string{prefix + "a_total": counter, prefix + "new": gauge},
			fails:   "the source creates tailscale_gateway_new",
		},
		"NoType": {
			reason:  "A registered metric that the source does not create is an error.",
			process: proc,
			fails:   "the source shows no type of tailscale_gateway_a_total",
		},
		"UnknownLibrary": {
			reason:  "A metric with an unknown prefix is an error.",
			process: process{collectors: []prometheus.Collector{prometheus.NewGauge(prometheus.GaugeOpts{Name: "foreign_things"})}},
			fails:   "foreign_things has an unknown prefix",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := describe([]process{tc.process}, tc.types)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.fails, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got[0].metrics, cmp.AllowUnexported(metric{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFunctionMetrics compares the metrics of a running function with those that the page lists
// for it, because the server registers them only when it starts.
func TestFunctionMetrics(t *testing.T) {
	failed := make(chan error, 1)
	go func() {
		failed <- (&compose.Server{Network: "tcp", Address: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0", Insecure: true}).Serve(fnv1.UnimplementedFunctionRunnerServiceServer{})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var names []string
	if err := retry.Until(ctx, 10*time.Millisecond, func(context.Context) error {
		select {
		case err := <-failed:
			t.Fatalf("the function ended: %v", err)
		default:
		}
		families, err := prometheus.DefaultGatherer.Gather()
		if err != nil {
			return err
		}
		names = names[:0]
		for _, f := range families {
			names = append(names, f.GetName())
		}
		if !slices.Contains(names, "grpc_server_started_total") {
			return errors.Errorf("the function has only the metrics %v", names)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ps := processes()
	fn := ps[slices.IndexFunc(ps, func(p process) bool { return p.name == "Function" })]
	ss, err := describe([]process{fn}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, n := range names {
		lib, err := library(n)
		if err != nil {
			t.Error(err)
		}
		got[lib] = true
	}
	want := map[string]bool{}
	for _, l := range ss[0].libraries {
		want[l] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-listed libraries, +libraries of the running function:\n%s", diff)
	}
}
