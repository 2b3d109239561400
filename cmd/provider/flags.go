// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/provider"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// runCmd runs the provider. Its flags that most providers have are called as theirs.
type runCmd struct {
	Debug          bool `env:"DEBUG" help:"Enable the debug log, in addition to messages for operators." short:"d"`
	LeaderElection bool `env:"LEADER_ELECTION" help:"Make only one of several replicas active." short:"l"`

	Poll             time.Duration `default:"1m" env:"POLL" group:"Pace" help:"How often each managed resource is checked for drift."`
	Sync             time.Duration `default:"1h" env:"SYNC" group:"Pace" help:"How often all objects are reconciled, changed or not." short:"s"`
	MaxReconcileRate int           `default:"100" env:"MAX_RECONCILE_RATE" group:"Pace" help:"Maximum number of reconciles that start per second, and of concurrent reconciles of a kind."`

	APIRate    float64       `default:"20" env:"API_RATE" group:"Tailscale's API" help:"Maximum number of requests per second with one credential."`
	APIBurst   int           `default:"60" env:"API_BURST" group:"Tailscale's API" help:"Maximum number of requests at once with one credential, after a pause."`
	ListMaxAge time.Duration `default:"1m" env:"LIST_MAX_AGE" group:"Tailscale's API" help:"Maximum age of a shared list of services or devices. Writes of the provider take effect in it immediately."`

	CABundle string `env:"CA_BUNDLE" group:"Tailscale's API" help:"PEM file with certificate authorities to trust for Tailscale's API, or a proxy in front of it, in addition to the system's or, where the system has none, the embedded ones. It is read at the start. SSL_CERT_FILE would replace the embedded ones. Proxies have their own environment: spec.proxy.env." name:"ca-bundle" placeholder:"FILE"`

	AllowedHosts []string `default:"api.tailscale.com,controlplane.tailscale.com" env:"ALLOWED_HOSTS" group:"Tailscale's API" help:"Hosts that apiURL and controlURL of a namespace's ProviderConfig may name, separated by commas: HOST for https, HOST:PORT, or HOST:* for any port. Those that ClusterProviderConfigs name are allowed as well." placeholder:"HOST"`

	WatchNamespaces []string `env:"WATCH_NAMESPACES" group:"Scope" help:"Reconcile only managed resources of these namespaces, separated by commas. The default is all. ClusterProviderConfigs are always watched; keep the credentials' Secrets in one of the namespaces, so that a new credential takes effect immediately." placeholder:"NAMESPACE"`
	Namespace       string   `default:"crossplane-system" env:"POD_NAMESPACE" group:"Scope" help:"Namespace of the provider. The provider records in its Secrets which managed resources a provider config has allowed: only these are cleaned up when allowedNamespaces does not allow them any more." placeholder:"NAMESPACE"`

	TailscaleImage string `default:"${tailscale_image}" group:"Proxies" help:"Image of tailscaled, with containerboot, of proxies that set no image." placeholder:"IMAGE"`
	AgentImage     string `group:"Proxies" help:"Image of the agent of all proxies. With Kernel networking it also prepares their network, in a container that may be privileged. The default is the agent of this version in --image-registry; a release names it by digest." placeholder:"IMAGE"`
	ImageRegistry  string `default:"${registry}" group:"Proxies" help:"Registry and path of the agent's image, unless --agent-image names it." placeholder:"REGISTRY"`

	ImagePullSecrets []string `group:"Proxies" help:"Names of pull secrets of proxies that set none, separated by commas. The Secrets must be in the namespaces of the proxies. A change restarts these proxies." placeholder:"SECRET"`

	OperatorServices bool `env:"OPERATOR_SERVICES" group:"Features" help:"Also publish Services of Tailscale's operator: those of the load balancer class tailscale, and those with the annotation tailscale.com/expose. The operator must not be installed, and the provider needs the permissions of the chart's value provider.publishServices."`

	EnableManagementPolicies bool   `default:"true" env:"ENABLE_MANAGEMENT_POLICIES" group:"Features" help:"Enable spec.managementPolicies, which can exclude actions such as deletion." negatable:""`
	EnableChangelogs         bool   `env:"ENABLE_CHANGE_LOGS" group:"Features" help:"Send each change in Tailscale to a change logs sidecar. Alpha in Crossplane."`
	ChangelogsSocketPath     string `default:"/var/run/changelogs/changelogs.sock" env:"CHANGELOGS_SOCKET_PATH" group:"Features" help:"Unix socket of the change logs sidecar."`

	PollStateMetric time.Duration `default:"5s" env:"POLL_STATE_METRIC" group:"Endpoints" help:"How often metrics of resources' state are recorded."`
	MetricsAddress  string        `default:":8080" env:"METRICS_ADDRESS" group:"Endpoints" help:"Address of /metrics; 0 disables it."`
	HealthAddress   string        `default:":8081" env:"HEALTH_ADDRESS" group:"Endpoints" help:"Address of /healthz and /readyz; 0 disables them."`
	PprofAddress    string        `default:"0" env:"PPROF_ADDRESS" group:"Endpoints" help:"Address of /debug/pprof, such as 127.0.0.1:6060; 0 disables it. Clients that reach it can read memory."`
}

func (c *runCmd) options() provider.Options {
	return provider.Options{
		Debug:              c.Debug,
		LeaderElection:     c.LeaderElection,
		Poll:               c.Poll,
		Sync:               c.Sync,
		PollStateMetric:    c.PollStateMetric,
		MaxReconcileRate:   c.MaxReconcileRate,
		APIRate:            c.APIRate,
		APIBurst:           c.APIBurst,
		ListMaxAge:         c.ListMaxAge,
		CABundle:           c.CABundle,
		AllowedHosts:       c.AllowedHosts,
		WatchNamespaces:    c.WatchNamespaces,
		Namespace:          c.Namespace,
		Images:             proxy.Images{Tailscale: c.TailscaleImage, Agent: c.agentImage(), PullSecrets: c.ImagePullSecrets},
		OperatorServices:   c.OperatorServices,
		ManagementPolicies: c.EnableManagementPolicies,
		ChangeLogs:         c.EnableChangelogs,
		ChangeLogsSocket:   c.ChangelogsSocketPath,
		MetricsAddress:     c.MetricsAddress,
		HealthAddress:      c.HealthAddress,
		ProfileAddress:     c.PprofAddress,
	}
}

// agentImage returns the image of the agent.
func (c *runCmd) agentImage() string {
	return cmp.Or(c.AgentImage, products.Belonging(c.ImageRegistry, products.Agent, version.Version))
}
