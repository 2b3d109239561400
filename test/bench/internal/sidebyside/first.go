// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// published is a TailscaleServices for a Service of a name, in a namespace of that name.
const published = `---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata:
  name: %[1]s
  namespace: %[1]s
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
		return o.lab.apply(ctx, backend(name, name, 1)+fmt.Sprintf(published, name))
	})
}
