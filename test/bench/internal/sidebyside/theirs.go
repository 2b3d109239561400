// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"
	"tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Names of the operator's objects.
const (
	theirsIngress = "theirs-in"
	theirsEgress  = "theirs-out"

	operatorNamespace = "tailscale"

	// theirsTag is the tag of the operator's services, whose hosts the policy approves.
	theirsTag = "tag:web"
)

// Theirs is Tailscale's own operator.
type Theirs struct{ lab *Lab }

// NewTheirs returns the operator's side.
func NewTheirs(l *Lab) *Theirs { return &Theirs{lab: l} }

// Name returns the name of the side.
func (o *Theirs) Name() string { return "theirs" }

// Install installs the operator with its own chart, and two ProxyGroups.
func (o *Theirs) Install(ctx context.Context) error {
	out, err := o.lab.lab(ctx, "operator")
	if err != nil {
		return err
	}
	env, err := exports(out)
	if err != nil {
		return err
	}
	if _, err := o.lab.kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(env["OPERATOR_DEPLOY"], "crds")); err != nil {
		return err
	}
	if err := o.approve(ctx); err != nil {
		return err
	}
	if err := o.install(ctx, env); err != nil {
		return err
	}
	err = o.lab.apply(ctx, fmt.Sprintf(`apiVersion: tailscale.com/v1alpha1
kind: ProxyGroup
metadata:
  name: %[1]s
spec:
  type: ingress
  replicas: %[3]d
---
apiVersion: tailscale.com/v1alpha1
kind: ProxyGroup
metadata:
  name: %[2]s
spec:
  type: egress
  replicas: %[3]d
`, theirsIngress, theirsEgress, replicas))
	if err != nil {
		return err
	}
	return o.lab.until(ctx, "the operator's proxies", func(ctx context.Context) error {
		return errors.Join(
			o.lab.condition(ctx, "proxygroup/"+theirsIngress, "ProxyGroupReady"),
			o.lab.condition(ctx, "proxygroup/"+theirsEgress, "ProxyGroupReady"))
	})
}

// approve lets the tailnet's policy approve the hosts of the operator's services. Unlike this
// project, the operator does not approve them itself, and its end-to-end tests run with such an
// entry (tailscale.com v1.102.5 cmd/k8s-operator/e2e/acl.hujson).
func (o *Theirs) approve(ctx context.Context) error {
	secret, err := os.ReadFile(o.lab.env["TAILNET_CLIENT_SECRET_FILE"])
	if err != nil {
		return errors.Wrap(err, "cannot read the OAuth client's secret")
	}
	api, err := url.Parse(o.lab.env["TAILNET_API"])
	if err != nil {
		return errors.Wrap(err, "cannot parse the URL of the tailnet's API")
	}
	policy := (&tailscale.Client{BaseURL: api, Auth: &tailscale.OAuth{ClientID: o.lab.env["TAILNET_CLIENT_ID"], ClientSecret: strings.TrimSpace(string(secret))}}).PolicyFile()
	raw, err := policy.Raw(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot get the policy")
	}
	text, err := hujson.Parse([]byte(raw.HuJSON))
	if err != nil {
		return errors.Wrap(err, "cannot parse the policy")
	}
	patch := fmt.Sprintf(`[{"op": "add", "path": "/autoApprovers", "value": {"services": {%q: ["tag:k8s"]}}}]`, theirsTag)
	if err := text.Patch([]byte(patch)); err != nil {
		return errors.Wrap(err, "cannot change the policy")
	}
	return errors.Wrap(policy.Set(ctx, text.String(), raw.ETag), "cannot set the policy")
}

// install installs the chart. The module's copy of the chart lacks its CRDs.
func (o *Theirs) install(ctx context.Context, env map[string]string) error {
	secret, err := os.ReadFile(o.lab.env["TAILNET_CLIENT_SECRET_FILE"])
	if err != nil {
		return errors.Wrap(err, "cannot read the OAuth client's secret")
	}
	dir, err := os.MkdirTemp("", "operator-values")
	if err != nil {
		return errors.Wrap(err, "cannot create a folder for values")
	}
	defer os.RemoveAll(dir) // The folder is temporary.
	image := func(ref string) string {
		repository, tag, _ := strings.Cut(ref, ":")
		return fmt.Sprintf("{repository: %q, tag: %q, pullPolicy: IfNotPresent}", repository, tag)
	}
	values := fmt.Sprintf(`oauth: {clientId: %q, clientSecret: %q}
loginServer: %q
installCRDs: false
operatorConfig:
  image: %s
  extraEnv:
  - {name: TS_NO_LOGS_NO_SUPPORT, value: "true"}
proxyConfig:
  image: %s
  firewallMode: nftables
`, o.lab.env["TAILNET_CLIENT_ID"], string(secret), o.lab.env["TAILNET_API_IN_CLUSTER"], image(env["OPERATOR_IMAGE"]), image(env["OPERATOR_PROXY_IMAGE"]))
	file := filepath.Join(dir, "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		return errors.Wrap(err, "cannot write values")
	}
	_, err = o.lab.lab(ctx, "helm", "upgrade", "--install", "tailscale-operator", filepath.Join(env["OPERATOR_DEPLOY"], "chart"),
		"--namespace="+operatorNamespace, "--create-namespace", "--values="+file, "--wait", "--timeout="+upLimit.String())
	return err
}

// ApplyIngress creates Services of the operator's load balancer class.
func (o *Theirs) ApplyIngress(ctx context.Context, names ...string) error {
	return o.lab.applyAll(ctx, names, o.ingressManifest)
}

func (o *Theirs) ingressManifest(name string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata:
  name: %[1]s
  namespace: %[2]s
  annotations:
    tailscale.com/proxy-group: %[3]s
    tailscale.com/hostname: %[1]s
    tailscale.com/tags: %[4]s
spec:
  type: LoadBalancer
  loadBalancerClass: tailscale
  allocateLoadBalancerNodePorts: false
  selector: {app: web}
  ports:
  - port: 80
    targetPort: 8080
`, name, Namespace, theirsIngress, theirsTag)
}

// ApplyEgress creates an ExternalName Service, which the operator completes.
func (o *Theirs) ApplyEgress(ctx context.Context, name string) error {
	return o.lab.apply(ctx, fmt.Sprintf(`apiVersion: v1
kind: Service
metadata:
  name: %[1]s
  namespace: %[2]s
  annotations:
    tailscale.com/proxy-group: %[3]s
    tailscale.com/tailnet-fqdn: %[4]s
spec:
  type: ExternalName
  externalName: placeholder
  ports:
  - name: http
    port: %[5]d
    protocol: TCP
`, name, Namespace, theirsEgress, o.lab.target(), targetPort))
}

// IngressURL returns the URL with the service's name.
func (o *Theirs) IngressURL(name string) string { return o.lab.ingressURL(name) }

// EgressURL returns the URL of the user's Service.
func (o *Theirs) EgressURL(name string) string { return egressURL(name) }

// Controllers returns the selector of the operator.
func (o *Theirs) Controllers() [][2]string { return [][2]string{{operatorNamespace, "app=operator"}} }

// Proxies returns the selector of the proxies of both groups.
func (o *Theirs) Proxies() [2]string {
	return [2]string{operatorNamespace, "tailscale.com/parent-resource-type=proxygroup"}
}

// IngressPod returns the first ingress pod.
func (o *Theirs) IngressPod() (namespace, name string) {
	return operatorNamespace, theirsIngress + "-0"
}
