// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

// PauseImage is the image of every pod's sandbox.
const PauseImage = "registry.k8s.io/pause:3.10"

// Files returns the bodies of all configuration files by path below Dir.
func (c Cluster) Files() map[string]string {
	return map[string]string{
		"containerd.toml":             c.containerd(),
		"certs.d/_default/hosts.toml": c.hosts(),
		"cni/10-lab.conflist":         c.cni(),
		"kubelet.yaml":                c.kubelet(),
		"proxy.yaml":                  c.proxy(),
		"Corefile":                    c.corefile(),
		"resolv.conf":                 fmt.Sprintf("nameserver %s\n", c.Node),
	}
}

// containerd returns containerd's configuration. restrict_oom_score_adj is for machines without
// CAP_SYS_RESOURCE, where sandboxes would fail otherwise. The disabled plugins are for file systems
// that the lab does not use, or they write outside of the lab.
func (c Cluster) containerd() string {
	return fmt.Sprintf(`version = 2
root = %[1]q
state = %[2]q
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.opt",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = %[3]q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[4]q
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = %[5]q

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
  Root = %[6]q

[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = %[7]q
`, c.path("containerd"), c.Run+"/containerd", c.containerdSocket(), PauseImage, c.path("cni"), c.Run+"/runc", c.path("certs.d"))
}

// hosts makes the lab's registry serve the repositories of every registry, by their paths. The
// table of mirrors, which is required, is empty: its keys would be URLs, and containerd 1.6 cannot
// parse URLs with the brackets of an IPv6 address.
func (c Cluster) hosts() string {
	return fmt.Sprintf(`server = "http://%s"
capabilities = ["pull", "resolve"]

[host]
`, c.Hub.Registry())
}

// cni returns the configuration of the pods' network: an address of each family.
func (c Cluster) cni() string {
	var ranges []string
	for _, n := range c.Networks() {
		ranges = append(ranges, fmt.Sprintf(`[{"subnet": %q, "rangeStart": %q, "gateway": %q}]`, n.Pods, n.Node.Next(), n.Node))
	}
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": %[1]q,
  "plugins": [
    {
      "type": "bridge",
      "bridge": %[2]q,
      "isDefaultGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": %[3]q,
        "ranges": [%[4]s]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, c.Namespace, Bridge, c.path("ipam"), strings.Join(ranges, ", "))
}

// kubelet returns kubelet's configuration. Its sync periods are the defaults, as on users' nodes.
// The eviction thresholds are low because a lab shares its disk with builds.
func (c Cluster) kubelet() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: %[1]s
authorization:
  mode: Webhook
cgroupDriver: cgroupfs
cgroupRoot: /%[2]s
clusterDNS:
- %[3]s
clusterDomain: %[4]s
containerRuntimeEndpoint: unix://%[5]s
evictionHard:
  imagefs.available: 1%%
  memory.available: 100Mi
  nodefs.available: 1%%
  nodefs.inodesFree: 1%%
failCgroupV1: false
failSwapOn: false
healthzBindAddress: 127.0.0.1
imageGCHighThresholdPercent: 100
podLogsDir: %[6]s
resolvConf: %[7]s
tlsCertFile: %[8]s
tlsPrivateKeyFile: %[9]s
volumePluginDir: %[10]s
`, c.path("pki", "ca.crt"), c.Namespace, c.DNS, Domain, c.containerdSocket(), c.path("pods"),
		c.path("resolv.conf"), c.path("pki", "kubelet.crt"), c.path("pki", "kubelet.key"), c.path("flexvolume"))
}

// proxy returns kube-proxy's configuration. It keeps the machine's conntrack limits,
// which a network namespace cannot set.
func (c Cluster) proxy() string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection:
  kubeconfig: %s
clusterCIDR: %s
conntrack:
  maxPerCore: 0
  min: 0
healthzBindAddress: 127.0.0.1:10256
hostnameOverride: %s
metricsBindAddress: 127.0.0.1:10249
`, c.path("pki", "proxy.kubeconfig"), c.each(pods), c.Name)
}

// corefile returns CoreDNS's configuration. Names outside of the cluster do not exist, because
// the lab has no route to other networks, except for the registry's in a cluster without IPv4. Names of
// the Multi-Cluster Services API lead to the Services of imported ones, as docs/multicluster.md describes.
func (c Cluster) corefile() string {
	nodes := strings.ReplaceAll(c.each(node), ",", " ")
	registry := ""
	if c.Hub.Address().Is6() {
		registry = fmt.Sprintf(`%s {
    bind %s
    errors
    hosts /dev/null {
        %s %s
    }
}
`, plan.RegistryDomain, nodes, c.Hub.Address(), plan.RegistryName)
	}
	return registry + fmt.Sprintf(`%[1]s in-addr.arpa ip6.arpa {
    bind %[2]s
    errors
    ready 127.0.0.1:8181
    kubernetes %[1]s in-addr.arpa ip6.arpa {
        kubeconfig %[3]s
        ttl 5
    }
}
clusterset.local {
    bind %[2]s
    errors
    rewrite name regex ^(.*\.)?([^.]+)\.([^.]+)\.svc\.clusterset\.local\.?$ {1}clusterset-{2}.{3}.svc.%[1]s answer auto
    kubernetes %[1]s {
        kubeconfig %[3]s
        ttl 5
    }
}
. {
    bind %[2]s
    errors
    template ANY ANY {
        rcode NXDOMAIN
    }
}
`, Domain, nodes, c.path("pki", "coredns.kubeconfig"))
}
