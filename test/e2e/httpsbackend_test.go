// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

const (
	// forgeExample forwards requests to a backend that speaks TLS.
	forgeExample = "examples/https-backend.yaml"
	forge        = "forge"

	// forgeBackend is the backend of the example. It answers with the name of its pod at /hostname, and
	// with a header of the request at /header.
	forgeBackend = `apiVersion: apps/v1
kind: Deployment
metadata: {name: forge, namespace: ` + namespace + `}
spec:
  selector: {matchLabels: {app: forge-backend}}
  template:
    metadata: {labels: {app: forge-backend}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 2
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: forge
        image: registry.k8s.io/e2e-test-images/agnhost:2.53
        args: [netexec, --http-port=8443, --tls-cert-file=/tls/tls.crt, --tls-private-key-file=/tls/tls.key]
        readinessProbe: {httpGet: {path: /healthz, port: 8443, scheme: HTTPS}}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: tls, mountPath: /tls}]
      volumes: [{name: tls, secret: {secretName: forge-tls}}]
---
apiVersion: v1
kind: Service
metadata: {name: forge, namespace: ` + namespace + `}
spec:
  selector: {app: forge-backend}
  ports: [{port: 443, targetPort: 8443}]
`
)

// makesForge creates the backend of the example, and a ConfigMap with its authority.
func makesForge(t *testing.T) {
	t.Helper()
	cert, key := certificate(t, "forge."+namespace+".svc")
	kubectl(t, "create", "secret", "tls", "forge-tls", "-n", namespace, "--cert="+cert, "--key="+key)
	kubectl(t, "create", "configmap", "forge-ca", "-n", namespace, "--from-file=ca.crt="+cert)
	apply(t, forgeBackend)
}

// verifiesBackend serves a backend that speaks TLS, with the identity of the client, and refuses it once
// its authority is another one.
func verifiesBackend(t *testing.T) {
	makesForge(t)
	kubectl(t, "apply", "-f", forgeExample)
	u := strings.TrimSuffix(vipURL(t, forge), "/")
	answeredAt(t, u+"/hostname", forge, patience)
	device, err := curl(t, u+"/header?key=Tailscale-Device-Name")
	if err != nil || !strings.HasSuffix(device, "."+domain(t)) {
		t.Errorf("want the name of a device of the tailnet, got %q, %v", device, err)
	}

	other, _ := certificate(t, "forge."+namespace+".svc")
	kubectl(t, "delete", "configmap", "forge-ca", "-n", namespace)
	conditionOf(t, "tailscaleservices", forge, "Accepted", "False", "InvalidTLS", patience)
	answeredAt(t, u+"/hostname", forge, patience)
	kubectl(t, "create", "configmap", "forge-ca", "-n", namespace, "--from-file=ca.crt="+other)
	conditionOf(t, "tailscaleservices", forge, "Accepted", "True", "Accepted", patience)
	eventually(t, patience, "refusal of "+u, func() string {
		if response, err := curl(t, u+"/hostname"); err == nil && strings.HasPrefix(response, forge+"-") {
			return "the response is " + response
		}
		return ""
	})

	kubectl(t, "delete", "-f", forgeExample, "--timeout=3m")
	kubectl(t, "delete", "deployment/forge", "service/forge", "secret/forge-tls", "configmap/forge-ca", "-n", namespace)
	goneFrom(t, namespace, forge)
}
