// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// A Checker probes a target once. The error is nil when the target answers. The address is that of
// the target's host, as in Status.
type Checker interface {
	Check(ctx context.Context, t Target) (netip.Addr, error)
}

// A CheckerFn is a function that is a Checker.
type CheckerFn func(ctx context.Context, t Target) (netip.Addr, error)

// Check calls the function.
func (fn CheckerFn) Check(ctx context.Context, t Target) (netip.Addr, error) { return fn(ctx, t) }

// A StatusError is the status of an HTTP response that is not 2xx or 3xx.
type StatusError struct {
	Code int
}

// Error returns the status code.
func (e StatusError) Error() string { return fmt.Sprintf("HTTP status %d", e.Code) }

// NewNetChecker returns a Checker that opens a TCP connection, sends an HTTP GET if the target
// has a path, or only looks up the host if the target is ResolveOnly. Each probe opens a new
// connection, uses no proxy, and does not follow redirects. A host is refused if one of its addresses
// leads back to the pod or to its node, whatever name resolves to it: no backend answers there.
func NewNetChecker() Checker {
	return newNetChecker(&net.Dialer{Resolver: net.DefaultResolver, Control: address.Control})
}

// A DialFunc opens a connection.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// NewDialChecker returns a Checker like NewNetChecker that opens its connections with dial. It
// does not look up hosts: targets are addresses, or names that dial resolves.
func NewDialChecker(dial DialFunc) Checker {
	return CheckerFn(func(ctx context.Context, t Target) (netip.Addr, error) {
		return netip.Addr{}, probe(ctx, dial, t)
	})
}

func newClient(dial DialFunc, s backendtls.Settings) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:       dial,
			TLSClientConfig:   s.Config(),
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func newNetChecker(d *net.Dialer) Checker {
	return CheckerFn(func(ctx context.Context, t Target) (netip.Addr, error) {
		found, err := lookup(ctx, d, t)
		if err != nil {
			return netip.Addr{}, err
		}
		if t.ResolveOnly {
			if !single(found) {
				return netip.Addr{}, nil
			}
			return found[0], nil
		}
		if !single(found) {
			return netip.Addr{}, probe(ctx, func(ctx context.Context, network, _ string) (net.Conn, error) {
				return d.DialContext(ctx, network, net.JoinHostPort(address.Absolute(t.Host), strconv.Itoa(int(t.Port))))
			}, t)
		}
		var used netip.Addr
		err = probe(ctx, func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
			for _, a := range found {
				if conn, err = d.DialContext(ctx, network, netip.AddrPortFrom(a, t.Port).String()); err == nil {
					used = a
					break
				}
			}
			return conn, err
		}, t)
		return used, err
	})
}

// probe connects to a target, and gets its path if it has one.
func probe(ctx context.Context, dial DialFunc, t Target) error {
	if t.Path == "" {
		return connect(ctx, dial, t)
	}
	return get(ctx, newClient(dial, t.TLS), t)
}

// single reports whether there is an address, and at most one of each family.
func single(addrs []netip.Addr) bool {
	return len(addrs) == 1 || len(addrs) == 2 && addrs[0].Is4() != addrs[1].Is4()
}

// lookup returns the addresses of a target's host, in the order in which they are to be dialed. It
// runs the dialer's check on each: who controls a name could hide a refused address behind another
// one.
func lookup(ctx context.Context, d *net.Dialer, t Target) ([]netip.Addr, error) {
	found, err := d.Resolver.LookupNetIP(ctx, "ip", address.Absolute(t.Host))
	if err != nil {
		return nil, errors.Wrapf(err, "cannot look up %q", t.Host)
	}
	for i, a := range found {
		found[i] = a.Unmap()
		if d.Control == nil {
			continue
		}
		if err := d.Control("tcp", netip.AddrPortFrom(a, t.Port).String(), nil); err != nil {
			return nil, errors.Wrapf(err, "cannot use host %q", t.Host)
		}
	}
	return found, nil
}

func connect(ctx context.Context, dial DialFunc, t Target) error {
	conn, err := dial(ctx, "tcp", t.Address())
	if err != nil {
		return errors.Wrapf(err, "cannot connect to %q", t.Address())
	}
	return errors.Wrapf(conn.Close(), "cannot close connection to %q", t.Address())
}

func get(ctx context.Context, c *http.Client, t Target) error {
	scheme := "http://"
	if t.TLS != (backendtls.Settings{}) {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+t.Address()+t.Path, nil)
	if err != nil {
		return errors.Wrapf(err, "cannot make request to %q", t.Address())
	}
	req.Header.Set("User-Agent", version.UserAgent())

	res, err := c.Do(req)
	if err != nil {
		return errors.Wrapf(err, "cannot get %q", req.URL)
	}
	// Only the status matters; a body may never end.
	if err := res.Body.Close(); err != nil {
		return errors.Wrapf(err, "cannot close answer of %q", req.URL)
	}
	return CheckStatus(res.StatusCode)
}

// CheckStatus returns a StatusError for an HTTP status that is not 2xx or 3xx.
func CheckStatus(code int) error {
	if code < http.StatusOK || code >= http.StatusBadRequest {
		return StatusError{Code: code}
	}
	return nil
}

// ReasonNoSuchHost is the reason for a target with a host name that does not exist in DNS.
const ReasonNoSuchHost = "no such host"

// reasonRefused is the prefix of the reason for a target with refused addresses.
const reasonRefused = "its address is refused: it is "

// Refused reports whether the target is unhealthy because its addresses are refused.
func (s Status) Refused() bool { return strings.HasPrefix(s.Reason, reasonRefused) }

// Reason returns a description of the error of a probe that stays the same while the cause is
// the same. Errors of package net contain ephemeral ports, which would make every probe a
// transition.
func Reason(err error) string {
	if err == nil {
		return ""
	}

	var (
		status  StatusError
		dns     *net.DNSError
		timer   interface{ Timeout() bool }
		refusal address.RefusedError

		other       x509.HostnameError
		authority   x509.UnknownAuthorityError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &refusal):
		return reasonRefused + refusal.Reason
	case errors.As(err, &dns) && dns.IsNotFound:
		return ReasonNoSuchHost
	case errors.As(err, &other):
		return "its certificate is for another name"
	case errors.As(err, &authority):
		return "its certificate is not of a trusted authority"
	case errors.As(err, &certificate):
		return "its certificate is not valid"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS"
	case errors.As(err, &timer) && timer.Timeout():
		return "timed out"
	case errors.As(err, &dns):
		return "cannot resolve host"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "host unreachable"
	default:
		return "cannot connect"
	}
}
