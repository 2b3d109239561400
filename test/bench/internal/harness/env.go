// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/retry"
)

// An Env is an empty API server and a folder for the programs that run against it.
type Env struct {
	// Kube is an administrator's client without a cache.
	Kube client.Client

	api        *apiserver.Server
	kubeconfig string
	bin        string
	logs       string
	processes  []*Provider
}

// Build compiles packages of the module into a folder.
func Build(ctx context.Context, dir string, packages ...string) error {
	root, err := apiserver.Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", dir + string(filepath.Separator)}, packages...)...)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	return errors.Wrap(cmd.Run(), "cannot build programs")
}

// NewEnv starts an API server. Programs are in the folder bin, and their output goes to the folder
// logs. The caller must call Close.
func NewEnv(ctx context.Context, bin, logs string) (*Env, error) {
	return NewEnvWith(ctx, bin, logs, apiserver.Options{})
}

// NewEnvWith starts an API server with options. The controllers that delete are added to it.
func NewEnvWith(ctx context.Context, bin, logs string, o apiserver.Options) (*Env, error) {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, errors.Wrap(err, "cannot create the folder of logs")
	}
	o.Controllers = append(apiserver.DeletionControllers(), o.Controllers...)
	s, err := apiserver.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	e := &Env{api: s, bin: bin, logs: logs}
	if err := e.prepare(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Env) prepare() error {
	var err error
	if e.kubeconfig, err = e.api.WriteKubeconfig(); err != nil {
		return err
	}
	e.Kube, err = client.New(e.api.Config, client.Options{})
	return errors.Wrap(err, "cannot create a client of the API server")
}

// Config returns the configuration of an administrator's clients.
func (e *Env) Config() *rest.Config { return rest.CopyConfig(e.api.Config) }

// Close stops the providers and the API server.
func (e *Env) Close() error {
	errs := make([]error, 0, len(e.processes)+1)
	for _, p := range e.processes {
		errs = append(errs, p.Kill())
	}
	return errors.Join(append(errs, e.api.Stop())...)
}

// Eventually waits until check returns no error. Its own error wraps the last one.
func Eventually(ctx context.Context, limit time.Duration, description string, check func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := retry.Until(limited, 200*time.Millisecond, check)
	if err != nil && ctx.Err() != nil {
		return errors.Wrapf(ctx.Err(), "cannot wait for %s", description)
	}
	return errors.Wrapf(err, "waited %s for %s", limit, description)
}

// Pause waits until the time has passed or ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
