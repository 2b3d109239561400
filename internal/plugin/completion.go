// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

//go:embed completion
var scripts embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish,kubectl" help:"Shell: bash, zsh or fish, or kubectl for completion behind kubectl tailscale-gateway."`
}

// Help returns the long help.
func (*completionCmd) Help() string {
	return `The command prints a script that completes commands, flags, and the names of objects. The shells complete kubectl-tailscale_gateway and tsgw. kubectl completes its plugins by a program beside them:

    kubectl tailscale-gateway completion kubectl > ~/.local/bin/kubectl_complete-tailscale_gateway
    chmod +x ~/.local/bin/kubectl_complete-tailscale_gateway

Load the script of a shell in its configuration:

    source <(tsgw completion bash)
    source <(tsgw completion zsh)
    tsgw completion fish | source`
}

// Run prints the script.
func (c *completionCmd) Run(s *session) error {
	b, err := scripts.ReadFile("completion/" + c.Shell)
	if err != nil {
		return errors.Wrapf(err, "cannot read the script for %s", c.Shell)
	}
	_, err = s.out.Write(b)
	return errors.Wrap(err, "cannot print")
}

// commandComplete is the command that scripts call. It has no help: its parameters are the words of a command line, of
// which the last one is to be completed, and may be incomplete in any way.
const commandComplete = "__complete"

// Directives of cobra, by which kubectl reads completions (spf13/cobra, completions.go).
const (
	directiveFiles   = 0
	directiveNoFiles = 4
)

// completionTimeout is how long a person waits for names.
const completionTimeout = 3 * time.Second

// complete prints the words that can follow, one in a line, and a directive.
func (s *session) complete(model *kong.Application, words []string) int {
	c := completer{session: s, model: model}
	candidates, directive := c.candidates(words)
	for _, w := range candidates {
		// Names of Kubernetes' objects have no such characters. Those of contexts have what their authors chose.
		if text.Visible(w) == w {
			fmt.Fprintln(s.out, w)
		}
	}
	if _, err := fmt.Fprintf(s.out, ":%d\n", directive); err != nil {
		return ExitFailed
	}
	return ExitNone
}

// A completer completes one command line.
type completer struct {
	session *session
	model   *kong.Application
	cluster kubeFlags
}

// candidates returns the words that can replace the last one.
func (c *completer) candidates(words []string) ([]string, int) {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	node, pending := c.walk(words[:len(words)-1])
	name, value, assigned := strings.Cut(last, "=")
	switch {
	case pending != nil:
		return c.values(pending, last, "")
	case strings.HasPrefix(last, "-") && assigned:
		if f := find(node, name); f != nil {
			return c.values(f, value, name+"=")
		}
	case strings.HasPrefix(last, "-"):
		var out []string
		for _, f := range flagsOf(node) {
			if !f.Hidden {
				out = append(out, "--"+f.Name)
			}
		}
		return matching(out, last, ""), directiveNoFiles
	default:
		var out []string
		for _, child := range node.Children {
			if !child.Hidden {
				out = append(out, child.Name)
			}
		}
		for _, p := range node.Positional {
			out = append(out, p.EnumSlice()...)
		}
		return matching(out, last, ""), directiveNoFiles
	}
	return nil, directiveNoFiles
}

// walk returns the command of a command line, and the flag that still needs a value.
func (c *completer) walk(words []string) (*kong.Node, *kong.Flag) {
	node := c.model.Node
	var pending *kong.Flag
	for _, w := range words {
		switch {
		case pending != nil:
			c.set(pending.Name, w)
			pending = nil
		case strings.HasPrefix(w, "-"):
			name, value, assigned := strings.Cut(w, "=")
			f := find(node, name)
			switch {
			case f == nil:
			case assigned:
				c.set(f.Name, value)
			case !f.IsBool():
				pending = f
			}
		default:
			if n := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == w }); n >= 0 {
				node = node.Children[n]
			}
		}
	}
	return node, pending
}

// set notes a flag that selects the cluster.
func (c *completer) set(name, value string) {
	switch name {
	case "kubeconfig":
		c.cluster.Kubeconfig = value
	case "context":
		c.cluster.Context = value
	case "as":
		c.cluster.As = value
	case "as-group":
		c.cluster.AsGroup = append(c.cluster.AsGroup, value)
	}
}

// flagsOf returns the flags of a command and of those above it.
func flagsOf(node *kong.Node) []*kong.Flag {
	var out []*kong.Flag
	for ; node != nil; node = node.Parent {
		out = append(out, node.Flags...)
	}
	return out
}

// find returns the flag that a word begins with, or nil.
func find(node *kong.Node, word string) *kong.Flag {
	for _, f := range flagsOf(node) {
		if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

// values returns the values that a flag can have.
func (c *completer) values(f *kong.Flag, value, prefix string) ([]string, int) {
	switch f.Name {
	case "kubeconfig", "values", "chart", "client-secret-file", "images":
		return nil, directiveFiles
	case "context":
		return matching(c.contexts(), value, prefix), directiveNoFiles
	case "namespace", "crossplane-namespace", "envoy-gateway-namespace", "extension-namespace", "provider-namespace":
		return matching(c.names(corev1.SchemeGroupVersion.WithKind("Namespace")), value, prefix), directiveNoFiles
	case "provider-config":
		configs := slices.Concat(c.names(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterProviderConfigKind)), c.names(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ProviderConfigKind)))
		return matching(configs, value, prefix), directiveNoFiles
	case "former":
		return matching(c.names(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.AuthKeyKind)), value, prefix), directiveNoFiles
	}
	return matching(f.EnumSlice(), value, prefix), directiveNoFiles
}

// matching returns the words that begin with a text, each after a prefix, sorted.
func matching(words []string, begin, prefix string) []string {
	var out []string
	for _, w := range words {
		if w != "" && strings.HasPrefix(w, begin) {
			out = append(out, prefix+w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// contexts returns the contexts of the kubeconfig. One that cannot be read has none.
func (c *completer) contexts() []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.cluster.Kubeconfig
	cfg, err := rules.Load()
	if err != nil {
		return nil
	}
	return sortedKeys(cfg.Contexts)
}

// names returns the names of objects: NAMESPACE/NAME, or NAME if they are in no namespace. A list that cannot be read has
// no names: a completion reports no error.
func (c *completer) names(gvk schema.GroupVersionKind) []string {
	c.cluster.RequestTimeout = completionTimeout
	kube, err := connect(c.cluster)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.session.ctx, completionTimeout)
	defer cancel()
	r := &reader{ctx: ctx, kube: kube}
	l, err := r.metadata(gvk)
	if err != nil {
		return nil
	}
	var out []string
	for n := range l {
		out = append(out, strings.TrimPrefix(l[n].GetNamespace()+"/"+l[n].GetName(), "/"))
	}
	return out
}
