// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// quickstartName is the name of the example's namespace and of its tailnet.
const quickstartName = "quickstart"

// names are the names and values that replace those of the example.
type names struct {
	prefix     string
	tag        string
	apiURL     string
	controlURL string
	tailnet    string
}

// service returns the name of the renamed example's Tailscale Service.
func (n names) service() string { return n.prefix + "-quick" }

// quickstart returns the renamed objects of the example's manifests, in the order in which they are
// applied.
func quickstart(dir string, n names) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, file := range []string{"namespace.yaml", "tailnet.yaml", "web.yaml", "web-tailscale.yaml"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, errors.Wrap(err, "cannot read the quickstart; run from the project's folder")
		}
		for doc := range bytes.SplitSeq(b, []byte("\n---\n")) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(doc, &u.Object); err != nil {
				return nil, errors.Wrapf(err, "cannot parse %s", file)
			}
			if u.Object != nil {
				rename(u, n)
				out = append(out, u)
			}
		}
	}
	return out, nil
}

// rename gives an object of the example a name of the run: names in the whole cluster and in the
// tailnet begin with the prefix, and the namespace is the prefix.
func rename(u *unstructured.Unstructured, n names) {
	if u.GetNamespace() == quickstartName {
		u.SetNamespace(n.prefix)
	}
	if u.GetName() == quickstartName {
		u.SetName(n.prefix)
	}
	spec, _ := u.Object["spec"].(map[string]any)
	set := func(m map[string]any, key, value string) {
		if m != nil && value != "" {
			m[key] = value
		}
	}
	switch u.GetKind() {
	case "TailscaleTailnet":
		set(spec, "oauthSecretNamespace", n.prefix)
		set(spec, "apiURL", n.apiURL)
		set(spec, "controlURL", n.controlURL)
		set(spec, "tailnet", n.tailnet)
		spec["tags"] = []any{n.tag}
	case "TailscaleEndpoints":
		set(spec, "tailnet", n.prefix)
	case "TailscaleServices":
		// The new name is that of the Tailscale Service, so the backend, by default of the same name,
		// must be set.
		spec["backends"] = []any{map[string]any{"name": u.GetName(), "port": int64(80)}}
		u.SetName(n.service())
		if vip, ok := spec["vipService"].(map[string]any); ok {
			vip["tags"] = []any{n.tag}
		}
	}
}

// A cluster is a client of the cluster in which the quickstart runs.
type cluster struct{ client.Client }

func newCluster(kubeconfig string) (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, errors.Wrap(err, "cannot load kubeconfig")
	}
	// Without a logger, controller-runtime prints a warning with a stack.
	log.SetLogger(logr.Discard())
	c, err := client.New(cfg, client.Options{})
	return &cluster{c}, errors.Wrap(err, "cannot create a client of the cluster")
}

// clusterName returns the name of an object in the ledger: apiVersion|kind|namespace|name.
func clusterName(u *unstructured.Unstructured) string {
	return strings.Join([]string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}, "|")
}

// objectOf returns the object with a name in the ledger.
func objectOf(name string) (*unstructured.Unstructured, error) {
	parts := strings.Split(name, "|")
	if len(parts) != 4 {
		return nil, errors.Errorf("cannot read the name %q of an object", name)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(parts[0], parts[1]))
	u.SetNamespace(parts[2])
	u.SetName(parts[3])
	return u, nil
}

// remove deletes an object of the ledger, and waits until it is gone. The deletion of its objects
// in the tailnet requires the Secret.
func (c *cluster) remove(ctx context.Context, o object) error {
	u, err := objectOf(o.name)
	if err != nil {
		return err
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, u, client.PropagationPolicy("Foreground"))); err != nil {
		return errors.Wrapf(err, "cannot remove %s %s", u.GetKind(), u.GetName())
	}
	if u.GetKind() == "Secret" {
		// It exists as long as its users, and is deleted with its namespace.
		return nil
	}
	for {
		err := c.Get(ctx, client.ObjectKeyFromObject(u), u)
		if kerrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return errors.Wrapf(err, "cannot get %s %s", u.GetKind(), u.GetName())
		}
		if err := pauseFor(ctx, time.Second); err != nil {
			return errors.Errorf("%s %s is still being removed", u.GetKind(), u.GetName())
		}
	}
}

// missing returns an object, and why its condition is not True, or an empty string.
func (c *cluster) missing(ctx context.Context, kind, namespace, name, condition string) (string, *unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "gateway.tailscale.com", Version: "v1alpha1", Kind: kind})
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
		return "", nil, errors.Wrapf(err, "cannot get %s %s", kind, name)
	}
	all, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return "", u, errors.Wrap(err, "cannot read conditions")
	}
	i := slices.IndexFunc(all, func(e any) bool {
		m, _ := e.(map[string]any)
		return str(m, "type") == condition
	})
	if i < 0 {
		return fmt.Sprintf("%s %s: no condition %s yet", kind, name, condition), u, nil
	}
	m, _ := all[i].(map[string]any)
	if str(m, "status") == "True" {
		return "", u, nil
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s is %s: %s", kind, name, condition, str(m, "status"), str(m, "message"))), u, nil
}
