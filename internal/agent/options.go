// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Options are the options of an agent.
type Options struct {
	// PodName is the name of the pod and of its Machine.
	PodName string

	// PodNamespace is the namespace of the Machine, its Secrets and the ServiceAttachments.
	PodNamespace string

	// PodIP is the pod's address, which the agent reports.
	PodIP string

	// NodeName is the Kubernetes node of the pod, which the agent reports.
	NodeName string

	// Endpoints is the name of the TailscaleEndpoints whose ServiceAttachments the agent serves.
	Endpoints string

	// TailscaledConfigDir is the directory where containerboot looks for tailscaled's config
	// (TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR).
	TailscaledConfigDir string

	// TLSDir is the directory of the certificates in use, for an agent that starts again while the
	// API server is unavailable. It holds their private keys, so it is a volume in memory. It is a
	// separate volume, so that certificates that fill it do not prevent other files from being
	// written.
	TLSDir string

	// ACMEDirectory is the URL of the ACME directory that tailscaled is configured with. Empty means
	// that it is not known to be another than Let's Encrypt's.
	ACMEDirectory string

	// ServeConfigPath is where containerboot looks for the serve config (TS_SERVE_CONFIG). Only the
	// agent writes to its directory.
	ServeConfigPath string

	// Control refuses backends by the dialled addresses (net.Dialer). Nil refuses none.
	Control func(network, address string, c syscall.RawConn) error

	// Drain is how long a withdrawn service is still served, so that clients can move to another
	// machine. Control needs up to 15 s to choose one, and notifies clients after that, without an
	// acknowledgement (tailscale.com kube/services/services.go).
	Drain time.Duration

	// Grace is how long kubelet gives the pod to end after SIGTERM. If the pod still runs after
	// that, a drain ends. Zero means no limit.
	Grace time.Duration

	// JoinPatience is how long the first report waits for tailscaled to join: a report before that
	// would contain no news. Zero means that the report does not wait.
	JoinPatience time.Duration

	// Kernel has the options of a pod whose kernel forwards packets to and from tailscaled's
	// interface. Nil means Userspace networking.
	Kernel *KernelOptions

	// Egress has the options of pods that carry traffic into the tailnet.
	Egress EgressOptions

	// DNS has the options of pods that resolve names for the tailnet.
	DNS DNSOptions

	// ContainerbootMetrics is the URL of containerboot's metrics, which the agent requests for
	// kubelet's liveness probe of the tailscale container.
	ContainerbootMetrics string

	// ControlAnswers asks whether the control server in a config of tailscaled answers. Nil means
	// that containerboot starts without waiting for it.
	ControlAnswers func(ctx context.Context, config []byte) error

	// ControlPatience is how long containerboot waits at most for the control server. It must be
	// less than the limit of the agent's startup probe.
	ControlPatience time.Duration

	// StatePatience is how long tailscaled may run while its state is missing in the state Secret.
	// A node that logs in writes its state within seconds.
	StatePatience time.Duration

	// Pauses are the agent's pauses.
	Pauses Pauses
}

// Pauses are how long an agent waits before it acts on states that may be temporary.
type Pauses struct {
	// Retry is how long to wait before a failed step is retried.
	Retry time.Duration

	// Report is how long a change waits for further changes before it is reported.
	Report time.Duration

	// Settle is how long a new tailscaled must run before the agent relies on it. A tailscaled that
	// is being stopped can end its streams and still answer for a moment.
	Settle time.Duration

	// Warm is how long an egress pod that has joined waits for connections to the devices of its
	// targets before it is ready.
	Warm time.Duration

	// Accept is how long a new ingress pod that has joined waits for control to accept it as a host of
	// its services before it is ready. It is longer than acceptPatience and reloadPatience, after which the
	// agent has advertised a service again.
	Accept time.Duration

	// Primary is how long a service can be without a primary host before the agent reports it.
	// Control takes about 15 s to move the addresses of a service (tailscale.com
	// kube/services/services.go), so that a failover is never reported.
	Primary time.Duration

	// Absence is how long the netmap can lack the node of an open connection into the tailnet before the
	// connection ends. A node that only connects to control again stays in the netmap.
	Absence time.Duration

	// Begin is how long the hook of the tailscale container waits for the agent's hook, which
	// kubelet runs at the same time (k8s.io/kubernetes pkg/kubelet/kuberuntime,
	// killContainersWithSyncResult). The agent's hook is a command, whose start took 16 s on a machine with
	// forty times the load that it can carry. When kubelet only restarts the tailscale container, it
	// does not run the agent's hook.
	Begin time.Duration

	// Paths is the time between two counts of the paths to peers.
	Paths time.Duration
}

// DefaultPauses returns the pauses of an agent in a pod.
func DefaultPauses() Pauses {
	return Pauses{
		Retry: 5 * time.Second, Report: kube.DefaultSettle, Settle: 3 * time.Second, Warm: 10 * time.Second, Accept: 90 * time.Second, Primary: time.Minute,
		Absence: time.Minute, Begin: time.Minute, Paths: 5 * time.Minute,
	}
}

// issuer returns the name of the machine that gets the certificates that Tailscale provides:
// the first of the pod's group. Its state Secret holds them.
func (o Options) issuer() string {
	i := strings.LastIndexByte(o.PodName, '-')
	if i < 0 {
		return o.PodName
	}
	return o.PodName[:i] + "-0"
}

// issues reports whether the pod gets the certificates for all pods of its group.
func (o Options) issues() bool {
	return o.PodName == o.issuer() && o.Egress.ConfigMap == ""
}

// stateSecret returns the key of the state Secret, which has the pod's name (TS_KUBE_SECRET).
func (o Options) stateSecret() types.NamespacedName {
	return types.NamespacedName{Namespace: o.PodNamespace, Name: o.PodName}
}

func (o Options) configSecret() types.NamespacedName {
	return types.NamespacedName{Namespace: o.PodNamespace, Name: o.PodName + meta.ConfigSecretSuffix}
}
