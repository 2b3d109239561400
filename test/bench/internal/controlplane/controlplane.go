// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/credentials"
	"github.com/tailscale-gateway/tailscale-gateway/package/configuration"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

const (
	// system is the namespace of Crossplane.
	system = "crossplane-system"

	// function is the name of the function in Compositions.
	function = "tailscale-gateway-function-tailscale"

	// startLimit is how long all processes may take to start.
	startLimit = 5 * time.Minute
)

// Addresses at which the processes serve profiles.
const (
	ProviderPprof   = "127.0.0.1:6062"
	CrossplanePprof = "127.0.0.1:6063"
)

// A ControlPlane is a set of processes. The caller must call Close.
type ControlPlane struct {
	env   *harness.Env
	sim   *harness.Tailnet
	audit *audit
	dir   string
	size  Size

	// Provider, Function and Crossplane are the processes.
	Provider, Function, Crossplane *harness.Provider

	metrics string
	stop    context.CancelFunc
	stopped chan struct{}
}

// Start starts all processes, and waits until Crossplane serves our kinds. The folder bin has the programs
// provider and function.
func Start(ctx context.Context, bin, logs string, size Size) (*ControlPlane, error) {
	dir, err := os.MkdirTemp("", "tailscale-gateway-controlplane-")
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a folder")
	}
	c := &ControlPlane{dir: dir, size: size}
	if err := c.start(ctx, bin, logs); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, bin, logs string) error {
	root, err := apiserver.Root()
	if err != nil {
		return err
	}
	crossplane, err := apiserver.Program(ctx, root, "crossplane-core", "TEST_ASSET_CROSSPLANE_CORE")
	if err != nil {
		return err
	}
	crds, err := crds(ctx, root)
	if err != nil {
		return err
	}
	if c.audit, err = newAudit(c.dir); err != nil {
		return err
	}
	if c.env, err = harness.NewEnvWith(ctx, bin, logs, apiserver.Options{CRDs: crds, APIServerFlags: c.audit.flags()}); err != nil {
		return err
	}
	if c.sim, err = harness.NewTailnet(); err != nil {
		return err
	}
	url, err := c.sim.Serve(nil)
	if err != nil {
		return err
	}
	if err := c.run(ctx, bin, crossplane); err != nil {
		return err
	}
	if err := c.configure(ctx, url); err != nil {
		return err
	}
	c.standIn(ctx)
	return nil
}

// crds returns the folders of CRDs beside the provider's.
func crds(ctx context.Context, root string) ([]string, error) {
	crossplane, err := apiserver.CrossplaneCRDs(ctx, root)
	if err != nil {
		return nil, err
	}
	gateways, err := apiserver.GatewayAPICRDs(ctx)
	return []string{crossplane, gateways}, err
}

// run starts the processes.
func (c *ControlPlane) run(ctx context.Context, bin, crossplane string) error {
	if err := c.env.Kube.Create(ctx, object("v1", "Namespace", "", system, nil)); err != nil {
		return errors.Wrap(err, "cannot create Crossplane's namespace")
	}
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	if err := c.certificates(); err != nil {
		return err
	}
	if c.Function, err = c.env.StartProgram(filepath.Join(bin, "function"), "function",
		"--address=127.0.0.1:"+ports[0], "--metrics-address=", "--tls-certs-dir="+filepath.Join(c.dir, "function")); err != nil {
		return err
	}
	if err := c.installFunction(ctx, "localhost:"+ports[0]); err != nil {
		return err
	}
	c.metrics = "http://127.0.0.1:" + ports[1] + "/metrics"
	if c.Crossplane, err = c.env.StartProgram(crossplane, "crossplane", "core", "start",
		"--namespace="+system, "--enable-webhooks=false", "--package-runtime=External", "--xpkg-cache-dir="+filepath.Join(c.dir, "xpkg"),
		"--tls-client-certs-dir="+filepath.Join(c.dir, "crossplane"), "--metrics-port="+ports[1], "--health-probe-port="+ports[2], "--profile="+CrossplanePprof); err != nil {
		return err
	}
	return nil
}

// certificates writes those with which Crossplane and the function recognize each other.
func (c *ControlPlane) certificates() error {
	at := time.Now()
	a, err := credentials.NewAuthority("function", at)
	if err != nil {
		return err
	}
	server, err := a.Server([]string{"localhost"}, at)
	if err != nil {
		return err
	}
	peer, err := a.Client("crossplane", at)
	if err != nil {
		return err
	}
	for folder, p := range map[string]credentials.Pair{"function": server, "crossplane": peer} {
		if err := os.MkdirAll(filepath.Join(c.dir, folder), 0o700); err != nil {
			return errors.Wrap(err, "cannot create a folder of certificates")
		}
		for name, b := range map[string][]byte{corev1.TLSCertKey: p.Cert, corev1.TLSPrivateKeyKey: p.Key, "ca.crt": a.Cert} {
			if err := os.WriteFile(filepath.Join(c.dir, folder, name), b, 0o600); err != nil {
				return errors.Wrap(err, "cannot write a certificate")
			}
		}
	}
	return nil
}

// installFunction creates the revision that shows Crossplane where the function serves. It is paused, so
// that Crossplane requests no package.
func (c *ControlPlane) installFunction(ctx context.Context, endpoint string) error {
	r := object("pkg.crossplane.io/v1", "FunctionRevision", "", function+"-1", map[string]any{
		"spec": map[string]any{"desiredState": "Active", "image": "example.org/function:v0.0.0", "revision": int64(1)},
	})
	r.SetLabels(map[string]string{"pkg.crossplane.io/package": function})
	r.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
	if err := c.env.Kube.Create(ctx, r); err != nil {
		return errors.Wrap(err, "cannot create the function's revision")
	}
	original := r.DeepCopy()
	r.Object["status"] = map[string]any{"endpoint": endpoint, "capabilities": []any{"composition"}}
	return errors.Wrap(c.env.Kube.Status().Patch(ctx, r, client.MergeFrom(original)), "cannot write the function's endpoint")
}

// configure installs the configuration and a tailnet, and waits until our kinds are served.
func (c *ControlPlane) configure(ctx context.Context, url string) error {
	files, err := configuration.Files()
	if err != nil {
		return err
	}
	for _, f := range slices.Sorted(maps.Keys(files)) {
		if path.Dir(f) == "." {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(files[f], u); err != nil {
			return errors.Wrapf(err, "cannot decode %s", f)
		}
		if err := c.env.Kube.Create(ctx, u); err != nil {
			return errors.Wrapf(err, "cannot create %s", u.GetName())
		}
	}
	for _, kind := range append([]string{gatewayv1alpha1.TailscaleTailnetKind, gatewayv1alpha1.TailscaleProxyGroupKind}, kinds...) {
		err := c.eventually(ctx, startLimit, "kind "+kind, func(ctx context.Context) error {
			l := &unstructured.UnstructuredList{}
			l.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(kind))
			return c.env.Kube.List(ctx, l)
		})
		if err != nil {
			return err
		}
	}
	// It ends while kinds are missing, and Kubernetes would start it again.
	if c.Provider, err = c.env.StartProvider("provider", "provider", harness.AllowTailnets, "--namespace="+system, "--pprof-address="+ProviderPprof); err != nil {
		return err
	}
	objects := []*unstructured.Unstructured{
		object("v1", "Secret", system, "tailscale-oauth", map[string]any{"stringData": harness.Credential()}),
		object(gatewayv1alpha1.SchemeGroupVersion.String(), gatewayv1alpha1.TailscaleTailnetKind, "", tailnet, map[string]any{"spec": map[string]any{
			"oauthSecretName": "tailscale-oauth", "oauthSecretNamespace": system, "apiURL": url, "controlURL": url, "tags": []any{tag},
		}}),
	}
	for i := range namespaces {
		objects = append(objects, object("v1", "Namespace", "", namespace(i), nil))
	}
	if err := c.env.Create(ctx, 1, objects); err != nil {
		return err
	}
	// The API server does not stop while a client watches.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t, err := c.env.Track(ctx, gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleTailnetKind))
	if err != nil {
		return err
	}
	return c.eventually(ctx, startLimit, "the tailnet", func(context.Context) error { return t.AllReady(1) })
}

// eventually waits until check returns no error, or a process ends.
func (c *ControlPlane) eventually(ctx context.Context, limit time.Duration, description string, check func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := harness.Eventually(ctx, limit, description, func(ctx context.Context) error {
		if err := c.running(); err != nil {
			cancel(err)
			return err
		}
		return check(ctx)
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// running returns an error if a process has ended.
func (c *ControlPlane) running() error {
	var errs []error
	for _, p := range []*harness.Provider{c.Provider, c.Function, c.Crossplane} {
		if p != nil {
			errs = append(errs, p.Running())
		}
	}
	return errors.Join(errs...)
}

// Close stops all processes.
func (c *ControlPlane) Close() error {
	var errs []error
	if c.stop != nil {
		c.stop()
		<-c.stopped
	}
	for _, p := range []*harness.Provider{c.Provider, c.Crossplane, c.Function} {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	if c.env != nil {
		errs = append(errs, c.env.Close())
	}
	if c.sim != nil {
		errs = append(errs, c.sim.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// object returns an object with the name and further fields.
func object(apiVersion, kind, namespace, name string, more map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(o.Object, more)
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// freePorts returns free ports of the loopback. No other process takes ports then.
func freePorts(ctx context.Context, n int) ([]string, error) {
	var out []string
	for range n {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Wrap(err, "cannot find a free port")
		}
		defer l.Close() // Together, so that they differ.
		a, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("unexpected address %s", l.Addr())
		}
		out = append(out, strconv.Itoa(a.Port))
	}
	return out, nil
}
