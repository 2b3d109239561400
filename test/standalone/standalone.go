// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

const (
	// startLimit is how long Envoy Gateway may take until it has read its files.
	startLimit = time.Minute
	// stopLimit is how long it may take to stop, with its Envoys.
	stopLimit = 20 * time.Second
	// poll is the pause between two looks.
	poll = 50 * time.Millisecond
	// requestLimit is how long one request of Gets may take.
	requestLimit = 5 * time.Second
)

// Options of a Gateway. The zero value is usable: Envoy Gateway without an
// extension.
type Options struct {
	// Extension is the path of the unix socket on which the extension answers
	// hooks. It must listen before the first Gateway is written: Envoy Gateway
	// waits for it without end.
	Extension string
	// ExtensionAddress is where the extension answers hooks instead, such as that of a
	// Service.
	ExtensionAddress netip.AddrPort
	// ExtensionSecret has, in tls.crt and tls.key, what Envoy Gateway presents to the
	// extension, and after it in tls.crt what the extension's certificate chains to. Without
	// it hooks are called in clear. It needs Kubeconfig: files have no Secrets.
	ExtensionSecret types.NamespacedName
	// Backends and Policies are the extension's kinds: those that routes may name
	// in backendRefs, and those that attach to Gateways by targetRefs.
	Backends, Policies []schema.GroupVersionKind
	// Kubeconfig of an API server, on this machine's loopback, to read all objects
	// from instead of files, and to write their status to. It must have the CRDs
	// of CRDs and those of the extension's kinds. Services and EndpointSlices count
	// then, and what Write wrote does not.
	Kubeconfig []byte
	// Authorities, in PEM, are those that Envoy finds in place of this machine's own. They
	// are for objects from an API server, and not for OwnEnvoy.
	Authorities []byte
	// Bootstrap is YAML that is merged into Envoy's bootstrap.
	Bootstrap string
	// OwnEnvoy has Envoy be nobody's child, as in a cluster: StartEnvoy starts it and
	// KillEnvoy ends it, and it outlives a restart of Envoy Gateway. It is for one
	// Gateway object.
	OwnEnvoy bool
	// Merge has one Envoy serve all Gateways.
	Merge bool
	// Flags are Envoy Gateway's runtime flags that are on.
	Flags []string
	// Log receives what Envoy Gateway and Envoy print. It is dropped by default.
	Log io.Writer
}

// A Gateway is a running Envoy Gateway, with one Envoy for each Gateway object, or for
// all of them.
type Gateway struct {
	layout

	namespace *namespace
	passages  []*Passage
	process   *apiserver.Process
	// command starts process.
	command func() (*apiserver.Process, error)
	// proxy is what OwnEnvoy makes of Envoy.
	proxy *ownEnvoy
}

// Start Envoy Gateway and wait until it has read its files. What was started is
// stopped again when it fails, and dies with this process.
func Start(ctx context.Context, o Options) (*Gateway, error) {
	dir, err := os.MkdirTemp("", "tailscale-gateway-standalone-")
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a folder for Envoy Gateway")
	}
	g := &Gateway{layout: layout{dir: dir}}
	if err := g.start(ctx, o); err != nil {
		return nil, errors.Join(err, g.Stop())
	}
	return g, nil
}

func (g *Gateway) start(ctx context.Context, o Options) error {
	root, err := apiserver.Root()
	if err != nil {
		return err
	}
	program, err := apiserver.Program(ctx, root, "envoy-gateway", "TEST_ASSET_ENVOY_GATEWAY")
	if err != nil {
		return err
	}
	envoy, err := apiserver.Program(ctx, root, "envoy", "TEST_ASSET_ENVOY")
	if err != nil {
		return err
	}
	if err := g.prepare(ctx, o, program, envoy); err != nil {
		return err
	}
	if g.namespace, err = newNamespace(Backends, Tailnet); err != nil {
		return err
	}
	p := apiserver.ProcessOptions{Dir: g.dir, Log: o.Log, Enter: g.namespace.enter}
	if o.Kubeconfig != nil {
		if err := g.useAPIServer(ctx, o, program); err != nil {
			return err
		}
		p.Env = []string{"KUBECONFIG=" + g.path("kubeconfig")}
		files := map[string]string{}
		if o.Authorities != nil {
			files[systemAuthorities] = g.path("authorities.crt")
			if err := os.WriteFile(files[systemAuthorities], o.Authorities, 0o600); err != nil {
				return errors.Wrap(err, "cannot write authorities")
			}
		}
		p.Enter = func() error {
			return errors.Join(g.namespace.enter(), withCerts(g.path("root"), g.path("config", "certs", "envoy-gateway"), files))
		}
	}
	g.command = func() (*apiserver.Process, error) {
		return apiserver.StartProcess(p, program, "server", "--config-path", g.path("envoy-gateway.yaml"))
	}
	return g.run(ctx)
}

// run Envoy Gateway, and wait until it has read its files.
func (g *Gateway) run(ctx context.Context) error {
	var err error
	if g.process, err = g.command(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return errors.Wrap(g.Answers(ctx, "http://127.0.0.1:8081/readyz", ""), "cannot start Envoy Gateway")
}

// Restart Envoy Gateway as after a crash, and with it Envoys that are its own. Nobody may be in Until or
// Answers meanwhile.
func (g *Gateway) Restart(ctx context.Context) error {
	if err := g.process.Kill(); err != nil {
		return err
	}
	return g.run(ctx)
}

// prepare writes all that Envoy Gateway reads at its start.
func (g *Gateway) prepare(ctx context.Context, o Options, program, envoy string) error {
	bin := g.path("data", "envoy-versions", envoyVersion, "bin")
	for _, d := range []string{g.path("manifests"), g.path("config"), g.path("state"), g.path("run"), g.path("root"), bin} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return errors.Wrap(err, "cannot make Envoy Gateway's folders")
		}
	}
	if err := g.putEnvoy(o, envoy, filepath.Join(bin, "envoy")); err != nil {
		return errors.Wrap(err, "cannot put Envoy where Envoy Gateway looks for it")
	}
	config, err := g.config(o)
	if err != nil {
		return err
	}
	if err := os.WriteFile(g.path("envoy-gateway.yaml"), config, 0o600); err != nil {
		return errors.Wrap(err, "cannot write configuration")
	}
	manifest, err := class(o)
	if err != nil {
		return err
	}
	if err := g.Write("class", string(manifest)); err != nil {
		return err
	}
	said, err := exec.CommandContext(ctx, program, "certgen", "--local", "--config-home", g.path("config")).CombinedOutput()
	return errors.Wrapf(err, "cannot make certificates: %s", strings.TrimSpace(string(said)))
}

// Run starts a program in the namespace, for instance the extension: Envoy reaches
// what it listens on. Who starts it stops it.
func (g *Gateway) Run(log io.Writer, program string, args ...string) (*apiserver.Process, error) {
	return apiserver.StartProcess(apiserver.ProcessOptions{Dir: g.dir, Log: log, Enter: g.namespace.enter}, program, args...)
}

// Write manifests under a name, in place of those that were written under it.
// Envoy Gateway takes them up by itself; what an object does not say of its
// namespace is default.
func (g *Gateway) Write(name, manifests string) error {
	// Names with a dot are not looked at, and a rename is never seen halfway.
	tmp := g.path("manifests", "."+name)
	if err := os.WriteFile(tmp, []byte(manifests), 0o600); err != nil {
		return errors.Wrapf(err, "cannot write manifests %q", name)
	}
	return errors.Wrapf(os.Rename(tmp, g.path("manifests", name+".yaml")), "cannot write manifests %q", name)
}

// Remove what was written under a name.
func (g *Gateway) Remove(name string) error {
	return errors.Wrapf(os.Remove(g.path("manifests", name+".yaml")), "cannot remove manifests %q", name)
}

// Client asks in the namespace, where addresses are literal.
func (g *Gateway) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: g.Dial}}
}

// Until calls check until it returns no error, or ctx or Envoy Gateway ends: then
// its last error is the result.
func (g *Gateway) Until(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-g.process.Exited():
			return errors.Wrap(errors.Join(err, g.process.Err()), "Envoy Gateway ended")
		case <-tick.C:
		}
	}
}

// Answers waits until a GET of url answers 200. host is the Host header; empty
// for the URL's own.
func (g *Gateway) Answers(ctx context.Context, url, host string) error {
	return g.Until(ctx, func(ctx context.Context) error { return g.Gets(ctx, url, host, http.StatusOK) })
}

// Gets asks for url once, by a connection of its own, and returns an error unless
// the answer has the status.
func (g *Gateway) Gets(ctx context.Context, url, host string, want int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return errors.Wrapf(err, "cannot make request for %q", url)
	}
	req.Host = host
	c := g.Client()
	c.Timeout = requestLimit
	defer c.CloseIdleConnections()
	rsp, err := c.Do(req)
	if err != nil {
		return errors.Wrap(err, "cannot get")
	}
	if rsp.StatusCode != want {
		err = errors.Errorf("%q answers %s, not %d", url, rsp.Status, want)
	}
	return errors.Join(err, rsp.Body.Close())
}

// Admin asks Envoy's admin interface for a path, for instance
// /config_dump?include_eds. It is an error unless there is exactly one Envoy: one
// Gateway object whose Envoy is up.
func (g *Gateway) Admin(ctx context.Context, path string) ([]byte, error) {
	found, err := filepath.Glob(g.path("run", "*", "admin-address.txt"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot look for Envoy")
	}
	if len(found) != 1 {
		return nil, errors.Errorf("cannot ask Envoy: there are %d, not one", len(found))
	}
	addr, err := os.ReadFile(found[0])
	if err != nil {
		return nil, errors.Wrap(err, "cannot read Envoy's address")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s%s", addr, path), nil)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot make request for %q", path)
	}
	c := g.Client()
	defer c.CloseIdleConnections()
	rsp, err := c.Do(req)
	if err != nil {
		return nil, errors.Wrap(err, "cannot ask Envoy")
	}
	defer rsp.Body.Close() // Only read.
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read Envoy's answer")
	}
	if rsp.StatusCode != http.StatusOK {
		return nil, errors.Errorf("Envoy answers %s to %q", rsp.Status, path)
	}
	return body, nil
}

// Stop Envoy Gateway and its Envoys, and delete their files.
func (g *Gateway) Stop() error {
	errs := []error{g.KillEnvoy()}
	if g.process != nil {
		errs = append(errs, g.process.Stop(stopLimit))
	}
	for _, p := range g.passages {
		errs = append(errs, p.Close())
	}
	if g.namespace != nil && g.namespace.file != nil {
		errs = append(errs, errors.Wrap(g.namespace.file.Close(), "cannot let go of the network namespace"))
	}
	errs = append(errs, errors.Wrap(os.RemoveAll(g.dir), "cannot delete Envoy Gateway's folder"))
	return errors.Join(errs...)
}
