// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// appNamespace is the namespace of examples/pipeline.
const appNamespace = "tailscale-example"

// appBackend is the backend of the example's App.
const appBackend = `apiVersion: v1
kind: Namespace
metadata:
  name: tailscale-example
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop-web, namespace: tailscale-example}
spec:
  selector: {matchLabels: {app: shop-web}}
  template:
    metadata: {labels: {app: shop-web}}
    spec:
      terminationGracePeriodSeconds: 2
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: registry.k8s.io/e2e-test-images/agnhost:2.53
        args: [serve-hostname, --port=8080]
        readinessProbe: {httpGet: {path: /, port: 8080}}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Service
metadata: {name: shop-web, namespace: tailscale-example}
spec:
  selector: {app: shop-web}
  ports: [{port: 8080}]
`

// runsPipeline creates an App of a platform team with the team's Composition.
func runsPipeline(t *testing.T) {
	u := fromLab(t, "TAILNET_API_IN_CLUSTER")
	apply(t, appBackend)
	apply(t, fmt.Sprintf(tailnetManifest, "example", "tailscale-oauth", "-", u, u))
	kubectl(t, "apply", "-f", "examples/pipeline/definition.yaml", "-f", "examples/pipeline/composition.yaml")
	kubectl(t, "wait", "compositeresourcedefinition/apps.platform.example.org", "--for=condition=Established", "--timeout=60s")
	kubectl(t, "apply", "-f", "examples/pipeline/app.yaml")
	kubectl(t, "wait", "apps.platform.example.org/shop", "-n", appNamespace, "--for=condition=Ready", "--timeout=3m")
	var dns string
	eventually(t, patience, "DNS name in status.tailscale.service of the App", func() string {
		dns = jsonpathIn(t, appNamespace, "apps.platform.example.org", "shop", "{.status.tailscale.service.vipServiceStatus.dnsName}")
		if !strings.HasPrefix(dns, "shop.") {
			return fmt.Sprintf("the name is %q", dns)
		}
		return ""
	})
	eventually(t, patience, "answer of "+dns, func() string {
		got, err := curl(t, "http://"+dns+"/")
		if err != nil || !strings.HasPrefix(got, "shop-web-") {
			return fmt.Sprintf("%q, %v", got, err)
		}
		return ""
	})
	eventually(t, patience, "three proxies of the App", func() string {
		n := tailnetState(t).hosts(appNamespace + "-shop-")
		got := jsonpathIn(t, appNamespace, "apps.platform.example.org", "shop", "{.status.tailscale.proxies.healthyEndpoints}/{.status.tailscale.proxies.totalEndpoints}")
		if n != 3 || got != "3/3" {
			return fmt.Sprintf("%d in the tailnet, status.tailscale.proxies counts %s", n, got)
		}
		return ""
	})

	kubectl(t, "delete", "deployment,service", "shop-web", "-n", appNamespace, "--wait=false")
	kubectl(t, "delete", "-f", "examples/pipeline/app.yaml", "--timeout=3m")
	goneFrom(t, appNamespace, "shop")
	kubectl(t, "delete", "-f", "examples/pipeline/composition.yaml", "-f", "examples/pipeline/definition.yaml", "--timeout=60s")
	kubectl(t, "delete", "tailscaletailnets", "example", "--timeout=60s")
	kubectl(t, "delete", "namespace", appNamespace, "--timeout=2m")
}
