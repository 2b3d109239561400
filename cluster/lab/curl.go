// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/daemon"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tailnet"
)

type tailnetClientCmd struct {
	Name  string   `arg:"" help:"Hostname in the tailnet."`
	Owner bool     `help:"The client belongs to the tailnet's owner. Others have tag:client. Used only when the client is created."`
	Route []string `help:"Network in CIDR notation for which the client is a subnet router. 10.99.0.5 is a host behind all clients. Used only when the client is created."`
}

func (c *tailnetClientCmd) Run(r runtime) error {
	return r.daemon().EnsureClient(r, r.tailnet.Name, c.Name, daemon.ClientOptions{Owner: c.Owner, Routes: c.Route})
}

type tailnetUDPCmd struct {
	Address string        `arg:"" help:"Destination, as HOST:PORT."`
	Message string        `arg:"" help:"Content of the datagram."`
	As      string        `default:"client" help:"Name of the tailnet client that sends the requests."`
	Timeout time.Duration `default:"5s" help:"How long to wait for the response."`
}

func (c *tailnetUDPCmd) Run(r runtime) error {
	if err := r.daemon().EnsureClient(r, r.tailnet.Name, c.As, daemon.ClientOptions{}); err != nil {
		return err
	}
	conn, err := tailnet.Dial(r, r.paths.ClientSocket(r.tailnet.Name, c.As), "udp", c.Address)
	if err != nil {
		return err
	}
	defer conn.Close() // Only read.
	if err := conn.SetDeadline(time.Now().Add(c.Timeout)); err != nil {
		return errors.Wrap(err, "cannot set a deadline")
	}
	if _, err := conn.Write([]byte(c.Message)); err != nil {
		return errors.Wrap(err, "cannot send")
	}
	b := make([]byte, 1500)
	n, err := conn.Read(b)
	if err != nil {
		return errors.Wrap(err, "cannot read the answer")
	}
	fmt.Println(string(b[:n]))
	return nil
}

type curlCmd struct {
	getFlags

	URL  string `arg:"" help:"URL to get."`
	From string `default:"cluster" enum:"cluster,outside" help:"The client: the cluster's node, which resolves names of Services, or a host outside of all clusters, which can use only addresses."`
}

func (c *curlCmd) Run(r runtime) error {
	t := &http.Transport{}
	switch c.From {
	case "cluster":
		p, err := planned(r)
		if err != nil {
			return err
		}
		t.DialContext = inCluster(p)
	default:
		t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return netns.Dial(ctx, plan.ClientNamespace, network, addr)
		}
	}
	return c.get(r, c.URL, t)
}

type tailnetCurlCmd struct {
	getFlags

	URL string `arg:"" help:"URL to get. Names of machines and services of the tailnet are resolved by MagicDNS."`
	As  string `default:"client" help:"Name of the tailnet client that sends the request. If it does not exist, it joins first, with tag:client."`
}

func (c *tailnetCurlCmd) Run(r runtime) error {
	if err := r.daemon().EnsureClient(r, r.tailnet.Name, c.As, daemon.ClientOptions{}); err != nil {
		return err
	}
	return c.get(r, c.URL, tailnet.Transport(r.paths.ClientSocket(r.tailnet.Name, c.As)))
}

// getFlags are the flags of all commands that get a URL.
type getFlags struct {
	serverFlags

	Header  []string      `sep:"none" help:"Header to send, as NAME: VALUE. May be given more than once."`
	Headers bool          `short:"i" help:"Also print status, headers, and the serial number of the certificate."`
	Timeout time.Duration `default:"30s" help:"How long to wait for the response. The first connection over the tailnet takes some seconds."`
}

// serverFlags select the server of the request.
type serverFlags struct {
	Host   string `short:"H" help:"Name in the Host header and in TLS, instead of the URL's."`
	CACert string `name:"cacert" help:"File of the certificates to trust, instead of this machine's." type:"existingfile"`
}

// tls returns the TLS configuration, with the CAs to trust.
func (c *serverFlags) tls() (*tls.Config, error) {
	out := &tls.Config{ServerName: c.Host, MinVersion: tls.VersionTLS12}
	if c.CACert == "" {
		return out, nil
	}
	pem, err := os.ReadFile(c.CACert)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read certificates to trust")
	}
	out.RootCAs = x509.NewCertPool()
	if !out.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errors.Errorf("no certificate in %q", c.CACert)
	}
	return out, nil
}

// get prints the response of the URL, and follows no redirects. A status of 400 and above is
// an error.
func (c *getFlags) get(r runtime, url string, t *http.Transport) error {
	req, err := http.NewRequestWithContext(r, http.MethodGet, url, nil)
	if err != nil {
		return errors.Wrapf(err, "cannot make request for %q", url)
	}
	req.Host = cmp.Or(c.Host, req.URL.Host)
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return errors.Errorf("cannot send header %q: it must be NAME: VALUE", h)
		}
		// The name keeps its case, because servers differ in how they handle it.
		req.Header[name] = append(req.Header[name], strings.TrimSpace(value))
	}
	if t.TLSClientConfig, err = c.tls(); err != nil {
		return err
	}
	h := &http.Client{Transport: t, Timeout: c.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	rsp, err := h.Do(req)
	if err != nil {
		return errors.Wrap(err, "cannot get")
	}
	defer rsp.Body.Close() // Only read.
	if c.Headers {
		fmt.Printf("%s %s\n", rsp.Proto, rsp.Status)
		if rsp.TLS != nil && len(rsp.TLS.PeerCertificates) > 0 {
			fmt.Printf("Certificate-Serial: %x\n", rsp.TLS.PeerCertificates[0].SerialNumber)
		}
		if err := rsp.Header.Write(os.Stdout); err != nil {
			return errors.Wrap(err, "cannot print headers")
		}
		fmt.Println()
	}
	if _, err := io.Copy(os.Stdout, rsp.Body); err != nil {
		return errors.Wrap(err, "cannot read the answer")
	}
	if rsp.StatusCode >= http.StatusBadRequest {
		return errors.Errorf("%q answered %s", url, rsp.Status)
	}
	return nil
}
