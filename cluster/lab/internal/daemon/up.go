// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/cluster"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/images"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/loadbalancer"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/registry"
)

// Names of forwards. Those of tailnets and clusters end with the tailnet's or cluster's name.
const (
	ForwardRegistry  = "registry"
	ForwardTailnet   = "tailnet-"
	ForwardAPIServer = "kube-apiserver-"
)

// componentLimit is how long a component may take to become healthy. Concurrent
// builds make the machine slow.
const componentLimit = 3 * time.Minute

// up brings up the lab. It builds images while clusters start.
func (d *Daemon) up(ctx context.Context) error {
	if err := d.progress.run("networks", func(func(string)) error { return d.networks(ctx) }); err != nil {
		return err
	}
	if err := d.progress.run("registry", func(func(string)) error { return d.registry(ctx) }); err != nil {
		return err
	}
	if err := d.whoami(ctx); err != nil {
		return err
	}
	if err := d.progress.run("certificates", func(func(string)) error { return writeACME(d.cfg.Paths, d.cfg.hub(), time.Now()) }); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.images(ctx) })
	g.Go(func() error { return d.outside(ctx) })
	for _, t := range d.tailnets {
		g.Go(func() error { return d.tailnet(ctx, t) })
	}
	for _, p := range d.plans {
		g.Go(func() error { return d.cluster(ctx, p) })
	}
	return g.Wait()
}

// networks creates all namespaces, and joins them with the hub's bridge.
func (d *Daemon) networks(ctx context.Context) error {
	hub, err := d.namespace(plan.TailnetNamespace)
	if err != nil {
		return err
	}
	addresses := d.cfg.hub()
	if err := hub.Bridge(plan.HubBridge, addresses.Addresses...); err != nil {
		return err
	}
	for _, t := range d.tailnets[1:] {
		if err := hub.Loopback(netip.PrefixFrom(t.Address, t.Address.BitLen())); err != nil {
			return errors.Wrapf(err, "cannot add the address of tailnet %q", t.Name)
		}
	}
	client, err := d.namespace(plan.ClientNamespace)
	if err != nil {
		return err
	}
	if err := d.join(client, addresses.Clients, hub, "client"); err != nil {
		return err
	}
	if err := client.Loopback(netip.MustParsePrefix(plan.HostBehindClients + "/32")); err != nil {
		return err
	}
	for _, p := range d.plans {
		if err := d.clusterNetwork(ctx, p, hub); err != nil {
			return errors.Wrapf(err, "cannot make network of cluster %q", p.Name)
		}
	}
	return d.clusterRoutes(client)
}

// join links a namespace to the hub's network.
func (d *Daemon) join(ns *netns.Namespace, addrs []netip.Prefix, hub *netns.Namespace, port string) error {
	if d.cfg.Path == nil {
		return ns.Join(cluster.WAN, addrs, hub, plan.HubBridge, port)
	}
	return ns.JoinBy(*d.cfg.Path, cluster.WAN, addrs, hub, plan.HubBridge, port)
}

// clusterRoutes routes traffic of clusters and clients for a cluster's LoadBalancers and node
// to the cluster's address on the hub, as a cloud's network does.
func (d *Daemon) clusterRoutes(client *netns.Namespace) error {
	for _, to := range d.plans {
		from := []*netns.Namespace{client}
		for _, p := range d.plans {
			if p.Name != to.Name {
				from = append(from, d.madeNamespace(p.Namespace))
			}
		}
		for _, ns := range from {
			for _, n := range to.Networks() {
				for _, dst := range []netip.Prefix{n.LoadBalancers, netip.PrefixFrom(n.Node, n.Node.BitLen())} {
					if err := ns.RouteVia(dst, n.WAN.Addr()); err != nil {
						return errors.Wrapf(err, "cannot connect %q to %s of cluster %q", ns.Name, dst, to.Name)
					}
				}
			}
		}
	}
	return nil
}

func (d *Daemon) namespace(name string) (*netns.Namespace, error) {
	ns, err := netns.Create(name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.namespaces[name] = ns
	return ns, nil
}

func (d *Daemon) madeNamespace(name string) *netns.Namespace {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.namespaces[name]
}

func (d *Daemon) clusterNetwork(ctx context.Context, p plan.Cluster, hub *netns.Namespace) error {
	ns, err := d.namespace(p.Namespace)
	if err != nil {
		return err
	}
	var nodes, wans []netip.Prefix
	for _, n := range p.Networks() {
		if err := ns.Sysctl(forwarding(n), "1"); err != nil {
			return err
		}
		nodes, wans = append(nodes, netip.PrefixFrom(n.Node, n.Pods.Bits())), append(wans, n.WAN)
	}
	if err := ns.Bridge(cluster.Bridge, nodes...); err != nil {
		return err
	}
	if err := d.join(ns, wans, hub, p.Name); err != nil {
		return err
	}
	for _, n := range p.Networks() {
		for _, r := range []netip.Prefix{n.Services, n.LoadBalancers} {
			if err := ns.Route(r, cluster.Bridge); err != nil {
				return err
			}
		}
		if err := ns.Do(func() error { return masquerade(ctx, n) }); err != nil {
			return err
		}
	}
	return nil
}

// forwarding returns the name of the kernel setting that makes a node a router.
func forwarding(n plan.Network) string {
	if n.Node.Is6() {
		return "net.ipv6.conf.all.forwarding"
	}
	return "net.ipv4.ip_forward"
}

// masquerade makes pods leave the cluster with its one address, as behind any NAT.
func masquerade(ctx context.Context, n plan.Network) error {
	program := "iptables"
	if n.Node.Is6() {
		program = "ip6tables"
	}
	out, err := exec.CommandContext(ctx, program, "-w", "-t", "nat", "-A", "POSTROUTING", "-s", n.Pods.String(), "-o", cluster.WAN, "-j", "MASQUERADE").CombinedOutput()
	return errors.Wrapf(err, "cannot masquerade pods: %s", strings.TrimSpace(string(out)))
}

func (d *Daemon) registry(ctx context.Context) error {
	r, err := registry.New(ctx, d.cfg.Paths.Registry())
	if err != nil {
		return err
	}
	at := d.cfg.hub().Registry()
	l, err := netns.Listen(ctx, plan.TailnetNamespace, "tcp", at)
	if err != nil {
		return errors.Wrap(err, "cannot listen for the registry")
	}
	s := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go s.Serve(l) //nolint:errcheck // Close ends it.
	context.AfterFunc(ctx, func() { _ = s.Close() })
	_, err = d.addForward(ctx, ForwardRegistry, plan.RegistryPort, plan.TailnetNamespace, at)
	return err
}

func (d *Daemon) images(ctx context.Context) error {
	return d.progress.run("images", func(say func(string)) error {
		for _, i := range images.Table(d.cfg.Bin, d.cfg.Crossplane, images.Outside{Roots: Trusted(d.cfg.Paths), ACMEDirectory: d.cfg.hub().ACMEDirectory()}) {
			say("pushing " + i.Name)
			img, err := i.Build()
			if err != nil {
				return err
			}
			if err := images.Push(ctx, d.forwardTo(ForwardRegistry), i.Name, img); err != nil {
				return err
			}
		}
		return nil
	})
}

// outside starts the servers that all tailnets and clusters share: the ACME server, and
// the servers behind the tailnets' clients.
func (d *Daemon) outside(ctx context.Context) error {
	err := d.progress.run("ACME server", func(say func(string)) error {
		if err := d.start(ctx, acmeServer(d.cfg.Paths, d.cfg.Bin[acme]), componentLimit, say); err != nil {
			return err
		}
		return until(ctx, time.Minute, say, func(ctx context.Context) error { return acmeRoot(ctx, d.cfg.Paths, d.cfg.hub()) })
	})
	if err != nil {
		return err
	}
	return d.progress.run("servers behind tailnet clients", func(say func(string)) error {
		if err := d.start(ctx, clientServer(d.cfg.Bin), componentLimit, say); err != nil {
			return err
		}
		return d.start(ctx, clientGRPCServer(d.cfg.Bin), componentLimit, say)
	})
}

// tailnet brings up one tailnet, with a client in it.
func (d *Daemon) tailnet(ctx context.Context, t plan.Tailnet) error {
	name := "tailnet " + t.Name + ": "
	err := d.progress.run(name+"simulator", func(say func(string)) error {
		if err := writeTailnet(d.cfg.Paths, t, d.cfg.Policy); err != nil {
			return err
		}
		if err := d.start(ctx, simulator(d.cfg.Paths, t, d.cfg.hub(), d.cfg.Bin["tailnetsim"]), componentLimit, say); err != nil {
			return err
		}
		_, err := d.addForward(ctx, ForwardTailnet+t.Name, plan.TailnetPort+t.Index, plan.TailnetNamespace, t.HostPort())
		return err
	})
	if err != nil {
		return err
	}
	return d.progress.run(name+"client", func(say func(string)) error { return d.ensureClient(ctx, t, DefaultClient, ClientOptions{}, say) })
}

// cluster brings up one cluster, and returns when its node is ready and its DNS
// responds.
func (d *Daemon) cluster(ctx context.Context, p plan.Cluster) error {
	name := "cluster " + p.Name + ": "
	var c cluster.Cluster
	err := d.progress.run(name+"configuration", func(func(string)) error {
		f, err := d.addForward(ctx, ForwardAPIServer+p.Name, plan.APIServerPort+p.Index, p.Namespace, net.JoinHostPort(p.Node.String(), "6443"))
		if err != nil {
			return err
		}
		if err := host.MakeCgroup(p.Namespace); err != nil {
			return err
		}
		c = cluster.New(p, d.cfg.Paths, d.cfg.Bin, f.From)
		return c.Prepare(time.Now())
	})
	if err != nil {
		return err
	}
	var k kubernetes.Interface
	for _, comp := range c.Components() {
		if err := d.progress.run(name+comp.Program, func(say func(string)) error { return d.start(ctx, comp, componentLimit, say) }); err != nil {
			return err
		}
		if comp.Program != "kube-apiserver" {
			continue
		}
		// CoreDNS and kube-router become ready only with permissions; pods find CoreDNS by its
		// Service.
		err := d.progress.run(name+"roles and DNS objects", func(say func(string)) error {
			var err error
			if k, err = d.kube(p.Name); err != nil {
				return err
			}
			return until(ctx, time.Minute, say, func(ctx context.Context) error {
				if err := c.ApplyRoles(ctx, k); err != nil {
					return err
				}
				return c.ApplyDNS(ctx, k)
			})
		})
		if err != nil {
			return err
		}
	}
	if err := d.progress.run(name+"DNS", func(say func(string)) error {
		return until(ctx, time.Minute, say, func(ctx context.Context) error { return answers(ctx, p) })
	}); err != nil {
		return err
	}
	go d.loadBalancers(context.WithoutCancel(ctx), k, p)
	return d.progress.run(name+"node ready", func(say func(string)) error {
		return until(ctx, componentLimit, say, func(ctx context.Context) error { return nodeReady(ctx, k, p.Name) })
	})
}

// loadBalancers assigns addresses to Services of type LoadBalancer, as long as this
// process runs.
func (d *Daemon) loadBalancers(ctx context.Context, k kubernetes.Interface, p plan.Cluster) {
	l := log.New(os.Stderr, "cluster "+p.Name+": LoadBalancers: ", log.LstdFlags)
	if err := loadbalancer.Run(ctx, k, p.LoadBalancers, l); err != nil {
		l.Print(err)
	}
}

func (d *Daemon) kube(name string) (kubernetes.Interface, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", d.cfg.Paths.Kubeconfig(name))
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read kubeconfig of cluster %q", name)
	}
	k, err := kubernetes.NewForConfig(cfg)
	return k, errors.Wrapf(err, "cannot make client of cluster %q", name)
}

// answers resolves the API server's name with the cluster's DNS, as a pod would.
func answers(ctx context.Context, p plan.Cluster) error {
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return netns.Dial(ctx, p.Namespace, network, net.JoinHostPort(p.DNS.String(), "53"))
	}}
	want := "kubernetes.default.svc." + cluster.Domain
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	addrs, err := r.LookupHost(ctx, want+".")
	if err != nil {
		return errors.Wrapf(err, "cannot resolve %q", want)
	}
	if len(addrs) != 1 || addrs[0] != p.API.String() {
		return errors.Errorf("%q resolves to %v, not %s", want, addrs, p.API)
	}
	return nil
}

func nodeReady(ctx context.Context, k kubernetes.Interface, name string) error {
	n, err := k.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return errors.Wrapf(err, "cannot get node %q", name)
	}
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.Status == corev1.ConditionTrue {
			return nil
		}
		return errors.Errorf("node %q is not ready: %s", name, c.Message)
	}
	return errors.Errorf("node %q has not reported yet", name)
}
