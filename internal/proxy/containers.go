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
)

// Variables that tell a container of its pod.
const (
	// EnvPodName is the pod's name: that of its Machine and its state Secret.
	EnvPodName = "POD_NAME"

	// EnvPodNamespace is the pod's namespace.
	EnvPodNamespace = "POD_NAMESPACE"

	// EnvPodIP is the pod's first address.
	EnvPodIP = "POD_IP"

	// EnvEndpoints is the TailscaleEndpoints whose ServiceAttachments the agent
	// acts on.
	EnvEndpoints = "ENDPOINTS"

	// EnvSocket is tailscaled's socket. Containerboot and the agent share it.
	EnvSocket = "TS_SOCKET"

	// EnvGracePeriod tells the agent how long kubelet gives the pod to end.
	EnvGracePeriod = "GRACE_PERIOD"

	// EnvEgressConfigMap is the ConfigMap that tells the agent of an egress pod
	// which port leads where.
	EnvEgressConfigMap = "EGRESS_CONFIG_MAP"

	// EnvEgressDrain is how long the agent of an egress pod waits for open
	// connections to end before tailscaled is stopped.
	EnvEgressDrain = "EGRESS_DRAIN"

	// EnvEgressIdle is how long a connection through an egress pod may carry nothing
	// before the agent cuts it.
	EnvEgressIdle = "EGRESS_IDLE"

	// EnvTLSDir is where the agent of an ingress pod keeps the certificates in use.
	EnvTLSDir = "TLS_DIR"

	// EnvDNSConfigMap is the ConfigMap that tells the agent which names to resolve for
	// the tailnet.
	EnvDNSConfigMap = "DNS_CONFIG_MAP"

	// EnvNetworking tells the agent that the kernel routes packets, by the value
	// NetworkingKernel.
	EnvNetworking = "NETWORKING"

	// NetworkingKernel is a value of EnvNetworking.
	NetworkingKernel = "Kernel"
)

// By these tailscaled notices clients that have vanished, and ends their connections to
// backends: after some three minutes, as nine probes stay without an answer. Its own default
// is more than two hours (wgengine/netstack of tailscale.com, acceptTCP).
const (
	envKeepaliveIdle     = "TS_NETSTACK_KEEPALIVE_IDLE"
	envKeepaliveInterval = "TS_NETSTACK_KEEPALIVE_INTERVAL"

	keepaliveIdle     = "60s"
	keepaliveInterval = "15s"
)

// argPreStop is the agent's command that withdraws all services.
const argPreStop = "prestop"

// Startup is waited for as long as it takes the provider to give a key again:
// containerboot waits 10 minutes for one before it starts over.
const (
	startupPeriodSeconds    = 1
	startupFailureThreshold = 900
)

// agent runs as a native sidecar: containerboot must not start before its config
// is written, and must be able to withdraw its services until it has ended.
func agent(o Options, img Images) corev1.Container {
	c := corev1.Container{
		Name:          ContainerAgent,
		Image:         img.Agent,
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Env: []corev1.EnvVar{
			fieldEnv(EnvPodName, "metadata.name"),
			fieldEnv(EnvPodNamespace, "metadata.namespace"),
			fieldEnv(EnvPodIP, "status.podIP"),
			{Name: EnvEndpoints, Value: o.Pods.Endpoints},
			{Name: EnvSocket, Value: FileSocket},
			{Name: EnvGracePeriod, Value: strconv.FormatInt(gracePeriod(o), 10) + "s"},
		},
		Ports: []corev1.ContainerPort{port(portNameAgent, PortAgent)},
		StartupProbe: &corev1.Probe{
			ProbeHandler:     httpGet(PathStartup, PortAgent),
			PeriodSeconds:    startupPeriodSeconds,
			TimeoutSeconds:   1,
			FailureThreshold: startupFailureThreshold,
		},
		LivenessProbe: &corev1.Probe{
			ProbeHandler:     httpGet(PathLiveness, PortAgent),
			PeriodSeconds:    10,
			TimeoutSeconds:   5,
			FailureThreshold: 6,
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:     httpGet(PathReadiness, PortAgent),
			PeriodSeconds:    2,
			TimeoutSeconds:   2,
			FailureThreshold: 2,
		},
		// Kubelet runs the hooks of all containers at once, that of a sidecar too. A
		// command is nobody's but kubelet's and who may exec into the pod: a path of
		// HTTP would be everybody's who reaches the pod.
		Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{
				Exec: &corev1.ExecAction{Command: []string{fileAgent, argPreStop}},
			},
		},
		Resources:       requests("10m", "32Mi"),
		SecurityContext: unprivileged(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumeTailscaledConfig, MountPath: DirTailscaledConfig},
			{Name: volumeProxiesConfig, MountPath: DirProxiesConfig},
			{Name: volumeRun, MountPath: DirRun, ReadOnly: true},
		},
	}
	if o.egress() {
		c.Env = append(c.Env,
			corev1.EnvVar{Name: EnvEgressConfigMap, Value: o.Name},
			corev1.EnvVar{Name: EnvEgressDrain, Value: egressDrain.String()})
		if d := o.Pods.EgressIdleTimeout; d != nil {
			c.Env = append(c.Env, corev1.EnvVar{Name: EnvEgressIdle, Value: d.Duration.String()})
		}
	} else {
		c.Env = append(c.Env, corev1.EnvVar{Name: EnvTLSDir, Value: DirTLS})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeTLS, MountPath: DirTLS})
	}
	if o.Pods.DNSConfigMap != "" {
		c.Env = append(c.Env, corev1.EnvVar{Name: EnvDNSConfigMap, Value: o.Pods.DNSConfigMap})
	}
	if o.kernel() {
		c.Env = append(c.Env, corev1.EnvVar{Name: EnvNetworking, Value: NetworkingKernel})
		// To have the kernel forget flows of UDP to earlier targets.
		c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	}
	if o.Pods.AgentResources != nil {
		c.Resources = *o.Pods.AgentResources
	}
	return c
}

// tailscale runs containerboot by its contract for a proxy that is configured by
// files and keeps its state in a Secret (cmd/containerboot/settings.go of
// tailscale.com).
func tailscale(o Options, img Images) corev1.Container {
	c := corev1.Container{
		Name:  ContainerTailscale,
		Image: cmp.Or(o.Pods.Image, img.Tailscale),
		Env: []corev1.EnvVar{
			fieldEnv(EnvPodName, "metadata.name"),
			fieldEnv("POD_UID", "metadata.uid"),
			fieldEnv(EnvPodIP, "status.podIP"),
			fieldEnv("POD_IPS", "status.podIPs"),
			{Name: "TS_KUBE_SECRET", Value: "$(" + EnvPodName + ")"},
			{Name: "TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR", Value: DirTailscaledConfig + "/$(" + EnvPodName + ")"},
			{Name: "TS_SERVE_CONFIG", Value: FileServeConfig},
			// Else containerboot advertises each service that the serve config
			// names, whether its backend answers or not.
			{Name: "TS_EXPERIMENTAL_SERVICE_AUTO_ADVERTISEMENT", Value: "false"},
			{Name: "TS_USERSPACE", Value: strconv.FormatBool(!o.kernel())},
			{Name: EnvSocket, Value: FileSocket},
			{Name: "TS_STATE_DIR", Value: dirTmp},
			{Name: "TS_ENABLE_HEALTH_CHECK", Value: "true"},
			{Name: "TS_ENABLE_METRICS", Value: "true"},
			// Containerboot puts an IPv6 address in brackets itself.
			{Name: "TS_LOCAL_ADDR_PORT", Value: "$(" + EnvPodIP + "):" + strconv.Itoa(PortContainerboot)},
			// Tailscaled keeps its log's identity below the home directory when
			// it is not root.
			{Name: "HOME", Value: dirTmp},
		},
		Ports: []corev1.ContainerPort{port(portNameContainerboot, PortContainerboot)},
		// Healthy means that the machine has an address in the tailnet. Before
		// that it may wait for a new key, which a restart would only delay, so
		// nothing but the startup probe looks at it then.
		StartupProbe: &corev1.Probe{
			ProbeHandler:     httpGet("/healthz", PortContainerboot),
			PeriodSeconds:    startupPeriodSeconds,
			TimeoutSeconds:   1,
			FailureThreshold: startupFailureThreshold,
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:     httpGet("/healthz", PortContainerboot),
			PeriodSeconds:    5,
			TimeoutSeconds:   3,
			FailureThreshold: 3,
		},
		// The metrics come from tailscaled itself: they tell that it answers,
		// and do not depend on the control server.
		LivenessProbe: &corev1.Probe{
			ProbeHandler:     httpGet("/metrics", PortContainerboot),
			PeriodSeconds:    20,
			TimeoutSeconds:   5,
			FailureThreshold: 6,
		},
		// It waits for the drain that the agent's hook begins.
		Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{
				HTTPGet: httpGet(PathDrained, PortAgent).HTTPGet,
			},
		},
		Resources:       requests("20m", "64Mi"),
		SecurityContext: unprivileged(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumeTailscaledConfig, MountPath: DirTailscaledConfig, ReadOnly: true},
			{Name: volumeProxiesConfig, MountPath: DirProxiesConfig, ReadOnly: true},
			{Name: volumeRun, MountPath: DirRun},
			{Name: volumeTmp, MountPath: dirTmp},
		},
	}
	if !o.egress() {
		c.Env = withDefault(o, c.Env, envKeepaliveIdle, keepaliveIdle)
		c.Env = withDefault(o, c.Env, envKeepaliveInterval, keepaliveInterval)
	}
	if o.kernel() {
		kernel(o, &c)
	}
	if o.Pods.Resources != nil {
		c.Resources = *o.Pods.Resources
	}
	c.Env = withEnv(c.Env, o.Pods.Env)
	return c
}

// withDefault appends a variable that the user may set instead.
func withDefault(o Options, env []corev1.EnvVar, name, value string) []corev1.EnvVar {
	if slices.ContainsFunc(o.Pods.Env, func(e tailnetv1alpha1.EnvVar) bool { return e.Name == name }) {
		return env
	}
	return append(env, corev1.EnvVar{Name: name, Value: value})
}

// withEnv appends the user's variables, which may refer to ours. Ours win.
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

// unprivileged is what the PodSecurity level restricted asks of a container, and
// a root filesystem that nobody writes to.
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

// Ports that every pod serves in the cluster, beside those of its services.
func Ports() []corev1.ContainerPort {
	return []corev1.ContainerPort{port(portNameAgent, PortAgent), port(portNameContainerboot, PortContainerboot)}
}

func port(name string, n int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: n, Protocol: corev1.ProtocolTCP}
}

func httpGet(path string, n int) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(n), Scheme: corev1.URISchemeHTTP}}
}
