// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

const (
	// Addresses in the environment's own network namespace.
	edsAddress     = "127.0.0.1:5006"
	observeAddress = "127.0.0.1:5007"
	envoyGateway   = "http://127.0.0.1:19001"

	// AddressHeader has the address of the backend that answers.
	AddressHeader = "X-Backend-Address"

	// creators is the number of parallel writes.
	creators = 32

	// startLimit is how long routes may take to answer on a busy machine, and startLimitPerRoute how much
	// longer each of them.
	startLimit         = 5 * time.Minute
	startLimitPerRoute = 50 * time.Millisecond

	stopLimit = 20 * time.Second
)

// An Environment is an API server, an Envoy Gateway and an Envoy with routes, and an extension
// unless routes are plain.
type Environment struct {
	options Options
	program string

	kube       client.Client
	kubeconfig string
	socket     string
	certs      *Certificates
	log        *os.File

	api       *apiserver.Server
	gateway   *standalone.Gateway
	backend   *http.Server
	extension *apiserver.Process
	echo      *grpc.Server
	// redirects counts changes of the redirect route.
	redirects int
}

// Start starts an environment, and waits until its routes answer. Program is the extension's. The
// output of all processes goes to a file in the folder logs.
func Start(ctx context.Context, o Options, program, logs string) (*Environment, error) {
	w := &Environment{options: o, program: program}
	if err := w.start(ctx, logs); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

func (w *Environment) start(ctx context.Context, logs string) error {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return errors.Wrap(err, "cannot create the folder of logs")
	}
	var err error
	name := fmt.Sprintf("%d-targets-%d-plain-%t-found-%t.log", w.options.Routes, w.options.Targets, w.options.Plain, w.options.Found)
	if w.log, err = os.Create(filepath.Join(logs, name)); err != nil {
		return errors.Wrap(err, "cannot create a log file")
	}
	crds, err := standalone.CRDs(ctx)
	if err != nil {
		return err
	}
	root, err := apiserver.Root()
	if err != nil {
		return err
	}
	crds = append(crds, filepath.Join(root, charts.ExtensionCRDs))
	if w.api, err = apiserver.Start(ctx, apiserver.Options{CRDs: crds, Composites: true}); err != nil {
		return err
	}
	if w.kubeconfig, err = w.api.WriteKubeconfig(); err != nil {
		return err
	}
	scheme, err := parse.Scheme()
	if err != nil {
		return err
	}
	if w.kube, err = client.New(w.api.Config, client.Options{Scheme: scheme}); err != nil {
		return errors.Wrap(err, "cannot create a client of the API server")
	}
	if err := w.create(ctx, w.options.objects()); err != nil {
		return err
	}
	opts := standalone.Options{Kubeconfig: w.api.Kubeconfig, Log: w.log}
	if w.options.extended() {
		w.socket = filepath.Join(filepath.Dir(w.kubeconfig), "hooks.sock")
		// gRPC's name for the other end of a socket.
		if w.certs, err = NewCertificates(filepath.Dir(w.kubeconfig), "localhost"); err != nil {
			return err
		}
		if err := w.create(ctx, []client.Object{w.certs.Secret}); err != nil {
			return err
		}
		if opts.Bootstrap, err = w.certs.Bootstrap(); err != nil {
			return err
		}
		opts.ExtensionSecret = client.ObjectKeyFromObject(w.certs.Secret)
		opts.Extension = w.socket
		opts.Backends = []schema.GroupVersionKind{{Group: gatewayv1alpha1.Group, Version: "v1alpha1", Kind: "TailscaleServices"}}
		opts.Policies = []schema.GroupVersionKind{{Group: gatewayv1alpha1.Group, Version: "v1alpha1", Kind: "TailscaleRevision"}}
	}
	if w.gateway, err = standalone.Start(ctx, opts); err != nil {
		return err
	}
	if err := w.serveBackend(ctx); err != nil {
		return err
	}
	switch {
	case w.options.Echo:
		err = w.StartEcho(ctx)
	case !w.options.Plain:
		err = w.StartExtension(ctx)
	}
	if err != nil {
		return err
	}
	if err := w.kube.Create(ctx, Gateway()); err != nil {
		return errors.Wrap(err, "cannot create the Gateway")
	}
	if w.options.Found && !w.options.Plain {
		if err := w.find(ctx); err != nil {
			return err
		}
	}
	return w.answers(ctx)
}

func (w *Environment) create(ctx context.Context, objects []client.Object) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(creators)
	for _, o := range objects {
		g.Go(func() error { return errors.Wrapf(w.kube.Create(ctx, o), "cannot create %T %s", o, o.GetName()) })
	}
	return g.Wait()
}

// serveBackend answers on all addresses, each with the address itself.
func (w *Environment) serveBackend(ctx context.Context) error {
	l, err := w.gateway.Listen(ctx, "tcp", fmt.Sprintf("0.0.0.0:%d", BackendPort))
	if err != nil {
		return errors.Wrap(err, "cannot listen for the backend")
	}
	w.backend = Backend()
	go func() { _ = w.backend.Serve(l) }() // Ends with Close.
	return nil
}

// Backend returns a server that sets AddressHeader to the address of the request.
func Backend() *http.Server {
	return &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
			if !ok {
				return
			}
			rw.Header().Set(AddressHeader, a.IP.String())
		}),
	}
}

// answers waits until the first, the middle and the last route answer.
func (w *Environment) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit+time.Duration(w.options.Routes)*startLimitPerRoute)
	defer cancel()
	if w.options.Found && !w.options.Plain {
		if err := w.generated(ctx); err != nil {
			return err
		}
	}
	for _, i := range []int{0, w.options.Routes / 2, w.options.Routes - 1} {
		if err := w.gateway.Answers(ctx, fmt.Sprintf("http://127.0.0.1:%d%s", Listener, w.options.path(i)), host(i)); err != nil {
			return errors.Wrapf(err, "route %d does not answer", i)
		}
	}
	return nil
}

// StartExtension starts the extension in place of the echo, and waits until it serves.
func (w *Environment) StartExtension(ctx context.Context) error {
	w.stopEcho()
	var err error
	w.extension, err = w.gateway.Run(w.log, w.program, append(w.certs.Flags(),
		"--hooks-address=unix:"+w.socket, "--eds-address="+edsAddress, "--eds-target="+edsAddress, "--xds-mode=Auto",
		"--observe-address="+observeAddress, "--kubeconfig="+w.kubeconfig, "--namespace="+Namespace, "--drain=0s", "--pprof")...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return errors.Wrap(w.gateway.Answers(ctx, "http://"+observeAddress+"/ready", ""), "the extension does not become ready")
}

// StartEcho starts an extension that returns its input, in place of the real one.
func (w *Environment) StartEcho(ctx context.Context) error {
	if err := w.stopExtension(); err != nil {
		return err
	}
	if err := os.Remove(w.socket); err != nil && !os.IsNotExist(err) {
		return errors.Wrap(err, "cannot remove the socket of hooks")
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", w.socket)
	if err != nil {
		return errors.Wrap(err, "cannot listen for hooks")
	}
	o, err := w.certs.options()
	if err != nil {
		return err
	}
	w.echo = serve.NewServer(o).Server
	pb.RegisterEnvoyGatewayExtensionServer(w.echo, echo{})
	go func(s *grpc.Server) { _ = s.Serve(l) }(w.echo) // Ends with Stop.
	return nil
}

func (w *Environment) stopEcho() {
	if w.echo != nil {
		w.echo.Stop()
		w.echo = nil
	}
}

func (w *Environment) stopExtension() error {
	if w.extension == nil {
		return nil
	}
	p := w.extension
	w.extension = nil
	return p.Stop(stopLimit)
}

// Stop stops all processes.
func (w *Environment) Stop() error {
	w.stopEcho()
	errs := []error{w.stopExtension()}
	if w.gateway != nil {
		errs = append(errs, w.gateway.Stop())
	}
	if w.backend != nil {
		errs = append(errs, errors.Wrap(w.backend.Close(), "cannot stop the backend"))
	}
	if w.api != nil {
		errs = append(errs, w.api.Stop())
	}
	if w.log != nil {
		errs = append(errs, errors.Wrap(w.log.Close(), "cannot close the log file"))
	}
	return errors.Join(errs...)
}

// An echo is an extension that does nothing.
type echo struct {
	pb.UnimplementedEnvoyGatewayExtensionServer
}

// PostTranslateModify returns its input.
func (echo) PostTranslateModify(_ context.Context, r *pb.PostTranslateModifyRequest) (*pb.PostTranslateModifyResponse, error) {
	return &pb.PostTranslateModifyResponse{Clusters: r.GetClusters(), Secrets: r.GetSecrets(), Listeners: r.GetListeners(), Routes: r.GetRoutes()}, nil
}
