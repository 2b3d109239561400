// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const sectionQuickstart = "quickstart"

func quickstartRows() []row {
	needs := []need{needKubeconfig, needWrite}
	return []row{
		{sectionQuickstart, "installed", "The cluster has the product's kinds.", needs, quickstartInstalled},
		{sectionQuickstart, "end-to-end", "The quickstart becomes ready, a node of the tailnet reaches its page, and its removal removes everything in the tailnet.", needs, quickstartRuns(nil)},
		{sectionQuickstart, "kernel", "The same with Kernel networking.", needs, quickstartRuns(kernelQuickstart)},
		{sectionQuickstart, "oldest-image", "The same with the oldest image of tailscale that you run.", needs, quickstartImage("--oldest-image", func(o *options) string { return o.OldestImage })},
		{sectionQuickstart, "newest-image", "The same with the newest image of tailscale that you run.", needs, quickstartImage("--newest-image", func(o *options) string { return o.NewestImage })},
	}
}

// kernelQuickstart selects Kernel networking, for which the namespace must permit privileged pods.
func kernelQuickstart(objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		if u.GetKind() == "Namespace" {
			l := u.GetLabels()
			l["pod-security.kubernetes.io/enforce"] = "privileged"
			u.SetLabels(l)
		}
	}
	return setProxy(objects, "networking", "Kernel")
}

// quickstartImage runs the quickstart with an image that an option names.
func quickstartImage(flag string, image func(*options) string) func(context.Context, *turn) error {
	return func(ctx context.Context, t *turn) error {
		i := image(t.run.opts)
		if i == "" {
			return skipf(skipMissing, "no image: pass %s=REGISTRY/REPOSITORY:TAG", flag)
		}
		t.observe("image", i)
		return quickstartRuns(func(objects []*unstructured.Unstructured) error { return setProxy(objects, "image", i) })(ctx, t)
	}
}

// setProxy sets a field of the proxy of the TailscaleEndpoints.
func setProxy(objects []*unstructured.Unstructured, field, value string) error {
	for _, u := range objects {
		if u.GetKind() == "TailscaleEndpoints" {
			return errors.Wrapf(unstructured.SetNestedField(u.Object, value, "spec", "proxy", field), "cannot set spec.proxy.%s", field)
		}
	}
	return errors.New("the quickstart has no TailscaleEndpoints")
}

// quickstartKinds are the product's kinds that the quickstart uses.
var quickstartKinds = []string{"TailscaleTailnet", "TailscaleEndpoints", "TailscaleServices"}

func quickstartInstalled(_ context.Context, t *turn) error {
	c, err := newCluster(t.run.opts.Kubeconfig)
	if err != nil {
		return err
	}
	for _, k := range quickstartKinds {
		if _, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: "gateway.tailscale.com", Kind: k}); err != nil {
			return errors.Wrapf(err, "the cluster has no kind %s: install the packages first", k)
		}
	}
	return nil
}

// quickstartNames returns the names of the run.
func (r *run) quickstartNames() names {
	n := names{prefix: r.prefix, tag: r.opts.Tag}
	if r.opts.APIURL != defaultAPI {
		n.apiURL = r.opts.APIURL
	}
	if r.opts.ControlURL != defaultControl {
		n.controlURL = r.opts.ControlURL
	}
	if r.opts.Tailnet != "-" {
		n.tailnet = r.opts.Tailnet
	}
	return n
}

// quickstartRuns returns a row's function that runs the quickstart. A change that is not nil
// changes its objects first.
func quickstartRuns(change func([]*unstructured.Unstructured) error) func(context.Context, *turn) error {
	return func(ctx context.Context, t *turn) error { return t.quickstart(ctx, change) }
}

func (t *turn) quickstart(ctx context.Context, change func([]*unstructured.Unstructured) error) error {
	if t.cred.clientSecret == "" {
		return skipf(skipMissing, "the quickstart needs an OAuth client: set TS_CLIENT_SECRET")
	}
	c, err := newCluster(t.run.opts.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	n := t.run.quickstartNames()
	objects, err := quickstart(t.run.opts.Quickstart, n)
	if err != nil {
		return err
	}
	if change != nil {
		if err := change(objects); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := t.create(ctx, c, objects, n); err != nil {
		return err
	}
	vip, err := t.comesUp(ctx, c, n)
	if err != nil {
		return err
	}
	t.measure("ready", time.Since(began))
	took, err := t.until(ctx, "the page answers", func(ctx context.Context) (string, error) {
		page, err := client.page(ctx, vip)
		if err != nil {
			return err.Error(), nil //nolint:nilerr // It may answer a moment later.
		}
		if !strings.HasPrefix(page, "web-") {
			return "", errors.Errorf("%q answered, want the name of a pod", page)
		}
		return "", nil
	})
	t.measure("page answers after that", took)
	if err != nil {
		return err
	}
	return t.goes(ctx, c)
}

// create creates the objects, each after its entry in the ledger. None of them may exist.
func (t *turn) create(ctx context.Context, c *cluster, objects []*unstructured.Unstructured, n names) error {
	// The product creates it, and may fail to remove it.
	if _, err := t.run.ledger.intend(t.owner(), kindService, "svc:"+n.service(), ""); err != nil {
		return err
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata":   map[string]any{"name": "tailscale-oauth", "namespace": n.prefix},
		"stringData": map[string]any{"client_id": t.cred.clientID, "client_secret": t.cred.clientSecret},
	}}
	// After its namespace.
	objects = append(objects[:1:1], append([]*unstructured.Unstructured{secret}, objects[1:]...)...)
	for _, u := range objects {
		name := clusterName(u)
		if _, err := t.run.ledger.intend(t.owner(), kindCluster, name, ""); err != nil {
			return err
		}
		if err := c.Create(ctx, u); err != nil {
			return errors.Wrapf(err, "cannot create %s %s", u.GetKind(), u.GetName())
		}
	}
	return nil
}

// comesUp waits for the conditions that the example promises, and returns the
// service's IPv4 address.
func (t *turn) comesUp(ctx context.Context, c *cluster, n names) (netip.Addr, error) {
	var service *unstructured.Unstructured
	for _, w := range []struct{ kind, namespace, name, condition string }{
		{"TailscaleTailnet", "", n.prefix, "Authenticated"},
		{"TailscaleEndpoints", n.prefix, "proxies", "StatefulSetsReady"},
		{"TailscaleServices", n.prefix, n.service(), "Advertised"},
		{"TailscaleServices", n.prefix, n.service(), "Ready"},
	} {
		took, err := t.until(ctx, w.kind+" is "+w.condition, func(ctx context.Context) (string, error) {
			missing, u, err := c.missing(ctx, w.kind, w.namespace, w.name, w.condition)
			service = u
			return missing, err
		})
		t.measure(w.kind+" "+w.condition, took)
		if err != nil {
			return netip.Addr{}, err
		}
	}
	all, _, err := unstructured.NestedStringSlice(service.Object, "status", "vipServiceStatus", "addresses")
	if err != nil || len(all) == 0 {
		return netip.Addr{}, errors.New("the service's status has no addresses")
	}
	a, err := netip.ParseAddr(all[0])
	return a, errors.Wrap(err, "cannot parse an address")
}

// page gets the service's page.
func (n *node) page(ctx context.Context, vip netip.Addr) (string, error) {
	c, err := n.dial(ctx, netip.AddrPortFrom(vip, 80))
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }() // All was read.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+vip.String()+"/", http.NoBody)
	if err != nil {
		return "", errors.Wrap(err, "cannot create a request")
	}
	if err := errors.Join(c.SetDeadline(time.Now().Add(dialTimeout)), req.Write(c)); err != nil {
		return "", errors.Wrap(err, "cannot send a request")
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return "", errors.Wrap(err, "no answer")
	}
	defer func() { _ = resp.Body.Close() }() // The connection is closed, too.
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if line == "" && err != nil {
		return "", errors.Wrap(err, "no page")
	}
	return strings.TrimSpace(line), nil
}

// goes removes the objects, and waits until the tailnet has none of the quickstart.
func (t *turn) goes(ctx context.Context, c *cluster) error {
	began := time.Now()
	for _, e := range t.run.ledger.left() {
		if e.Kind != kindCluster {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, t.run.opts.Timeout)
		err := c.remove(limited, object{e.Kind, e.Name, e.ID})
		cancel()
		if err != nil {
			return err
		}
		if err := t.run.ledger.gone(e.Seq); err != nil {
			return err
		}
	}
	t.measure("removed", time.Since(began))
	// The run's own nodes, which have the same prefix, stay until its end.
	ours := map[string]bool{}
	for _, e := range t.run.ledger.left() {
		if e.Kind == kindDevice {
			ours[e.Name] = true
		}
	}
	_, err := t.until(ctx, "the tailnet has nothing of the quickstart", func(ctx context.Context) (string, error) {
		services, err := findServices(ctx, t.session, t.run.prefix+"-quick")
		if err != nil {
			return "", err
		}
		devices, err := findDevices(ctx, t.session, t.run.prefix)
		if err != nil {
			return "", err
		}
		for _, o := range append(services, devices...) {
			if !ours[o.name] {
				return o.kind + " " + o.name + " exists", nil
			}
		}
		return "", nil
	})
	return err
}
