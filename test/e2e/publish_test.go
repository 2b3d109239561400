// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"
)

// publishesServices publishes the Services of examples/publish/service.yaml, once the chart grants the permissions to
// the provider that runs: one by its class, and one by its label.
func publishesServices(t *testing.T) {
	const classed, labelled = "classed", "labelled"
	if out, err := tryRun(t, "", "helm", "upgrade", "tailscale-gateway", "package/charts/tailscale-gateway", "-n", "crossplane-system", "--reset-then-reuse-values", "--set=provider.publishServices=true", "--wait"); err != nil {
		t.Fatalf("cannot upgrade the chart: %v\n%s", err, out)
	}
	// The namespace of the quickstart has an object with the name of the example's first Service.
	apply(t, strings.NewReplacer("namespace: tailscale-example", "namespace: "+namespace, "name: web\n", "name: "+classed+"\n", "name: api\n", "name: "+labelled+"\n").
		Replace(readFile(t, "examples/publish/service.yaml")))
	name := namespace + "-" + classed + "." + domain(t)
	answeredAt(t, "http://"+name+"/hostname", "web", patience)
	answeredAt(t, "http://store."+domain(t)+":8080/hostname", "web", patience)
	eventually(t, patience, "the status of the Service of the class", func() string {
		got := jsonpath(t, "services", classed, "{range .status.loadBalancer.ingress[*]}{.hostname}{.ipMode},{end}")
		if want := name + ",Proxy,"; !strings.HasPrefix(got, want) {
			return "it is " + got
		}
		return ""
	})
	if got := jsonpath(t, "services", labelled, "{.status.loadBalancer}"); strings.Contains(got, "ingress") {
		t.Errorf("A Service without the class has a status: %s", got)
	}

	// A label is as short a way out, and a deletion needs nothing else.
	kubectl(t, "label", "service", labelled, "-n", namespace, "gateway.tailscale.com/publish-")
	goneFrom(t, namespace, "store")
	answeredAt(t, "http://"+name+"/hostname", "web", time.Minute)
	kubectl(t, "delete", "service", classed, labelled, "-n", namespace, "--timeout=2m")
	goneFrom(t, namespace, classed, labelled, namespace+"-"+classed, "published")
}
