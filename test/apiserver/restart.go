// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	kubeAPIServer = "kube-apiserver"

	// readyPoll is the interval of readiness checks.
	readyPoll = 200 * time.Millisecond
)

// Crash kills kube-apiserver. The data of etcd stays.
func (s *Server) Crash() error {
	if s.restarted != nil {
		return s.restarted.Kill()
	}
	b, err := os.ReadFile(filepath.Join(s.dir, kubeAPIServer+".pid"))
	if err != nil {
		return errors.Wrap(err, "cannot find kube-apiserver")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return errors.Wrap(err, "cannot find kube-apiserver")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return errors.Wrap(err, "cannot kill kube-apiserver")
	}
	// The address is in use until the process has ended.
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		<-tick.C
	}
	return nil
}

// Restart restarts a crashed kube-apiserver with the same address and certificates, and waits until
// it is ready.
func (s *Server) Restart(ctx context.Context) error {
	b, err := os.ReadFile(filepath.Join(s.dir, kubeAPIServer+".args"))
	if err != nil {
		return errors.Wrap(err, "cannot read kube-apiserver's arguments")
	}
	args := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	if s.restarted, err = StartProcess(ProcessOptions{Log: s.log}, filepath.Join(s.dir, kubeAPIServer), args...); err != nil {
		return err
	}
	return s.ready(ctx)
}

func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		return errors.Wrap(err, "cannot create a client of kube-apiserver")
	}
	defer c.CloseIdleConnections()
	return errors.Wrap(s.restarted.Until(ctx, readyPoll, func(ctx context.Context) error {
		return isReady(ctx, c, s.Config.Host)
	}), "kube-apiserver does not become ready")
}

func isReady(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/readyz", nil)
	if err != nil {
		return errors.Wrap(err, "cannot create request")
	}
	rsp, err := c.Do(req)
	if err != nil {
		return errors.Wrap(err, "cannot get")
	}
	if err := rsp.Body.Close(); err != nil {
		return errors.Wrap(err, "cannot close a response")
	}
	if rsp.StatusCode != http.StatusOK {
		return errors.Errorf("the status is %s", rsp.Status)
	}
	return nil
}
