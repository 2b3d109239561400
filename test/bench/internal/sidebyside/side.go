// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"
	"time"
)

const (
	// Namespace of all that is made for the comparison.
	Namespace = "bench"

	// replicas of each set of proxies, on each side.
	replicas = 2

	// upLimit is how long anything may take to come up on a busy machine.
	upLimit = 10 * time.Minute

	// targetPort is where clients of the lab's tailnet answer HTTP.
	targetPort = 8080
)

// A Side is one of those that are compared.
type Side interface {
	// Name of the side.
	Name() string

	// Install what runs all the time, and wait until proxies are up.
	Install(ctx context.Context) error

	// ApplyIngress makes the backend reachable in the tailnet under a name.
	ApplyIngress(ctx context.Context, name string) error

	// ApplyEgress makes the lab's tailnet client reachable in the cluster under a
	// name.
	ApplyEgress(ctx context.Context, name string) error

	// IngressURL is where an ingress answers in the tailnet, EgressURL where an
	// egress answers in the cluster.
	IngressURL(name string) string
	EgressURL(name string) string

	// Controllers and Proxies select pods: namespace and label selector.
	Controllers() [][2]string
	Proxies() [2]string

	// IngressPod is one pod that serves ingress.
	IngressPod() (namespace, name string)
}

// backend that all ingress leads to. It prints its pod's name.
const backend = `apiVersion: v1
kind: Namespace
metadata:
  name: bench
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: bench
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
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
  name: web
  namespace: bench
spec:
  selector: {app: web}
  ports:
  - port: 80
    targetPort: 8080
`

// Prepare makes what both sides lead to.
func (l *Lab) Prepare(ctx context.Context) error {
	if err := l.apply(ctx, backend); err != nil {
		return err
	}
	return l.until(ctx, "the backend", func(ctx context.Context) error {
		return l.condition(ctx, "deployment/web", "Available")
	})
}

// target of all egress, by its name in the tailnet.
func (l *Lab) target() string { return "client." + l.env["TAILNET_DOMAIN"] }

func (l *Lab) ingressURL(name string) string {
	return fmt.Sprintf("http://%s.%s/", name, l.env["TAILNET_DOMAIN"])
}

func egressURL(name string) string {
	return fmt.Sprintf("http://%s.%s.svc.cluster.local:%d/hostname", name, Namespace, targetPort)
}
