// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

// envFirewallMode selects the packet filter of tailscaled and containerboot.
const envFirewallMode = "TS_DEBUG_FIREWALL_MODE"

// Arguments of the agent's image that prepare a pod's network.
const (
	argNetwork = "network"

	// argCheck checks the pod's network, and writes a report for the agent.
	argCheck = "check"

	// argServices also checks whether forwarded packets arrive at Services.
	argServices = "--services"

	// argGuard drops packets that are translated for a target in the tailnet and would leave
	// through another interface than the tailnet's.
	argGuard = "--guard"
)

// kernel configures the tailscale container for kernel routing. It creates /dev/net/tun if it
// does not exist (cmd/containerboot, ensureTunFile), so it need not be privileged.
func kernel(o Options, c *corev1.Container) {
	c.SecurityContext = tunSecurityContext(o)
	if o.egress() {
		// Containerboot expects the directory, and finds its file there.
		c.Env = append(c.Env, corev1.EnvVar{Name: "TS_EGRESS_PROXIES_CONFIG_PATH", Value: DirProxiesConfig})
	} else {
		c.Env = append(c.Env, corev1.EnvVar{Name: "TS_INGRESS_PROXIES_CONFIG_PATH", Value: FileIngressConfig})
	}
	// By default, tailscaled uses iptables if the binary exists, whether or not the kernel
	// supports it. auto uses the filter for which the pod's network has rules, else nftables,
	// else iptables (util/linuxfw/detector.go), and needs no binary.
	c.Env = withDefault(o, c.Env, envFirewallMode, "auto")
}

// tunSecurityContext returns the security context of a container that uses a TUN device. Container
// runtimes may deny the device to containers that are not privileged (opencontainers/runc#3468,
// tailscale/tailscale#14256).
func tunSecurityContext(o Options) *corev1.SecurityContext {
	if k := o.Pods.Kernel; k != nil && ptr.Deref(k.Privileged, false) {
		return &corev1.SecurityContext{Privileged: ptr.To(true), ReadOnlyRootFilesystem: ptr.To(true)}
	}
	s := unprivileged()
	s.Capabilities.Add = []corev1.Capability{"NET_ADMIN", "NET_RAW", "MKNOD"}
	return s
}

// check returns the init container that finds out whether Kernel networking works on the node. It
// has the rights and the devices of the tailscale container: a device plugin gives a device to the
// containers that request its resource.
func check(o Options, img Images) []corev1.Container {
	if !o.kernel() {
		return nil
	}
	c := corev1.Container{
		Name:            ContainerCheck,
		Image:           img.Agent,
		Args:            []string{argCheck},
		Resources:       requests("10m", "32Mi"),
		SecurityContext: tunSecurityContext(o),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeRun, MountPath: sidecar.DirRun}},
	}
	if o.Pods.Resources != nil {
		c.Resources = *o.Pods.Resources
	}
	if !o.egress() {
		c.Args = append(c.Args, argServices)
	}
	return []corev1.Container{c}
}

// kernelSecurityContext runs both containers as root: tailscaled requires it, and lets only its
// own user change its configuration.
func kernelSecurityContext(o Options) *corev1.PodSecurityContext {
	s := ptr.Deref(o.Pods.SecurityContext, tailnetv1alpha1.PodSecurityContext{})
	c := &corev1.PodSecurityContext{
		RunAsNonRoot:       ptr.To(false),
		RunAsUser:          ptr.To[int64](0),
		RunAsGroup:         ptr.To[int64](0),
		FSGroup:            ptr.To(ptr.Deref(s.FSGroup, uid)),
		SupplementalGroups: s.SupplementalGroups,
		SELinuxOptions:     seLinuxOptions(s),
		SeccompProfile:     &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	c.Sysctls = dnsSysctls(o)
	if o.podSysctl() {
		c.Sysctls = append(c.Sysctls, corev1.Sysctl{Name: "net.ipv4.ip_forward", Value: "1"})
	}
	return c
}

// network returns the init container that prepares the pod's network, because containerboot
// does not enable IP forwarding for proxies that are configured by files.
func network(o Options, img Images) []corev1.Container {
	if !o.kernel() || o.podSysctl() && !o.egress() {
		return nil
	}
	c := corev1.Container{
		Name:      ContainerNetwork,
		Image:     img.Agent,
		Args:      []string{argNetwork},
		Resources: requests("10m", "32Mi"),
		// Only a privileged container may write to /proc/sys.
		SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true), ReadOnlyRootFilesystem: ptr.To(true)},
	}
	if o.Pods.AgentResources != nil {
		c.Resources = *o.Pods.AgentResources
	}
	if o.egress() {
		c.Args = append(c.Args, argGuard)
	}
	if o.podSysctl() {
		c.SecurityContext = unprivileged()
		c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	}
	return []corev1.Container{c}
}
