// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// firstManifest has a Service with its pods, and the TailscaleServices that publishes it. NAME is the name
// of all of them, and of their namespace.
const firstManifest = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: NAME
  namespace: NAME
spec:
  selector:
    matchLabels: {app: NAME}
  template:
    metadata:
      labels: {app: NAME}
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
  name: NAME
  namespace: NAME
spec:
  selector: {app: NAME}
  ports:
  - port: 80
    targetPort: 8080
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata:
  name: NAME
  namespace: NAME
spec:
  endpointTemplate:
    tailnet: bench
`

// First publishes a Service in a new namespace, with its own proxies, and returns the time until its first
// response in the tailnet. It deletes the namespace.
func (o *Ours) First(ctx context.Context, name string) (d time.Duration, err error) {
	if _, err := o.lab.kubectl(ctx, "create", "namespace", name); err != nil {
		return 0, err
	}
	defer func() {
		_, removed := o.lab.kubectl(ctx, "delete", "namespace", name, "--timeout="+upLimit.String())
		err = errors.Join(err, removed)
	}()
	return o.lab.first(ctx, "tailnet", o.IngressURL(name), func() error {
		return o.lab.apply(ctx, strings.ReplaceAll(firstManifest, "NAME", name))
	})
}
