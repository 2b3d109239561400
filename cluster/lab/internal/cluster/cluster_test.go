// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

func testCluster(t *testing.T, f plan.IPFamily) Cluster {
	t.Helper()
	plans, err := plan.Clusters(2, f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return New(plans[1], host.Paths{State: dir, Run: filepath.Join(dir, "run")}, map[string]string{"etcd": "/bin/etcd"}, "127.0.0.1:16444")
}

func TestFiles(t *testing.T) {
	for _, f := range []plan.IPFamily{plan.Dual, plan.IPv6} {
		wellFormed(t, testCluster(t, f))
	}
	c := testCluster(t, plan.IPv4)
	wellFormed(t, c)
	contains := map[string][]string{
		"kubelet.yaml":                {"cgroupRoot: /tsgw-two", "- 10.97.0.10"},
		"proxy.yaml":                  {"clusterCIDR: 10.65.0.0/16", "mode: iptables"},
		"cni/10-lab.conflist":         {`"10.65.0.0/16"`, `"gateway": "10.65.0.1"`, `"rangeStart": "10.65.0.2"`},
		"certs.d/_default/hosts.toml": {"http://10.200.0.1:5000"},
		"Corefile":                    {"bind 10.65.0.1"},
	}
	for name, wants := range contains {
		for _, want := range wants {
			if !strings.Contains(c.Files()[name], want) {
				t.Errorf("Files(): %q has no %q:\n%s", name, want, c.Files()[name])
			}
		}
	}
	// The lab's kubelets are not tuned, like those of users.
	for _, setting := range []string{"syncFrequency", "nodeStatusUpdateFrequency", "configMapAndSecretChangeDetectionStrategy", "maxPods"} {
		if strings.Contains(c.Files()["kubelet.yaml"], setting) {
			t.Errorf("Files(): kubelet's %s is set", setting)
		}
	}
}

// wellFormed checks that the files can be decoded.
func wellFormed(t *testing.T, c Cluster) {
	t.Helper()
	for name, body := range c.Files() {
		if strings.Contains(body, "%!") {
			t.Errorf("Files(): %q is badly formatted:\n%s", name, body)
		}
		var decoded map[string]any
		var err error
		switch filepath.Ext(name) {
		case ".yaml":
			err = yaml.UnmarshalStrict([]byte(body), &decoded)
		case ".conflist":
			err = json.Unmarshal([]byte(body), &decoded)
		}
		if err != nil {
			t.Errorf("Files(): cannot decode %q: %v", name, err)
		}
	}
}

func TestFamilies(t *testing.T) {
	cases := map[string]struct {
		reason    string
		family    plan.IPFamily
		files     map[string][]string
		command   map[string][]string
		dns       []string
		forbidden string
	}{
		"IPv4": {
			reason: "A cluster with IPv4 should have no IPv6.",
			family: plan.IPv4,
			command: map[string][]string{
				"kube-apiserver-two": {"--service-cluster-ip-range=10.97.0.0/16"},
				"kubelet-two":        {"--node-ip=10.65.0.1"},
				"kube-router-two":    {"--enable-ipv4=true", "--enable-ipv6=false"},
			},
			dns:       []string{"10.97.0.10"},
			forbidden: "fd10:",
		},
		"Dual": {
			reason: "A dual-stack cluster should have both families everywhere, IPv4 first.",
			family: plan.Dual,
			files: map[string][]string{
				"kubelet.yaml":        {"- 10.97.0.10\n"},
				"proxy.yaml":          {"clusterCIDR: 10.65.0.0/16,fd10:65::/64"},
				"cni/10-lab.conflist": {`[{"subnet": "10.65.0.0/16", "rangeStart": "10.65.0.2", "gateway": "10.65.0.1"}], [{"subnet": "fd10:65::/64", "rangeStart": "fd10:65::2", "gateway": "fd10:65::1"}]`},
				"Corefile":            {"bind 10.65.0.1 fd10:65::1\n"},
			},
			command: map[string][]string{
				"kube-apiserver-two": {"--advertise-address=10.65.0.1", "--service-cluster-ip-range=10.97.0.0/16,fd10:97::/112"},
				"kubelet-two":        {"--node-ip=10.65.0.1,fd10:65::1"},
				"kube-router-two":    {"--enable-ipv4=true", "--enable-ipv6=true", "--service-cluster-ip-range=10.97.0.0/16,fd10:97::/112"},
			},
			dns: []string{"10.97.0.10", "fd10:97::10"},
		},
		"IPv6": {
			reason: "An IPv6-only cluster should have no address of IPv4 but the loopback's.",
			family: plan.IPv6,
			files: map[string][]string{
				"kubelet.yaml":                {"- fd10:97::10\n"},
				"certs.d/_default/hosts.toml": {"server = \"http://[fd10:200::1]:5000\"\n"},
				"Corefile":                    {"bind fd10:65::1\n", "fd10:200::1 registry.lab.localhost"},
				"resolv.conf":                 {"nameserver fd10:65::1\n"},
			},
			command: map[string][]string{
				"kube-apiserver-two": {"--advertise-address=fd10:65::1", "--service-cluster-ip-range=fd10:97::/112"},
				"kubelet-two":        {"--node-ip=fd10:65::1"},
				"kube-router-two":    {"--enable-ipv4=false", "--enable-ipv6=true"},
			},
			dns:       []string{"fd10:97::10"},
			forbidden: "10.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := testCluster(t, tc.family)
			files := c.Files()
			for file, wants := range tc.files {
				for _, want := range wants {
					if !strings.Contains(files[file], want) {
						t.Errorf("\n%s\nFiles(): %q has no %q:\n%s", tc.reason, file, want, files[file])
					}
				}
			}
			for _, comp := range c.Components() {
				for _, want := range tc.command[comp.Name] {
					if !slices.Contains(comp.Command, want) {
						t.Errorf("\n%s\nComponents(): %q has no %q: %q", tc.reason, comp.Name, want, comp.Command)
					}
				}
				for _, arg := range comp.Command {
					if _, value, _ := strings.Cut(arg, "="); tc.forbidden != "" && strings.HasPrefix(value, tc.forbidden) {
						t.Errorf("\n%s\nComponents(): %q has %q", tc.reason, comp.Name, arg)
					}
				}
			}
			if diff := cmp.Diff(tc.dns, c.DNSService().Spec.ClusterIPs); diff != "" {
				t.Errorf("\n%s\nDNSService(): -want addresses, +got addresses:\n%s", tc.reason, diff)
			}
			if got := len(c.DNSEndpoints()); got != len(tc.dns) {
				t.Errorf("\n%s\nDNSEndpoints(): %d of %d families", tc.reason, got, len(tc.dns))
			}
		})
	}
}

func TestComponents(t *testing.T) {
	seen := map[string]bool{}
	for _, comp := range testCluster(t, plan.IPv4).Components() {
		if seen[comp.Name] {
			t.Errorf("Components(): %q appears twice", comp.Name)
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
	c := testCluster(t, plan.IPv4)
	at := time.Now()
	if err := c.Prepare(at); err != nil {
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
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: at}); err != nil {
			t.Errorf("Prepare(...): API server's certificate is not valid for %q: %v", name, err)
		}
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != "https://127.0.0.1:16444" {
		t.Errorf("Prepare(...): administrator's kubeconfig has the server %q", cfg.Host)
	}
	st, err := os.Stat(c.path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("Prepare(...): kubeconfig has mode %o", st.Mode().Perm())
	}
}
