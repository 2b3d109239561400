// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

func certificate(ctx context.Context, t *turn) error {
	s, hosts, err := t.web(ctx)
	if err != nil {
		return err
	}
	domain, err := hosts[0].domain(ctx)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(s.Name, "svc:") + "." + domain
	if err := hosts[0].certifiable(ctx); err != nil {
		return err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, t.run.opts.Timeout)
	defer cancel()
	chain, _, err := hosts[0].local.CertPair(ctx, name)
	if err != nil {
		return errors.Wrap(err, "cannot get a certificate")
	}
	t.measure("certificate", time.Since(began))
	return t.verify(chain, name)
}

// certifiable returns a skip if the tailnet has no HTTPS certificates.
func (n *node) certifiable(ctx context.Context) error {
	st, err := n.status(ctx)
	if err != nil {
		return err
	}
	if len(st.CertDomains) == 0 {
		return skipf(skipMissing, "the tailnet has HTTPS certificates turned off")
	}
	return nil
}

// verify checks that a certificate is for a name.
func (t *turn) verify(chain []byte, name string) error {
	block, _ := pem.Decode(chain)
	if block == nil {
		return errors.New("the certificate is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return errors.Wrap(err, "cannot parse the certificate")
	}
	t.note("issued by %s, until %s", cert.Issuer, cert.NotAfter.Format(time.DateOnly))
	return errors.Wrap(cert.VerifyHostname(name), "the certificate is for another name")
}

// agentCertificate lets the agent's issuer get a certificate for a service that a proxy advertises:
// it waits until control grants the name, and then calls tailscaled.
func agentCertificate(ctx context.Context, t *turn) (err error) {
	s, err := t.made(ctx, t.service("agent-tls"))
	if err != nil {
		return err
	}
	backend := &host{node: &node{hostname: "backend"}, conns: map[net.Conn]bool{}}
	defer backend.close()
	addr, err := backend.listen(ctx, 0)
	if err != nil {
		return err
	}
	serve, err := plan.ServeConfig(map[string]plan.Handlers{s.Name: {80: {Forward: addr}}})
	if err != nil {
		return err
	}
	p, err := t.startProxy(ctx, "tls-proxy", proxyOptions{serve: serve})
	if err != nil {
		return err
	}
	defer func() {
		_, stopErr := p.stop()
		err = errors.Join(err, stopErr)
	}()
	if err := p.joined(ctx, t); err != nil {
		return err
	}
	if err := p.certifiable(ctx); err != nil {
		return err
	}
	domain, err := p.domain(ctx)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(s.Name, "svc:") + "." + domain
	if err := p.offer(s.Name); err != nil {
		return err
	}
	if err := t.awaitAcceptance(ctx, s.Name, &p.node); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i := issue.New(ctx, p.local, issue.Options{Changed: func() {}, Attempted: func(issue.Result) {}, Log: logging.NewNopLogger()})
	if err := i.Set(ctx, 1, []string{name}); err != nil {
		return err
	}
	took, err := t.until(ctx, "control grants the name", func(ctx context.Context) (string, error) {
		granted, err := p.local.CertDomains(ctx)
		if err != nil {
			return "", err
		}
		i.Grant(granted)
		st := i.Statuses()[name]
		if st.Problem != "" {
			return "", errors.New(st.Problem)
		}
		if !st.Requested {
			return name + " is not among the names that the proxy may have certificates for: are HTTPS certificates turned on?", nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	t.measure("name granted", took)
	began := time.Now()
	ctx, stop := context.WithTimeout(ctx, t.run.opts.Timeout)
	defer stop()
	chain, _, err := p.local.CertPair(ctx, name)
	if err != nil {
		return errors.Wrap(err, "cannot get a certificate")
	}
	t.measure("certificate", time.Since(began))
	return t.verify(chain, name)
}
