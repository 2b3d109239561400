// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

type statusCmd struct {
	Namespace string `short:"n" help:"Namespace of the objects. The default is all. Tailnets are in no namespace, and always shown." placeholder:"NAMESPACE"`
	Limit     int    `default:"20" help:"Number of objects of a kind, and of causes, to print. 0 prints all." placeholder:"N"`
	Output    string `short:"o" default:"table" enum:"table,json,yaml" help:"Format: table, json or yaml." placeholder:"FORMAT"`
}

// Examples of the help, which tests run.
const (
	exampleStatus          = "kubectl tailscale-gateway status"
	exampleStatusNamespace = "kubectl tailscale-gateway status --namespace=shop --limit=0"
)

// Help returns the long help.
func (*statusCmd) Help() string {
	return `The command shows the tailnets, proxies, services and Gateways of the cluster on one screen. First comes why objects are not ready, each cause once, with the next step; then the objects, with those that are not ready first.

Examples:

    Show everything:
      ` + exampleStatus + `

    Show all objects of a namespace:
      ` + exampleStatusNamespace + `

Exit codes: 0 if all objects are ready, 1 if some are not, 2 if the command failed.`
}

// An objectStatus is an object in the output of the command status. Its fields are stable.
type objectStatus struct {
	causes.Reference

	Ready bool `json:"ready"`

	// Reason is that of the cause, if the object is not ready.
	Reason string `json:"reason,omitempty"`

	// Details are facts that users look for, such as an address.
	Details string `json:"details,omitempty"`
}

// A causeStatus is why objects are not ready. Its fields are stable.
type causeStatus struct {
	causes.Condition

	// Object has the condition, and Objects are those of users that are not ready because of it.
	Object  causes.Reference   `json:"object"`
	Objects []causes.Reference `json:"objects"`

	NextStep string `json:"nextStep"`
}

// A statusList is what the command status prints.
type statusList struct {
	Causes  []causeStatus  `json:"causes"`
	Objects []objectStatus `json:"objects"`

	// NotRead are kinds that you may not list: those that are composed, and tailnets.
	NotRead []string `json:"notRead,omitempty"`

	kubectl string
	found   []causes.Cause
}

// Run prints the state of objects.
func (c *statusCmd) Run(s *session, f *kubeFlags) error {
	kube, err := s.kube()
	if err != nil {
		return err
	}
	found, err := readObjects(s.ctx, kube, c.Namespace, func(*unstructured.Unstructured) {})
	if err != nil {
		return err
	}
	l := statusOf(found, check.Options{Context: f.Context, Kubeconfig: f.Kubeconfig}.Kubectl())
	if len(l.Causes) > 0 {
		s.code = ExitFound
	}
	if c.Output != "table" {
		return encode(s.out, c.Output, l)
	}
	_, err = io.WriteString(s.out, l.screen(c.Limit))
	return errors.Wrap(err, "cannot print")
}

// statusOf returns the state of objects: those that users wrote, with those that are not ready first.
func statusOf(i inventory, kubectl string) statusList {
	l := statusList{Causes: []causeStatus{}, Objects: []objectStatus{}, NotRead: i.notRead, kubectl: kubectl, found: causes.Find(i.objects)}
	reasons := map[causes.Reference]string{}
	for _, c := range l.found {
		out := causeStatus{Condition: clean(c.Condition), Object: c.Objects[0].Reference, Objects: slices.Clone(c.Users), NextStep: text.Clean(c.NextStep(kubectl))}
		for _, u := range c.Users {
			reasons[u] = out.Reason
		}
		l.Causes = append(l.Causes, out)
	}
	for _, o := range i.objects {
		if !slices.Contains(userKinds(), o.Kind) {
			continue
		}
		state := objectStatus{Reference: o.Reference, Ready: o.Ready(), Details: text.Clean(o.Details)}
		if !state.Ready {
			state.Reason = cmp.Or(reasons[o.Reference], text.Clean(o.Failure().Reason))
		}
		l.Objects = append(l.Objects, state)
	}
	order := userKinds()
	slices.SortFunc(l.Objects, func(a, b objectStatus) int {
		return cmp.Or(slices.Index(order, a.Kind)-slices.Index(order, b.Kind), first(a.Ready)-first(b.Ready), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return l
}

// first returns a rank by which what is not ready comes first.
func first(ready bool) int {
	if ready {
		return 1
	}
	return 0
}

// clean returns a condition whose texts do nothing to a terminal.
func clean(c causes.Condition) causes.Condition {
	return causes.Condition{Type: text.Clean(c.Type), Status: text.Clean(c.Status), Reason: text.Clean(c.Reason), Message: text.Clean(c.Message)}
}

// titles are the sections of the screen, by kind.
var titles = map[string]string{
	gatewayv1alpha1.TailscaleTailnetKind:    "Tailnets",
	gatewayv1alpha1.TailscaleProxyGroupKind: "Proxy groups",
	gatewayv1alpha1.TailscaleEndpointsKind:  "Proxies",
	gatewayv1alpha1.TailscaleServicesKind:   "Services",
	gatewayv1alpha1.TailscaleGatewayKind:    "Gateways",
}

// maxText is the length of a text in a line of the screen, in bytes.
const maxText = 300

// screen returns the state for people. Of each section it has at most limit lines, if limit is not zero.
func (l statusList) screen(limit int) string {
	out := &strings.Builder{}
	for n, c := range l.found {
		if limit > 0 && n == limit {
			fmt.Fprintf(out, "%d more causes; --limit=0 prints all.\n\n", len(l.found)-n)
			break
		}
		fmt.Fprintln(out, text.Cut(text.Visible(check.Describe(c)), maxText))
		for _, line := range []string{check.Affected(c), "Next: " + c.NextStep(l.kubectl)} {
			if line != "" {
				fmt.Fprintf(out, "  %s\n", text.Visible(line))
			}
		}
		fmt.Fprintln(out)
	}
	if len(l.NotRead) > 0 {
		fmt.Fprintf(out, "You may not list %s: causes may be missing.\n\n", strings.Join(l.NotRead, ", "))
	}
	if len(l.Objects) == 0 {
		return out.String() + "There are no tailnets, proxies, services or Gateways.\n"
	}
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, kind := range userKinds() {
		l.section(t, kind, limit)
	}
	// A strings.Builder returns no error.
	_ = t.Flush()
	return strings.TrimSuffix(out.String(), "\n")
}

// section prints the objects of a kind.
func (l statusList) section(w io.Writer, kind string, limit int) {
	var objects []objectStatus
	ready := 0
	for _, o := range l.Objects {
		if o.Kind == kind {
			objects = append(objects, o)
			ready += first(o.Ready)
		}
	}
	if len(objects) == 0 {
		return
	}
	fmt.Fprintf(w, "%s: %d of %d ready\n", titles[kind], ready, len(objects))
	for n, o := range objects {
		if limit > 0 && n == limit {
			fmt.Fprintf(w, "  %d more; --limit=0 prints all\n", len(objects)-n)
			break
		}
		name := strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
		state := "Ready"
		if !o.Ready {
			state = text.Cut(o.Reason, maxText)
		}
		fmt.Fprintln(w, strings.TrimRight("  "+text.Visible(name)+"\t"+state+"\t"+text.Cut(o.Details, maxText), "\t"))
	}
	fmt.Fprintln(w)
}
