// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"fmt"
	"strings"
)

// proxies describes a TailscaleEndpoints. Its label app has its name.
type proxies struct {
	name           string
	connectionType string
	networking     string
	replicas       int

	// targets are names of endpoints that lead to target, a name of the tailnet.
	targets []string
	target  string
}

func (p proxies) manifest() string {
	var out strings.Builder
	fmt.Fprintf(&out, `---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata:
  name: %[1]s
  namespace: %[2]s
  labels: {app: %[1]s}
spec:
  tailnet: bench
  proxy:
    replicas: %[3]d
    connectionType: %[4]s
    networking: %[5]s
`, p.name, Namespace, p.replicas, p.connectionType, p.networking)
	for i, name := range p.targets {
		if i == 0 {
			out.WriteString("  endpoints:\n")
		}
		fmt.Fprintf(&out, "  - name: %s\n    tailscaleFQDN: %s\n    port: %d\n", name, p.target, targetPort)
	}
	return out.String()
}

// Ports of a service.
const (
	portHTTP = "tcp:80"

	// portsAll has the kernel forward all packets, which Kernel networking does with listed ports only
	// if the backend has an address of each family.
	portsAll = "do-not-validate"
)

// hosted returns a TailscaleServices that the proxies of a name host. Its label app has their name.
func hosted(name, proxies, ports string, labels ...string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata:
  name: %[1]s
  namespace: %[2]s
  labels: {%[4]s}
spec:
  selector:
    matchLabels: {app: %[3]s}
  vipService:
    ports: [%[5]q]
    tags: [tag:k8s]
  backends:
  - name: web
    port: 80
`, name, Namespace, proxies, strings.Join(append([]string{"app: " + proxies}, labels...), ", "), ports)
}
