// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// patternsExample sets patterns for both directions.
	patternsExample = "examples/gateway-patterns.yaml"
	patterned       = "company"

	// routesExample has a route called shop, and shares each route.
	routesExample = "examples/shared-routes.yaml"
	sharingRoutes = "each"
)

// appliesPatterns requests a discovered service and the Service behind the Gateway's route by the
// hosts and paths of the example's patterns.
func appliesPatterns(t *testing.T) {
	const found, published = "api-users.internal.company.com", "web.internal.company.com"
	cert, key := certificate(t, published)
	kubectl(t, "create", "secret", "tls", "internal-company-com", "-n", namespace, "--cert="+cert, "--key="+key)
	// The example does not select the second service.
	for _, service := range []string{"svc:api-users", "svc:api-users-test"} {
		tailnetOne.serve(t, "users", service)
	}
	kubectl(t, "apply", "-f", patternsExample)
	eventually(t, patience, "the discovered service answers", func() string {
		return greets(t, patterned, found, "/custom-api/api-users/")
	})
	u := strings.Replace(tailnetOne.url(t, patterned), "http:", "https:", 1) + "inbound/"
	eventually(t, patience, published+" in the tailnet", func() string {
		if response, err := labOutput(t, "tailnet-curl", "--timeout=10s", "--cacert="+cert, "--host="+published, u); err != nil || !strings.HasPrefix(response, "web-") {
			return "the response is " + response
		}
		return ""
	})
	conditionOf(t, "tailscalegateways", patterned, "RoutesReady", "True", "RoutesAccepted", patience)
	eventually(t, patience, "generated routes in the status", func() string {
		got := strings.Fields(jsonpath(t, "tailscalegateways", patterned, "{.status.generatedRoutes[*].service}"))
		if slices.Sort(got); !slices.Equal(got, []string{"api-users", "web"}) {
			return fmt.Sprintf("they are for %v", got)
		}
		return ""
	})
	for _, service := range []string{"svc:api-users", "svc:api-users-test"} {
		tailnetOne.withdraw(t, "users", service)
	}
	kubectl(t, "delete", "-f", patternsExample, "--timeout=3m")
	kubectl(t, "delete", "secret", "internal-company-com", "-n", namespace)
	goneFrom(t, namespace, patterned)
	if remaining := generatedFor(t, patterned); remaining != "" {
		t.Errorf("routes are left: %s", remaining)
	}
}

// hostRoute is another route of a Gateway that shares each route. Its host is the name of its
// Tailscale Service.
const hostRoute = `apiVersion: v1
kind: Service
metadata: {name: shelf, namespace: quickstart}
spec:
  selector: {app: prober}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shelf, namespace: quickstart}
spec:
  parentRefs: [{name: ` + sharingRoutes + `}]
  hostnames: [%s]
  rules:
  - backendRefs: [{name: shelf, port: 80}]
`

// sharesRoutes checks that each route of a Gateway is a Tailscale Service while the route exists.
func sharesRoutes(t *testing.T) {
	kubectl(t, "apply", "-f", routesExample)
	answeredAt(t, tailnetOne.url(t, "route-shop-"+namespace), "web", patience)
	u := tailnetOne.url(t, "route-shelf-"+namespace)
	apply(t, fmt.Sprintf(hostRoute, strings.Trim(strings.TrimPrefix(u, "http:"), "/")))
	took := proberAt(t, u+"hostname")
	t.Logf("an added route has its service after %s", took.Round(100*time.Millisecond))
	kubectl(t, "delete", "httproute,service", "shelf", "-n", namespace)
	began := time.Now()
	goneFrom(t, namespace, "route-shelf")
	t.Logf("its service is gone %s after the route was deleted", time.Since(began).Round(100*time.Millisecond))
	answeredAt(t, tailnetOne.url(t, "route-shop-"+namespace), "web", patience)
	kubectl(t, "delete", "-f", routesExample, "--timeout=3m")
	goneFrom(t, namespace, sharingRoutes, "route-shop")
}
