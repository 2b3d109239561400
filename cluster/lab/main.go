// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command lab starts real Kubernetes clusters and simulated tailnets on one Linux machine, as
// root, with only the Go module proxy and Debian's packages. Start with `go run ./cluster/lab
// --help`.
//
// This package is the command line. The implementation is in packages below internal; a daemon
// owns the processes, see package daemon.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/daemon"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

const description = `A real cluster on this machine: etcd, Kubernetes, containerd, kube-router, which
enforces NetworkPolicies, a registry, and a simulated Tailscale that real tailscaled
processes join. Everything runs in network namespaces without a route to other networks.
"up" starts the lab, "down" removes all of it, and "status" lists the processes.

Folders: TSGW_LAB_DIR for a lab's files (default /var/lib/tailscale-gateway-lab), TSGW_CACHE
for built programs (default ~/.cache), which "down" keeps.`

type cli struct {
	Cluster string `default:"one" env:"TSGW_CLUSTER" help:"Cluster of the command: one, two, ... as listed by 'status'."`
	Tailnet string `default:"one" env:"TSGW_TAILNET" help:"Tailnet of the command: one, two, ... as listed by 'status'."`

	Up            upCmd            `cmd:"" help:"Build missing programs and start the lab. Does nothing if the lab is up. After a crash or a reboot, starts the lab again."`
	Down          downCmd          `cmd:"" help:"Remove the lab: every process, mount, network namespace, cgroup and file, except the cache."`
	Status        statusCmd        `cmd:"" help:"Show components, their health, and the ports on 127.0.0.1 that are forwarded into the lab."`
	Env           envCmd           `cmd:"" help:"Print shell exports for scripts: eval \"$(go run ./cluster/lab env)\"."`
	Logs          logsCmd          `cmd:"" help:"Show the log of a component, for instance kubelet-one, tailnetsim-one or daemon."`
	Kubectl       kubectlCmd       `cmd:"" passthrough:"" help:"Run kubectl against a cluster: lab kubectl get pods -A. Another cluster: lab --cluster two kubectl ..."`
	Kubeconfig    kubeconfigCmd    `cmd:"" help:"Print the path of a cluster's kubeconfig, for use on this machine."`
	Helm          helmCmd          `cmd:"" passthrough:"" help:"Run Helm against a cluster: lab helm list -A."`
	Crossplane    crossplaneCmd    `cmd:"" passthrough:"" help:"Run Crossplane's command line against a cluster: lab crossplane resource trace ..."`
	Curl          curlCmd          `cmd:"" help:"GET a URL from the cluster's node, by name or by address, or from outside of all clusters by the address of a LoadBalancer."`
	Lookup        lookupCmd        `cmd:"" help:"Resolve a name by the cluster's DNS: lab lookup --type=SRV web.shop.svc.clusterset.local."`
	TailnetClient tailnetClientCmd `cmd:"" help:"Create the client NAME in the tailnet. It serves HTTP on port 8080, UDP on port 8081, and gRPC's service for health checks on port 5000."`
	TailnetUDP    tailnetUDPCmd    `cmd:"" name:"tailnet-udp" help:"Send a datagram from a client of the tailnet, and print the response."`
	ClusterFault  clusterFaultCmd  `cmd:"" help:"Cut a cluster off, until --clear: all its packets to other clusters and to tailnets get lost. No connection ends, and its pods run on: lab --cluster two cluster-fault."`
	TailnetFault  tailnetFaultCmd  `cmd:"" help:"Make the tailnet's API, control server or relay fail, until --clear: lab --tailnet two tailnet-fault --on=control --refuse. Open connections stay open."`
	TailnetCurl   tailnetCurlCmd   `cmd:"" help:"GET a URL from a client of the tailnet, only through the tailnet: lab tailnet-curl http://web.tail1234.ts.net/. Another tailnet: lab --tailnet two tailnet-curl ..."`
	Tailscale     tailscaleCmd     `cmd:"" help:"Run the tailscale command line of a tailnet client of the lab: lab tailscale status."`
	Load          loadCmd          `cmd:"" help:"Send repeated requests to a URL, from the tailnet or from the cluster, and print the results as JSON."`
	Operator      operatorCmd      `cmd:"" help:"Build Tailscale's operator, push it to the lab's registry, and print the locations of its images and manifests."`
	ProxyImages   proxyImagesCmd   `cmd:"" help:"Build images of proxies with other versions of tailscaled, push them to the lab's registry, and print their names."`
	EnvoyGateway  envoyGatewayCmd  `cmd:"" help:"Install or upgrade Envoy Gateway: build it, download Envoy, push both, and run Helm. Gateways of the class 'envoy' work afterwards."`
	CertManager   certManagerCmd   `cmd:"" help:"Install or upgrade cert-manager: build it, push it, and run it in namespace cert-manager. Issuers of the kinds CA and SelfSigned work afterwards."`
	GatewayAPI    gatewayAPICmd    `cmd:"" name:"gateway-api" help:"Build Gateway API's conformance tests, whose path 'bin conformance.test' prints, and push the images of their backends."`
	Exec          execCmd          `cmd:"" help:"Run a program in the network namespace of the cluster's node: lab exec curl http://10.96.0.10/."`
	LoadImage     loadImageCmd     `cmd:"" help:"Push an image archive to the lab's registry, under the name that pods use."`
	PushXpkg      pushXpkgCmd      `cmd:"" help:"Push a Crossplane package to the lab's registry, under its public name."`
	Build         buildCmd         `cmd:"" help:"Build the third-party programs into the cache, without starting a lab."`
	Bin           binCmd           `cmd:"" help:"Print the path of a built program: kubectl, helm, crossplane, etcd, ..."`
	Chart         chartCmd         `cmd:"" help:"Print the folder of a Helm chart from the module cache: crossplane, envoy-gateway."`
	DaemonServer  daemonServerCmd  `cmd:"" name:"daemon" hidden:"" help:"The process that owns a lab. 'up' starts it."`
}

// A runtime is the input of every command.
type runtime struct {
	context.Context

	paths   host.Paths
	cluster string
	tailnet plan.Tailnet
}

func (r runtime) daemon() daemon.Client { return daemon.Client{Paths: r.paths} }

func main() {
	err := run(os.Args[1:])
	// A program that failed has already printed its error.
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.Exited() {
		os.Exit(ended.ExitCode())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	c := &cli{}
	parser, err := kong.New(c, kong.Name("lab"), kong.Description(description), kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return err
	}
	k, err := parser.Parse(args)
	parser.FatalIfErrorf(err)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r := runtime{Context: ctx, cluster: c.Cluster}
	if r.tailnet, err = plan.FindTailnet(c.Tailnet, plan.IPv4); err != nil {
		return err
	}
	if k.Command() != "daemon <file>" {
		if r.paths, err = host.FindPaths(os.Getenv); err != nil {
			return err
		}
	}
	return k.Run(r)
}
