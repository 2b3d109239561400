// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// startLimit is how long a component may take to start, without the build of the lab's programs.
const startLimit = 2 * time.Minute

// stopLimit is how long a component may take to stop: kube-apiserver waits for the end of watches.
const stopLimit = 90 * time.Second

// Options of a server. The zero value is usable.
type Options struct {
	// Controllers are additional controllers of Kubernetes, by the names of
	// kube-controller-manager's --controllers. Without any, the default, a deleted namespace stays,
	// and nothing is garbage collected.
	Controllers []string
	// CRDs are files or folders of CRDs, in addition to the provider's.
	CRDs []string
	// Composites installs the CRDs of users' kinds too, as Crossplane creates them.
	Composites bool
	// Claims installs those of the configuration with claims instead.
	Claims bool
	// APIServerFlags are added to kube-apiserver's, without the leading dashes.
	APIServerFlags map[string]string
	// Log receives the output of the components. It is discarded by default.
	Log io.Writer
}

// DeletionControllers returns the controllers that empty deleted namespaces and delete the
// dependents of deleted owners.
func DeletionControllers() []string {
	return []string{"namespace-controller", "garbage-collector-controller"}
}

// A Server is a running API server with the provider's CRDs.
type Server struct {
	// Config is an administrator's, with a very high rate limit.
	Config *rest.Config
	// Kubeconfig is the same as the content of a file, for other processes.
	Kubeconfig []byte

	env         *envtest.Environment
	controllers *Process
	// restarted is kube-apiserver after a crash and a restart.
	restarted *Process
	// ended is closed when the processes of env may end.
	ended chan struct{}
	dir   string
	log   io.Writer
}

// Start starts a server and waits until it serves and the CRDs are established. After a failure it
// stops all processes, which also end with this process.
func Start(ctx context.Context, o Options) (*Server, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tailscale-gateway-apiserver-")
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a folder for the API server")
	}
	s := &Server{dir: dir, log: o.Log}
	if err := s.start(ctx, root, o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, root string, o Options) error {
	etcd, err := s.mortal(ctx, root, "etcd", "TEST_ASSET_ETCD")
	if err != nil {
		return err
	}
	server, err := s.mortal(ctx, root, kubeAPIServer, "TEST_ASSET_KUBE_APISERVER")
	if err != nil {
		return err
	}
	s.env = &envtest.Environment{
		ControlPlane: envtest.ControlPlane{
			Etcd:      &envtest.Etcd{Path: etcd, Out: o.Log, Err: o.Log},
			APIServer: &envtest.APIServer{Path: server, Out: o.Log, Err: o.Log},
		},
		CRDDirectoryPaths:        append([]string{filepath.Join(root, "package", "provider", "crds")}, o.CRDs...),
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: startLimit,
		ControlPlaneStopTimeout:  stopLimit,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: startLimit},
	}
	switch {
	case o.Claims:
		s.env.CRDs, err = Claims()
	case o.Composites:
		s.env.CRDs, err = Composites()
	}
	if err != nil {
		return err
	}
	for k, v := range o.APIServerFlags {
		s.env.ControlPlane.APIServer.Configure().Set(k, v)
	}
	if s.Config, err = s.startEnv(); err != nil {
		return errors.Wrap(err, "cannot start the API server")
	}
	// The tests' client must not limit its rate.
	s.Config.QPS = -1
	s.Kubeconfig = s.env.KubeConfig
	if len(o.Controllers) == 0 {
		return nil
	}
	return s.startControllers(ctx, root, o)
}

// startEnv starts env on a separate thread, which it keeps until the server stops: the kernel
// treats the thread as the parent of its processes, and any other thread may end before.
func (s *Server) startEnv() (*rest.Config, error) {
	var cfg *rest.Config
	s.ended = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		var err error
		cfg, err = s.env.Start()
		started <- err
		<-s.ended
		// Not unlocked: the thread ends with the goroutine.
	}()
	err := <-started
	return cfg, err
}

func (s *Server) startControllers(ctx context.Context, root string, o Options) error {
	program, err := Program(ctx, root, "kube-controller-manager", "TEST_ASSET_KUBE_CONTROLLER_MANAGER")
	if err != nil {
		return err
	}
	kubeconfig, err := s.WriteKubeconfig()
	if err != nil {
		return err
	}
	s.controllers, err = StartProcess(ProcessOptions{Log: o.Log}, program,
		"--kubeconfig="+kubeconfig,
		"--controllers="+strings.Join(o.Controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
	)
	return err
}

// WriteKubeconfig writes the kubeconfig into a file that exists until the server stops, and returns
// its path.
func (s *Server) WriteKubeconfig() (string, error) {
	path := filepath.Join(s.dir, "kubeconfig")
	return path, errors.Wrap(os.WriteFile(path, s.Kubeconfig, 0o600), "cannot write kubeconfig")
}

// Stop stops all components and deletes their data.
func (s *Server) Stop() error {
	var errs []error
	if s.controllers != nil {
		errs = append(errs, s.controllers.Stop(10*time.Second))
	}
	if s.restarted != nil {
		errs = append(errs, s.restarted.Stop(stopLimit))
	}
	if s.env != nil {
		errs = append(errs, errors.Wrap(s.env.Stop(), "cannot stop the API server"))
	}
	if s.ended != nil {
		close(s.ended)
	}
	errs = append(errs, errors.Wrap(os.RemoveAll(s.dir), "cannot delete the API server's folder"))
	return errors.Join(errs...)
}

// mortal returns the path of a script that runs the program so that it ends with this process:
// envtest has no setting for that. The script writes its process ID and arguments to files beside
// it.
func (s *Server) mortal(ctx context.Context, root, name, env string) (string, error) {
	program, err := Program(ctx, root, name, env)
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, name)
	script := "#!/bin/sh\necho $$ >'" + path + ".pid'\nprintf '%s\\0' \"$@\" >'" + path + ".args'\n" +
		"# A single process: the shell is replaced twice.\nexec setpriv --pdeathsig KILL '" + program + "' \"$@\"\n"
	// The script must be executable for its owner.
	return path, errors.Wrapf(os.WriteFile(path, []byte(script), 0o700), "cannot write a script for %s", name)
}
