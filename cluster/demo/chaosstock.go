// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed" // For the service that changes.
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

//go:embed chaos-own.yaml
var ownManifest string

// ownService returns the name of the service that one cluster has alone.
func ownService(cluster string) string { return "own-" + cluster }

// Annotations and names that only ours have.
const (
	ownTag         = "tag:k8s"
	ownKeys        = "tsgw "
	ownAnnotations = "gateway.tailscale.com/"

	// foreign is the name of objects that are not ours.
	foreign = "foreign"
)

// An inventory is what there is, by kind and name, with what must not change of it.
type inventory map[string]string

// Kinds of the entries of an inventory, each followed by a name.
const (
	kindForeign = "foreign"
	kindRecord  = "record"
	kindMachine = "machine"
	kindDevice  = "device"
	kindService = "service"
	kindKey     = "key"
	kindObject  = "object"
)

// add adds an entry.
func (i inventory) add(kind, name string, value any) error {
	b, err := json.Marshal(value)
	i[kind+" "+name] = string(b)
	return errors.Wrapf(err, "cannot encode %s %s", kind, name)
}

// differences returns what is missing, changed or left over in another inventory.
func (i inventory) differences(o inventory) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(i)) {
		switch value, ok := o[name]; {
		case !ok:
			out = append(out, name+" is missing")
		case value != i[name]:
			out = append(out, fmt.Sprintf("%s is %s, and was %s", name, value, i[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if _, ok := i[name]; !ok {
			out = append(out, name+" is left over")
		}
	}
	return out
}

// only returns the entries of a kind.
func (i inventory) only(kind string) inventory {
	out := maps.Clone(i)
	maps.DeleteFunc(out, func(name, _ string) bool { return !strings.HasPrefix(name, kind+" ") })
	return out
}

// addTailnet adds what is in the tailnet.
func (i inventory) addTailnet(st tailnetsim.StateView) error {
	for _, d := range st.Devices {
		kind, fields := kindForeign, []string{"hostname", "name", "addresses", "tags", "nodeKey", "authorized", "enabledRoutes"}
		if tags, ok := d["tags"].([]any); ok && slices.Contains(tags, any(ownTag)) {
			kind = kindDevice
		}
		if err := i.add(kind, fmt.Sprint(d["nodeId"]), choose(d, fields...)); err != nil {
			return err
		}
	}
	for _, k := range st.Keys {
		if invalid, ok := k["invalid"].(bool); ok && invalid {
			continue // It is used up.
		}
		kind := kindForeign
		if strings.HasPrefix(fmt.Sprint(k["description"]), ownKeys) {
			kind = kindKey
		}
		if err := i.add(kind, fmt.Sprint(k["id"]), choose(k, "description", "tags", "expires", "capabilities")); err != nil {
			return err
		}
	}
	for _, s := range st.Services {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(s.Annotations)), func(name string) bool { return strings.HasPrefix(name, ownAnnotations) }) {
			if err := i.add(kindForeign, s.Name, s); err != nil {
				return err
			}
			continue
		}
		if record, ok := s.Annotations[meta.AnnotationRecord]; ok {
			var fields map[string]any
			if err := json.Unmarshal([]byte(record), &fields); err != nil {
				return errors.Wrapf(err, "cannot decode the record of %s", s.Name)
			}
			delete(fields, "updated")
			delete(fields, "health")
			if err := i.add(kindRecord, s.Name, fields); err != nil {
				return err
			}
		}
		s.Annotations, s.Primary = nil, ""
		if err := i.add(kindService, s.Name, s); err != nil {
			return err
		}
	}
	return nil
}

// choose returns some fields of an object.
func choose(object map[string]any, fields ...string) map[string]any {
	out := map[string]any{}
	for _, f := range fields {
		out[f] = object[f]
	}
	return out
}

// listed are the kinds of a namespace's objects that an inventory has.
const listed = "tailscaleendpoints.gateway.tailscale.com,tailscaleservices.gateway.tailscale.com,machines.tailnet.gateway.tailscale.com,machinesets.tailnet.gateway.tailscale.com,vipservices.tailnet.gateway.tailscale.com,statefulsets,secrets,services,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets"

// addCluster adds what is in a cluster's namespace.
func (c *chaos) addCluster(ctx context.Context, i inventory, name string) error {
	text, err := c.members[name].lab.kubectl(ctx, nil, "get", listed, "--namespace="+quickstart, "-o=json")
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name            string            `json:"name"`
				ResourceVersion string            `json:"resourceVersion"`
				Annotations     map[string]string `json:"annotations"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return errors.Wrap(err, "cannot decode the objects of the namespace")
	}
	for _, o := range list.Items {
		title := fmt.Sprintf("%s/%s of cluster %s", o.Kind, o.Metadata.Name, name)
		kind, value := kindObject, any(nil)
		switch {
		case o.Metadata.Name == foreign:
			kind, value = kindForeign, o.Metadata.ResourceVersion
		case o.Kind == "Machine":
			kind, value = kindMachine, o.Metadata.Annotations[meta.AnnotationNodeID]
		}
		if err := i.add(kind, title, value); err != nil {
			return err
		}
	}
	return nil
}

// stock returns what there is.
func (c *chaos) stock(ctx context.Context) (inventory, error) {
	st, err := c.tailnet.state(ctx)
	if err != nil {
		return nil, err
	}
	out := inventory{}
	if err := out.addTailnet(st); err != nil {
		return nil, err
	}
	policy, err := c.tailnet.api.PolicyFile().Raw(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "cannot get the policy")
	}
	dns, err := c.tailnet.api.DNS().SplitDNS(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "cannot get the domains of the tailnet")
	}
	if err := errors.Join(out.add(kindForeign, "policy", policy.HuJSON), out.add(kindForeign, "domains", dns)); err != nil {
		return nil, err
	}
	for _, name := range clusterNames {
		if err := c.addCluster(ctx, out, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addForeign creates objects that are not ours, in the tailnet and in each cluster, and a service of each cluster.
func (c *chaos) addForeign(ctx context.Context, p *progress) error {
	if err := c.tailnet.send(ctx, http.MethodPost, "/sim/devices", tailnetsim.Puppet{NodeID: "nForeignCNTRL", Hostname: foreign + "-device", Tags: []string{"tag:web"}}, nil); err != nil {
		return err
	}
	if err := c.tailnet.api.Services().CreateOrUpdate(ctx, tailscale.Service{Name: "svc:" + foreign, Comment: "of someone else", Ports: []string{"tcp:443"}, Tags: []string{"tag:web"}}); err != nil {
		return errors.Wrap(err, "cannot create a service")
	}
	key := tailscale.CreateKeyRequest{Description: "of someone else", ExpirySeconds: int64((24 * time.Hour).Seconds())}
	key.Capabilities.Devices.Create.Tags = []string{"tag:web"}
	if _, err := c.tailnet.api.Keys().CreateAuthKey(ctx, key); err != nil {
		return errors.Wrap(err, "cannot create a key")
	}
	if _, err := c.tailnet.api.DNS().UpdateSplitDNS(ctx, tailscale.SplitDNSRequest{"foreign.example.com": {"192.0.2.53"}}); err != nil {
		return errors.Wrap(err, "cannot add a domain")
	}
	for _, name := range clusterNames {
		d := c.members[name]
		for _, args := range [][]string{
			{"create", "configmap", foreign, "--from-literal=a=b"},
			{"create", "secret", "generic", foreign, "--from-literal=a=b"},
			{"create", "service", "clusterip", foreign, "--tcp=80"},
			{"create", "serviceaccount", foreign},
		} {
			if _, err := d.lab.kubectl(ctx, nil, append(args, "--namespace="+quickstart)...); err != nil {
				return err
			}
		}
		if _, err := d.lab.kubectl(ctx, []byte(strings.ReplaceAll(ownManifest, "CLUSTER", name)), "apply", "--server-side", "-f", "-"); err != nil {
			return err
		}
	}
	return p.until(ctx, 5*time.Minute, func(ctx context.Context) (string, error) {
		for _, name := range clusterNames {
			if missing, err := c.members[name].missing(ctx, awaited{services, ownService(name), quickstart, "Advertised"}); missing != "" || err != nil {
				return missing, err
			}
		}
		return "", nil
	})
}

// takeStock lists what there is once everything is ready, and nothing changes any more.
func (c *chaos) takeStock(ctx context.Context, p *progress) error {
	var previous inventory
	err := p.until(ctx, 5*time.Minute, func(ctx context.Context) (string, error) {
		if missing, err := c.unready(ctx, append(c.components(), append(egressComponents(), controllerComponents()...)...)); missing != "" || err != nil {
			return missing, err
		}
		current, err := c.stock(ctx)
		if err != nil {
			return "", err
		}
		differences := previous.differences(current)
		previous = current
		if len(differences) > 0 {
			return fmt.Sprintf("%d entries change", len(differences)), nil
		}
		for name, s := range current.only(kindService) {
			hosts := 2
			if name == kindService+" svc:"+sharedName || name == kindService+" svc:"+grpcName {
				hosts *= len(clusterNames)
			}
			if n := strings.Count(s, `"ready"`); n != hosts {
				return fmt.Sprintf("%s has %d of %d hosts", name, n, hosts), nil
			}
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	c.start = previous
	for title, node := range previous.only(kindMachine) {
		machine, cluster, _ := strings.Cut(strings.TrimPrefix(title, kindMachine+" Machine/"), " of cluster ")
		c.pods[strings.Trim(node, `"`)] = podName{cluster: cluster, name: machine}
	}
	p.printf("      %d entries: %d machines, %d records, %d objects that are not ours\n", len(previous), len(previous.only(kindMachine)), len(previous.only(kindRecord)), len(previous.only(kindForeign)))
	return nil
}

// settle waits until everything is as it was before the faults. Each difference at the end is a finding.
func (c *chaos) settle(ctx context.Context, p *progress) error {
	if err := c.tailnet.setFaults(ctx); err != nil {
		return err
	}
	return c.await(ctx, p, c.start)
}

// await waits until there is what an inventory has.
func (c *chaos) await(ctx context.Context, p *progress, want inventory) error {
	var differences []string
	err := p.until(ctx, 10*time.Minute, func(ctx context.Context) (string, error) {
		current, err := c.stock(ctx)
		if err != nil {
			return "", err
		}
		if differences = want.differences(current); len(differences) > 0 {
			return fmt.Sprintf("%d differences, such as: %s", len(differences), differences[0]), nil
		}
		return "", nil
	})
	if ctx.Err() != nil || (err != nil && len(differences) == 0) {
		return err
	}
	c.findings = append(c.findings, differences...)
	return nil
}

// clean deletes what a user has created, and waits until only objects of others are there.
func (c *chaos) clean(ctx context.Context, p *progress) error {
	for _, name := range clusterNames {
		for _, kinds := range []string{"httproutes.gateway.networking.k8s.io,gateways.gateway.networking.k8s.io", services + "," + endpoints} {
			if name != firstCluster && strings.HasPrefix(kinds, "httproutes") {
				continue // Only the first cluster has the kinds.
			}
			if _, err := c.members[name].lab.kubectl(ctx, nil, "delete", kinds, "--all", "--namespace="+quickstart, "--wait=false"); err != nil {
				return err
			}
		}
	}
	if err := p.until(ctx, 10*time.Minute, func(ctx context.Context) (string, error) {
		current, err := c.stock(ctx)
		if n := len(current.only(kindMachine)); n > 0 {
			return fmt.Sprintf("%d machines are still there", n), err
		}
		return "", err
	}); err != nil {
		return err
	}
	// The account stays for proxies that are installed again, and docs/uninstall.md says how to delete it.
	for _, name := range clusterNames {
		if _, err := c.members[name].lab.kubectl(ctx, nil, "delete", "secrets", "--all-namespaces", "--selector="+meta.LabelSecretType+"="+meta.SecretTypeACMEAccount); err != nil {
			return err
		}
	}
	want := c.start.only(kindForeign)
	// Objects of the user beside the product stay.
	for name, value := range c.start.only(kindObject) {
		if stays(name) {
			want[name] = value
		}
	}
	return c.await(ctx, p, want)
}

// stays reports whether an object of the inventory is of Kubernetes, or of the user.
func stays(name string) bool {
	for _, object := range []string{"ConfigMap/kube-root-ca.crt", "ServiceAccount/default", "Service/web", "Service/grpc", "Secret/" + oauthSecret} {
		if strings.HasPrefix(name, kindObject+" "+object+" ") {
			return true
		}
	}
	return false
}
