// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/objecttest"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// ofEveryKind returns at least one object of each kind that the index reads. Some objects
// conflict with each other.
func ofEveryKind(t *testing.T) []client.Object {
	t.Helper()
	devices := policyOf("devices", `{name: a, actions: [{type: Deny}], matches: [{tailnetDevice: {tailnet: corp, tags: ["tag:a"]}}, {tailnetDevice: {tailnet: corp, tags: ["tag:b"]}}]}`)
	docs := append(everything(),
		devices, routeTo("GRPCRoute", 80), routeTo("TCPRoute", 5432), routeTo("TLSRoute", 443), tuneRoute, tuneSet,
		presentingGateway("{name: client}"), policyOf("presents", presentsOther), vaultGrant,
		// An endpoint with the name of an attachment, and a second ProxySet for one
		// TailscaleEndpoints.
		strings.NewReplacer("name: web-edge-remote", "name: db", "web-0123456789", "db-0123456789").Replace(attachmentWeb),
		strings.NewReplacer("name: edge-proxies", "name: another", "proxyPort: 10001", "proxyPort: 10101").Replace(proxySetEdge),
		"apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: envoy}\nspec:\n  controllerName: example.com/some\n"+
			"  parametersRef: {group: gateway.envoyproxy.io, kind: EnvoyProxy, namespace: infra, name: class}\n",
		strings.Replace(gatewayOf("gw3"), "{gatewayClassName: envoy", "{gatewayClassName: envoy, infrastructure: {parametersRef: {group: gateway.envoyproxy.io, kind: EnvoyProxy, name: own}}", 1),
		strings.NewReplacer("name: web, generation: 1", "name: third, generation: 1", "name: gw,", "name: gw3,").Replace(routeToWeb),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: system}\ndata: {"+parse.ConfigKey+": '{envoyProxy: {bootstrap: "+withAuthority+"}, extensionManager: {failOpen: true, backendResources: [{group: gateway.tailscale.com}]}}'}\n",
	)
	for n := range snapshotOf(t, routeToWeb, devices).Edit().Policies.Get(name("devices")).Discoveries() {
		docs = append(docs, "apiVersion: tailnet.gateway.tailscale.com/v1alpha1\nkind: Discovery\nmetadata: {name: "+n.Name+", namespace: "+n.Namespace+", labels: {"+ir.RoutePolicyLabel+
			": \"\"}}\nspec: {forProvider: {}}\nstatus: {atProvider: {count: 9, truncated: true, discovered: [{addresses: [100.64.0.7]}]}}\n")
	}
	out := append(decode(t, docs...), proxyOf(t, "infra/own", "{bootstrap: "+withAuthority+"}"), proxyOf(t, "infra/class", "{mergeType: StrategicMerge, bootstrap: "+withAuthority+"}"))
	kinds := parse.Kinds()
	maps.Copy(kinds, parse.BootstrapKinds())
	for _, o := range out {
		maps.DeleteFunc(kinds, func(_ string, k client.Object) bool {
			return fmt.Sprintf("%T", k) == fmt.Sprintf("%T", o) && k.GetObjectKind().GroupVersionKind().Kind == kindIfUnstructured(o)
		})
	}
	for k := range kinds {
		t.Errorf("there is no %s among the objects, although the index reads the kind", k)
	}
	return out
}

func kindIfUnstructured(o client.Object) string {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.GetKind()
	}
	return ""
}

// A stepper holds the state that a store has received.
type stepper struct {
	all      []client.Object
	existing map[int]client.Object
	hosts    map[string][]string
	secret   map[types.NamespacedName]*ir.CertificateSecret
	serves   func(types.NamespacedName) bool
}

// step makes a random change and returns a description of it.
func (p *stepper) step(s *Store, r *rand.Rand, secrets []*ir.CertificateSecret) string {
	switch r.IntN(14) {
	case 0:
		addresses := [][]string{nil, {"192.0.2.1"}, {"192.0.2.1", "192.0.2.2"}, {"127.0.0.1"}}[r.IntN(4)]
		p.hosts["api.example.com"] = addresses
		s.SetHost("api.example.com", addresses)
		return fmt.Sprintf("host %v", addresses)
	case 2:
		p.serves = []func(types.NamespacedName) bool{nil, func(n types.NamespacedName) bool { return n.Name != "gw" }}[r.IntN(2)]
		s.Serve(p.serves)
		return fmt.Sprintf("serves all: %t", p.serves == nil)
	case 1:
		n := []types.NamespacedName{{Namespace: "vault", Name: "client"}, {Namespace: "infra", Name: "client"}}[r.IntN(2)]
		p.secret[n] = secrets[r.IntN(len(secrets))]
		s.SetSecret(n, p.secret[n])
		return fmt.Sprintf("secret %s known: %t", n, p.secret[n] != nil)
	}
	// A watch delivers what has changed meanwhile at once.
	var changes []Change
	var descriptions []string
	for range 1 + r.IntN(3) {
		i := r.IntN(len(p.all))
		c := Change{Object: varied(disturbed(p.all[i], r), r), Deleted: r.IntN(4) == 0}
		if p.existing[i] = c.Object; c.Deleted {
			delete(p.existing, i)
		}
		changes = append(changes, c)
		descriptions = append(descriptions, fmt.Sprintf("%T %s (gone: %t)", c.Object, client.ObjectKeyFromObject(c.Object), c.Deleted))
	}
	// An object that cannot be read counts as deleted.
	err := applyChanges(s, changes...)
	return fmt.Sprintf("%s (error: %v)", strings.Join(descriptions, ", "), err)
}

// watch gives a store the states of the ConfigMaps that it wants, and takes others away, as a watcher
// does.
func (p *stepper) watch(s *Store) {
	exists := map[types.NamespacedName]*corev1.ConfigMap{}
	for _, o := range p.existing {
		if c, ok := o.(*corev1.ConfigMap); ok {
			exists[client.ObjectKeyFromObject(c)] = c
		}
	}
	wanted := s.ConfigMaps()
	for _, n := range wanted {
		// A state has what can be read.
		state, _ := s.ReadConfigMap(n, exists[n])
		s.SetConfigMap(n, &state)
	}
	for n := range maps.Clone(s.objects.configMaps) {
		if !slices.Contains(wanted, n) {
			s.SetConfigMap(n, nil)
		}
	}
}

// fresh returns a store that receives the same state at once, in another order.
func (p *stepper) fresh(r *rand.Rand) *Store {
	s := everyStore()
	s.Serve(p.serves)
	var cs []Change
	for _, i := range r.Perm(len(p.all)) {
		if o := p.existing[i]; o != nil {
			cs = append(cs, Change{Object: o})
		}
	}
	// An object that cannot be used is an error here as it was in its step.
	_ = applyChanges(s, cs...)
	p.watch(s)
	for h, addresses := range p.hosts {
		s.SetHost(h, addresses)
	}
	for n, h := range p.secret {
		s.SetSecret(n, h)
	}
	return s
}

// everyStore returns a store that also reads the kinds of BootstrapKinds.
func everyStore() *Store {
	s := directStore()
	s.EnvoyGatewayConfig(types.NamespacedName{Namespace: "system", Name: "config"})
	return s
}

// TestEveryStep changes objects of every kind at random. After each step, the store must
// equal one that receives all objects at once, in another order.
func TestEveryStep(t *testing.T) {
	t.Parallel()
	all := ofEveryKind(t)
	secrets := []*ir.CertificateSecret{nil}
	for range 2 {
		h := parse.ParseSecret(types.NamespacedName{Namespace: "vault", Name: "client"}, objecttest.TLSSecret(t, objecttest.ECDSAKey(t)), objecttest.SecretTime)
		secrets = append(secrets, &h)
	}
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 99))
			s := everyStore()
			p := &stepper{all: all, existing: map[int]client.Object{}, hosts: map[string][]string{}, secret: map[types.NamespacedName]*ir.CertificateSecret{}}
			// Most objects exist from the beginning, because the steps before that find few
			// errors.
			for i := range all {
				if r.IntN(5) > 0 {
					p.existing[i] = all[i]
					if err := applyChanges(s, Change{Object: all[i]}); err != nil {
						t.Fatal(err)
					}
				}
			}
			changes := s.Subscribe()
			defer changes.Close()
			for step := range 60 {
				previous := s.Snapshot()
				description := p.step(s, r, secrets)
				p.watch(s)
				names, tunings := changes.Take()
				if missing := unannounced(previous, s.Snapshot(), names, tunings); len(missing) > 0 {
					t.Fatalf("seed %d, step %d: %s: subscribers do not learn of changes of %v", seed, step, description, missing)
				}
				fresh := p.fresh(r)
				if diff := cmp.Diff(fresh.Snapshot(), s.Snapshot(), compareSnapshots(), cmp.AllowUnexported(ir.KeyPair{})); diff != "" {
					t.Fatalf("seed %d, step %d: %s: -want, +got\n%s", seed, step, description, diff)
				}
				if diff := cmp.Diff(fresh.built, s.built, cmp.AllowUnexported(builtDependent{}, dependent{}, ref{})); diff != "" {
					t.Fatalf("seed %d, step %d: %s: dependencies: -want, +got\n%s", seed, step, description, diff)
				}
				if diff := cmp.Diff(fresh.namedBy, s.namedBy, cmp.AllowUnexported(dependent{}, entry{})) +
					cmp.Diff(fresh.readers, s.readers, cmp.AllowUnexported(entry{})) + cmp.Diff(fresh.foreign, s.foreign) + cmp.Diff(fresh.objects.permitted, s.objects.permitted); diff != "" {
					t.Fatalf("seed %d, step %d: %s: entries: -want, +got\n%s", seed, step, description, diff)
				}
				if diff := cmp.Diff(fresh.digests, s.digests, cmp.AllowUnexported(digests{}, entry{}, digestPart{})); diff != "" {
					t.Fatalf("seed %d, step %d: %s: digests: -want, +got\n%s", seed, step, description, diff)
				}
				if diff := cmp.Diff(fresh.Hosts(), s.Hosts()) + cmp.Diff(fresh.Secrets(), s.Secrets()) + cmp.Diff(fresh.ConfigMaps(), s.ConfigMaps()); diff != "" {
					t.Fatalf("seed %d, step %d: %s: hosts, Secrets and ConfigMaps: -want, +got\n%s", seed, step, description, diff)
				}
			}
		})
	}
}

// unannounced returns the endpoint lists that differ between two snapshots, and whose names subscribers do not
// get, and the routes with other tunings, if subscribers do not learn of any.
func unannounced(previous, current *ir.Snapshot, names []string, tunings bool) []string {
	lists := map[string]bool{}
	for _, s := range []*ir.Snapshot{previous, current} {
		for t := range s.Targets() {
			lists[t.Key.ClusterName()] = true
		}
		for r := range s.Routes() {
			for _, n := range ruleNames(r) {
				lists[n] = true
			}
		}
	}
	var out []string
	for l := range lists {
		old, existed := previous.Shares(l)
		shares, exists := current.Shares(l)
		if (existed != exists || !reflect.DeepEqual(old, shares)) && !slices.Contains(names, l) {
			out = append(out, l)
		}
	}
	for r := range current.Routes() {
		for i, rule := range r.Rules {
			if !tunings && !previous.Settings().Tuning(r.Key, rule.Name).Equal(current.Settings().Tuning(r.Key, rule.Name)) {
				out = append(out, "tuning of "+r.RuleName(i))
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestEverySection checks that the objects of TestEveryStep fill every table of the snapshot, and
// that each section of a digest contributes.
func TestEverySection(t *testing.T) {
	s := everyStore()
	for _, o := range ofEveryKind(t) {
		if err := applyChanges(s, Change{Object: o}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range s.readers {
		h := parse.ParseSecret(n, objecttest.TLSSecret(t, objecttest.ECDSAKey(t)), objecttest.SecretTime)
		s.SetSecret(n, &h)
	}
	tables := reflect.ValueOf(s.Snapshot().Edit().Tables)
	for i := range tables.NumField() {
		table, ok := tables.Field(i).Interface().(interface{ Len() int })
		if n := tables.Type().Field(i).Name; !ok || table.Len() == 0 {
			t.Errorf("table %s is empty: add an object to ofEveryKind", n)
		}
	}
	contributes := [sectionCount]bool{}
	for c := range s.digests.parts {
		contributes[c.section] = true
	}
	for id, section := range sections {
		if section.digest != nil && !contributes[id] {
			t.Errorf("no entry of section %d contributes to a digest: add an object to ofEveryKind", id)
		}
	}
}

// varied returns an object with a random change: a different value, one element of a list
// more or less, or a missing field. The API server may refuse the result.
func varied(o client.Object, r *rand.Rand) client.Object {
	if r.IntN(2) == 0 {
		return o
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return o
	}
	u = runtime.DeepCopyJSON(u)
	part := []string{"spec", "spec", "status", "data", "endpoints", "ports"}[r.IntN(6)]
	if u[part] == nil {
		part = "spec"
	}
	if u[part] == nil {
		return o
	}
	u[part] = vary(u[part], r)
	if _, ok := o.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: u}
	}
	out, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return o
	}
	empty, ok := newOf(out).(client.Object)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(u, empty) != nil {
		return o
	}
	return empty
}

// vary changes a value, or one inside it, at random.
func vary(v any, r *rand.Rand) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return v
		}
		keys := slices.Sorted(maps.Keys(v))
		k := keys[r.IntN(len(keys))]
		if r.IntN(6) == 0 {
			delete(v, k)
			return v
		}
		v[k] = vary(v[k], r)
	case []any:
		if len(v) == 0 {
			return v
		}
		i := r.IntN(len(v))
		switch r.IntN(6) {
		case 0:
			return slices.Delete(v, i, i+1)
		case 1:
			return append(v, runtime.DeepCopyJSONValue(v[i]))
		}
		v[i] = vary(v[i], r)
	case string:
		return []string{"web", "app", "alt", "edge", "edge-out", "gw", "gw2", "gw3", "http", "shop", "infra", "other", "own", "HTTPRoute", "Service", "db/5432", "192.0.2.9"}[r.IntN(17)]
	case int64:
		return []int64{0, 1, 80, 443, 5432, 8080, 10001, v + 1}[r.IntN(8)]
	case bool:
		return !v
	}
	return v
}

// newOf returns a new object of the same type.
func newOf(o client.Object) any {
	return reflect.New(reflect.TypeOf(o).Elem()).Interface()
}
