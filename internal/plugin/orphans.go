// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/orphans"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry/apply"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// An age is a duration that may have days: 7d, 12h or 0.
type age time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *age) UnmarshalText(b []byte) error {
	if days, ok := strings.CutSuffix(string(b), "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		*a = age(time.Duration(n) * 24 * time.Hour)
		return errors.Wrapf(err, "%q is no number of days", days)
	}
	d, err := time.ParseDuration(string(b))
	if err == nil && d < 0 {
		err = errors.New("it is negative")
	}
	*a = age(d)
	return errors.Wrapf(err, "%q is no age such as 7d, 12h or 0", b)
}

type orphansCmd struct {
	Tailnet tailnetFlags `embed:""`

	Delete    bool                   `help:"Delete the orphans of this cluster that are old enough. Without this flag nothing is changed."`
	OlderThan age                    `default:"7d" help:"Delete only what nothing has used for this time, such as 7d or 12h. 0 deletes everything, including orphans whose age is unknown." placeholder:"AGE"`
	All       bool                   `help:"Also list what other clusters own, and keys whose mark does not show the cluster. Neither is ever deleted."`
	Former    []string               `help:"Former object of this cluster, NAMESPACE/NAME, to which a key or OAuth client of an unknown cluster may belong. The mark of the key proves it." placeholder:"OBJECT"`
	Output    string                 `short:"o" default:"table" enum:"table,json,yaml" help:"Format: table, json or yaml." placeholder:"FORMAT"`
	former    []types.NamespacedName `kong:"-"`
}

// Help returns the long help.
func (*orphansCmd) Help() string {
	return `Marks of this cluster in the tailnet without a living object in the cluster are orphans: services, records of shared services, auth keys, OAuth clients, federated identities and entries of the policy file; devices whose state a Secret of the cluster holds; and in the cluster generated HTTPRoutes, and Secrets of proxies. Webhooks, DNS settings and other settings of a tailnet have no marks: delete these before the provider; the command uninstall lists them.

Examples:

    List the orphans in the tailnets of all provider configs:
      ` + exampleList + `

    Delete those that nothing has used for 30 days:
      ` + exampleDelete + `

    After the provider and its kinds are gone, with the credential of a Secret:
      ` + exampleAfter + `

Deletions ask for nothing. Objects that are online, that other clusters own, or that nothing proves to be this cluster's stay, and the last column shows why. From a shared service the command removes only this cluster's part, as the provider does: it takes a minute.

Exit codes: 0 if no orphan is left, 1 if orphans are left, 2 if the command failed.`
}

// Examples of the help, which tests run.
const (
	exampleList   = "kubectl tailscale-gateway orphans"
	exampleDelete = "kubectl tailscale-gateway orphans --delete --older-than=30d"
	exampleAfter  = "kubectl tailscale-gateway orphans --credentials=crossplane-system/tailscale-oauth -o json"
)

// Run lists orphans, and deletes them on request.
func (c *orphansCmd) Run(s *session) error {
	for _, f := range c.Former {
		namespace, name, ok := strings.Cut(f, "/")
		if !ok {
			return errors.Errorf("--former must be NAMESPACE/NAME, not %q", f)
		}
		c.former = append(c.former, types.NamespacedName{Namespace: namespace, Name: name})
	}
	kube, err := s.kube()
	if err != nil {
		return err
	}
	scans, err := c.scan(s, kube)
	if err != nil {
		return err
	}
	out := output{Items: []row{}, DryRun: !c.Delete}
	failed := false
	for _, sc := range scans {
		results := map[orphans.Item]string{}
		if c.Delete {
			d := &deleter{kube: kube, api: sc.target.api, cluster: sc.report.Cluster, view: sc.view.View, wait: s.wait, progress: s.errs}
			var broken bool
			results, broken = d.all(s.ctx, sc.report.Deletable())
			failed = failed || broken
		}
		out.add(sc, results, c.All)
	}
	if out.left() > 0 {
		s.code = ExitFound
	}
	if failed {
		s.code = ExitFailed
	}
	return out.print(s.out, c.Output, s.time.Now())
}

// A scan is the report on one tailnet, or on the cluster alone.
type scan struct {
	target target
	view   tailnetView
	report orphans.Report
}

// scan reads the tailnets first, and then the cluster: package orphans says why.
func (c *orphansCmd) scan(s *session, kube client.Client) ([]scan, error) {
	targets, err := c.Tailnet.targets(s.ctx, kube, newPool(s.time))
	if err != nil {
		return nil, err
	}
	var views []tailnetView
	for _, t := range targets {
		v, err := readTailnet(s.ctx, t, s.time)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	cl, err := readCluster(s.ctx, kube)
	if err != nil {
		return nil, err
	}
	rest := cl.secrets
	var out []scan
	for n, t := range targets {
		v := views[n]
		v.Living, v.Former = cl.living, c.former
		v.Living.Owners = cl.owners(t.clusterID)
		v.Secrets, rest = orphans.Split(rest, v.View, v.Domain)
		if err := v.readHosts(s.ctx, t.api); err != nil {
			return nil, err
		}
		out = append(out, scan{target: t, view: v, report: orphans.Of(v.Facts, time.Duration(c.OlderThan), v.at)})
	}
	local := orphans.Facts{Confirmed: true, Living: cl.living, Secrets: rest, Routes: cl.routes}
	return append(out, scan{target: target{name: "the cluster itself"}, report: orphans.Of(local, time.Duration(c.OlderThan), s.time.Now())}), nil
}

// viewOf returns the function with which the registry reads a tailnet.
func viewOf(api *tailscale.Client) apply.ViewFunc {
	return func(ctx context.Context, staleness tailscale.Staleness) (registry.View, error) {
		services, at, err := api.Services().ServicesAt(ctx, staleness)
		if err != nil {
			return registry.View{}, errors.Wrap(err, "cannot list services")
		}
		devices, devicesAt, err := api.Devices().DevicesAt(ctx, staleness)
		return registry.View{Services: services, ServicesAt: at, Devices: devices, DevicesAt: devicesAt}, errors.Wrap(err, "cannot list devices")
	}
}
