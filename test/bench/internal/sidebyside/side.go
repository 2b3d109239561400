// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"
	"time"
)

const (
	// Namespace of all objects of the comparison.
	Namespace = "bench"

	// replicas of each set of proxies, on each side.
	replicas = 2

	// upLimit is how long each step may take on a busy machine.
	upLimit = 10 * time.Minute

	// targetPort is the HTTP port of the clients of the lab's tailnet.
	targetPort = 8080
)

// A Side is one of the two projects that are compared.
type Side interface {
	// Name returns the name of the side.
	Name() string

	// Install installs the controllers and proxies, and waits until the proxies are up.
	Install(ctx context.Context) error

	// ApplyIngress exposes the backend in the tailnet under each of the names, at once.
	ApplyIngress(ctx context.Context, names ...string) error

	// ApplyEgress exposes the lab's tailnet client in the cluster under a name.
	ApplyEgress(ctx context.Context, name string) error

	// IngressURL returns the URL of an ingress in the tailnet, EgressURL that of an egress in the
	// cluster.
	IngressURL(name string) string
	EgressURL(name string) string

	// Controllers and Proxies return selectors of pods: namespace and label selector.
	Controllers() [][2]string
	Proxies() [2]string

	// IngressPod returns one pod that serves ingress.
	IngressPod() (namespace, name string)
}

// backend returns a Service and its pods, which answer with their names. All have one name, and the pods
// listen on port 8080.
func backend(namespace, name string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[2]s
  namespace: %[1]s
spec:
  replicas: %[3]d
  selector:
    matchLabels: {app: %[2]s}
  template:
    metadata:
      labels: {app: %[2]s}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 2
      containers:
      - name: web
        image: registry.k8s.io/e2e-test-images/agnhost:2.53
        args: [serve-hostname, --port=8080]
        readinessProbe:
          httpGet: {path: /, port: 8080}
---
apiVersion: v1
kind: Service
metadata:
  name: %[2]s
  namespace: %[1]s
spec:
  selector: {app: %[2]s}
  ports:
  - port: 80
    targetPort: 8080
`, namespace, name, replicas)
}

// Prepare creates the backends of both sides.
func (l *Lab) Prepare(ctx context.Context) error {
	if err := l.apply(ctx, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+Namespace+"}\n---\n"+backend(Namespace, "web", 2)); err != nil {
		return err
	}
	return l.until(ctx, "the backend", func(ctx context.Context) error {
		return l.condition(ctx, "deployment/web", "Available")
	})
}

// target returns the name in the tailnet of the target of all egress.
func (l *Lab) target() string { return "client." + l.env["TAILNET_DOMAIN"] }

func (l *Lab) ingressURL(name string) string {
	return fmt.Sprintf("http://%s.%s/", name, l.env["TAILNET_DOMAIN"])
}

func egressURL(name string) string {
	return fmt.Sprintf("http://%s.%s.svc.cluster.local:%d/hostname", name, Namespace, targetPort)
}
