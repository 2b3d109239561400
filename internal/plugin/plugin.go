// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package plugin holds the commands of the kubectl plugin. They read the cluster with the rights of
// the caller, and write only where a flag says so, or to install.
package plugin

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/alecthomas/kong"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// Exit codes. Scripts can use them as those of kubectl diff.
const (
	ExitNone   = 0 // Nothing to report, or everything reported is deleted.
	ExitFound  = 1 // Something is reported and stays, or is wrong.
	ExitFailed = 2 // The command failed, was called incorrectly, or could not read enough.
)

const description = `Answers questions about Tailscale Gateway in the cluster of your kubeconfig.

As a kubectl plugin the command is kubectl tailscale-gateway; under the name tsgw it is the same. It has the rights of your kubeconfig, and changes nothing without a flag that says so, except for install and drain.`

// cli has all flags and commands.
type cli struct {
	PluginVersion kong.VersionFlag `name:"version" help:"Print the version of the plugin and exit."`

	Cluster kubeFlags `embed:""`

	Install    installCmd    `cmd:"" help:"Install Tailscale Gateway, wait until it is ready, and say whether it is healthy."`
	Check      checkCmd      `cmd:"" help:"Say what keeps the installation from working, with the cause first and the command that fixes it."`
	Orphans    orphansCmd    `cmd:"" help:"List what this cluster left in its tailnets and in itself, and delete it on request."`
	Uninstall  uninstallCmd  `cmd:"" help:"List what would stay in the tailnets if the provider were removed now, and the commands that delete it first."`
	Drain      drainCmd      `cmd:"" help:"Hand what this cluster shares to other clusters, for maintenance, and wait until they serve it."`
	Status     statusCmd     `cmd:"" help:"Show tailnets, proxies, services and Gateways on one screen, with why some are not ready and the next step."`
	Version    versionCmd    `cmd:"" help:"Print the versions of the plugin, of the components in the cluster, and of what they run on."`
	Completion completionCmd `cmd:"" help:"Print a script that completes commands, flags and names of objects in a shell."`
}

// kubeFlags select the cluster, as those of kubectl do.
type kubeFlags struct {
	Kubeconfig     string        `help:"Path of the kubeconfig. The default is that of kubectl." placeholder:"FILE" group:"Cluster"`
	Context        string        `help:"Context of the kubeconfig." placeholder:"NAME" group:"Cluster"`
	As             string        `help:"User to impersonate." placeholder:"USER" group:"Cluster"`
	AsGroup        []string      `help:"Group to impersonate; may be repeated." placeholder:"GROUP" group:"Cluster"`
	RequestTimeout time.Duration `default:"30s" help:"Longest wait for one answer of the API server." group:"Cluster"`
}

// config returns the connection to the API server.
func (f kubeFlags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.Context}
	overrides.AuthInfo.Impersonate, overrides.AuthInfo.ImpersonateGroups = f.As, f.AsGroup
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("there is no kubeconfig: name one by --kubeconfig, or by the variable KUBECONFIG")
	}
	if err != nil {
		return nil, errors.Wrap(err, "cannot use the kubeconfig")
	}
	cfg.Timeout, cfg.UserAgent = f.RequestTimeout, version.UserAgent()
	// As kubectl, which leaves the limit of requests to the API server.
	cfg.QPS, cfg.Burst = 50, 300
	return cfg, nil
}

// A session is what commands work with.
type session struct {
	ctx   context.Context //nolint:containedctx // Kong calls commands without parameters.
	input io.Reader
	out   io.Writer
	errs  io.Writer
	kube  func() (client.Client, error)
	// server returns what answers what the API server is and serves.
	server func() (server, error)
	time   clock.PassiveClock
	wait   func(ctx context.Context, d time.Duration) error
	person person
	code   int
}

// Run runs a command and returns its exit code.
func Run(ctx context.Context, args []string, out, errs io.Writer) int {
	c := &cli{}
	s := &session{ctx: ctx, input: os.Stdin, out: out, errs: errs, time: clock.RealClock{}, wait: pause, person: terminal()}
	s.kube = func() (client.Client, error) { return connect(c.Cluster) }
	s.server = func() (server, error) {
		cfg, err := c.Cluster.config()
		if err != nil {
			return nil, err
		}
		d, err := discovery.NewDiscoveryClientForConfig(cfg)
		return d, errors.Wrap(err, "cannot connect to the API server")
	}
	return s.run(c, args)
}

func (s *session) run(c *cli, args []string) int {
	type exited struct{ code int }
	code := func() (code int) {
		// Kong ends the process for --help and --version; here it only ends the parsing.
		defer func() {
			switch r := recover().(type) {
			case nil:
			case exited:
				code = r.code
			default:
				panic(r)
			}
		}()
		parser, err := kong.New(c, kong.Name("kubectl tailscale-gateway"), kong.Description(description), kong.Writers(s.out, s.errs),
			kong.Vars{"version": version.Version}, kong.Help(help), kong.Exit(func(code int) { panic(exited{code}) }))
		if err != nil {
			return s.fail(err)
		}
		if len(args) > 0 && args[0] == commandComplete {
			return s.complete(parser.Model, args[1:])
		}
		k, err := parser.Parse(args)
		if err != nil {
			return s.fail(errors.Wrap(err, "cannot read the command line; --help shows it"))
		}
		if err := k.Run(s, &c.Cluster); err != nil {
			return s.fail(err)
		}
		return s.code
	}()
	return code
}

func (s *session) fail(err error) int {
	switch {
	case kerrors.IsUnauthorized(err):
		err = errors.New("the API server does not accept your credentials; see that --context and --kubeconfig name the cluster that you mean, and log in to it again")
	case unanswered(err):
		err = errors.New("the API server does not answer: " + root(err).Error() + "; see that --context and --kubeconfig name the cluster that you mean, and that it runs")
	}
	fmt.Fprintf(s.errs, "error: %s\n", Quoted(err.Error()))
	return ExitFailed
}

// unanswered reports whether an error means that nothing answered a request: a connection that failed, or time that ran
// out.
func unanswered(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport) || errors.Is(err, context.DeadlineExceeded)
}

// root returns the innermost error, which names the address and the cause.
func root(err error) error {
	var operation *net.OpError
	if errors.As(err, &operation) {
		return operation
	}
	var transport *url.Error
	if errors.As(err, &transport) {
		return transport.Err
	}
	return err
}

// help prints the help of kong, and that of the command.
func help(o kong.HelpOptions, k *kong.Context) error {
	if err := kong.DefaultHelpPrinter(o, k); err != nil {
		return errors.Wrap(err, "cannot print help")
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errors.Wrap(ctx.Err(), "interrupted")
	}
}
