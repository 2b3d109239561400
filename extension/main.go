// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// The extension teaches Envoy Gateway TailscaleServices and TailscaleEndpoints as
// backends of routes. Here are its flags and its wiring; all it does is in the
// packages below.
package main

import (
	"context"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

const description = `Lets routes of Envoy Gateway name TailscaleServices and TailscaleEndpoints as their backends.

Envoy Gateway asks it, on --hooks-address, whenever it has translated a Gateway, and it fills in the clusters of such backends. Envoys ask it, on --eds-address, for the endpoints of these clusters, and hear of changes within milliseconds. It answers both from memory; routes, services and endpoints are watched in the Kubernetes API, or read from a folder.

Run at least two: Envoy Gateway waits while none answers, and an Envoy that starts meanwhile has no endpoints. Envoys that run keep theirs.

HTTP, on --observe-address: /metrics is for Prometheus, or JSON on request; /healthz and /ready are for kubelet; /health tells what is wrong, and /endpoints how each endpoint fares. / is a page that tells where a request goes, and why; /explain has the same as JSON.`

// Ways in which Envoys subscribe to endpoints, beside GoogleGRPC.
const (
	modeAuto  = "Auto"
	modeXDSTP = "XDSTP"
)

// gcPercent is how much the heap grows, in percent of what is alive, before it is
// collected. What is alive is mostly the index, which stays: Go's own 100 takes as
// much again for nothing. GOGC in the environment overrules it.
const gcPercent = 50

// CLI of the extension. Every flag can be set by environment variable.
type CLI struct {
	Version kong.VersionFlag `help:"Print the version and exit."`
	Debug   bool             `help:"Log more: each name that no route asks for, and each broken stream." env:"DEBUG"`

	HooksAddress    string `help:"Address to serve Envoy Gateway's hooks on: HOST:PORT, or unix:PATH for a socket. Its extensionManager.service must lead here." default:":5005" env:"HOOKS_ADDRESS" group:"Hooks"`
	HooksTLS        string `help:"Folder with tls.crt and tls.key to show to Envoy Gateway, such as a mounted Secret; read again when they change." name:"hooks-tls" env:"HOOKS_TLS" placeholder:"DIR" group:"Hooks"`
	HooksClientCA   string `help:"File of the certificates that Envoy Gateway's own must chain to." name:"hooks-client-ca" env:"HOOKS_CLIENT_CA" placeholder:"FILE" group:"Hooks"`
	HooksClientName string `help:"DNS name that Envoy Gateway's certificate must be for: the authority may have signed others. Empty is any." name:"hooks-client-name" env:"HOOKS_CLIENT_NAME" placeholder:"NAME" group:"Hooks"`
	InsecureHooks   bool   `help:"Answer hooks of anybody who reaches the address, with --hooks-tls or in clear. An answer has the certificates of Gateways, with their keys. Without it a client certificate is asked for, unless the address is of this machine alone." env:"INSECURE_HOOKS" group:"Hooks"`

	EDSAddress    string `help:"Address to serve endpoints to Envoys on: HOST:PORT, or unix:PATH for Envoys of the same machine." name:"eds-address" default:":5006" env:"EDS_ADDRESS" group:"Endpoints"`
	EDSTLS        string `help:"Folder with tls.crt, tls.key, and in ca.crt what they chain to: Envoys are told to trust that alone." name:"eds-tls" env:"EDS_TLS" placeholder:"DIR" group:"Endpoints"`
	EDSClientCA   string `help:"File of the certificates that Envoys' own must chain to." name:"eds-client-ca" env:"EDS_CLIENT_CA" placeholder:"FILE" group:"Endpoints"`
	EDSClientName string `help:"DNS name that Envoys' certificate must be for. Empty is any." name:"eds-client-name" env:"EDS_CLIENT_NAME" placeholder:"NAME" group:"Endpoints"`
	EDSClientTLS  string `help:"Folder with tls.crt and tls.key for Envoys to present: hooks tell them in each cluster. With mode XDSTP it is for each Envoy's bootstrap to say." name:"eds-client-tls" env:"EDS_CLIENT_TLS" placeholder:"DIR" group:"Endpoints"`
	InsecureEDS   bool   `help:"Serve endpoints to anybody who reaches the address, with --eds-tls or in clear. Without it a client certificate is asked for, unless the address is of this machine alone." name:"insecure-eds" env:"INSECURE_EDS" group:"Endpoints"`
	EDSTarget     string `help:"What Envoys dial for endpoints: ADDRESS:PORT, or any gRPC target. The Service of all replicas, by its address rather than by its name: Envoys on the host's network cannot resolve names of the cluster." name:"eds-target" default:"127.0.0.1:5006" env:"EDS_TARGET" group:"Endpoints"`
	EDSServer     string `help:"Name in the certificate that Envoys check, if it is not what they dial. They cannot check the address of a Service, which no certificate is made for." name:"eds-server-name" env:"EDS_SERVER_NAME" placeholder:"NAME" group:"Endpoints"`
	XDSMode       string `help:"How Envoys subscribe to endpoints. GoogleGRPC needs nothing in an EnvoyProxy, and takes a connection for each target. XDSTP takes one stream for each Envoy, for thousands of targets, and needs the authority tailscale in each EnvoyProxy's bootstrap. Auto chooses XDSTP for each Gateway whose EnvoyProxy, or that of its GatewayClass, has the authority, or --envoy-gateway-config by default, and GoogleGRPC for all others." name:"xds-mode" enum:"GoogleGRPC,XDSTP,Auto" default:"GoogleGRPC" env:"XDS_MODE" group:"Endpoints"`

	EnvoyGatewayConfig string `help:"NAMESPACE/NAME of the ConfigMap with Envoy Gateway's configuration in envoy-gateway.yaml: Envoys without an EnvoyProxy of their own have its envoyProxy. Only --xds-mode Auto reads it." name:"envoy-gateway-config" env:"ENVOY_GATEWAY_CONFIG" placeholder:"NAMESPACE/NAME" group:"Endpoints"`

	MakeCertificates string `help:"Make the certificates of both servers and of their clients that no other flag gives, renew them, and keep them in Secrets NAME-certificates and NAME-client of --namespace, which end with its ServiceAccount NAME. Envoy Gateway's configuration is to name NAME-client as clientCertificateRef, and as certificateRef, too, unless --hooks-tls gives another authority's. NAME is that of the Service for hooks, and NAME-eds of that for endpoints." env:"MAKE_CERTIFICATES" placeholder:"NAME" group:"Operation"`

	Kubeconfig string `help:"File that says how to reach the Kubernetes API. Without it the extension must run in a pod." env:"KUBECONFIG" placeholder:"FILE" group:"Objects" xor:"source"`
	FromFiles  string `help:"Folder of YAML files to read objects from, again when they change, instead of the Kubernetes API. Point an Envoy Gateway in standalone mode at the same folder, and routes can be tried without a cluster." env:"FROM_FILES" type:"existingdir" placeholder:"DIR" group:"Objects" xor:"source"`

	Anchors bool `help:"Keep, for each Gateway with TCPRoutes, UDPRoutes or TLSRoutes that name a TailscaleServices or TailscaleEndpoints, an HTTPRoute in their namespace that names the same and attaches to no listener. Without it Envoy Gateway says BackendNotFound in the status of such routes, although their traffic flows." default:"true" negatable:"" env:"ANCHORS" group:"Objects"`

	Gateways bool `help:"Write, for each TailscaleGateway with tailnets, a GatewayReport of the routes that its Gateway has accepted, and the HTTPRoutes that it asks to be generated. One replica does, as with HealthReports. Without it its routes are not shared." default:"true" negatable:"" env:"GATEWAYS" group:"Objects"`

	Discoveries bool `help:"Write, for each match of a TailscaleRoutePolicy that names devices by what a tailnet says of them, a Discovery that looks for them. One replica does, as with HealthReports. Without it such matches are met by nobody." default:"true" negatable:"" env:"DISCOVERIES" group:"Objects"`

	DirectTargets bool `help:"Let Envoys connect by themselves to hosts outside of tailnets that tenants name: backends of kind External, and an externalTarget that is not in a tailnet. Tenants that write TailscaleServices or TailscaleEndpoints then choose what Envoys connect to, except addresses of the Envoys themselves and of their nodes, and Services of other namespaces without a ReferenceGrant." env:"DIRECT_TARGETS" group:"Objects"`

	OnlyGateway string `help:"NAMESPACE/NAME of a Gateway to serve alone, for a TailscaleGateway whose extensionServer this is. Nothing is read outside of that namespace. HealthReports and the status of TailscaleRoutePolicies are written where the extension that is installed for all Gateways writes none. Without it all Gateways are served that have no extension of their own." name:"only-gateway" env:"ONLY_GATEWAY" placeholder:"NAMESPACE/NAME" group:"Objects"`

	Probe     bool   `help:"Probe endpoints as Envoys do, and have those that fail come after all others. Envoys check them by themselves too: without it they go by that alone, failoverTimeout and failback delays mean nothing, and status tells nothing of endpoints." default:"true" negatable:"" env:"PROBE" group:"Health"`
	Namespace string `help:"Namespace that this pod runs in, for the Lease by which replicas settle who writes HealthReports, GatewayReports and generated routes. Without it none are written, and status tells nothing of endpoints and routes." env:"POD_NAMESPACE" group:"Health"`

	ObserveAddress string        `help:"Address to serve metrics, probes and the page on. Who reaches it sees hosts, paths and endpoints of routes, and can change nothing." default:":8080" env:"OBSERVE_ADDRESS" group:"Operation"`
	Pprof          bool          `help:"Serve profiles of the process under /debug/pprof on the same address. Who reaches it can read memory." env:"PPROF" group:"Operation"`
	OTLPEndpoint   string        `help:"Where to send traces of hooks and of pushes of endpoints, by OTLP over gRPC: HOST:PORT without TLS, or https://HOST:PORT. Without it there are none." name:"otlp-endpoint" env:"OTLP_ENDPOINT" placeholder:"HOST:PORT" group:"Operation"`
	Drain          time.Duration `help:"How long calls are still answered when the extension is told to end, until nobody is sent to it any more." default:"5s" env:"DRAIN" group:"Operation"`
}

// newLogger returns the logger of the process, and of libraries that have their own.
func newLogger(debug bool) logging.Logger {
	level := zapcore.InfoLevel
	if debug {
		level = zapcore.DebugLevel
	}
	zl := zap.New(zap.UseDevMode(false), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel))
	ctrllog.SetLogger(zl)
	klog.SetLogger(zl.WithName("kubernetes"))
	return logging.NewLogrLogger(zl)
}

// Validate what flags mean together.
func (c *CLI) Validate() error {
	if c.MakeCertificates != "" && (c.Namespace == "" || c.FromFiles != "") {
		return errors.New("--make-certificates needs --namespace, and the Kubernetes API")
	}
	for _, s := range []struct {
		name, address, tls, clientCA string
		insecure                     bool
	}{
		{"hooks", c.HooksAddress, c.HooksTLS, c.HooksClientCA, c.InsecureHooks},
		{"eds", c.EDSAddress, c.EDSTLS, c.EDSClientCA, c.InsecureEDS},
	} {
		switch made := c.MakeCertificates != ""; {
		case s.insecure && (made || s.clientCA != ""):
			return errors.Errorf("--insecure-%s answers anybody, and --%s-client-ca and --make-certificates do not: leave one out", s.name, s.name)
		case s.clientCA != "" && s.tls == "" && !made:
			return errors.Errorf("--%s-client-ca needs --%s-tls", s.name, s.name)
		case !s.insecure && !made && s.clientCA == "" && !serve.Local(s.address):
			return errors.Errorf("anybody who reaches %s could ask there: give --%s-tls and --%s-client-ca, or --make-certificates, or say --insecure-%s", s.address, s.name, s.name, s.name)
		}
	}
	for flag, v := range map[string]string{"only-gateway": c.OnlyGateway, "envoy-gateway-config": c.EnvoyGatewayConfig} {
		if ns, name, ok := strings.Cut(v, "/"); v != "" && (!ok || ns == "" || name == "" || strings.Contains(name, "/")) {
			return errors.Errorf("--%s %q is not NAMESPACE/NAME", flag, v)
		}
	}
	if c.XDSMode == modeAuto && c.OnlyGateway != "" {
		return errors.New("--xds-mode Auto reads EnvoyProxies and GatewayClasses, and --only-gateway reads nothing outside of its namespace: choose GoogleGRPC or XDSTP")
	}
	_, err := dialTarget(c.EDSTarget)
	return err
}

// only is the Gateway that is served alone. It is nil if all are.
func (c *CLI) only() *types.NamespacedName { return namespacedName(c.OnlyGateway) }

// namespacedName of a flag. It is nil without a value.
func namespacedName(flag string) *types.NamespacedName {
	ns, name, ok := strings.Cut(flag, "/")
	if !ok {
		return nil
	}
	return &types.NamespacedName{Namespace: ns, Name: name}
}

// kinds of objects that are read.
func (c *CLI) kinds() map[string]client.Object {
	out := parse.Kinds()
	if c.XDSMode == modeAuto {
		maps.Copy(out, parse.BootstrapKinds())
	}
	return out
}

// dialPolicy returns what Envoys may connect to without a proxy. A user with files runs Envoys on a
// machine of their own.
func (c *CLI) dialPolicy() index.DialPolicy {
	return index.DialPolicy{Direct: c.DirectTargets, Loopback: c.FromFiles != ""}
}

// Run the extension until it is told to end.
func (c *CLI) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, ok := os.LookupEnv("GOGC"); !ok {
		debug.SetGCPercent(gcPercent)
	}
	return run(ctx, c, newLogger(c.Debug))
}

func main() {
	ctx := kong.Parse(&CLI{},
		kong.Name("extension"),
		kong.Description(description),
		kong.UsageOnError(),
		kong.Vars{"version": version.Version},
	)
	ctx.FatalIfErrorf(ctx.Run())
}
