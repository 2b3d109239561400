// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// The agent runs beside tailscaled in every proxy pod. All it does is in
// internal/agent; here are its flags.
package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/network"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

const description = `Runs beside tailscaled in a proxy pod of Tailscale Gateway.

It gives containerboot its files: tailscaled's config, from the Secret POD-config, and the serve config, from the ServiceAttachments of its TailscaleEndpoints. A service whose backends do not answer is withdrawn within seconds. How each service stands is reported in status.agent of the pod's Machine.

In a pod for egress it listens on the ports of its egress ConfigMap and dials their targets through tailscaled. A target that no device of the tailnet has is refused, and never dialled on the pod network. With Kernel networking it tells containerboot where to forward instead.

Where it is given a zone it resolves the names in it for devices of the tailnet.

HTTP: /startupz tells when containerboot may start, or what is missing; /readyz and /healthz are for kubelet; /drainedz answers when services that the command prestop withdrew have no clients left and connections into the tailnet have ended; /metrics is for Prometheus.`

// CLI of the agent. Without a command it runs the agent.
type CLI struct {
	Version kong.VersionFlag `help:"Print the version and exit."`

	Run     RunCmd     `cmd:"" default:"withargs" help:"Run beside tailscaled until told to end. This is what happens without a command."`
	PreStop PreStopCmd `cmd:"" name:"prestop" help:"Have the agent of this pod withdraw all services, because the pod is about to end: kubelet's pre-stop hook. If the pod does not end they come back after its grace period."`
	Network NetworkCmd `cmd:"" help:"Ready the pod for Kernel networking, in an init container: have the kernel forward packets, unless it does."`
}

// RunCmd runs the agent. Every flag can be set by environment variable, which is
// how the pods that the TailscaleEndpoints function composes do it.
type RunCmd struct {
	Debug bool `help:"Log more: each write, and each failed attempt to report." env:"DEBUG"`

	PodName      string `help:"Name of the pod. Its Machine and its state Secret have the same name." env:"POD_NAME" required:""`
	PodNamespace string `help:"Namespace of the pod." env:"POD_NAMESPACE" required:""`
	PodIP        string `help:"Address of the pod, to report, and to listen on." name:"pod-ip" env:"POD_IP"`
	Endpoints    string `help:"TailscaleEndpoints whose ServiceAttachments to act on." env:"ENDPOINTS" required:""`
	Networking   string `help:"How packets go between tailnet and cluster: Userspace, in tailscaled and the agent, or Kernel, by rules that containerboot makes from the agent's files." enum:"Userspace,Kernel" default:"Userspace" env:"NETWORKING"`

	Listen              string        `help:"Address to serve probes and metrics on. Not all addresses: tailscaled leads who connects to the machine's address in the tailnet to the loopback." default:"${listen}" env:"LISTEN"`
	HooksSocket         string        `help:"Socket to serve the pod's own hooks on." default:"${hooks_socket}" env:"HOOKS_SOCKET"`
	TailscaledConfigDir string        `help:"Where containerboot looks for tailscaled's config: its TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR." default:"/etc/tsconfig/${pod_name}" env:"TAILSCALED_CONFIG_DIR"`
	TLSDir              string        `help:"Where to keep the certificates in use, for an agent that restarts while the API server is away. Their keys are there: a volume in memory." name:"tls-dir" default:"/etc/agent-tls" env:"TLS_DIR"`
	ServeConfig         string        `help:"Where containerboot looks for the serve config: its TS_SERVE_CONFIG." default:"/etc/proxies/serve-config.json" env:"SERVE_CONFIG"`
	Socket              string        `help:"Socket of tailscaled's LocalAPI. The agent must run as tailscaled's user." default:"/var/run/tailscale/tailscaled.sock" env:"TS_SOCKET"`
	JoinPatience        time.Duration `help:"How long the first report waits for tailscaled to join the tailnet." default:"10s" env:"JOIN_PATIENCE"`
	StatePatience       time.Duration `help:"How long tailscaled may run without its state in the state Secret before it is logged out, to join anew." default:"30s" env:"STATE_PATIENCE"`
	Drain               time.Duration `help:"How long a withdrawn service is still served, for clients to move to another machine. Tailscale's control server may take 15s to choose one, and tells clients after that. It begins once tailscaled has withdrawn the service; connections that are open then have the rest of the grace period." default:"30s" env:"DRAIN"`
	GracePeriod         time.Duration `help:"How long kubelet gives the pod to end. Services that were withdrawn for its end come back when it runs on after that." default:"120s" env:"GRACE_PERIOD"`

	DNSConfigMap string `help:"ConfigMap that says which names to resolve for the tailnet, at port 53 of the machine's addresses there. Given, the pod must let port 53 be listened on without privilege." name:"dns-config-map" env:"DNS_CONFIG_MAP"`
	DNSDir       string `help:"Where to keep what the ConfigMap said, for an agent that restarts while the API server is away." name:"dns-dir" default:"/etc/tsconfig/dns" env:"DNS_DIR"`

	EgressConfigMap string        `help:"ConfigMap that says which port of the pod leads to which target in the tailnet. Given, the pod is one for egress, and hosts no services." env:"EGRESS_CONFIG_MAP"`
	EgressDir       string        `help:"Where to keep what the ConfigMap said, for an agent that restarts while the API server is away." default:"/etc/tsconfig/egress" env:"EGRESS_DIR"`
	EgressSpread    time.Duration `help:"How long a port that nobody is to use any more still takes connections, until everybody has heard." default:"10s" env:"EGRESS_SPREAD"`
	EgressDrain     time.Duration `help:"How long connections into the tailnet may stay open then. They are cut after that." default:"90s" env:"EGRESS_DRAIN"`
	EgressIdle      time.Duration `help:"How long a connection into the tailnet may carry nothing before it is cut, as it must be where a node has vanished and its client says nothing. Zero cuts none." default:"0s" env:"EGRESS_IDLE"`
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

// Run runs the agent until it is told to end.
func (c *RunCmd) Run() error {
	log := newLogger(c.Debug)

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

	log.Info("Starting", "version", version.Version, "pod", c.PodNamespace+"/"+c.PodName, "endpoints", c.Endpoints)
	a := agent.New(agent.Options{
		PodName:             c.PodName,
		PodNamespace:        c.PodNamespace,
		PodIP:               c.PodIP,
		Endpoints:           c.Endpoints,
		TailscaledConfigDir: c.TailscaledConfigDir,
		TLSDir:              c.TLSDir,
		ServeConfigPath:     c.ServeConfig,
		Control:             address.Control,
		Drain:               c.Drain,
		Grace:               c.GracePeriod,
		JoinPatience:        c.JoinPatience,
		StatePatience:       c.StatePatience,
		Pauses:              agent.DefaultPauses(),
		Kernel:              c.Networking == "Kernel",
		ForgetUDP:           network.ForgetUDP,
		Egress: agent.EgressOptions{
			ConfigMap: c.EgressConfigMap,
			Address:   c.PodIP,
			Dir:       c.EgressDir,
			Spread:    c.EgressSpread,
			Drain:     c.EgressDrain,
			Idle:      c.EgressIdle,
		},
		DNS: agent.DNSOptions{ConfigMap: c.DNSConfigMap, Dir: c.DNSDir, Port: proxy.PortDNS},
	}, kc, localapi.NewClient(c.Socket), localapi.NewDialer(c.Socket), probe.NewNetChecker(), agent.NewMetrics(), log)
	return a.Run(ctx, l, hooks)
}

// podAddress is a port at the pod's address, or at all addresses while that is not
// known.
func podAddress(port int) string {
	return net.JoinHostPort(os.Getenv("POD_IP"), strconv.Itoa(port))
}

func main() {
	ctx := kong.Parse(&CLI{},
		kong.Name("agent"),
		kong.Description(description),
		kong.UsageOnError(),
		kong.Vars{
			"version": version.Version, "pod_name": os.Getenv("POD_NAME"),
			"listen": podAddress(proxy.PortAgent), "hooks_socket": proxy.FileHooks,
		},
	)
	ctx.FatalIfErrorf(ctx.Run())
}
