// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// systemNamespace is the namespace of Envoy Gateway's own Secrets.
const systemNamespace = "envoy-gateway-system"

// CRDs returns the folders of the CRDs that an API server needs for Envoy Gateway: Gateway API's
// and Envoy Gateway's own.
func CRDs(ctx context.Context) ([]string, error) {
	dir, err := apiserver.ModuleDir(ctx, "github.com/envoyproxy/gateway")
	if err != nil {
		return nil, err
	}
	crds := filepath.Join(dir, "charts", "gateway-helm", "charts", "crds", "crds")
	return []string{crds, filepath.Join(crds, "generated")}, nil
}

// useAPIServer prepares the API server for Envoy Gateway, as its chart would, and makes the API
// server reachable from the namespace at its outside address.
func (g *Gateway) useAPIServer(ctx context.Context, o Options, program string) error {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(o.Kubeconfig)
	if err != nil {
		return errors.Wrap(err, "cannot read kubeconfig")
	}
	kubeconfig := g.path("kubeconfig")
	if err := os.WriteFile(kubeconfig, o.Kubeconfig, 0o600); err != nil {
		return errors.Wrap(err, "cannot write kubeconfig")
	}
	kube, err := client.New(cfg, client.Options{})
	if err != nil {
		return errors.Wrap(err, "cannot create a client")
	}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}}
	manifest, err := class(o)
	if err != nil {
		return err
	}
	for _, doc := range bytes.Split(manifest, []byte("---\n")) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, u); err != nil {
			return errors.Wrap(err, "cannot decode GatewayClass")
		}
		objects = append(objects, u)
	}
	for _, obj := range objects {
		if err := kube.Create(ctx, obj); client.IgnoreAlreadyExists(err) != nil {
			return errors.Wrapf(err, "cannot create %q", obj.GetName())
		}
	}
	cmd := exec.CommandContext(ctx, program, "certgen", "--disable-topology-injector")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Wrapf(err, "cannot create Secrets: %s", strings.TrimSpace(string(out)))
	}
	at, err := url.Parse(cfg.Host)
	if err != nil {
		return errors.Wrap(err, "cannot find the API server")
	}
	return g.lead(ctx, at.Host)
}

// lead forwards connections in the namespace to the same address outside of it, until the Gateway
// is stopped.
func (g *Gateway) lead(ctx context.Context, addr string) error {
	l, err := g.Listen(ctx, "tcp", addr)
	if err != nil {
		return errors.Wrapf(err, "cannot forward connections to %s", addr)
	}
	g.passages = append(g.passages, NewPassage(ctx, l, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}))
	return nil
}
