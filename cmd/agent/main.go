// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// The agent runs beside tailscaled in every proxy pod. All it does is in
// internal/agent; here are its flags.
package main

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"
	_ "golang.org/x/crypto/x509roots/fallback" // For backends with protocol HTTPS: the image holds no certificates.
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/control"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/network"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/flags"
	"github.com/tailscale-gateway/tailscale-gateway/internal/logs"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
	"github.com/tailscale-gateway/tailscale-gateway/internal/trace"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

const description = `Runs beside tailscaled in a proxy pod of Tailscale Gateway.

It writes the files of containerboot: tailscaled's config, from the Secret POD-config, and the serve config, from the ServiceAttachments of its TailscaleEndpoints. It withdraws a service without healthy backends within seconds. It reports the state of each service in status.agent of the pod's Machine.

In a pod for egress it listens on the ports of its egress ConfigMap and dials their targets through tailscaled. It refuses a target that no device of the tailnet has, and never dials it on the pod network. With Kernel networking, it configures containerboot to forward instead.

If it has a zone, it resolves the names in it for devices of the tailnet.

HTTP: /startupz reports whether containerboot may start, or what is missing; /readyz and /healthz are for kubelet; /tailscalez is kubelet's liveness probe of the tailscale container, which fails if that does not respond or if the provider asks for another attempt of a machine that cannot log in; /drainedz responds when services that the command prestop withdrew have no clients left and connections into the tailnet have ended; /metrics is for Prometheus.`

// RunCmd runs the agent. Every flag can be set by environment variable, which is
// how the pods that the TailscaleEndpoints function composes do it.
type RunCmd struct {
	Debug bool `help:"Also log each write, and each failed attempt to report." env:"DEBUG"`

	PodName      string   `help:"Name of the pod. Its Machine and its state Secret have the same name." env:"POD_NAME" required:""`
	PodNamespace string   `help:"Namespace of the pod." env:"POD_NAMESPACE" required:""`
	PodIP        string   `help:"First address of the pod, to report." name:"pod-ip" env:"POD_IP"`
	PodIPs       []string `help:"All addresses of the pod, to listen on. They show which address families the pod has." name:"pod-ips" env:"POD_IPS"`
	NodeName     string   `help:"Kubernetes node of the pod, to report: machines of one node fail together." env:"NODE_NAME"`
	Endpoints    string   `help:"TailscaleEndpoints whose ServiceAttachments the agent serves." env:"ENDPOINTS" required:""`
	Networking   string   `help:"How packets are forwarded between tailnet and cluster: Userspace, by tailscaled and the agent, or Kernel, by rules that containerboot creates from the agent's files." enum:"Userspace,Kernel" default:"Userspace" env:"NETWORKING"`

	Listen              string        `help:"Address to serve probes and metrics on. Do not listen on all addresses, because tailscaled forwards connections to the machine's address in the tailnet to the loopback address." default:"${listen}" env:"LISTEN"`
	HooksSocket         string        `help:"Socket on which the pod's hooks are served." default:"${hooks_socket}" env:"HOOKS_SOCKET"`
	TailscaledConfigDir string        `help:"Directory in which containerboot reads tailscaled's config: its TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR." default:"/etc/tsconfig/${pod_name}" env:"TAILSCALED_CONFIG_DIR"`
	TLSDir              string        `help:"Directory for the certificates in use, for restarts of the agent while the API server is unavailable. It contains their keys, so it must be a volume in memory." name:"tls-dir" default:"/etc/agent-tls" env:"TLS_DIR"`
	ACMEDirectory       string        `help:"ACME directory that tailscaled is configured with, if it is not Let's Encrypt's production. A certificate of Let's Encrypt's staging environment is replaced when the directory is another one, and the other way around." name:"acme-directory" env:"ACME_DIRECTORY"`
	ServeConfig         string        `help:"File in which containerboot reads the serve config: its TS_SERVE_CONFIG." default:"/etc/proxies/serve-config.json" env:"SERVE_CONFIG"`
	NetworkReport       string        `help:"File with what was found out about Kernel networking." default:"${network_report}" env:"NETWORK_REPORT"`
	Socket              string        `help:"Socket of tailscaled's LocalAPI. The agent must run as tailscaled's user." default:"/var/run/tailscale/tailscaled.sock" env:"TS_SOCKET"`
	JoinPatience        time.Duration `help:"How long the first report waits for tailscaled to join the tailnet." default:"10s" env:"JOIN_PATIENCE"`
	StatePatience       time.Duration `help:"How long tailscaled may run without its state in the state Secret before it is logged out, to join again." default:"30s" env:"STATE_PATIENCE"`
	Drain               time.Duration `help:"How long a withdrawn service is still served, so that clients can move to another machine. Tailscale's control server may take 15s to choose one, and notifies clients after that. It begins once tailscaled has withdrawn the service; connections that are open after it have 15s more." default:"30s" env:"DRAIN"`
	GracePeriod         time.Duration `help:"The pod's termination grace period. Before the drain, services stay advertised until another host has them, as long as the period leaves time for the drain. If the pod still runs after it, the agent advertises the withdrawn services again." default:"120s" env:"GRACE_PERIOD"`

	ControlPatience   time.Duration `help:"How long the tailscale container of a machine with an identity waits for the control server to answer, when the pod starts. Without an answer, it would ask for another identity." default:"5m" env:"CONTROL_PATIENCE"`
	ControlHTTPProxy  string        `help:"HTTP_PROXY of tailscaled, for the same question to the control server." name:"control-http-proxy" env:"CONTROL_HTTP_PROXY"`
	ControlHTTPSProxy string        `help:"HTTPS_PROXY of tailscaled." name:"control-https-proxy" env:"CONTROL_HTTPS_PROXY"`
	ControlNoProxy    string        `help:"NO_PROXY of tailscaled." env:"CONTROL_NO_PROXY"`
	ControlCertFile   string        `help:"SSL_CERT_FILE of tailscaled." env:"CONTROL_SSL_CERT_FILE"`
	ControlCertDir    string        `help:"SSL_CERT_DIR of tailscaled." env:"CONTROL_SSL_CERT_DIR"`

	DNSConfigMap string `help:"ConfigMap with the names to resolve for the tailnet, on port 53 of the machine's addresses in the tailnet. If it is set, the pod must allow listening on port 53 without privileges." name:"dns-config-map" env:"DNS_CONFIG_MAP"`
	DNSDir       string `help:"Directory for a copy of the ConfigMap, for restarts of the agent while the API server is unavailable." name:"dns-dir" default:"/etc/tsconfig/dns" env:"DNS_DIR"`

	EgressConfigMap string        `help:"ConfigMap with the ports of the pod and their targets in the tailnet. If it is set, the pod is an egress pod and hosts no services." env:"EGRESS_CONFIG_MAP"`
	EgressDir       string        `help:"Directory for a copy of the ConfigMap, for restarts of the agent while the API server is unavailable." default:"/etc/tsconfig/egress" env:"EGRESS_DIR"`
	EgressSpread    time.Duration `help:"How long a released port still accepts connections, until all clients have been notified." default:"10s" env:"EGRESS_SPREAD"`
	EgressDrain     time.Duration `help:"How long connections into the tailnet may stay open after that, before they are closed." default:"90s" env:"EGRESS_DRAIN"`
	EgressIdle      time.Duration `help:"How long a connection into the tailnet may be idle before it is closed, for nodes that have vanished and clients that send nothing. Zero closes none. The default is that of kube-proxy for the connections of Services." default:"24h" env:"EGRESS_IDLE"`
	EgressTraces    string        `help:"OpenTelemetry collector that receives a span for each dial of a target in the tailnet whose request has a sampled traceparent header, by OTLP over gRPC: HOST:PORT without TLS, or https://HOST:PORT. Without it there are no spans." env:"EGRESS_TRACES" placeholder:"HOST:PORT"`
}

// Run runs the agent until it receives a signal.
func (c *RunCmd) Run() error {
	log := logs.New(logs.Options{Debug: c.Debug})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	cfg, err := rest.InClusterConfig()
	if err != nil {
		return errors.Wrap(err, "cannot get Kubernetes config of the pod")
	}
	kc, err := kube.NewClient(cfg)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return errors.Wrapf(err, "cannot listen on %q", c.Listen)
	}
	hooks, err := agent.ListenHooks(ctx, c.HooksSocket)
	if err != nil {
		return err
	}

	traces, err := trace.New(ctx, c.EgressTraces, "tailscale-gateway-proxy", version.Version, nil)
	if err != nil {
		return err
	}
	var tracer oteltrace.Tracer // Nil costs nothing.
	if traces.Sends() {
		tracer = traces.Tracer()
	}
	report, err := network.ReadReport(c.NetworkReport)
	if err != nil {
		log.Info("Cannot read what was found out about Kernel networking", "error", err)
	}

	log.Info("Starting", "version", version.Version, "pod", c.PodNamespace+"/"+c.PodName, "endpoints", c.Endpoints)
	a := agent.New(agent.Options{
		PodName:              c.PodName,
		PodNamespace:         c.PodNamespace,
		PodIP:                c.PodIP,
		NodeName:             c.NodeName,
		Endpoints:            c.Endpoints,
		TailscaledConfigDir:  c.TailscaledConfigDir,
		TLSDir:               c.TLSDir,
		ACMEDirectory:        c.ACMEDirectory,
		ServeConfigPath:      c.ServeConfig,
		Control:              address.Control,
		Drain:                c.Drain,
		Grace:                c.GracePeriod,
		JoinPatience:         c.JoinPatience,
		StatePatience:        c.StatePatience,
		ContainerbootMetrics: "http://" + podAddress(sidecar.PortContainerboot) + "/metrics",
		ControlPatience:      c.ControlPatience,
		ControlAnswers: control.NewClient(control.Options{
			HTTPProxy: c.ControlHTTPProxy, HTTPSProxy: c.ControlHTTPSProxy, NoProxy: c.ControlNoProxy,
			CertFile: c.ControlCertFile, CertDir: c.ControlCertDir,
		}).Answers,
		Pauses: agent.DefaultPauses(),
		Kernel: c.kernel(report),
		Egress: agent.EgressOptions{
			ConfigMap: c.EgressConfigMap,
			Addresses: c.addresses(),
			Dir:       c.EgressDir,
			Spread:    c.EgressSpread,
			Drain:     c.EgressDrain,
			Idle:      c.EgressIdle,
			Tracer:    tracer,
		},
		DNS: agent.DNSOptions{ConfigMap: c.DNSConfigMap, Dir: c.DNSDir, Port: sidecar.PortDNS},
	}, kc, localapi.NewClient(c.Socket), localapi.NewDialer(c.Socket), probe.NewNetChecker(), agent.NewMetrics(), log)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.Run(ctx, l, hooks) })
	g.Go(func() error { return traces.Run(ctx) })
	return g.Wait()
}

// addresses returns the addresses to listen on.
func (c *RunCmd) addresses() []string {
	if len(c.PodIPs) > 0 || c.PodIP == "" {
		return c.PodIPs
	}
	return []string{c.PodIP}
}

// kernel returns the options of Kernel networking, or nil without it.
func (c *RunCmd) kernel(report network.Report) *agent.KernelOptions {
	if c.Networking != string(v1alpha1.NetworkingKernel) {
		return nil
	}
	o := &agent.KernelOptions{Forwarding: network.Forwarding(network.ProcSys), Report: report, ForgetUDP: network.ForgetUDP, OpenTCP: network.OpenTCP}
	for _, s := range c.addresses() {
		// An invalid address has no family.
		if a, err := netip.ParseAddr(s); err == nil {
			o.PodAddresses = append(o.PodAddresses, a)
		}
	}
	return o
}

// podAddress is a port at the pod's address, or at all addresses while that is not
// known.
func podAddress(port int) string {
	return net.JoinHostPort(os.Getenv("POD_IP"), strconv.Itoa(port))
}

// program returns the agent's command line.
func program() flags.Program {
	return flags.Program{
		Name: "agent", Description: description, Version: version.Version,
		Vars: map[string]string{
			"pod_name": os.Getenv("POD_NAME"),
			"listen":   podAddress(sidecar.PortAgent), "hooks_socket": sidecar.FileHooks, "network_report": sidecar.FileNetworkReport,
		},
		Commands: []flags.Command{
			{Name: "run", Flags: &RunCmd{}, Help: "Run beside tailscaled until stopped. This is the default command."},
			{Name: "prestop", Flags: &PreStopCmd{}, Help: "Make the agent of this pod withdraw all services, because the pod is about to stop: kubelet's pre-stop hook. If the pod does not stop, the agent advertises them again after the grace period."},
			{Name: "check", Flags: &CheckCmd{}, Help: "Find out whether Kernel networking works on the pod's node, in an init container, and write a report for the agent."},
			{Name: "network", Flags: &NetworkCmd{}, Help: "Prepare the pod for Kernel networking, in an init container: enable IP forwarding in the kernel, unless it is enabled."},
		},
	}
}

func main() { program().Main() }
