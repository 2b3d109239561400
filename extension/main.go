// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// The extension makes Envoy Gateway accept TailscaleServices and TailscaleEndpoints as backends of
// routes. This package has its flags; package app does the work.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // For probes and traces: the image holds no certificates.
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/app"
	"github.com/tailscale-gateway/tailscale-gateway/extension/certificates"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/flags"
	"github.com/tailscale-gateway/tailscale-gateway/internal/logs"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

const description = `Makes Envoy Gateway accept TailscaleServices and TailscaleEndpoints as backends of routes.

Envoy Gateway calls the extension, on --hooks-address, after each translation of a Gateway, and the extension fills in the clusters of such backends. Envoys subscribe, on --eds-address, to the endpoints of these clusters, and get changes within milliseconds. The extension answers both from memory; it watches routes, services and endpoints in the Kubernetes API, or reads them from a folder.

Run at least two replicas: while none answers, Envoy Gateway waits, and a new Envoy has no endpoints. Running Envoys keep theirs.

HTTP, on --observe-address: /metrics for Prometheus, or as JSON on request; /healthz and /ready for kubelet; /health lists degraded parts, and /endpoints the health of each endpoint. / is a page that shows where a request goes, and why; /explain returns the same as JSON.`

// gcPercent is the growth of the heap, in percent of live memory, that starts a collection. Most
// live memory is the index, which stays: Go's default of 100 would double memory for no benefit.
// GOGC in the environment overrides it.
const gcPercent = 50

// CLI of the extension. Every flag can be set by environment variable.
type CLI struct {
	Debug bool `help:"Log more: each unknown endpoint list, and each broken stream." env:"DEBUG"`

	HooksAddress    string `help:"Address to serve Envoy Gateway's hooks on: HOST:PORT, or unix:PATH for a socket. Its extensionManager.service must lead here." default:":5005" env:"HOOKS_ADDRESS" group:"Hooks"`
	HooksTLS        string `help:"Folder with tls.crt and tls.key of the hook server, such as a mounted Secret; read again after changes." name:"hooks-tls" env:"HOOKS_TLS" placeholder:"DIR" group:"Hooks"`
	HooksClientCA   string `help:"File with the authorities of Envoy Gateway's client certificate." name:"hooks-client-ca" env:"HOOKS_CLIENT_CA" placeholder:"FILE" group:"Hooks"`
	HooksClientName string `help:"DNS name that Envoy Gateway's certificate must have, because the authority may have signed others. Empty permits any." name:"hooks-client-name" env:"HOOKS_CLIENT_NAME" placeholder:"NAME" group:"Hooks"`

	HooksMaxMessage int `help:"Greatest size of a hook's message, in MiB. A Gateway has some 0.8 KiB for each route, and what policies insert. Envoy Gateway's extensionManager.maxMessageSize must be as large; a Gateway beyond either limit is not updated." name:"hooks-max-message-mib" default:"256" env:"HOOKS_MAX_MESSAGE_MIB" placeholder:"MIB" group:"Hooks"`

	EDSAddress    string `help:"Address to serve endpoints to Envoys on: HOST:PORT, or unix:PATH for Envoys of the same machine." name:"eds-address" default:":5006" env:"EDS_ADDRESS" group:"Endpoints"`
	EDSTLS        string `help:"Folder with tls.crt and tls.key of the endpoint server, and their authority in ca.crt, the only one that Envoys trust." name:"eds-tls" env:"EDS_TLS" placeholder:"DIR" group:"Endpoints"`
	EDSClientCA   string `help:"File with the authorities of Envoys' client certificates." name:"eds-client-ca" env:"EDS_CLIENT_CA" placeholder:"FILE" group:"Endpoints"`
	EDSClientName string `help:"DNS name that Envoys' certificate must have. Empty permits any." name:"eds-client-name" env:"EDS_CLIENT_NAME" placeholder:"NAME" group:"Endpoints"`
	EDSClientTLS  string `help:"Folder with the tls.crt and tls.key that Envoys present: each cluster contains them. In mode XDSTP each Envoy's bootstrap configures its certificate." name:"eds-client-tls" env:"EDS_CLIENT_TLS" placeholder:"DIR" group:"Endpoints"`
	EDSTarget     string `help:"Address that Envoys dial for endpoints: ADDRESS:PORT, or any gRPC target. Use the Service of all replicas, by its address rather than by its name: Envoys on the host's network cannot resolve names of the cluster." name:"eds-target" default:"127.0.0.1:5006" env:"EDS_TARGET" group:"Endpoints"`
	EDSServer     string `help:"Name in the server's certificate that Envoys verify, if it differs from the dialed name. Certificates do not contain the address of a Service." name:"eds-server-name" env:"EDS_SERVER_NAME" placeholder:"NAME" group:"Endpoints"`
	XDSMode       string `help:"How Envoys subscribe to endpoints. GoogleGRPC needs nothing in an EnvoyProxy, and uses a connection for each target. XDSTP uses one stream for each Envoy, for thousands of targets, and needs the authority tailscale in each EnvoyProxy's bootstrap. Auto selects XDSTP for each Gateway whose EnvoyProxy, or that of its GatewayClass, or the default one in --envoy-gateway-config, has the authority, and GoogleGRPC for all others." name:"xds-mode" enum:"GoogleGRPC,XDSTP,Auto" default:"GoogleGRPC" env:"XDS_MODE" group:"Endpoints"`

	EnvoyGatewayConfig string `help:"NAMESPACE/NAME of the ConfigMap with Envoy Gateway's configuration in envoy-gateway.yaml: its envoyProxy is the default for Envoys without an EnvoyProxy. Only --xds-mode Auto reads it." name:"envoy-gateway-config" env:"ENVOY_GATEWAY_CONFIG" placeholder:"NAMESPACE/NAME" group:"Endpoints"`

	MakeCertificates string `help:"Generate and renew the certificates of both servers and of their clients that no other flag provides, and store them in the Secrets NAME-certificates and NAME-client of --namespace, which must exist, and which the ServiceAccount NAME owns. Envoy Gateway's configuration must name NAME-client as clientCertificateRef, and also as certificateRef, unless --hooks-tls has a certificate of another authority. NAME is the name of the Service for hooks, and NAME-eds that of the Service for endpoints." env:"MAKE_CERTIFICATES" placeholder:"NAME" group:"Operation"`

	WriteCertificates string   `help:"Instead of serving, create the certificates of both servers and of their clients, renew those with less than a third of their lifetime left, store them in the Secrets NAME-ca, NAME-tls, NAME-client and NAME-envoy of --namespace, and exit. A Job and a CronJob of the chart do so. Secrets of others are not changed." env:"WRITE_CERTIFICATES" placeholder:"NAME" group:"Operation"`
	CertificateNames  []string `help:"DNS names of both servers in the certificate of --write-certificates." env:"CERTIFICATE_NAMES" placeholder:"NAME" group:"Operation"`

	Kubeconfig string `help:"Kubeconfig file. Without it the extension must run in a pod." env:"KUBECONFIG" placeholder:"FILE" group:"Objects" xor:"source"`
	FromFiles  string `help:"Folder of YAML files to read objects from instead of the Kubernetes API; read again after changes. Use the same folder for an Envoy Gateway in standalone mode to try routes without a cluster." env:"FROM_FILES" type:"existingdir" placeholder:"DIR" group:"Objects" xor:"source"`

	Placeholders bool `help:"Keep a placeholder HTTPRoute for each Gateway with TCPRoutes, UDPRoutes or TLSRoutes that name a TailscaleServices or TailscaleEndpoints. It is in the routes' namespace, names the same backends and attaches to no listener. Without it Envoy Gateway reports BackendNotFound in the status of such routes, although it serves their traffic." default:"true" negatable:"" env:"PLACEHOLDERS" group:"Objects"`

	Failover bool `help:"Keep an EndpointSlice with an endpoint that is never ready for each Service without ready endpoints whose routes fail over to other clusters, as spec.failover of a TailscaleGateway requests. Without it Envoy Gateway answers 503 while such a Service has no endpoint at all, and nothing fails over." default:"true" negatable:"" env:"FAILOVER" group:"Objects"`

	Gateways bool `help:"For each TailscaleGateway with tailnets, write a GatewayReport of the routes that its Gateway has accepted, and the HTTPRoutes that it generates. One replica writes them, as with HealthReports. Without this flag the routes of TailscaleGateways are not shared." default:"true" negatable:"" env:"GATEWAYS" group:"Objects"`

	Discoveries bool `help:"For each match of a TailscaleRoutePolicy that selects devices by properties in a tailnet, write a Discovery that finds them. One replica writes them, as with HealthReports. Without this flag such matches match no client." default:"true" negatable:"" env:"DISCOVERIES" group:"Objects"`

	DirectTargets bool `help:"Let Envoys connect directly to hosts outside of tailnets that tenants name: backends of kind External, and an externalTarget that is not in a tailnet. Tenants that write TailscaleServices or TailscaleEndpoints then choose the addresses that Envoys connect to, except addresses of the Envoys themselves and of their nodes, and Services of other namespaces without a ReferenceGrant." env:"DIRECT_TARGETS" group:"Objects"`

	OnlyGateway string `help:"NAMESPACE/NAME of the only Gateway to serve, for a TailscaleGateway with an extensionServer. The extension then reads only that namespace. It writes HealthReports and the status of TailscaleRoutePolicies only if the extension that is installed for all Gateways writes none. Without this flag the extension serves all Gateways without a dedicated extension." name:"only-gateway" env:"ONLY_GATEWAY" placeholder:"NAMESPACE/NAME" group:"Objects"`

	Probe     bool   `help:"Probe endpoints as Envoys do, and use failing endpoints last. Envoys also check endpoints themselves: without this flag only their checks count, failoverTimeout and failback delays have no effect, and status has no health of endpoints." default:"true" negatable:"" env:"PROBE" group:"Health"`
	Namespace string `help:"Namespace of this pod, for the Lease that selects the replica that writes HealthReports, GatewayReports and generated routes. Without it none are written, and status has no health of endpoints and routes." env:"POD_NAMESPACE" group:"Health"`

	ObserveAddress string        `help:"Address to serve metrics, probes and the page on. Clients that reach it can read hosts, paths and endpoints of routes, and change nothing." default:":8080" env:"OBSERVE_ADDRESS" group:"Operation"`
	Pprof          bool          `help:"Serve profiles of the process under /debug/pprof on the same address. Clients that reach it can read memory." env:"PPROF" group:"Operation"`
	OTLPEndpoint   string        `help:"Destination of traces of hooks and of pushes of endpoints, by OTLP over gRPC: HOST:PORT without TLS, or https://HOST:PORT. Without it there are no traces." name:"otlp-endpoint" env:"OTLP_ENDPOINT" placeholder:"HOST:PORT" group:"Operation"`
	CABundle       string        `help:"PEM file with certificate authorities to trust for the collector of traces, and for probes of endpoints whose BackendTLSPolicy names the system's authorities, in addition to the system's or, where the system has none, the embedded ones. It is read at the start. Envoys verify these endpoints with the authorities of Envoy's image." name:"ca-bundle" env:"CA_BUNDLE" placeholder:"FILE" group:"Operation"`
	Drain          time.Duration `help:"Time for which the extension answers calls during shutdown, until clients have moved to other replicas." default:"5s" env:"DRAIN" group:"Operation"`
}

// Validate returns an error for flags that contradict each other.
func (c *CLI) Validate() error {
	if c.WriteCertificates != "" || len(c.CertificateNames) > 0 {
		return c.validateWrite()
	}
	if c.MakeCertificates != "" && (c.Namespace == "" || c.FromFiles != "") {
		return errors.New("--make-certificates needs --namespace, and the Kubernetes API")
	}
	for _, s := range []struct{ name, address, tls, clientCA string }{
		{"hooks", c.HooksAddress, c.HooksTLS, c.HooksClientCA},
		{"eds", c.EDSAddress, c.EDSTLS, c.EDSClientCA},
	} {
		switch generated := c.MakeCertificates != ""; {
		case s.clientCA != "" && s.tls == "" && !generated:
			return errors.Errorf("--%s-client-ca needs --%s-tls", s.name, s.name)
		case !generated && s.clientCA == "" && !serve.Local(s.address):
			return errors.Errorf("any client that reaches %s could call the server: set --%s-tls and --%s-client-ca, or --make-certificates", s.address, s.name, s.name)
		}
	}
	for flag, v := range map[string]string{"only-gateway": c.OnlyGateway, "envoy-gateway-config": c.EnvoyGatewayConfig} {
		if ns, name, ok := strings.Cut(v, "/"); v != "" && (!ok || ns == "" || name == "" || strings.Contains(name, "/")) {
			return errors.Errorf("--%s %q is not NAMESPACE/NAME", flag, v)
		}
	}
	if most := 2047; c.HooksMaxMessage < 0 || c.HooksMaxMessage > most {
		return errors.Errorf("--hooks-max-message-mib %d is not from 0, the default, to %d", c.HooksMaxMessage, most)
	}
	if xds.Mode(c.XDSMode) == xds.ModeAuto && c.OnlyGateway != "" {
		return errors.New("--xds-mode Auto reads EnvoyProxies and GatewayClasses, and --only-gateway permits no reads outside of its namespace: choose GoogleGRPC or XDSTP")
	}
	_, err := xds.DialTarget(c.EDSTarget)
	return err
}

// validateWrite returns an error for flags that --write-certificates lacks. Flags of servers have no
// effect beside it.
func (c *CLI) validateWrite() error {
	if c.WriteCertificates == "" || len(c.CertificateNames) == 0 {
		return errors.New("--write-certificates and --certificate-names need each other")
	}
	if c.Namespace == "" || c.FromFiles != "" || c.MakeCertificates != "" {
		return errors.New("--write-certificates needs --namespace, and the Kubernetes API, and excludes --make-certificates")
	}
	return nil
}

// namespacedName returns the name in a flag. Nil if the flag is empty.
func namespacedName(flag string) *types.NamespacedName {
	ns, name, ok := strings.Cut(flag, "/")
	if !ok {
		return nil
	}
	return &types.NamespacedName{Namespace: ns, Name: name}
}

// options returns the options of the extension.
func (c *CLI) options() app.Options {
	return app.Options{
		HooksAddress:    c.HooksAddress,
		EDSAddress:      c.EDSAddress,
		ObserveAddress:  c.ObserveAddress,
		HooksMaxMessage: c.HooksMaxMessage << 20,
		Certificates: certificates.Options{
			Hooks:     certificates.ServerOptions{TLS: c.HooksTLS, ClientCA: c.HooksClientCA, ClientName: c.HooksClientName},
			EDS:       certificates.ServerOptions{TLS: c.EDSTLS, ClientCA: c.EDSClientCA, ClientName: c.EDSClientName},
			EnvoyTLS:  c.EDSClientTLS,
			Target:    c.EDSTarget,
			Server:    c.EDSServer,
			Mode:      xds.Mode(c.XDSMode),
			Generate:  c.MakeCertificates,
			Namespace: c.Namespace,
		},
		EnvoyGatewayConfig: namespacedName(c.EnvoyGatewayConfig),
		Kubeconfig:         c.Kubeconfig,
		FromFiles:          c.FromFiles,
		Gateway:            namespacedName(c.OnlyGateway),
		DirectTargets:      c.DirectTargets,
		Placeholders:       c.Placeholders,
		Failover:           c.Failover,
		Gateways:           c.Gateways,
		Discoveries:        c.Discoveries,
		Probe:              c.Probe,
		Namespace:          c.Namespace,
		Pprof:              c.Pprof,
		OTLPEndpoint:       c.OTLPEndpoint,
		CABundle:           c.CABundle,
		Drain:              c.Drain,
	}
}

// Run runs the extension until it gets a signal to terminate, or writes certificates.
func (c *CLI) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, ok := os.LookupEnv("GOGC"); !ok {
		debug.SetGCPercent(gcPercent)
	}
	log := logs.New(logs.Options{Debug: c.Debug})
	if c.WriteCertificates != "" {
		return app.WriteCertificates(ctx, c.options(), c.WriteCertificates, c.CertificateNames, log)
	}
	return app.Run(ctx, c.options(), log)
}

// program returns the extension's command line.
func program() flags.Program {
	return flags.Program{Name: "extension", Description: description, Version: version.Version, Commands: []flags.Command{{Flags: &CLI{}}}}
}

func main() { program().Main() }
