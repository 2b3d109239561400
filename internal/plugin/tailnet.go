// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/orphans"
	"github.com/tailscale-gateway/tailscale-gateway/internal/policyfile"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Environment variables of a credential. Tailscale's Terraform provider uses the same.
const (
	envClientID     = "TAILSCALE_OAUTH_CLIENT_ID"
	envClientSecret = "TAILSCALE_OAUTH_CLIENT_SECRET"
	envAPIKey       = "TAILSCALE_API_KEY"
)

// Limits of requests to Tailscale's API, as low as a person needs.
const (
	apiRate  = 10
	apiBurst = 20
)

// tailnetFlags select the tailnets.
type tailnetFlags struct {
	ProviderConfig string   `help:"Tailnet of this ClusterProviderConfig alone, or of a ProviderConfig: NAMESPACE/NAME. The default is all." placeholder:"NAME" group:"Tailnet"`
	Credentials    string   `help:"Secret with client_id and client_secret of an OAuth client, for a tailnet without a provider config: NAMESPACE/NAME. Without it the environment counts: TAILSCALE_OAUTH_CLIENT_ID and TAILSCALE_OAUTH_CLIENT_SECRET, or TAILSCALE_API_KEY." placeholder:"SECRET" group:"Tailnet"`
	ClusterID      string   `name:"cluster-id" help:"ID of this cluster in a tailnet without a provider config. The default is the UID of the namespace kube-system, which is also the default of a TailscaleTailnet." placeholder:"ID" group:"Tailnet"`
	Tailnet        string   `default:"-" help:"Name of a tailnet without a provider config. The default is that of the credential." group:"Tailnet"`
	APIURL         string   `name:"api-url" default:"https://api.tailscale.com" help:"URL of Tailscale's API for a tailnet without a provider config." group:"Tailnet"`
	AllowedHosts   []string `default:"api.tailscale.com,controlplane.tailscale.com" help:"Hosts to which ProviderConfigs of namespaces may lead, as the provider's flag of this name." group:"Tailnet"`
	PermitsIn      string   `name:"provider-namespace" default:"crossplane-system" help:"Namespace of the provider, whose Secrets name the provider configs that this cluster had." placeholder:"NAMESPACE" group:"Tailnet"`
}

// A target is a tailnet and this cluster's identity there.
type target struct {
	name      string // Of the provider config or the credential.
	api       *tailscale.Client
	clusterID string
	confirmed bool
	siblings  map[string]string
	inUse     string // ID of the credential.
}

// targets returns the tailnets to ask.
func (f tailnetFlags) targets(ctx context.Context, kube client.Client, pool *tailscale.Pool) ([]target, error) {
	configs, err := f.configs(ctx, kube)
	if err != nil {
		return nil, err
	}
	ad := f.Credentials != "" || f.ClusterID != ""
	if f.ProviderConfig != "" && ad {
		return nil, errors.New("--provider-config has a credential and a cluster ID; do not set --credentials or --cluster-id")
	}
	if ad || len(configs) == 0 && f.ProviderConfig == "" {
		t, err := f.single(ctx, kube, pool, configs)
		return []target{t}, err
	}
	return f.configured(ctx, kube, pool, configs)
}

// A configRef is a provider config and its cluster ID.
type configRef struct {
	namespace string
	ref       xpv2.ProviderConfigReference
	clusterID string
}

func (c configRef) String() string { return clients.ConfigName(c.ref.Kind, c.namespace, c.ref.Name) }

// configs returns all provider configs of the cluster.
func (f tailnetFlags) configs(ctx context.Context, kube client.Reader) ([]configRef, error) {
	var out []configRef
	cl, nl := &v1alpha1.ClusterProviderConfigList{}, &v1alpha1.ProviderConfigList{}
	if err := list(ctx, kube, v1alpha1.ClusterProviderConfigKind, cl); err != nil {
		return nil, err
	}
	if err := list(ctx, kube, v1alpha1.ProviderConfigKind, nl); err != nil {
		return nil, err
	}
	id := func(own string, uid types.UID) string {
		if own != "" {
			return own
		}
		return string(uid)
	}
	for n := range cl.Items {
		o := &cl.Items[n]
		out = append(out, configRef{ref: xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: o.GetName()}, clusterID: id(o.Spec.ClusterID, o.GetUID())})
	}
	for n := range nl.Items {
		o := &nl.Items[n]
		out = append(out, configRef{namespace: o.GetNamespace(), ref: xpv2.ProviderConfigReference{Kind: v1alpha1.ProviderConfigKind, Name: o.GetName()}, clusterID: id(o.Spec.ClusterID, o.GetUID())})
	}
	slices.SortFunc(out, func(a, b configRef) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

// wanted reports whether --provider-config names a config.
func (f tailnetFlags) wanted(c configRef) bool {
	namespace, name, namespaced := strings.Cut(f.ProviderConfig, "/")
	if !namespaced {
		namespace, name = "", f.ProviderConfig
	}
	return f.ProviderConfig == "" || c.namespace == namespace && c.ref.Name == name
}

// configured returns the tailnets of provider configs.
func (f tailnetFlags) configured(ctx context.Context, kube client.Client, pool *tailscale.Pool, configs []configRef) ([]target, error) {
	if err := tailscale.Hosts(f.AllowedHosts).Validate(); err != nil {
		return nil, errors.Wrap(err, "--allowed-hosts")
	}
	connector := clients.NewConnector(kube, pool, nil, f.AllowedHosts)
	var out []target
	for _, c := range configs {
		if !f.wanted(c) {
			continue
		}
		conn, err := connector.Open(ctx, c.namespace, c.ref)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot use %s", c)
		}
		t := target{name: c.String(), api: conn.Client, clusterID: conn.ClusterID, confirmed: true, siblings: map[string]string{}}
		for _, o := range configs {
			if o.clusterID != t.clusterID {
				t.siblings[o.clusterID] = o.String()
			}
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		return nil, errors.Errorf("there is no provider config %q", f.ProviderConfig)
	}
	return out, nil
}

// single returns a tailnet without a provider config.
func (f tailnetFlags) single(ctx context.Context, kube client.Client, pool *tailscale.Pool, configs []configRef) (target, error) {
	cfg, err := f.credential(ctx, kube)
	if err != nil {
		return target{}, err
	}
	cfg.URL, cfg.Tailnet = f.APIURL, f.Tailnet
	api, err := pool.Client("plugin", cfg)
	if err != nil {
		return target{}, errors.Wrap(err, "cannot make a client of Tailscale's API")
	}
	t := target{name: cfg.Credential, api: api, clusterID: f.ClusterID, inUse: cfg.ClientID, siblings: map[string]string{}}
	uid, err := systemUID(ctx, kube)
	if err != nil {
		return target{}, err
	}
	if t.clusterID == "" {
		t.clusterID = uid
	}
	t.confirmed = t.clusterID == uid
	for _, c := range configs {
		if c.clusterID == t.clusterID {
			t.confirmed = true
		} else {
			t.siblings[c.clusterID] = c.String()
		}
	}
	if !t.confirmed {
		uids, err := permits.Configs(ctx, kube, f.PermitsIn)
		if err != nil {
			return target{}, err
		}
		t.confirmed = slices.Contains(uids, types.UID(t.clusterID))
	}
	return t, nil
}

// credential returns the credential of a Secret or of the environment.
func (f tailnetFlags) credential(ctx context.Context, kube client.Reader) (tailscale.Config, error) {
	if f.Credentials != "" {
		namespace, name, ok := strings.Cut(f.Credentials, "/")
		if !ok || namespace == "" || name == "" {
			return tailscale.Config{}, errors.New("--credentials must be NAMESPACE/NAME of a Secret")
		}
		s := &corev1.Secret{}
		if err := kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, s); err != nil {
			return tailscale.Config{}, errors.Wrapf(err, "cannot get Secret %s", f.Credentials)
		}
		cfg, err := clients.OAuth(s)
		return cfg, errors.Wrap(err, "--credentials")
	}
	id, secret, key := os.Getenv(envClientID), os.Getenv(envClientSecret), os.Getenv(envAPIKey)
	switch {
	case id != "" && secret != "":
		return tailscale.Config{ClientID: id, ClientSecret: secret, Credential: "the OAuth client in " + envClientID, Hint: "check " + envClientID + " and " + envClientSecret}, nil
	case key != "":
		return tailscale.Config{APIKey: key, Credential: "the API access token in " + envAPIKey, Hint: "set a new one"}, nil
	}
	return tailscale.Config{}, errors.Errorf("the cluster has no provider config to take a credential from: name a Secret with --credentials, or set %s and %s", envClientID, envClientSecret)
}

func newPool(c clock.PassiveClock) *tailscale.Pool {
	return tailscale.NewPool(tailscale.Options{Rate: apiRate, Burst: apiBurst, ListMaxAge: time.Minute, Metrics: tailscale.NewMetrics(), Clock: c})
}

// A tailnetView is what a tailnet has, and what the credential may not read.
type tailnetView struct {
	orphans.Facts

	notRead []string
	at      time.Time
}

// readTailnet reads what can have marks. A credential without a scope has made nothing that needs
// the scope, so its absence only limits the report.
func readTailnet(ctx context.Context, t target, c clock.PassiveClock) (tailnetView, error) {
	v := tailnetView{at: c.Now()}
	v.Cluster, v.Confirmed, v.Siblings, v.InUse = t.clusterID, t.confirmed, t.siblings, t.inUse
	reads := []struct {
		subject string
		read    func() error
	}{
		{"services and devices", func() error { return v.readServices(ctx, t.api) }},
		{"auth keys", func() (err error) {
			v.AuthKeys, err = t.api.Keys().AuthKeys(ctx, tailscale.Current)
			return err
		}},
		{"OAuth clients and federated identities", func() (err error) {
			v.Credentials, err = t.api.TrustCredentials().TrustCredentials(ctx, tailscale.Current)
			return err
		}},
		{"the policy file", func() error {
			p, err := t.api.PolicyFile().PolicyFile(ctx, tailscale.Current)
			if err != nil {
				return err
			}
			v.Policy, err = policyfile.Owners([]byte(p.Text))
			return err
		}},
	}
	for _, r := range reads {
		err := r.read()
		if c := tailscale.ClassOf(err); c == tailscale.ClassForbidden || c == tailscale.ClassPlanRequired {
			v.notRead = append(v.notRead, r.subject+": "+err.Error())
			continue
		}
		if err != nil {
			return v, errors.Wrapf(err, "cannot read %s of the tailnet of %s", r.subject, t.name)
		}
	}
	return v, nil
}

// readServices reads services and devices. Without devices nothing shows whether a service is in
// use, so the services do not count either.
func (v *tailnetView) readServices(ctx context.Context, api *tailscale.Client) error {
	services, at, err := api.Services().ServicesAt(ctx, tailscale.Current)
	if err != nil {
		return err
	}
	devices, devicesAt, err := api.Devices().DevicesAt(ctx, tailscale.Current)
	if err != nil {
		return err
	}
	v.View = registry.View{Services: services, ServicesAt: at, Devices: devices, DevicesAt: devicesAt}
	v.at = devicesAt
	v.Domain, err = api.Tailnet().Domain(ctx)
	return err
}

// readHosts reads which orphaned services online devices host.
func (v *tailnetView) readHosts(ctx context.Context, api *tailscale.Client) error {
	online := map[string]string{}
	for _, d := range v.View.Devices {
		if d.ConnectedToControl {
			online[d.NodeID] = d.Name
		}
	}
	v.Online = map[string][]string{}
	for _, i := range orphans.Of(v.Facts, 0, v.at).Orphans() {
		if i.Kind != orphans.KindService && i.Kind != orphans.KindRecord && i.Kind != orphans.KindShared {
			continue
		}
		hosts, err := api.Services().Hosts(ctx, i.Name)
		if tailscale.IsNotFound(err) {
			continue
		}
		if err != nil {
			return errors.Wrapf(err, "cannot read the hosts of service %q", i.Name)
		}
		for _, h := range hosts {
			if name, ok := online[h.NodeID]; ok {
				v.Online[i.Name] = append(v.Online[i.Name], name)
			}
		}
	}
	return nil
}
