// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

func testCluster(t *testing.T) Cluster {
	t.Helper()
	plans, err := plan.Clusters(2)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return New(plans[1], host.Paths{State: dir, Run: filepath.Join(dir, "run")}, map[string]string{"etcd": "/bin/etcd"}, "127.0.0.1:16444")
}

func TestFiles(t *testing.T) {
	c := testCluster(t)
	for name, body := range c.Files() {
		if strings.Contains(body, "%!") {
			t.Errorf("Files(): %q is badly formatted:\n%s", name, body)
		}
		var into map[string]any
		var err error
		switch filepath.Ext(name) {
		case ".yaml":
			err = yaml.UnmarshalStrict([]byte(body), &into)
		case ".conflist":
			err = json.Unmarshal([]byte(body), &into)
		}
		if err != nil {
			t.Errorf("Files(): cannot decode %q: %v", name, err)
		}
	}
	contains := map[string][]string{
		"kubelet.yaml":                {"cgroupRoot: /tsgw-two", "- 10.97.0.10"},
		"proxy.yaml":                  {"clusterCIDR: 10.65.0.0/16", "mode: iptables"},
		"cni/10-lab.conflist":         {`"10.65.0.0/16"`, `"gateway": "10.65.0.1"`, `"rangeStart": "10.65.0.2"`},
		"certs.d/_default/hosts.toml": {"http://" + plan.Registry},
		"Corefile":                    {"bind 10.65.0.1"},
	}
	for name, wants := range contains {
		for _, want := range wants {
			if !strings.Contains(c.Files()[name], want) {
				t.Errorf("Files(): %q has no %q:\n%s", name, want, c.Files()[name])
			}
		}
	}
	// Users' kubelets are not tuned, and neither is ours.
	for _, never := range []string{"syncFrequency", "nodeStatusUpdateFrequency", "configMapAndSecretChangeDetectionStrategy", "maxPods"} {
		if strings.Contains(c.Files()["kubelet.yaml"], never) {
			t.Errorf("Files(): kubelet's %s is set", never)
		}
	}
}

func TestComponents(t *testing.T) {
	seen := map[string]bool{}
	for _, comp := range testCluster(t).Components() {
		if seen[comp.Name] {
			t.Errorf("Components(): %q comes twice", comp.Name)
		}
		seen[comp.Name] = true
		if comp.Namespace != "tsgw-two" || comp.Cluster != "two" || !strings.HasSuffix(comp.Name, "-two") {
			t.Errorf("Components(): %q is not of cluster two: %+v", comp.Name, comp)
		}
		if (comp.Ready.URL == "") == (comp.Ready.Socket == "") {
			t.Errorf("Components(): %q needs exactly one check", comp.Name)
		}
	}
}

func TestPrepare(t *testing.T) {
	c := testCluster(t)
	now := time.Now()
	if err := c.Prepare(now); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(c.path("pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatal("Prepare(...): no authority")
	}
	pair, err := tls.LoadX509KeyPair(c.path("pki", "apiserver.crt"), c.path("pki", "apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"127.0.0.1", "10.65.0.1", "10.97.0.1", "kubernetes.default.svc"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("Prepare(...): API server's certificate does not hold for %q: %v", name, err)
		}
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != "https://127.0.0.1:16444" {
		t.Errorf("Prepare(...): administrator's kubeconfig leads to %q", cfg.Host)
	}
	st, err := os.Stat(c.path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("Prepare(...): kubeconfig has mode %o", st.Mode().Perm())
	}
}
