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
	// patternsExample has patterns of its own, for both directions.
	patternsExample = "examples/gateway-patterns.yaml"
	patterned       = "company"

	// routesExample has a route called shop, and shares each route.
	routesExample = "examples/shared-routes.yaml"
	sharingRoutes = "each"
)

// hasOwnPatterns asks for what is found, and for what is behind the Gateway's route, by
// hosts and paths that a person thought of.
func hasOwnPatterns(t *testing.T) {
	const found, published = "api-users.internal.company.com", "web.internal.company.com"
	cert, key := certificate(t, published)
	kubectl(t, "create", "secret", "tls", "internal-company-com", "-n", namespace, "--cert="+cert, "--key="+key)
	// What the example leaves out is there, too.
	for _, service := range []string{"svc:api-users", "svc:api-users-test"} {
		tailnetOne.serve(t, "users", service)
	}
	kubectl(t, "apply", "-f", patternsExample)
	eventually(t, patience, "what was discovered answers", func() string {
		return greets(t, patterned, found, "/custom-api/api-users/")
	})
	u := strings.Replace(tailnetOne.url(t, patterned), "http:", "https:", 1) + "inbound/"
	eventually(t, patience, published+" in the tailnet", func() string {
		if said, err := labOutput(t, "tailnet-curl", "--timeout=10s", "--cacert="+cert, "--host="+published, u); err != nil || !strings.HasPrefix(said, "web-") {
			return "answered by " + said
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
	if left := generatedFor(t, patterned); left != "" {
		t.Errorf("routes are left: %s", left)
	}
}

// hostRoute is one more route of a Gateway that shares each. It is for its own Tailscale
// Service's name.
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

// sharesRoutes has each route of a Gateway be a Tailscale Service, as long as it is
// there.
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
	t.Logf("it has none %s after it was deleted", time.Since(began).Round(100*time.Millisecond))
	answeredAt(t, tailnetOne.url(t, "route-shop-"+namespace), "web", patience)
	kubectl(t, "delete", "-f", routesExample, "--timeout=3m")
	goneFrom(t, namespace, sharingRoutes, "route-shop")
}
