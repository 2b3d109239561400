// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command tailnetsim runs a simulated Tailscale: API, coordination server, DERP
// and STUN. It is for tests and the lab; flags and wiring only live here.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

type cli struct {
	Listen           string    `default:"127.0.0.1:8080" help:"TCP address of API, coordination server and DERP."`
	STUN             string    `name:"stun" help:"UDP address of STUN. Default: the listen address's IP, port 3478."`
	DNS              string    `name:"dns" help:"UDP and TCP address of a DNS server for the TXT records that nodes set, for ACME servers. Default: none."`
	ACME             acmeFlags `embed:"" prefix:"acme-"`
	AdvertiseIP      string    `name:"advertise-ip" help:"IP address of DERP and STUN that nodes receive. Default: the listen address."`
	Domain           string    `default:"tail1234.ts.net" help:"DNS name of the tailnet."`
	Tailnet          string    `default:"example.com" help:"Name of the tailnet's organization."`
	ClientID         string    `name:"client-id" default:"sim" help:"Id of the OAuth client."`
	ClientSecretFile string    `name:"client-secret-file" type:"existingfile" help:"File with the OAuth client's secret. Without it, the API cannot be used."`
	ClientScopes     []string  `name:"client-scopes" default:"all" help:"Scopes of the OAuth client."`
	ClientTags       []string  `name:"client-tags" default:"tag:k8s-operator" help:"Tags of the OAuth client: it may give away the tags that these own."`
	APIKeyFile       string    `name:"api-key-file" type:"existingfile" help:"File with an API access token of the tailnet's owner. Default: there is none."`
	Policy           string    `type:"existingfile" help:"Initial policy file (HuJSON). Default: all devices reach each other, and every host of a service needs an approval."`
	Switches         string    `help:"Behaviors that depend on plan and timing, as JSON in the format of PUT /sim/switches, for example {\"failoverDelay\": \"15s\"}."`
	State            string    `help:"File that stores the tailnet across restarts (JSON)."`
	SimAdmin         bool      `name:"sim-admin" help:"Serve /sim/state, /sim/faults, /sim/switches, /sim/devices and /sim/services, without authentication."`
	LogLevel         string    `name:"log-level" enum:"debug,info,warn,error" default:"info" help:"One of ${enum}."`
}

// acmeFlags are the flags of the front of an ACME server, which adds Let's Encrypt's limits.
type acmeFlags struct {
	Listen    string `help:"TCP address of the ACME server's front. Default: there is none."`
	Directory string `help:"URL of the ACME server's directory."`
	CertFile  string `type:"existingfile" help:"File with the front's certificate (PEM)."`
	KeyFile   string `type:"existingfile" help:"File with the certificate's key (PEM)."`
}

// start serves the front, if there is one.
func (f acmeFlags) start(s *tailnetsim.Server) error {
	if f.Listen == "" {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
	if err != nil {
		return errors.Wrap(err, "cannot read --acme-cert-file and --acme-key-file")
	}
	_, err = s.StartACME(tailnetsim.ACMEOptions{Listen: f.Listen, Certificate: cert, Directory: f.Directory})
	return err
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("tailnetsim"), kong.Description("A simulated Tailscale for tests."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k.FatalIfErrorf(c.run(ctx, os.Stdout, os.Stderr))
}

// run serves until ctx is done. It prints one line to out when it is ready.
func (c *cli) run(ctx context.Context, out, errOut io.Writer) error {
	o, err := c.options(errOut)
	if err != nil {
		return err
	}
	stun := c.STUN
	if stun == "" {
		host, _, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return errors.Wrap(err, "cannot parse --listen")
		}
		stun = net.JoinHostPort(host, "3478")
	}
	s, err := tailnetsim.New(o)
	if err != nil {
		return err
	}
	if err := s.Start(c.Listen, stun); err != nil {
		return errors.Join(err, s.Close())
	}
	if c.DNS != "" {
		if _, err := s.StartDNS(c.DNS); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	if err := c.ACME.start(s); err != nil {
		return errors.Join(err, s.Close())
	}
	if _, err := fmt.Fprintf(out, "tailnetsim ready: %s, STUN %s, tailnet %s\n", s.URL(), s.STUNAddr(), s.Domain()); err != nil {
		return errors.Join(errors.Wrap(err, "cannot print"), s.Close())
	}
	<-ctx.Done()
	return s.Close()
}

func (c *cli) options(errOut io.Writer) (tailnetsim.Options, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return tailnetsim.Options{}, errors.Wrap(err, "cannot parse --log-level")
	}
	o := tailnetsim.Options{
		Domain: c.Domain, Tailnet: c.Tailnet, StateFile: c.State, Admin: c.SimAdmin,
		Logger: slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: level})),
	}
	if c.Switches != "" {
		w, err := tailnetsim.ParseSwitches([]byte(c.Switches))
		if err != nil {
			return o, errors.Wrap(err, "cannot parse --switches")
		}
		o.Switches = w
	}
	if c.AdvertiseIP != "" {
		a, err := netip.ParseAddr(c.AdvertiseIP)
		if err != nil {
			return o, errors.Wrap(err, "cannot parse --advertise-ip")
		}
		o.AdvertiseAddr = a
	}
	if c.ClientSecretFile != "" {
		secret, err := secretOf(c.ClientSecretFile)
		if err != nil {
			return o, errors.Wrap(err, "cannot read --client-secret-file")
		}
		o.Clients = []tailnetsim.OAuthClient{{ID: c.ClientID, Secret: secret, Scopes: c.ClientScopes, Tags: c.ClientTags}}
	}
	if c.APIKeyFile != "" {
		key, err := secretOf(c.APIKeyFile)
		if err != nil {
			return o, errors.Wrap(err, "cannot read --api-key-file")
		}
		o.APIKeys = []string{key}
	}
	if c.Policy != "" {
		b, err := os.ReadFile(c.Policy)
		if err != nil {
			return o, errors.Wrap(err, "cannot read --policy")
		}
		o.Policy = string(b)
	}
	return o, nil
}

// secretOf reads a file that has nothing but a secret.
func secretOf(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(b))
	if secret == "" {
		return "", errors.New("it is empty")
	}
	return secret, nil
}
