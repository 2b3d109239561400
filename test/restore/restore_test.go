// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package restore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaletailnet"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

const (
	namespace = "team"
	tailnet   = "home"
	endpoints = "reach"
	service   = "svc:web"
	machineA  = "reach-egress-0"

	// movedPort is a port that no target gets in an empty cluster.
	movedPort = egress.LastPort
)

const endpointsManifest = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: reach, namespace: team}
spec:
  tailnet: home
  proxy: {connectionType: egress, replicas: 2}
  endpoints:
  - {name: db, tailscaleIP: 100.64.10.1, port: 5432}
  - {name: api, tailscaleIP: 100.64.10.2, port: 443}
`

const vipManifest = `
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: VIPService
metadata: {name: web, namespace: team}
spec:
  providerConfigRef: {kind: ClusterProviderConfig, name: home}
  forProvider: {name: "svc:web", ports: ["tcp:80"], tags: ["tag:k8s"]}
`

// splitManifest is an object that a user marks for backups.
const splitManifest = `
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: SplitDNS
metadata: {name: corp, namespace: team, labels: {gateway.tailscale.com/backup: "true"}}
spec:
  providerConfigRef: {kind: ClusterProviderConfig, name: home}
  forProvider: {domains: [corp.example], nameservers: [10.0.0.53]}
`

// backedUp are the kinds of objects with the label of backups (docs/backup.md).
var backedUp = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	v1alpha1.MachineGroupVersionKind,
	v1alpha1.SplitDNSGroupVersionKind,
}

// An installation is a cluster with the objects that its users wrote.
type installation struct {
	*cluster

	sim       *simtest.Running
	tailnet   *composite
	endpoints *composite
}

// install writes the users' objects. An empty cluster ID lets the cluster choose one.
func install(c *cluster, sim *simtest.Running, clusterID string) *installation {
	c.Helper()
	xr := object(c, fmt.Sprintf(`
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleTailnet
metadata: {name: home}
spec:
  oauthSecretName: oauth
  oauthSecretNamespace: team
  apiURL: %s
  tags: ["tag:k8s"]
`, sim.URL))
	if clusterID != "" {
		c.must(unstructured.SetNestedField(xr.Object, clusterID, "spec", "clusterID"))
	}
	i := &installation{cluster: c, sim: sim}
	i.tailnet = c.compose(xr, tailscaletailnet.New(logging.NewNopLogger()))
	c.must(i.tailnet.reconcile())
	c.apply(vipManifest)
	i.endpoints = c.compose(object(c, endpointsManifest), tailscaleendpoints.New(logging.NewNopLogger(), nil))
	return i
}

// prepare creates what exists before the backup is restored: the namespace and the credential.
func prepare(c *cluster) {
	c.Helper()
	c.must(c.kube.Create(c.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	c.must(c.kube.Create(c.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "oauth"},
		StringData: map[string]string{"client_id": simtest.ClientID, "client_secret": simtest.ClientSecret},
	}))
}

func object(c *cluster, manifest string) *unstructured.Unstructured {
	c.Helper()
	o := &unstructured.Unstructured{}
	c.must(yaml.Unmarshal([]byte(manifest), &o.Object))
	return o
}

// reconcile runs the functions once.
func (i *installation) reconcile() error {
	if err := i.tailnet.reconcile(); err != nil {
		return err
	}
	return i.endpoints.reconcile()
}

// ready returns an error unless both machines and the service are ready.
func (i *installation) ready() error {
	ms := i.machines()
	for _, name := range []string{machineA, "reach-egress-1"} {
		m, ok := ms[name]
		if c := m.GetCondition(xpv2.TypeReady); !ok || c.Status != corev1.ConditionTrue || metav1.GetControllerOf(&m) == nil {
			return errors.Errorf("Machine %s: %s: %s", name, c.Reason, c.Message)
		}
	}
	v := &v1alpha1.VIPService{}
	if err := i.kube.Get(i.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, v); err != nil {
		return err
	}
	if c := v.GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionTrue {
		return errors.Errorf("VIPService: %s: %s", c.Reason, c.Message)
	}
	return nil
}

// up runs pods and functions until all is ready.
func (i *installation) up() {
	i.Helper()
	i.eventually("the machines and the service are ready", func() error {
		return errors.Join(i.reconcile(), i.runPods(i.sim), i.ready())
	})
}

// An identity is what a restore must bring back.
type identity struct {
	ClusterID string
	// Nodes are node IDs by Machine.
	Nodes     map[string]string
	Hostnames map[string]string
	// Devices and Services are those of the whole tailnet, with names and addresses.
	Devices  []string
	Services []string
	// Ports are the ports of the egress proxies by target.
	Ports map[string]int32
}

func (i *installation) identity(api *tsclient.Client) identity {
	i.Helper()
	id := identity{Nodes: map[string]string{}, Hostnames: map[string]string{}, Ports: map[string]int32{}}
	config := &v1alpha1.ClusterProviderConfig{}
	i.must(i.kube.Get(i.Context(), client.ObjectKey{Name: tailnet}, config))
	id.ClusterID = config.Spec.ClusterID
	for name, m := range i.machines() {
		id.Nodes[name], id.Hostnames[name] = m.Status.AtProvider.NodeID, m.Spec.ForProvider.Hostname
	}
	ds, err := api.Devices().List(i.Context())
	i.must(err)
	for _, d := range ds {
		id.Devices = append(id.Devices, fmt.Sprint(d.NodeID, d.Name, d.Hostname, d.Addresses, d.Tags))
	}
	slices.Sort(id.Devices)
	ss, err := api.Services().List(i.Context())
	i.must(err)
	for _, s := range ss {
		id.Services = append(id.Services, fmt.Sprint(s.Name, s.Addrs, s.Ports, s.Tags, s.Annotations))
	}
	slices.Sort(id.Services)
	for _, t := range i.ports().Targets {
		id.Ports[t.Key] = t.ProxyPort
	}
	return id
}

// ports returns the config of the egress proxies.
func (i *installation) ports() egress.Config {
	i.Helper()
	c, err := egress.Decode(i.portsMap().Data[egress.ConfigMapKey])
	i.must(err)
	return c
}

func (i *installation) portsMap() *corev1.ConfigMap {
	i.Helper()
	m := &corev1.ConfigMap{}
	i.must(i.kube.Get(i.Context(), client.ObjectKey{Namespace: namespace, Name: endpoints + "-egress"}, m))
	return m
}

// movePort gives a target a port that it got in a long history.
func (i *installation) movePort() {
	i.Helper()
	config, m := i.ports(), i.portsMap()
	config.Targets[0].ProxyPort = movedPort
	text, err := config.Encode()
	i.must(err)
	m.Data[egress.ConfigMapKey] = text
	i.must(i.kube.Update(i.Context(), m))
	i.must(i.reconcile())
}

// backup returns the objects with the label of backups, with the fields that the commands of
// docs/backup.md and Velero restore.
func (c *cluster) backup() []*unstructured.Unstructured {
	c.Helper()
	var out []*unstructured.Unstructured
	for _, gvk := range backedUp {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(gvk)
		c.must(c.kube.List(c.Context(), l, client.MatchingLabels{meta.LabelBackup: "true"}))
		for i := range l.Items {
			o := &unstructured.Unstructured{Object: l.Items[i].Object}
			metadata := map[string]any{}
			for _, f := range []string{"name", "namespace", "labels", "annotations"} {
				if v, ok := o.Object["metadata"].(map[string]any)[f]; ok {
					metadata[f] = v
				}
			}
			o.Object["metadata"] = metadata
			delete(o.Object, "status")
			o.SetGroupVersionKind(gvk)
			out = append(out, o)
		}
	}
	return out
}

// newTailnet returns a tailnet with a device and a service of somebody else.
func newTailnet(t *testing.T) (*simtest.Running, *tsclient.Client) {
	t.Helper()
	sim := simtest.StartAPI(t, simtest.AutoApprove)
	api := sim.Client(t)
	if _, err := sim.Join(tailnetsim.Puppet{Hostname: "others", Tags: []string{"tag:k8s"}}); err != nil {
		t.Fatal(err)
	}
	if err := api.Services().CreateOrUpdate(t.Context(), tsclient.Service{Name: "svc:foreign", Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}}); err != nil {
		t.Fatal(err)
	}
	return sim, api
}

// TestRestore loses a cluster and restores its backup into an empty one: devices, names, addresses
// and ports are the same, and nothing else in the tailnet changes.
func TestRestore(t *testing.T) {
	sim, api := newTailnet(t)
	lost := newCluster(t)
	prepare(lost)
	original := install(lost, sim, "")
	lost.apply(splitManifest)
	original.up()
	lost.eventually("the domain has a nameserver", func() error { return nameservers(t, api, 1) })
	original.movePort()
	want := original.identity(api)
	if len(want.Devices) != 3 || len(want.Services) != 2 || want.Ports["endpoint/api/443"] != movedPort {
		t.Fatalf("want two devices, a service and a port of this cluster: %+v", want)
	}
	saved := lost.backup()
	if len(saved) != 6 {
		t.Fatalf("want two Machines, their states, the ports and the SplitDNS in the backup, got %d objects", len(saved))
	}
	lost.stop()
	const mint = "POST /api/v2/tailnet/{tailnet}/keys"
	created := sim.Calls()[mint]
	if created != 2 {
		t.Fatalf("want an auth key for each machine of the lost cluster, got %d", created)
	}

	// The devices are still online: the cluster's pods run without its API server.
	fresh := newCluster(t)
	prepare(fresh)
	for _, o := range saved {
		fresh.must(fresh.kube.Create(t.Context(), o))
	}
	restored := install(fresh, sim, want.ClusterID)
	fresh.eventually("the Machines wait for the pods of the lost cluster", func() error {
		if err := restored.reconcile(); err != nil {
			return err
		}
		for name, m := range fresh.machines() {
			if c := m.GetCondition(xpv2.TypeReady); c.Reason != meta.ReasonDeviceInUse {
				return errors.Errorf("Machine %s: %s: %s", name, c.Reason, c.Message)
			}
		}
		return nil
	})
	configs := &corev1.SecretList{}
	fresh.must(fresh.kube.List(t.Context(), configs, client.MatchingLabels{meta.LabelSecretType: meta.SecretTypeConfig}))
	if len(configs.Items) != 0 {
		t.Errorf("want no config Secret while the pods of the lost cluster run, got %d: the new pods would start", len(configs.Items))
	}

	for _, id := range want.Nodes {
		sim.SetOnline(id, false)
	}
	restored.up()
	if diff := cmp.Diff(want, restored.identity(api)); diff != "" {
		t.Errorf("want the same identity: -lost, +restored:\n%s", diff)
	}
	if n := sim.Calls()[mint]; n != created {
		t.Errorf("want no new auth key, got %d", n-created)
	}

	// The restored object knows what it added to the tailnet.
	split := &v1alpha1.SplitDNS{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "corp"}}
	fresh.must(fresh.kube.Delete(t.Context(), split))
	fresh.eventually("the nameserver has gone", func() error { return errors.Join(fresh.gone(split), nameservers(t, api, 0)) })

	// Restored objects have owners again, and go with them.
	set := &v1alpha1.MachineSet{}
	set.SetNamespace(namespace)
	set.SetName(endpoints + "-egress")
	fresh.must(fresh.kube.Delete(t.Context(), set))
	m := &v1alpha1.Machine{}
	m.SetNamespace(namespace)
	m.SetName(machineA)
	fresh.eventually("the Machine has gone", func() error { return fresh.gone(m) })
	if _, err := api.Devices().Get(t.Context(), want.Nodes[machineA]); !tsclient.IsNotFound(err) {
		t.Errorf("want the device to go with its owner, got %v", err)
	}
}

// TestCommand shows that the command of the page reads the kinds that this test restores.
func TestCommand(t *testing.T) {
	root, err := apiserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "backup.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(page), "kubectl get secrets,")
	kinds, _, _ := strings.Cut("secrets,"+command, " ")
	want := []string{"configmaps", "machines." + v1alpha1.Group, "secrets", "splitdns." + v1alpha1.Group}
	got := slices.Sorted(slices.Values(strings.Split(kinds, ",")))
	if diff := cmp.Diff(want, got); diff != "" || len(backedUp) != len(want) {
		t.Errorf("docs/backup.md: -want, +got:\n%s", diff)
	}
	if !strings.Contains(string(page), "--selector "+meta.LabelBackup+"=true") {
		t.Errorf("docs/backup.md: want the label %s", meta.LabelBackup)
	}
}

// nameservers returns an error unless the tailnet has n domains with nameservers.
func nameservers(t *testing.T, api *tsclient.Client, n int) error {
	t.Helper()
	all, err := api.DNS().SplitDNS(t.Context())
	if err != nil {
		return err
	}
	if len(all) != n {
		return errors.Errorf("want nameservers for %d domains, got %v", n, all)
	}
	return nil
}

// TestCopy shows that a copy of a cluster, which has another ID, touches neither the devices nor the
// service of the original, not even when its objects are deleted.
func TestCopy(t *testing.T) {
	sim, api := newTailnet(t)
	original := newCluster(t)
	prepare(original)
	o := install(original, sim, "production")
	o.up()
	want := o.identity(api)
	saved := original.backup()

	other := newCluster(t)
	prepare(other)
	for _, s := range saved {
		other.must(other.kube.Create(t.Context(), s))
	}
	staging := install(other, sim, "staging")
	other.eventually("the copy refuses", func() error {
		if err := staging.reconcile(); err != nil {
			return err
		}
		for name, m := range other.machines() {
			if c := m.GetCondition(xpv2.TypeReady); c.Reason != meta.ReasonOtherCluster || metav1.GetControllerOf(&m) == nil {
				return errors.Errorf("Machine %s: %s: %s", name, c.Reason, c.Message)
			}
		}
		v := &v1alpha1.VIPService{}
		if err := other.kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, v); err != nil {
			return err
		}
		if c := v.GetCondition(xpv2.TypeReady); c.Reason != meta.ReasonForeignService {
			return errors.Errorf("VIPService: %s: %s", c.Reason, c.Message)
		}
		return nil
	})
	set := &v1alpha1.MachineSet{}
	other.must(other.kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: endpoints + "-egress"}, set))
	v := &v1alpha1.VIPService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	for _, d := range []client.Object{set, v} {
		other.must(other.kube.Delete(t.Context(), d))
	}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machineA}}
	other.eventually("the copy has gone", func() error { return errors.Join(other.gone(m), other.gone(v)) })
	if diff := cmp.Diff(want, o.identity(api)); diff != "" {
		t.Errorf("want the original to stay as it is: -before, +after:\n%s", diff)
	}
}
