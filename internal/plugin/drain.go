// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

type drainCmd struct {
	Tailnet string        `arg:"" optional:"" help:"TailscaleTailnet whose services to hand over. The default is all of them." placeholder:"NAME"`
	Undo    bool          `help:"End the drain: the cluster serves again."`
	Timeout time.Duration `default:"10m" help:"How long to wait until other clusters serve."`
}

// Examples of the help, which tests run.
const (
	exampleDrain = "kubectl tailscale-gateway drain"
	exampleUndo  = "kubectl tailscale-gateway drain --undo"
)

// tailnetKind is the kind whose objects have the field drain for a whole cluster.
var tailnetKind = gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleTailnetKind)

// Help returns the long help.
func (*drainCmd) Help() string {
	return `The command prepares a cluster for maintenance: it sets drain in its TailscaleTailnets, and waits until other clusters serve what this one shares with them. Gateways then send requests to other clusters first, and proxies withdraw each service that another cluster serves. A service that no other cluster serves stays, and so does one that is not shared: the command lists both. The cluster serves again when the command runs with --undo, or drain is removed from the TailscaleTailnets.

Examples:

    Drain the cluster:
      ` + exampleDrain + `

    Serve again:
      ` + exampleUndo + `

Exit codes: 0 if the drain is complete, or is ended; 1 if this cluster still serves something; 2 if the command failed.`
}

// Run sets or removes drain, and waits until the drain is complete.
func (c *drainCmd) Run(s *session) error {
	kube, err := s.kube()
	if err != nil {
		return err
	}
	names, err := c.tailnets(s, kube)
	if err != nil {
		return err
	}
	value, outcome := "true", "drains"
	if c.Undo {
		value, outcome = "null", "no longer drains"
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"drain":%s}}`, value))
	for _, name := range names {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(tailnetKind)
		o.SetName(name)
		if err := kube.Patch(s.ctx, o, patch); err != nil {
			return errors.Wrapf(err, "cannot patch TailscaleTailnet %q", name)
		}
		fmt.Fprintf(s.out, "TailscaleTailnet %s %s\n", Quoted(name), outcome)
	}
	if c.Undo {
		return nil
	}
	return c.await(s, kube, names)
}

// tailnets returns the names of the TailscaleTailnets to change.
func (c *drainCmd) tailnets(s *session, kube client.Client) ([]string, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(listKind(tailnetKind))
	if err := kube.List(s.ctx, l); err != nil {
		return nil, errors.Wrap(err, "cannot list TailscaleTailnets")
	}
	var names []string
	for i := range l.Items {
		if n := l.Items[i].GetName(); c.Tailnet == "" || n == c.Tailnet {
			names = append(names, n)
		}
	}
	switch {
	case len(names) > 0:
		return names, nil
	case c.Tailnet != "":
		return nil, errors.Errorf("there is no TailscaleTailnet %q", c.Tailnet)
	}
	return nil, errors.New("the cluster has no TailscaleTailnet")
}

// A drainState is how far the drain of a cluster is.
type drainState struct {
	// drained is the number of services that other clusters serve. serving are those that this cluster
	// still serves, with the reason, and unshared those that no other cluster can serve.
	drained           int
	serving, unshared []string
}

// String returns the state in one line.
func (d drainState) String() string {
	return fmt.Sprintf("%d of %d shared services are served by other clusters", d.drained, d.drained+len(d.serving))
}

// state reads how far the drain is.
func (c *drainCmd) state(s *session, kube client.Client, tailnets []string) (drainState, error) {
	var services []v1alpha1.VIPService
	newList := func() *v1alpha1.VIPServiceList { return &v1alpha1.VIPServiceList{} }
	add := func(l *v1alpha1.VIPServiceList) { services = append(services, l.Items...) }
	if err := pageOf(s.ctx, kube, newList, add, client.HasLabels{meta.LabelServices}); err != nil {
		return drainState{}, errors.Wrap(err, "cannot list VIPServices")
	}
	slices.SortFunc(services, func(a, b v1alpha1.VIPService) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	out := drainState{}
	for i := range services {
		v := &services[i]
		ref := v.GetProviderConfigReference()
		if ref == nil || !slices.Contains(tailnets, ref.Name) {
			continue
		}
		name := v.GetNamespace() + "/" + v.GetName()
		cond := v.GetCondition(meta.TypeDrained)
		switch {
		case !v.Spec.ForProvider.Sharing.IsShared():
			out.unshared = append(out.unshared, name)
		case v.Spec.ForProvider.Drain && cond.Status == corev1.ConditionTrue:
			out.drained++
		default:
			out.serving = append(out.serving, strings.TrimSuffix(name+": "+cond.Message, ": "))
		}
	}
	return out, nil
}

// await waits until other clusters serve all shared services, and prints the progress.
func (c *drainCmd) await(s *session, kube client.Client, tailnets []string) error {
	deadline, last := s.time.Now().Add(c.Timeout), ""
	for {
		d, err := c.state(s, kube, tailnets)
		if err != nil {
			return err
		}
		if line := d.String(); line != last {
			fmt.Fprintln(s.out, line)
			last = line
		}
		if len(d.serving) == 0 || !s.time.Now().Before(deadline) {
			d.report(s)
			return nil
		}
		if err := s.wait(s.ctx, pollInterval); err != nil {
			return errors.Wrap(err, "the drain goes on without this command")
		}
	}
}

// report prints what this cluster still serves.
func (d drainState) report(s *session) {
	for _, v := range d.serving {
		s.code = ExitFound
		fmt.Fprintf(s.out, "served here: %s\n", Quoted(v))
	}
	for _, v := range d.unshared {
		s.code = ExitFound
		fmt.Fprintf(s.out, "not shared, and unreachable when this cluster stops: %s\n", Quoted(v))
	}
}
