// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

// Environment variables that describe the pod to its containers.
const (
	// EnvPodName is the pod's name: that of its Machine and its state Secret.
	EnvPodName = "POD_NAME"

	// EnvPodNamespace is the pod's namespace.
	EnvPodNamespace = "POD_NAMESPACE"

	// EnvPodIP is the pod's first address, and EnvPodIPs are all of them, separated by commas.
	EnvPodIP  = "POD_IP"
	EnvPodIPs = "POD_IPS"

	// EnvNodeName is the Kubernetes node of the pod.
	EnvNodeName = "NODE_NAME"

	// EnvEndpoints is the TailscaleEndpoints whose ServiceAttachments the agent serves.
	EnvEndpoints = "ENDPOINTS"

	// EnvSocket is tailscaled's socket. Containerboot and the agent share it.
	EnvSocket = "TS_SOCKET"

	// EnvGracePeriod is the pod's termination grace period.
	EnvGracePeriod = "GRACE_PERIOD"

	// EnvEgressConfigMap is the ConfigMap with the ports and targets of an egress pod.
	EnvEgressConfigMap = "EGRESS_CONFIG_MAP"

	// EnvEgressDrain is the maximum time for which the agent of an egress pod waits until open
	// connections end, before tailscaled is stopped.
	EnvEgressDrain = "EGRESS_DRAIN"

	// EnvEgressIdle is the idle time after which the agent closes a connection through an
	// egress pod.
	EnvEgressIdle = "EGRESS_IDLE"

	// EnvEgressTraces is the collector of the agent's spans.
	EnvEgressTraces = "EGRESS_TRACES"

	// EnvTLSDir is where the agent of an ingress pod keeps the certificates in use.
	EnvTLSDir = "TLS_DIR"

	// EnvACMEDirectory is the ACME directory that tailscaled is configured with by
	// proxy.env.
	EnvACMEDirectory = "ACME_DIRECTORY"

	// EnvDNSConfigMap is the ConfigMap with the names that the agent resolves for the tailnet.
	EnvDNSConfigMap = "DNS_CONFIG_MAP"

	// EnvControlHTTPProxy and the other variables of this prefix are tailscaled's HTTP_PROXY,
	// HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR.
	EnvControlHTTPProxy  = "CONTROL_HTTP_PROXY"
	EnvControlHTTPSProxy = "CONTROL_HTTPS_PROXY"
	EnvControlNoProxy    = "CONTROL_NO_PROXY"
	EnvControlCertFile   = "CONTROL_SSL_CERT_FILE"
	EnvControlCertDir    = "CONTROL_SSL_CERT_DIR"

	// EnvNetworking has the value Kernel (v1alpha1.NetworkingKernel) if the kernel routes packets.
	EnvNetworking = "NETWORKING"
)

// With these settings, tailscaled detects clients that have vanished, and closes their
// connections to backends after some three minutes, when nine probes are unanswered. Its
// default is more than two hours (wgengine/netstack of tailscale.com, acceptTCP).
const (
	envKeepaliveIdle     = "TS_NETSTACK_KEEPALIVE_IDLE"
	envKeepaliveInterval = "TS_NETSTACK_KEEPALIVE_INTERVAL"

	keepaliveIdle     = "60s"
	keepaliveInterval = "15s"
)

const (
	// envACMEDirectory is tailscaled's variable for another ACME directory than Let's Encrypt's.
	envACMEDirectory = "TS_DEBUG_ACME_DIRECTORY_URL"

	// envACMEPlainRenewal keeps tailscaled from naming the previous certificate in an order.
	// Another certificate authority refuses such an order, because it did not issue the
	// certificate (tailscale.com feature/acme, getCertPEM; tailscale/tailscale#18251). Renewals
	// are then exempt from fewer of Let's Encrypt's limits, so it is only set with
	// envACMEDirectory.
	envACMEPlainRenewal = "TS_DEBUG_ACME_FORCE_RENEWAL"
)

// Containerboot exits when tailscaled is not in the tailnet after this time. Its default of 60 s would
// end in a crash loop when the control server is slow, and tailscaled tries again by itself. Kubelet
// forgets earlier restarts of a container that has run for ten minutes. Containerboot knows the
// variable since 1.102.3 (cmd/containerboot/settings.go of tailscale.com).
const (
	envBootTimeout = "TS_BOOT_TIMEOUT"
	bootTimeout    = "15m"
)

// argPreStop is the agent's command that withdraws all services.
const argPreStop = "prestop"

// The startup probe of the agent allows enough time for the provider to prepare the Machine, and for
// the control server to answer.
const (
	startupPeriodSeconds    = 1
	startupFailureThreshold = 900
)

// agent returns the agent's container. It is a native sidecar, because containerboot must not
// start before its config is written, and the agent must be able to withdraw its services until
// containerboot has stopped.
func agent(o Options, img Images) corev1.Container {
	tailscaled := tailscale(o, img).Env
	c := corev1.Container{
		Name:          ContainerAgent,
		Image:         img.Agent,
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Env: []corev1.EnvVar{
			fieldEnv(EnvPodName, "metadata.name"),
			fieldEnv(EnvPodNamespace, "metadata.namespace"),
			fieldEnv(EnvPodIP, "status.podIP"),
			fieldEnv(EnvPodIPs, "status.podIPs"),
			fieldEnv(EnvNodeName, "spec.nodeName"),
			{Name: EnvEndpoints, Value: o.Pods.Endpoints},
			{Name: EnvSocket, Value: FileSocket},
			{Name: EnvGracePeriod, Value: strconv.Itoa(terminationGracePeriodSeconds) + "s"},
		},
		Ports: []corev1.ContainerPort{port(portNameAgent, sidecar.PortAgent)},
		StartupProbe: &corev1.Probe{
			ProbeHandler:     httpGet(sidecar.PathStartup, sidecar.PortAgent),
			PeriodSeconds:    startupPeriodSeconds,
			TimeoutSeconds:   1,
			FailureThreshold: startupFailureThreshold,
		},
		LivenessProbe: &corev1.Probe{
			ProbeHandler:     httpGet(sidecar.PathLiveness, sidecar.PortAgent),
			PeriodSeconds:    10,
			TimeoutSeconds:   5,
			FailureThreshold: 6,
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:     httpGet(sidecar.PathReadiness, sidecar.PortAgent),
			PeriodSeconds:    2,
			TimeoutSeconds:   2,
			FailureThreshold: 2,
		},
		// Kubelet runs the hooks of all containers at once, including that of a sidecar. Only
		// kubelet and users with exec permission can run a command, but every client that
		// reaches the pod could call an HTTP path.
		Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{
				Exec: &corev1.ExecAction{Command: []string{fileAgent, argPreStop}},
			},
		},
		Resources:       requests("10m", "32Mi"),
		SecurityContext: unprivileged(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumeTailscaledConfig, MountPath: sidecar.DirTailscaledConfig},
			{Name: volumeProxiesConfig, MountPath: DirProxiesConfig},
			{Name: volumeRun, MountPath: sidecar.DirRun, ReadOnly: true},
		},
	}
	if o.egress() {
		c.Env = append(c.Env,
			corev1.EnvVar{Name: EnvEgressConfigMap, Value: o.Name},
			corev1.EnvVar{Name: EnvEgressDrain, Value: egressDrain.String()})
		if d := o.Pods.EgressIdleTimeout; d != nil {
			c.Env = append(c.Env, corev1.EnvVar{Name: EnvEgressIdle, Value: d.Duration.String()})
		}
		if collector := o.Pods.EgressTraces; collector != "" {
			c.Env = append(c.Env, corev1.EnvVar{Name: EnvEgressTraces, Value: collector})
		}
	} else {
		c.Env = append(c.Env, corev1.EnvVar{Name: EnvTLSDir, Value: DirTLS})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeTLS, MountPath: DirTLS})
		c.Env = withCopies(c.Env, tailscaled, copied{EnvACMEDirectory, envACMEDirectory})
	}
	c.Env = withCopies(c.Env, tailscaled, controlEnv...)
	if o.Pods.DNSConfigMap != "" {
		c.Env = append(c.Env, corev1.EnvVar{Name: EnvDNSConfigMap, Value: o.Pods.DNSConfigMap})
	}
	if o.kernel() {
		c.Env = append(c.Env, corev1.EnvVar{Name: EnvNetworking, Value: string(tailnetv1alpha1.NetworkingKernel)})
		// The agent deletes conntrack entries of UDP flows to former targets.
		c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	}
	if o.Pods.AgentResources != nil {
		c.Resources = *o.Pods.AgentResources
	}
	return c
}

// tailscale returns the container that runs containerboot. A proxy that is configured by files
// keeps its state in a Secret (cmd/containerboot/settings.go of tailscale.com).
func tailscale(o Options, img Images) corev1.Container {
	c := corev1.Container{
		Name:  ContainerTailscale,
		Image: cmp.Or(o.Pods.Image, img.Tailscale),
		Env:   tailscaleEnv(o),
		Ports: []corev1.ContainerPort{port(portNameContainerboot, sidecar.PortContainerboot)},
		// Tailscaled serves the metrics: they show that it responds, and do not depend on the
		// control server. A container that cannot log in has started, too: it may wait for a new
		// key, and kubelet uses no liveness probe before the startup probe has succeeded.
		StartupProbe: &corev1.Probe{
			ProbeHandler:     httpGet("/metrics", sidecar.PortContainerboot),
			PeriodSeconds:    startupPeriodSeconds,
			TimeoutSeconds:   1,
			FailureThreshold: startupFailureThreshold,
		},
		// Healthy means that the machine has an address in the tailnet.
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:     httpGet("/healthz", sidecar.PortContainerboot),
			PeriodSeconds:    5,
			TimeoutSeconds:   3,
			FailureThreshold: 3,
		},
		// The agent requests the metrics, and fails the probe if the provider asks for another
		// attempt of a node that cannot log in. The threshold is larger than that of the agent's
		// own probe, so that an agent that hangs is restarted before its tailscaled would be.
		LivenessProbe: &corev1.Probe{
			ProbeHandler:     httpGet(sidecar.PathTailscale, sidecar.PortAgent),
			PeriodSeconds:    10,
			TimeoutSeconds:   5,
			FailureThreshold: 9,
		},
		// The command waits for the drain that the agent's hook begins.
		Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{
				HTTPGet: httpGet(sidecar.PathDrained, sidecar.PortAgent).HTTPGet,
			},
		},
		Resources:       requests("20m", "64Mi"),
		SecurityContext: unprivileged(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumeTailscaledConfig, MountPath: sidecar.DirTailscaledConfig, ReadOnly: true},
			{Name: volumeProxiesConfig, MountPath: DirProxiesConfig, ReadOnly: true},
			{Name: volumeRun, MountPath: sidecar.DirRun},
			{Name: volumeTmp, MountPath: dirTmp},
		},
	}
	if o.kernel() {
		kernel(o, &c)
	}
	if o.Pods.StaticEndpoints != nil {
		listenStatically(o, &c)
	}
	if o.Pods.Resources != nil {
		c.Resources = *o.Pods.Resources
	}
	c.Env = withEnv(c.Env, o.Pods.Env)
	return c
}

// tailscaleEnv returns the environment of containerboot and tailscaled, without the user's.
func tailscaleEnv(o Options) []corev1.EnvVar {
	env := []corev1.EnvVar{
		fieldEnv(EnvPodName, "metadata.name"),
		fieldEnv("POD_UID", "metadata.uid"),
		fieldEnv(EnvPodIP, "status.podIP"),
		fieldEnv(EnvPodIPs, "status.podIPs"),
		{Name: "TS_KUBE_SECRET", Value: "$(" + EnvPodName + ")"},
		{Name: "TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR", Value: sidecar.DirTailscaledConfig + "/$(" + EnvPodName + ")"},
		{Name: "TS_SERVE_CONFIG", Value: FileServeConfig},
		// Without this, containerboot advertises each service in the serve config, whether
		// or not its backend is healthy.
		{Name: "TS_EXPERIMENTAL_SERVICE_AUTO_ADVERTISEMENT", Value: "false"},
		{Name: "TS_USERSPACE", Value: strconv.FormatBool(!o.kernel())},
		{Name: EnvSocket, Value: FileSocket},
		{Name: "TS_STATE_DIR", Value: dirTmp},
		{Name: "TS_ENABLE_HEALTH_CHECK", Value: "true"},
		{Name: "TS_ENABLE_METRICS", Value: "true"},
		// Containerboot adds brackets around an IPv6 address.
		{Name: "TS_LOCAL_ADDR_PORT", Value: "$(" + EnvPodIP + "):" + strconv.Itoa(sidecar.PortContainerboot)},
		// Tailscaled keeps its log's identity below the home directory when
		// it is not root.
		{Name: "HOME", Value: dirTmp},
	}
	env = withDefault(o, env, envBootTimeout, bootTimeout)
	if o.egress() {
		return env
	}
	env = withDefault(o, env, envKeepaliveIdle, keepaliveIdle)
	env = withDefault(o, env, envKeepaliveInterval, keepaliveInterval)
	if userEnv(o, envACMEDirectory) != nil {
		env = withDefault(o, env, envACMEPlainRenewal, "true")
	}
	return env
}

// withDefault appends a variable with a default that the user may override.
func withDefault(o Options, env []corev1.EnvVar, name, value string) []corev1.EnvVar {
	if userEnv(o, name) != nil {
		return env
	}
	return append(env, corev1.EnvVar{Name: name, Value: value})
}

// userEnv returns the user's variable with a name, or nil.
func userEnv(o Options, name string) *tailnetv1alpha1.EnvVar {
	i := slices.IndexFunc(o.Pods.Env, func(e tailnetv1alpha1.EnvVar) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &o.Pods.Env[i]
}

// withEnv appends the user's variables, which may refer to the proxy's. The proxy's variables
// take precedence.
func withEnv(ours []corev1.EnvVar, users []tailnetv1alpha1.EnvVar) []corev1.EnvVar {
	out := slices.Clone(ours)
	for _, e := range users {
		if !slices.ContainsFunc(ours, func(o corev1.EnvVar) bool { return o.Name == e.Name }) {
			out = append(out, corev1.EnvVar{Name: e.Name, Value: e.Value, ValueFrom: envSource(e.ValueFrom)})
		}
	}
	return out
}

func envSource(s *tailnetv1alpha1.EnvVarSource) *corev1.EnvVarSource {
	if s == nil {
		return nil
	}
	f := s.FieldRef.DeepCopy()
	if f != nil && f.APIVersion == "" {
		f.APIVersion = fieldVersion
	}
	return &corev1.EnvVarSource{SecretKeyRef: s.SecretKeyRef, ConfigMapKeyRef: s.ConfigMapKeyRef, FieldRef: f}
}

// unprivileged returns the security context that the PodSecurity level restricted requires,
// with a read-only root filesystem.
func unprivileged() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		ReadOnlyRootFilesystem:   ptr.To(true),
	}
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

// fieldVersion is the API server's default. Without it an object would differ from what
// is stored.
const fieldVersion = "v1"

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: fieldVersion, FieldPath: path},
	}}
}

// Ports returns the ports that every pod serves in the cluster, in addition to those of its
// services.
func Ports() []corev1.ContainerPort {
	return []corev1.ContainerPort{port(portNameAgent, sidecar.PortAgent), port(portNameContainerboot, sidecar.PortContainerboot)}
}

func port(name string, n int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: n, Protocol: corev1.ProtocolTCP}
}

func httpGet(path string, n int) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(n), Scheme: corev1.URISchemeHTTP}}
}
