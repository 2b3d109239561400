// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// stranded is a service of the quickstart's machines.
const stranded = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: stranded, namespace: ` + namespace + `}
spec:
  selector: {matchLabels: {app: web}}
  vipService: {ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [{name: web, port: 80}]
`

// switchTailnet changes the behaviour of the simulated tailnet, and keeps everything else.
func switchTailnet(t *testing.T, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, tailnetOne.env(t, "TAILNET_API")+"/sim/switches", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("cannot change the tailnet: %v", err)
	}
	defer rsp.Body.Close()
	if rsp.StatusCode != http.StatusOK {
		t.Fatalf("cannot change the tailnet: %s", rsp.Status)
	}
}

// regainsPrimary leaves a service without a primary host (tailscale/tailscale#19666) until one of
// its machines advertises it again.
func regainsPrimary(t *testing.T) {
	conditions := func(want string) time.Duration {
		t.Helper()
		return eventually(t, patience, want, func() string {
			got := jsonpath(t, "tailscaleservices", "stranded", `{.status.conditions[?(@.type=="Routed")].status} {.status.conditions[?(@.type=="Ready")].status}`)
			if got != want {
				remedy := jsonpath(t, "vipservices", "stranded", "{.status.atProvider.routingRemedy}")
				return "Routed and Ready are " + got + ", the last remedy is " + remedy
			}
			return ""
		})
	}
	apply(t, stranded)
	conditions("True True")
	// Ready comes after control has moved the addresses.
	if host, err := tailnetState(t).primary("stranded"); err != nil || host == "" {
		t.Fatalf("the service is Ready and has no primary host: %v", err)
	}
	answered(t, "stranded", "web", patience)

	switchTailnet(t, `{"noPrimary": {"services": ["svc:stranded"], "remedy": "advertisement"}}`)
	defer switchTailnet(t, `{"noPrimary": {"services": [], "remedy": ""}}`)
	t.Logf("not routed after %s", conditions("False False").Round(time.Second))
	t.Logf("routed again after %s", conditions("True True").Round(time.Second))
	answered(t, "stranded", "web", patience)
	for _, reason := range []string{"NoPrimaryHost", "AdvertisingForPrimary", "HostPrimary"} {
		eventually(t, patience, "event "+reason, func() string {
			if kubectl(t, "get", "events", "-n", namespace, "--field-selector=reason="+reason+",involvedObject.name=stranded", "-o=name") == "" {
				return "it has not happened"
			}
			return ""
		})
	}
	kubectl(t, "delete", "tailscaleservices", "stranded", "-n", namespace, "--timeout=3m")
	goneFrom(t, namespace, "stranded")
}
