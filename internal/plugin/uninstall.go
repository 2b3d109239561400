// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

type uninstallCmd struct {
	Output string `short:"o" default:"table" enum:"table,json,yaml" help:"Format: table, json or yaml." placeholder:"FORMAT"`
}

const exampleUninstall = "kubectl tailscale-gateway uninstall"

// Help returns the long help.
func (*uninstallCmd) Help() string {
	return `Only the provider removes what its objects made in a tailnet. The command lists all objects that hold something there, and prints the commands that delete them, in the order in which they must run before the provider is removed. It deletes nothing, and needs no credential of a tailnet.

Example:

    ` + exampleUninstall + `

Exit codes: 0 if nothing would stay in a tailnet, 1 if something would, 2 if the command failed.`
}

// A stage is a set of kinds that are deleted together, before the next stage.
type stage []schema.GroupVersionKind

// stages returns all kinds of a scheme that users create, in the order of deletion: services before the proxies
// that serve them, and the tailnets, with their credentials, at the end.
func stages(s *runtime.Scheme) []stage {
	g, t := gatewayv1alpha1.SchemeGroupVersion.WithKind, v1alpha1.SchemeGroupVersion.WithKind
	out := []stage{
		{g(gatewayv1alpha1.TailscaleGatewayKind)},
		{g(gatewayv1alpha1.TailscaleServicesKind)},
		{g(gatewayv1alpha1.TailscaleProxyGroupKind), g(gatewayv1alpha1.TailscaleEndpointsKind)},
		{t(v1alpha1.VIPServiceKind), t(v1alpha1.MachineSetKind), t(v1alpha1.MachineKind)},
		// Other managed kinds.
		nil,
		{g(gatewayv1alpha1.TailscaleTailnetKind)},
		{t(v1alpha1.TailnetKind)},
		{t(v1alpha1.ProviderConfigKind), t(v1alpha1.ClusterProviderConfigKind)},
	}
	others := &out[4]
	named := slices.Concat(out...)
	for _, kind := range sortedKeys(managedLists(s)) {
		if !slices.Contains(named, t(kind)) {
			*others = append(*others, t(kind))
		}
	}
	return out
}

// managedLists returns empty lists of the managed kinds in a scheme, by kind.
func managedLists(s *runtime.Scheme) map[string]resource.ManagedList {
	out := map[string]resource.ManagedList{}
	for name, t := range s.KnownTypes(v1alpha1.SchemeGroupVersion) {
		if l, ok := reflect.New(t).Interface().(resource.ManagedList); ok {
			out[strings.TrimSuffix(name, "List")] = l
		}
	}
	return out
}

// holding returns empty lists of the managed kinds in a scheme that make or set something in a tailnet, by kind.
func holding(s *runtime.Scheme) map[string]resource.ManagedList {
	out := managedLists(s)
	// A Discovery only reads.
	delete(out, v1alpha1.DiscoveryKind)
	return out
}

// A holder is an object that holds something in a tailnet.
type holder struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`

	// Holds describes the object of the tailnet.
	Holds string `json:"holds"`

	// Stays reports that what the object holds stays in the tailnet when the object is deleted.
	Stays bool `json:"stays,omitempty"`

	// Reason says why it stays.
	Reason string `json:"reason,omitempty"`
}

// An uninstallation is what the command uninstall prints. Its fields are stable.
type uninstallation struct {
	Holders  []holder `json:"holders"`
	Commands []string `json:"commands"`
}

// Run lists what an uninstallation would leave, and how to prevent that.
func (c *uninstallCmd) Run(s *session) error {
	kube, err := s.kube()
	if err != nil {
		return err
	}
	u := uninstallation{Holders: []holder{}, Commands: []string{}}
	installed := false
	for kind, l := range holding(kube.Scheme()) {
		found, err := listKnown(s.ctx, kube, kind, l)
		if err != nil {
			return err
		}
		installed = installed || found
		for _, o := range l.GetItems() {
			if h, ok := holderOf(kind, o); ok {
				u.Holders = append(u.Holders, h)
			}
		}
	}
	if !installed {
		return errors.Errorf("the cluster has no kind of the group %s: either the provider is not installed in this cluster, and the kubeconfig or --context names another one than you meant, or its kinds are gone, and \"kubectl tailscale-gateway orphans\" lists what stayed", v1alpha1.Group)
	}
	slices.SortFunc(u.Holders, func(a, b holder) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if u.Commands, err = commands(s.ctx, kube); err != nil {
		return err
	}
	if len(u.Holders) > 0 {
		s.code = ExitFound
	}
	return u.print(s.out, c.Output)
}

// holderOf returns what an object holds in its tailnet, and whether it holds anything.
func holderOf(kind string, o resource.Managed) (holder, bool) {
	h := holder{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Holds: xpmeta.GetExternalName(o)}
	switch m := o.(type) {
	case *v1alpha1.VIPService:
		names := []string{m.Status.AtProvider.Name, m.Status.AtProvider.OwnServiceName}
		h.Holds = strings.Join(slices.DeleteFunc(names, func(s string) bool { return s == "" }), ", ")
	case *v1alpha1.Machine:
		h.Holds = meta.NodeIDOf(m)
	case *v1alpha1.SplitDNS:
		h.Holds = "DNS of " + joined(m.Spec.ForProvider.Domains)
	case *v1alpha1.DNS, *v1alpha1.Contacts, *v1alpha1.LogstreamConfiguration, *v1alpha1.Tailnet:
		h.Holds = "settings of the tailnet"
	}
	p := o.GetManagementPolicies()
	if len(p) == 1 && p[0] == xpv2.ManagementActionObserve {
		return h, false
	}
	h.Reason = keepReason(o)
	h.Stays = h.Reason != ""
	return h, h.Holds != ""
}

// keepReason says why the deletion of an object changes nothing in its tailnet, or is empty.
func keepReason(o resource.Managed) string {
	if p := o.GetManagementPolicies(); len(p) > 0 && !slices.Contains(p, xpv2.ManagementActionDelete) && !slices.Contains(p, xpv2.ManagementActionAll) {
		return "as managementPolicies say"
	}
	switch m := o.(type) {
	case *v1alpha1.Contacts:
		return "because a tailnet must have contacts"
	case *v1alpha1.Tailnet:
		return "because these settings have no earlier value"
	case *v1alpha1.Device:
		if m.Spec.ForProvider.DeletionPolicy != v1alpha1.DeviceDelete {
			return "as deletionPolicy says"
		}
	case *v1alpha1.VIPService:
		if m.Spec.ForProvider.DeletionPolicy == v1alpha1.VIPServiceRetain {
			return "as deletionPolicy says"
		}
	}
	return ""
}

func joined[T ~string](values []T) string {
	out := make([]string, len(values))
	for i, s := range values {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}

// commands returns the commands that delete all objects that no other object controls.
func commands(ctx context.Context, kube client.Client) ([]string, error) {
	out := []string{}
	for _, st := range stages(kube.Scheme()) {
		for _, gvk := range st {
			l := &metav1.PartialObjectMetadataList{}
			l.SetGroupVersionKind(listKind(gvk))
			if err := list(ctx, kube, gvk.Kind, l); err != nil {
				return nil, err
			}
			byNamespace := map[string][]string{}
			for n := range l.Items {
				if o := &l.Items[n]; metav1.GetControllerOf(o) == nil {
					byNamespace[o.GetNamespace()] = append(byNamespace[o.GetNamespace()], o.GetName())
				}
			}
			for _, namespace := range sortedKeys(byNamespace) {
				slices.Sort(byNamespace[namespace])
				flag := ""
				if namespace != "" {
					flag = " --namespace=" + namespace
				}
				out = append(out, fmt.Sprintf("kubectl delete %s.%s%s %s", strings.ToLower(gvk.Kind), gvk.Group, flag, strings.Join(byNamespace[namespace], " ")))
			}
		}
	}
	return out, nil
}

func (u uninstallation) print(w io.Writer, format string) error {
	if format == "table" {
		return u.table(w)
	}
	return encode(w, format, u)
}

func (u uninstallation) table(w io.Writer) error {
	if len(u.Holders) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		fmt.Fprintln(t, "KIND\tNAMESPACE\tNAME\tHOLDS IN THE TAILNET\tAFTER DELETION")
		for _, h := range u.Holders {
			outcome := "removed"
			if h.Stays {
				outcome = "stays, " + h.Reason
			}
			fmt.Fprintln(t, strings.Join([]string{h.Kind, h.Namespace, h.Name, Quoted(h.Holds), outcome}, "\t"))
		}
		if err := t.Flush(); err != nil {
			return errors.Wrap(err, "cannot print")
		}
		fmt.Fprintln(w)
	}
	if len(u.Commands) == 0 {
		_, err := fmt.Fprintln(w, "Nothing holds anything in a tailnet.")
		return errors.Wrap(err, "cannot print")
	}
	_, err := fmt.Fprintf(w, "Before the provider is removed, run in this order, and wait for each:\n\n  %s\n", strings.Join(u.Commands, "\n  "))
	return errors.Wrap(err, "cannot print")
}

// encode prints a value as JSON or YAML.
func encode(w io.Writer, format string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return errors.Wrap(err, "cannot encode the output")
	}
	b = append(ascii(b), '\n')
	if format == "yaml" {
		if b, err = yaml.JSONToYAML(b); err != nil {
			return errors.Wrap(err, "cannot encode the output")
		}
	}
	_, err = w.Write(b)
	return errors.Wrap(err, "cannot print")
}
