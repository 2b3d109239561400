// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// A Check describes how the prober probes an endpoint. It is comparable: endpoints of several
// targets with equal checks are probed once.
type Check struct {
	ir.Address

	// Namespace of the targets, whose share of the concurrent probes it needs. Targets of several
	// namespaces have separate checks of one endpoint.
	Namespace string

	// Path of an HTTP GET. If empty, a successful connection is enough.
	Path string

	// Name is the host name in requests. If empty, requests have the address.
	Name string

	// HTTP2 without negotiation.
	HTTP2 bool

	// TLS, with the server's name and the PEM bundle of authorities. Without a bundle the system's
	// authorities are trusted.
	TLS            bool
	ServerName, CA string

	Interval, Timeout  time.Duration
	Healthy, Unhealthy uint32
}

// NewCheck returns the check of a target's endpoint, which is that of its Envoy clusters. False if
// the endpoint has no check.
func NewCheck(t *ir.Target, c ir.Candidate) (Check, bool) {
	hc := t.Shape.HealthCheck
	if hc == nil || t.Key.Protocol == ir.ProtocolUDP || hc.Interval <= 0 || hc.Timeout <= 0 {
		return Check{}, false
	}
	out := Check{Address: c.Address, Namespace: t.Key.Namespace, Interval: hc.Interval, Timeout: hc.Timeout, Healthy: hc.Healthy, Unhealthy: hc.Unhealthy}
	name := hc.Host
	if name == "" {
		name = c.Hostname
	}
	if t.Key.Protocol != ir.ProtocolTCP && hc.Path != "" {
		out.Path, out.Name = hc.Path, name
		out.HTTP2 = t.Shape.HTTP2 || t.Key.Protocol == ir.ProtocolGRPC
	}
	u := t.Shape.TLS
	if u == nil {
		return out, true
	}
	out.TLS, out.ServerName, out.CA = true, u.ServerName, u.CA
	if out.ServerName == "" {
		out.ServerName, _, _ = strings.Cut(name, ":")
	}
	if out.ServerName == "" {
		// Envoy verifies the certificate by the name in a request. A probe has no such name, so it
		// cannot verify a certificate.
		out.TLS, out.CA, out.Path, out.HTTP2 = false, "", "", false
	}
	return out, true
}

// A Checker probes an endpoint once, within ctx.
type Checker interface {
	Check(ctx context.Context, c Check) Result
}

// A CheckerFn is a function that is a Checker.
type CheckerFn func(ctx context.Context, c Check) Result

// Check calls the function.
func (fn CheckerFn) Check(ctx context.Context, c Check) Result { return fn(ctx, c) }

// A NetChecker probes over the network. Each probe has a separate connection and uses no proxy, and
// a redirect counts as an answer. It does not connect to addresses that Envoys must not connect to.
type NetChecker struct {
	// Loopback permits loopback addresses, as in index.Dialling.
	Loopback bool

	// Authorities verify certificates for checks that have none. Nil means those of the system.
	Authorities *x509.CertPool
}

// Check implements Checker.
func (n NetChecker) Check(ctx context.Context, c Check) Result {
	err := n.check(ctx, c)
	status := probe.StatusError{}
	return Result{OK: err == nil, Answered: errors.As(err, &status), Reason: reason(err)}
}

// reason returns a short reason for a failure.
func reason(err error) string {
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return "its certificate cannot be verified"
	}
	return probe.Reason(err)
}

// dialer returns the dialer of probes. It checks the very address that it dials.
func (n NetChecker) dialer() *net.Dialer {
	return &net.Dialer{Control: func(network, addr string, c syscall.RawConn) error {
		if a, err := netip.ParseAddrPort(addr); err == nil && n.Loopback && a.Addr().Unmap().IsLoopback() {
			return nil
		}
		return address.Control(network, addr, c)
	}}
}

func (n NetChecker) check(ctx context.Context, c Check) error {
	d := n.dialer()
	t, err := newTransport(c, n.Authorities)
	if err != nil {
		return err
	}
	t.DialContext = d.DialContext
	wanted := atomic.Bool{}
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			wanted.Store(true)
			return &tls.Certificate{}, nil
		}
	}
	if c.Path == "" {
		err = connect(ctx, d, c, t.TLSClientConfig)
	} else {
		defer t.CloseIdleConnections()
		err = get(ctx, c, t)
	}
	if status := (probe.StatusError{}); wanted.Load() && ctx.Err() == nil && !errors.As(err, &status) {
		// The server requires a client certificate, which probes do not have. This answer shows
		// that the server is up.
		return nil
	}
	return err
}

func newTransport(c Check, authorities *x509.CertPool) (*http.Transport, error) {
	t := &http.Transport{DisableKeepAlives: !c.HTTP2, Protocols: &http.Protocols{}}
	t.Protocols.SetHTTP1(!c.HTTP2)
	t.Protocols.SetHTTP2(c.HTTP2 && c.TLS)
	t.Protocols.SetUnencryptedHTTP2(c.HTTP2 && !c.TLS)
	if !c.TLS {
		return t, nil
	}
	t.TLSClientConfig = &tls.Config{ServerName: c.ServerName, MinVersion: tls.VersionTLS12, RootCAs: authorities}
	if c.CA != "" {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return nil, errors.New("cannot read any certificate to trust")
		}
	}
	return t, nil
}

func (c Check) hostPort() string { return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))) }

func connect(ctx context.Context, d *net.Dialer, c Check, secure *tls.Config) error {
	var conn net.Conn
	var err error
	if secure != nil {
		conn, err = (&tls.Dialer{NetDialer: d, Config: secure}).DialContext(ctx, "tcp", c.hostPort())
	} else {
		conn, err = d.DialContext(ctx, "tcp", c.hostPort())
	}
	if err != nil {
		return errors.Wrapf(err, "cannot connect to %q", c.hostPort())
	}
	return errors.Wrapf(conn.Close(), "cannot close connection to %q", c.hostPort())
}

func get(ctx context.Context, c Check, t *http.Transport) error {
	scheme := "http://"
	if c.TLS {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+c.hostPort()+c.Path, nil)
	if err != nil {
		return errors.Wrapf(err, "cannot make request to %q", c.hostPort())
	}
	req.Host = c.Name
	req.Header.Set("User-Agent", version.UserAgent())
	res, err := t.RoundTrip(req)
	if err != nil {
		return errors.Wrapf(err, "cannot get %q", req.URL)
	}
	// The status is the result. The probe does not read the body, which may be endless.
	if err := res.Body.Close(); err != nil {
		return errors.Wrapf(err, "cannot close response of %q", req.URL)
	}
	return probe.CheckStatus(res.StatusCode)
}
