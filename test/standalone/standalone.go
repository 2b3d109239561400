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
	// stopLimit is how long Envoy Gateway may take to stop, with its Envoys.
	stopLimit = time.Minute
	// poll is the interval of checks.
	poll = 50 * time.Millisecond
	// requestLimit is how long one request of Gets may take.
	requestLimit = 5 * time.Second
	// dumpLimit is how long a request of Admin may take: a dump of Envoy's configuration may be large.
	dumpLimit = time.Minute
)

// Options of a Gateway. The zero value is usable: Envoy Gateway without an extension.
type Options struct {
	// Extension is the path of the unix socket on which the extension answers hooks. It must listen
	// before the first Gateway is written: Envoy Gateway waits for it without a limit.
	Extension string
	// ExtensionAddress is an address for hooks instead, such as that of a Service.
	ExtensionAddress netip.AddrPort
	// ExtensionSecret has, in tls.crt and tls.key, the certificate that Envoy Gateway presents
	// to the extension, and after it in tls.crt the authority of the extension's certificate.
	// Without it, hooks are called without TLS. It needs Kubeconfig: files have no Secrets.
	ExtensionSecret types.NamespacedName
	// Backends and Policies are the extension's kinds: those for backendRefs of routes, and those
	// that attach to Gateways by targetRefs.
	Backends, Policies []schema.GroupVersionKind
	// Kubeconfig of an API server on this machine's loopback, the source of all objects instead of
	// files and the target of their status. It must have the CRDs of CRDs and those of the
	// extension's kinds. Services and EndpointSlices then have an effect, and manifests of Write
	// have none.
	Kubeconfig []byte
	// Authorities, in PEM, replace the machine's authorities for Envoy. They need objects from an
	// API server, and exclude OwnEnvoy.
	Authorities []byte
	// Bootstrap is YAML that is merged into Envoy's bootstrap.
	Bootstrap string
	// Proxy has further fields of the EnvoyProxy's spec.
	Proxy map[string]any
	// OwnEnvoy makes Envoy independent of Envoy Gateway, as in a cluster: StartEnvoy starts it,
	// KillEnvoy ends it, and it outlives a restart of Envoy Gateway. It supports one Gateway
	// object.
	OwnEnvoy bool
	// Merge makes one Envoy serve all Gateways.
	Merge bool
	// Flags are Envoy Gateway's enabled runtime flags.
	Flags []string
	// Log receives the output of Envoy Gateway and Envoy. It is discarded by default.
	Log io.Writer
}

// A Gateway is a running Envoy Gateway, with one Envoy for each Gateway object, or for all of them.
type Gateway struct {
	layout

	namespace *namespace
	passages  []*Passage
	process   *apiserver.Process
	// command starts process.
	command func() (*apiserver.Process, error)
	// proxy is the state of OwnEnvoy.
	proxy *ownEnvoy
}

// Start starts Envoy Gateway and waits until it has read its files. After a failure it stops all
// processes, which also end with this process.
func Start(ctx context.Context, o Options) (*Gateway, error) {
	dir, err := os.MkdirTemp("", "tailscale-gateway-standalone-")
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a folder for Envoy Gateway")
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

// run runs Envoy Gateway, and waits until it has read its files.
func (g *Gateway) run(ctx context.Context) error {
	var err error
	if g.process, err = g.command(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return errors.Wrap(g.Answers(ctx, "http://127.0.0.1:8081/readyz", ""), "cannot start Envoy Gateway")
}

// Restart restarts Envoy Gateway as after a crash, with its own Envoys. No caller may be in Until
// or Answers meanwhile.
func (g *Gateway) Restart(ctx context.Context) error {
	if err := g.process.Kill(); err != nil {
		return err
	}
	return g.run(ctx)
}

// prepare writes all files that Envoy Gateway reads at its start.
func (g *Gateway) prepare(ctx context.Context, o Options, program, envoy string) error {
	bin := g.path("data", "envoy-versions", envoyVersion, "bin")
	for _, d := range []string{g.path("manifests"), g.path("config"), g.path("state"), g.path("run"), g.path("root"), bin} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return errors.Wrap(err, "cannot create Envoy Gateway's folders")
		}
	}
	if err := g.putEnvoy(o, envoy, filepath.Join(bin, "envoy")); err != nil {
		return errors.Wrap(err, "cannot put Envoy into Envoy Gateway's folder")
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
	out, err := exec.CommandContext(ctx, program, "certgen", "--local", "--config-home", g.path("config")).CombinedOutput()
	return errors.Wrapf(err, "cannot create certificates: %s", strings.TrimSpace(string(out)))
}

// Run starts a program in the namespace, for example the extension: Envoy reaches its ports. The
// caller must stop it.
func (g *Gateway) Run(log io.Writer, program string, args ...string) (*apiserver.Process, error) {
	return apiserver.StartProcess(apiserver.ProcessOptions{Dir: g.dir, Log: log, Enter: g.namespace.enter}, program, args...)
}

// Write writes manifests under a name, and replaces those of that name. Envoy Gateway reads them
// without a restart. Objects without a namespace are in the namespace default.
func (g *Gateway) Write(name, manifests string) error {
	// Envoy Gateway ignores names with a dot, and a rename is atomic.
	tmp := g.path("manifests", "."+name)
	if err := os.WriteFile(tmp, []byte(manifests), 0o600); err != nil {
		return errors.Wrapf(err, "cannot write manifests %q", name)
	}
	return errors.Wrapf(os.Rename(tmp, g.path("manifests", name+".yaml")), "cannot write manifests %q", name)
}

// Remove removes the manifests of a name.
func (g *Gateway) Remove(name string) error {
	return errors.Wrapf(os.Remove(g.path("manifests", name+".yaml")), "cannot remove manifests %q", name)
}

// Client returns a client in the namespace, where addresses are literal.
func (g *Gateway) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: g.Dial}}
}

// Until calls check until it returns no error. It returns the last error when ctx or Envoy Gateway
// ends.
func (g *Gateway) Until(ctx context.Context, check func(context.Context) error) error {
	return errors.Wrap(g.process.Until(ctx, poll, check), "Envoy Gateway")
}

// Answers waits until a GET of url returns 200. host is the Host header; empty means the URL's
// host.
func (g *Gateway) Answers(ctx context.Context, url, host string) error {
	return g.Until(ctx, func(ctx context.Context) error { return g.Gets(ctx, url, host, http.StatusOK) })
}

// Gets requests url once, on a new connection, and returns an error unless the response has the
// status.
func (g *Gateway) Gets(ctx context.Context, url, host string, want int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return errors.Wrapf(err, "cannot create request for %q", url)
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
		err = errors.Errorf("%q returns %s, want %d", url, rsp.Status, want)
	}
	return errors.Join(err, rsp.Body.Close())
}

// Admin requests a path of Envoy's admin interface, for example /config_dump?include_eds. It
// returns an error unless there is exactly one Envoy: one Gateway object whose Envoy is up.
func (g *Gateway) Admin(ctx context.Context, path string) ([]byte, error) {
	found, err := filepath.Glob(g.path("run", "*", "admin-address.txt"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot find Envoy")
	}
	if len(found) != 1 {
		return nil, errors.Errorf("cannot select an Envoy: there are %d, want one", len(found))
	}
	addr, err := os.ReadFile(found[0])
	if err != nil {
		return nil, errors.Wrap(err, "cannot read Envoy's address")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s%s", addr, path), nil)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot create request for %q", path)
	}
	c := g.Client()
	c.Timeout = dumpLimit
	defer c.CloseIdleConnections()
	rsp, err := c.Do(req)
	if err != nil {
		return nil, errors.Wrap(err, "cannot send a request to Envoy")
	}
	defer rsp.Body.Close() // The body is only read.
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read Envoy's response")
	}
	if rsp.StatusCode != http.StatusOK {
		return nil, errors.Errorf("Envoy returns %s for %q", rsp.Status, path)
	}
	return body, nil
}

// Stop stops Envoy Gateway and its Envoys, and deletes their files.
func (g *Gateway) Stop() error {
	errs := []error{g.KillEnvoy()}
	if g.process != nil {
		errs = append(errs, g.process.Stop(stopLimit))
	}
	for _, p := range g.passages {
		errs = append(errs, p.Close())
	}
	if g.namespace != nil && g.namespace.file != nil {
		errs = append(errs, errors.Wrap(g.namespace.file.Close(), "cannot release the network namespace"))
	}
	errs = append(errs, errors.Wrap(os.RemoveAll(g.dir), "cannot delete Envoy Gateway's folder"))
	return errors.Join(errs...)
}
