// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// export returns a ServiceExport and, unless it is nil, its Service.
func export(name string, s *corev1.Service) Facts {
	f := Facts{
		Membership: Membership{Cluster: "one", Set: "prod", Tailnet: "example", Domain: "tail1234.ts.net"},
		Namespace:  "shop", Services: map[string]*corev1.Service{},
	}
	e := mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u"}}
	e.CreationTimestamp = exporter("one", 5).Created
	f.Exports = append(f.Exports, e)
	if s != nil {
		f.Services[name] = s
	}
	return f
}

// service returns a Service with a port tcp:42 and others.
func service(ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: append([]corev1.ServicePort{{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: 42}}, ports...)}}
}

// summary returns what a plan has, a line each.
func summary(p Plan) []string {
	var out []string
	if p.Endpoints != nil {
		for _, e := range p.Endpoints.Spec.Endpoints {
			var ports []string
			for _, q := range e.Ports {
				ports = append(ports, fmt.Sprintf("%s:%d", q.Name, q.Port))
			}
			out = append(out, fmt.Sprintf("endpoint %s %s %s", e.Name, strings.Join(ports, ","), e.ServiceLabels[mcsv1beta1.LabelSourceCluster]))
		}
		if len(p.Endpoints.Spec.Endpoints) == 0 {
			out = append(out, "proxies")
		}
	}
	for _, s := range p.Services {
		out = append(out, fmt.Sprintf("services %s %v of %s", s.GetName(), s.Spec.VIPService.Ports, s.Spec.VIPService.Export.Name))
	}
	for _, i := range p.Imports {
		out = append(out, fmt.Sprintf("import %s %s %d ports %v", i.GetName(), i.Spec.Type, len(i.Spec.Ports), i.Spec.IPs))
		if c := i.Status.Conditions[0]; !strings.HasPrefix(c.Message, "Waiting") {
			out = append(out, fmt.Sprintf("import %s %s=%s %s", i.GetName(), c.Type, c.Status, c.Message))
		}
	}
	if p.Lags {
		out = append(out, "lags")
	}
	for _, s := range p.Statuses {
		for _, c := range s.Conditions {
			out = append(out, fmt.Sprintf("%s %s=%s %s", s.Export.GetName(), c.Type, c.Status, c.Reason))
		}
	}
	return out
}

func TestNew(t *testing.T) {
	edited := func(f Facts, change func(*Facts)) Facts {
		change(&f)
		return f
	}
	long := strings.Repeat("a", maxName+1)
	valid := []string{"lags", "web Valid=True Valid", "web Ready=False Pending", "web Conflict=False NoConflicts"}
	cases := map[string]struct {
		reason string
		facts  Facts
		want   []string
	}{
		"Nothing": {reason: "Without exports there is nothing.", facts: edited(export("web", nil), func(f *Facts) { f.Exports = nil })},
		"NoService": {
			reason: "Without a Service, nothing is exported.", facts: export("web", nil),
			want: []string{"web Valid=False NoService", "web Ready=False Failed", "web Conflict=False NoConflicts"},
		},
		"ExternalName": {
			reason: "Nor is one without endpoints in the cluster.", facts: export("web", &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}}),
			want: []string{"web Valid=False InvalidServiceType", "web Ready=False Failed", "web Conflict=False NoConflicts"},
		},
		"Export": {
			reason: "An exported Service is published. Until its record is there, another owner may have its name.", facts: export("web", service()),
			want: append([]string{"proxies", "services clusterset-web [tcp:42] of web", "import web ClusterSetIP 1 ports []"}, valid...),
		},
		"Recorded": {
			reason: "It is exported once its record is in the tailnet, and has the address of the Service that leads there.",
			facts: edited(export("web", service()), func(f *Facts) {
				f.Records = map[string][]Exporter{"web": {exporter("one", 5)}}
				f.Reached = map[string]*corev1.Service{"web": {Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.9"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}}}
			}),
			want: []string{
				"endpoint web tcp:42 one", "services clusterset-web [tcp:42] of web", "import web ClusterSetIP 1 ports [10.0.0.9]", "import web Ready=True ",
				"web Valid=True Valid", "web Ready=True Exported", "web Conflict=False NoConflicts",
			},
		},
		"RecordMissing": {
			reason: "A Service that is reached stays reached while its only record is written again.",
			facts: edited(export("web", service()), func(f *Facts) {
				f.Reached = map[string]*corev1.Service{"web": {Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.9"}}}}
			}),
			want: append([]string{"endpoint web tcp:42 one", "services clusterset-web [tcp:42] of web", "import web ClusterSetIP 1 ports [10.0.0.9]", "import web Ready=True "}, valid...),
		},
		"Import": {
			reason: "A Service of another cluster is imported without a ServiceExport here.",
			facts: edited(export("web", nil), func(f *Facts) {
				f.Exports, f.Records = nil, map[string][]Exporter{"web": {exporter("two", 5)}}
			}),
			want: []string{"endpoint web tcp:42 two", "import web ClusterSetIP 1 ports []"},
		},
		"Unexported": {
			reason: "A Service that this cluster does not export any more is imported until its record is gone: that of another cluster may come until then.",
			facts: edited(export("web", nil), func(f *Facts) {
				f.Exports, f.Records = nil, map[string][]Exporter{"web": {exporter("one", 5)}}
			}),
			want: []string{"endpoint web tcp:42 one", "import web ClusterSetIP 1 ports []", "lags"},
		},
		"Conflict": {
			reason: "Ports of other clusters are imported, too, and a conflict is reported.",
			facts: edited(export("web", service()), func(f *Facts) {
				f.Records = map[string][]Exporter{"web": {exporter("two", 4, ports(tailnetv1alpha1.ExportedPort{Name: "stcp", Protocol: corev1.ProtocolSCTP, Port: 142}))}}
			}),
			want: []string{
				"endpoint web tcp:42 one", "services clusterset-web [tcp:42] of web", "import web ClusterSetIP 2 ports []",
				"lags", "web Valid=True Valid", "web Ready=False Pending", "web Conflict=True PortConflict",
			},
		},
		"NoDevice": {
			reason: "Before the first device is there, nothing can be reached, and the proxies are that device.",
			facts:  edited(export("web", service()), func(f *Facts) { f.Domain = "" }),
			want:   append([]string{"proxies", "services clusterset-web [tcp:42] of web", "import web ClusterSetIP 1 ports []"}, valid...),
		},
		"TakenServices": {
			reason: "A TailscaleServices of the user stays as it is.",
			facts: edited(export("web", service()), func(f *Facts) {
				f.Foreign = map[string][]string{"TailscaleServices": {"clusterset-web"}}
			}),
			want: []string{
				"import web ClusterSetIP 1 ports []", "web Valid=True Valid", "web Ready=False Failed", "web Conflict=False NoConflicts",
			},
		},
		"TakenEndpoints": {
			reason: "So does a TailscaleEndpoints.",
			facts: edited(export("web", service()), func(f *Facts) {
				f.Foreign = map[string][]string{"TailscaleEndpoints": {"clusterset"}}
			}),
			want: []string{
				"import web ClusterSetIP 1 ports []", "import web Ready=False TailscaleEndpoints \"clusterset\" is not of a ServiceExport; give it another name",
				"web Valid=True Valid", "web Ready=False Failed", "web Conflict=False NoConflicts",
			},
		},
		"OtherImplementation": {
			reason: "A ServiceImport of another implementation stays as it is.",
			facts: edited(export("web", service()), func(f *Facts) {
				f.Imports = map[string]*mcsv1beta1.ServiceImport{"web": {}}
			}),
			want: append([]string{"proxies", "services clusterset-web [tcp:42] of web"}, valid...),
		},
		"Headless": {
			reason: "A headless Service is published, and imported without an address.",
			facts: export("web", func() *corev1.Service {
				s := service()
				s.Spec.ClusterIP = corev1.ClusterIPNone
				return s
			}()),
			want: append([]string{"proxies", "services clusterset-web [tcp:42] of web", "import web Headless 1 ports []", "import web Ready=False A Service without a cluster IP is imported by its name only: Tailscale Services lead to a service, not to its pods"}, valid...),
		},
		"ManyPorts": {
			reason: "A Service with more ports than a record may have is not published, and says so.",
			facts: export("web", func() *corev1.Service {
				s := service()
				for i := range maxPorts {
					s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Port: int32(1000 + i)})
				}
				return s
			}()),
			want: []string{
				"import web ClusterSetIP 17 ports []", "import web Ready=False The clusters export more than 16 TCP ports together",
				"web Valid=True Valid", "web Ready=False Failed", "web Conflict=False NoConflicts",
			},
		},
		"InvalidClusterID": {
			reason: "A cluster ID that no label can have is in none.",
			facts: edited(export("web", nil), func(f *Facts) {
				f.Exports, f.Records = nil, map[string][]Exporter{"web": {exporter("eu/west", 5)}}
			}),
			want: []string{"endpoint web tcp:42 ", "import web ClusterSetIP 1 ports []"},
		},
		"UDP": {
			reason: "A Service without a TCP port cannot be in a tailnet.",
			facts: export("web", func() *corev1.Service {
				s := service()
				s.Spec.Ports[0].Protocol = corev1.ProtocolUDP
				return s
			}()),
			want: []string{
				"import web ClusterSetIP 1 ports []", "import web Ready=False The Service has no TCP port, and Tailscale Services have no others",
				"web Valid=True Valid", "web Ready=False Failed", "web Conflict=False NoConflicts",
			},
		},
		"LongName": {
			reason: "A name that no Service clusterset-NAME can have is not reachable.",
			facts: edited(export("web", nil), func(f *Facts) {
				f.Exports, f.Records = nil, map[string][]Exporter{long: {exporter("two", 5)}}
			}),
			want: []string{
				"import " + long + " ClusterSetIP 1 ports []",
				"import " + long + " Ready=False Its name cannot be part of the name of a Service clusterset-NAME; export a Service with a name of at most 40 characters that does not end in ingress or egress",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, summary(New(tc.facts))); diff != "" {
				t.Errorf("\n%s\nNew(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNewLimit checks that a newcomer does not take the place of an imported Service.
func TestNewLimit(t *testing.T) {
	f := export("web", nil)
	f.Exports, f.Records, f.Reached = nil, map[string][]Exporter{}, map[string]*corev1.Service{}
	for i := range maxImports {
		name := fmt.Sprintf("s%03d", i)
		f.Records[name] = []Exporter{exporter("two", 5)}
		f.Reached[name] = &corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.9"}}}
	}
	f.Records["newcomer"] = []Exporter{exporter("two", 9)}
	p := New(f)
	if n := len(p.Endpoints.Spec.Endpoints); n != maxImports {
		t.Fatalf("want %d endpoints, got %d", maxImports, n)
	}
	for _, i := range p.Imports {
		c := i.Status.Conditions[0]
		if want := i.GetName() != "newcomer"; (c.Status == metav1.ConditionTrue) != want {
			t.Errorf("%s: want Ready %t, got %s: %s", i.GetName(), want, c.Status, c.Message)
		}
	}
}
