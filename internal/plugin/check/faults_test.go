// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authorization/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
)

// maxFault is the number of lines that a fault may have in the output, with everything else.
const maxFault = 10

func failing(typ, reason, message string) []causes.Condition {
	return []causes.Condition{
		{Type: "Synced", Status: "True"}, {Type: typ, Status: "False", Reason: reason, Message: message}, {Type: "Ready", Status: "False", Reason: "Creating"},
	}
}

func TestFaults(t *testing.T) {
	tailnet := causes.Reference{Kind: "TailscaleTailnet", Name: "example"}
	services := causes.Reference{Kind: "TailscaleServices", Namespace: "shop", Name: "web"}
	endpoints := causes.Reference{Kind: "TailscaleEndpoints", Namespace: "shop", Name: "web"}
	scope := `The OAuth client in Secret platform/tailscale-oauth is not allowed to do this, it needs the OAuth scope "services"`
	tags := "create failed: cannot create auth key: Tailscale's API answered 400: requested tags [tag:shop] are invalid or not permitted"
	cases := map[string]struct {
		reason string
		change func(*Facts)
		want   string // The first line.
		fix    string
	}{
		"NoCrossplane": {
			reason: "Nothing works without Crossplane, so nothing else is said to be missing.",
			change: func(f *Facts) { *f = Facts{At: at, Kubernetes: f.Kubernetes} },
			want:   "Wrong    Crossplane is not installed: namespace crossplane-system has no Deployment of the service account crossplane",
			fix:    "helm upgrade --install crossplane crossplane --repo=https://charts.crossplane.io/stable --namespace=crossplane-system --reset-then-reuse-values --create-namespace --wait",
		},
		"OldCrossplane": {
			reason: "Packages refuse an old version, which is the cause.",
			change: func(f *Facts) {
				f.Deployments.Value[0].Labels["app.kubernetes.io/version"] = "1.20.3"
				c := f.Packages.Value[products.Configuration]
				c.Healthy = causes.Condition{Type: "Healthy", Status: "False", Message: "incompatible Crossplane version"}
				f.Packages.Value[products.Configuration] = c
			},
			want: "Wrong    Crossplane is 1.20.3, which is older than 2.4: Deployment crossplane-system/crossplane",
			fix:  "helm upgrade --install crossplane",
		},
		"ProviderUnhealthy": {
			reason: "The provider's condition has the cause.",
			change: func(f *Facts) {
				p := f.Packages.Value[products.Provider]
				p.Healthy = causes.Condition{Type: "Healthy", Status: "False", Reason: "UnhealthyPackageRevision", Message: "Deployment has minimum availability False"}
				f.Packages.Value[products.Provider] = p
				f.Objects.Value[0].Conditions = nil
			},
			want: "Wrong    Provider tailscale-gateway-provider-tailscale (ghcr.io/tailscale-gateway/provider-tailscale:v0.1.0) is not Healthy: Deployment has minimum availability False",
			fix:  "kubectl describe providerrevisions.pkg.crossplane.io --selector=pkg.crossplane.io/package=tailscale-gateway-provider-tailscale",
		},
		"FunctionMissing": {
			reason: "The configuration is unhealthy because of the function.",
			change: func(f *Facts) {
				delete(f.Packages.Value, products.Function)
				c := f.Packages.Value[products.Configuration]
				c.Healthy = causes.Condition{Type: "Healthy", Status: "False", Message: "cannot resolve package dependencies"}
				f.Packages.Value[products.Configuration] = c
			},
			want: "Wrong    The package function-tailscale is not installed",
			fix:  "helm upgrade --install tailscale-gateway oci://ghcr.io/tailscale-gateway/charts/tailscale-gateway --version=0.1.0 --namespace=crossplane-system --reset-then-reuse-values",
		},
		"RolesMissing": {
			reason: "A role is named once, and not each verb of it.",
			change: func(f *Facts) {
				f.Roles.Value = map[string]bool{}
				for n := range f.Rights[:2] {
					f.Rights[n].Missing = f.Rights[n].Required
				}
			},
			want: "Wrong    ClusterRoles do not exist: tailscale-gateway:aggregate-to-crossplane, tailscale-gateway:aggregate-scale-to-edit, tailscale-gateway:provider and 1 more",
			fix:  "helm upgrade --install tailscale-gateway ",
		},
		"AdmissionPolicyMissing": {
			reason: "A binding of a policy that is gone needs no line.",
			change: func(f *Facts) { f.Policies[kustomization.PolicyInternalKinds] = Answer[Policy]{} },
			want:   "Wrong    ValidatingAdmissionPolicy tailscale-gateway-internal-kinds does not exist",
			fix:    "--set=admission.enabled=true",
		},
		"DefinitionNotEstablished": {
			reason: "The API server does not know the kind because the definition is not established.",
			change: func(f *Facts) {
				name := "tailscaleservices.gateway.tailscale.com"
				f.Definitions.Value[name] = Definition{Established: causes.Condition{Type: "Established", Status: "False", Message: "another controller owns the CRD"}}
				delete(f.Served.Value, "gateway.tailscale.com/tailscaleservices")
			},
			want: "Wrong    CompositeResourceDefinitions are not established: tailscaleservices.gateway.tailscale.com (Established: another controller owns the CRD)",
			fix:  "kubectl describe xrd tailscaleservices.gateway.tailscale.com",
		},
		"ScopeMissing": {
			reason: "Users of the tailnet wait for the credential.",
			change: func(f *Facts) {
				f.Objects.Value = []causes.Object{
					{Reference: tailnet, Conditions: failing("Authenticated", "ScopeMissing", scope)},
					{Reference: causes.Reference{Kind: "Tailnet", Namespace: "platform", Name: "example"}, Owner: tailnet, Conditions: failing("Authenticated", "ScopeMissing", scope)},
					{Reference: causes.Reference{Kind: "VIPService", Namespace: "shop", Name: "web"}, Owner: services, Tailnets: []string{"example"}, Conditions: failing("Ready", "Creating", "")},
					{Reference: services, Conditions: failing("VIPServiceReady", "VIPServiceCreating", "The service is not created yet")},
				}
			},
			want: "Wrong    TailscaleTailnet example is not ready: " + scope + " (ScopeMissing of Tailnet platform/example)",
			fix:  "add the scope to the credential",
		},
		"TagNotOwned": {
			reason: "The Machine has the cause, and the TailscaleEndpoints waits for it.",
			change: func(f *Facts) {
				f.Objects.Value = append(f.Objects.Value,
					causes.Object{Reference: causes.Reference{Kind: "Machine", Namespace: "shop", Name: "web-0"}, Owner: endpoints, Tailnets: []string{"example"}, Conditions: []causes.Condition{
						{Type: "Synced", Status: "False", Reason: "ReconcileError", Message: tags}, {Type: "Ready", Status: "False", Reason: "Creating"},
					}},
					causes.Object{Reference: endpoints, Tailnets: []string{"example"}, Conditions: failing("MachinesReady", "MachinesNotReady", "0 of 1 machines are ready")})
			},
			want: "Wrong    TailscaleEndpoints shop/web is not ready: " + tags + " (ReconcileError of Machine shop/web-0)",
			fix:  `in tagOwners of the tailnet's policy file, let a tag of the credential own it: "tag:shop": ["TAG-OF-THE-CREDENTIAL"]`,
		},
		"NoValues": {
			reason: "Envoy Gateway's pods do not matter before it asks the extension.",
			change: func(f *Facts) {
				f.Gateway.Config.Value = "gateway: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}"
				f.Releases = map[string]Release{EnvoyGatewayChart: {Name: "gateway", Namespace: "envoy-gateway-system", Version: "v1.9.2"}}
				f.Gateway.Extension.Value.Status.AvailableReplicas = 0
			},
			want: "Wrong    Envoy Gateway does not have our values: ConfigMap envoy-gateway-system/envoy-gateway-config names no extension at the Service envoy-gateway-system/tailscale-gateway-extension, port 5005",
			fix:  "helm upgrade --install gateway oci://docker.io/envoyproxy/gateway-helm --version=v1.9.2 --namespace=envoy-gateway-system --reset-then-reuse-values --values=https://github.com/tailscale-gateway/tailscale-gateway/releases/download/v0.1.0/envoy-gateway-values.yaml",
		},
		"CertificateExpired": {
			reason: "Pods are not ready because of the certificate.",
			change: func(f *Facts) {
				f.Gateway.Secrets[secretServer] = secrets(t, at.AddDate(-1, 0, 0).Add(-time.Hour))[secretServer]
				f.Gateway.Extension.Value.Status.AvailableReplicas = 0
			},
			want: "Wrong    Certificates of the extension are expired: Secret envoy-gateway-system/tailscale-gateway-extension-tls ended 2026-11-28",
			fix:  "create job certificates-1795867200 --from=cronjob/tailscale-gateway-extension-certificates --namespace=envoy-gateway-system",
		},
		"StartedBefore": {
			reason: "Envoy Gateway looks for our kinds only at its start, and a route says what it lacks.",
			change: func(f *Facts) {
				f.Gateway.Started.Value = at.Add(-3 * time.Hour)
				f.Gateway.Routes.Value = []Route{routeTo(at, "False", "BackendNotFound", at)}
			},
			want: "Wrong    Envoy Gateway started before the kind tailscaleservices.gateway.tailscale.com existed (2026-11-28 09:00:00, 10:00:00): HTTPRoute shop/web has no backend for it: custom backend TailscaleServices shop/web not found",
			fix:  "kubectl rollout restart deployment/envoy-gateway --namespace=envoy-gateway-system",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := healthy(t, products.FlavourNamespaced)
			tc.change(&f)
			r := Make(f, defaults())
			out := r.Text()
			first, _, _ := strings.Cut(out, "\n")
			if diff := cmp.Diff(tc.want, first); diff != "" {
				t.Errorf("%s\nText(): first line: -want, +got:\n%s", tc.reason, diff)
			}
			if n := r.Count(Wrong); n != 1 {
				t.Errorf("%s\nMake(...): %d findings are wrong, want 1:\n%s", tc.reason, n, out)
			}
			if n := strings.Count(out, "\n"); n > maxFault {
				t.Errorf("%s\nText(): %d lines, want at most %d:\n%s", tc.reason, n, maxFault, out)
			}
			if !strings.Contains(r.Findings[0].Fix, tc.fix) {
				t.Errorf("%s\nFix: got %q, want %q", tc.reason, r.Findings[0].Fix, tc.fix)
			}
		})
	}
}

func TestHealthy(t *testing.T) {
	cases := map[string]struct {
		reason  string
		flavour string
		change  func(*Facts, *Options)
	}{
		"Namespaced": {reason: "Composites in a namespace pass.", flavour: products.FlavourNamespaced},
		"Claims":     {reason: "Claims pass, with the claim kinds of their definitions.", flavour: products.FlavourClaims},
		"Alone": {
			reason: "The provider works without the other packages, and without the chart.", flavour: products.FlavourNamespaced,
			change: func(f *Facts, _ *Options) {
				f.Packages.Value = map[string]Package{products.Provider: f.Packages.Value[products.Provider]}
				f.Definitions, f.Compositions, f.Roles, f.Policies, f.Rights, f.Gateway = Answer[map[string]Definition]{}, Answer[map[string]bool]{}, Answer[map[string]bool]{}, nil, nil, GatewayFacts{}
			},
		},
		"NoRoutes": {
			reason: "Nobody needs Envoy Gateway.", flavour: products.FlavourNamespaced,
			change: func(f *Facts, _ *Options) {
				f.Gateway = GatewayFacts{}
				delete(f.Policies, kustomization.PolicyExtensionRoutes)
			},
		},
		"NoAdmission": {
			reason: "A caller who turns the policies off on purpose says so.", flavour: products.FlavourNamespaced,
			change: func(f *Facts, o *Options) { f.Policies, o.Admission = nil, false },
		},
		"NoObjects": {
			reason: "Objects of users can be left out.", flavour: products.FlavourNamespaced,
			change: func(f *Facts, o *Options) { f.Objects.Value[0].Conditions, o.Objects = nil, false },
		},
		"UnknownVersion": {
			reason: "A version that is no version is not old.", flavour: products.FlavourNamespaced,
			change: func(f *Facts, _ *Options) {
				f.Deployments.Value[0].Labels = map[string]string{"app.kubernetes.io/version": "main"}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, o := healthy(t, tc.flavour), defaults()
			if tc.change != nil {
				tc.change(&f, &o)
			}
			r := Make(f, o)
			if r.Count(Wrong) > 0 || r.Count(Unknown) > 0 {
				t.Errorf("%s\nMake(...):\n%s", tc.reason, r.Text())
			}
			if n := strings.Count(r.Text(), "\n"); n > 2 {
				t.Errorf("%s\nText(): %d lines, want at most 2:\n%s", tc.reason, n, r.Text())
			}
		})
	}
}

// TestClaimKinds checks that a definition of claims without its claim kind is wrong.
func TestClaimKinds(t *testing.T) {
	f := healthy(t, products.FlavourClaims)
	f.Definitions.Value["xtailscaleservices.gateway.tailscale.com"] = Definition{Claims: true, Established: causes.Condition{Type: "Established", Status: "True"}, Offered: causes.Condition{Type: "Offered"}}
	if out := Make(f, defaults()).Text(); !strings.Contains(out, "xtailscaleservices.gateway.tailscale.com (Offered: the condition is not set yet)") {
		t.Errorf("a definition that does not offer its claim passes:\n%s", out)
	}
}

// TestUnknown checks that what the caller may not read is neither absent nor right.
func TestUnknown(t *testing.T) {
	const refused = "forbidden"
	f := Facts{At: at, Kubernetes: Answer[string]{Unknown: refused}}
	f.Deployments.Unknown, f.Packages.Unknown, f.Definitions.Unknown, f.Compositions.Unknown = refused, refused, refused, refused
	f.Served.Unknown, f.CRDs.Unknown, f.Roles.Unknown, f.Objects.Unknown, f.Usages.Unknown, f.Network.Policies.Unknown = refused, refused, refused, refused, refused, refused
	f.Policies = map[string]Answer[Policy]{}
	for name := range healthy(t, products.FlavourNamespaced).Policies {
		f.Policies[name] = Answer[Policy]{Unknown: refused}
	}
	for _, required := range []func(Options) ([]Rights, error){Required, RequiredByRoutes} {
		rights, err := required(defaults())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rights {
			r.Unknown = refused
			f.Rights = append(f.Rights, r)
		}
	}
	f.Gateway = GatewayFacts{
		EnvoyGateway: Answer[*appsv1.Deployment]{Unknown: refused}, Extension: Answer[*appsv1.Deployment]{Unknown: refused}, Config: Answer[string]{Unknown: refused},
		Started: Answer[time.Time]{Unknown: refused}, CronJob: Answer[bool]{Unknown: refused}, Secrets: map[string]Answer[Secret]{},
	}
	for name := range Secrets() {
		f.Gateway.Secrets[name] = Answer[Secret]{Unknown: refused}
	}
	o := defaults()
	o.EnvoyGateway = Require
	r := Make(f, o)
	for _, found := range r.Findings {
		if found.Status != Unknown && found.Check != checkReady {
			t.Errorf("%s is %s although nothing is known: %s", found.Check, found.Status, found.Summary)
		}
	}
}

func TestRights(t *testing.T) {
	cases := map[string]struct {
		reason string
		denied func(name string, a authv1.ResourceAttributes) bool
		want   []string
		fix    string
	}{
		"Crossplane": {
			reason: "Each missing permission is named by verb and resource.",
			denied: func(_ string, a authv1.ResourceAttributes) bool {
				return a.Resource == "networkpolicies" && a.Verb == "watch"
			},
			want: []string{"Crossplane (crossplane-system/crossplane) lacks 1 of", "watch networkpolicies.networking.k8s.io"}, fix: "helm upgrade --install tailscale-gateway ",
		},
		"PodMonitors": {
			reason: "Kinds that are composed only on request are needed, too.",
			denied: func(_ string, a authv1.ResourceAttributes) bool {
				return a.Resource == "podmonitors" && a.Verb == "create"
			},
			want: []string{"create podmonitors.monitoring.coreos.com"},
		},
		"Gateways": {
			reason: "A Gateway must be read to find its Service.",
			denied: func(name string, a authv1.ResourceAttributes) bool {
				return name == nameCrossplane && a.Resource == "gateways" && a.Verb == "watch"
			},
			want: []string{"Crossplane (crossplane-system/crossplane) lacks 1 of", "watch gateways.gateway.networking.k8s.io"},
		},
		"Provider": {
			reason: "Missing permissions of the provider are reported.",
			denied: func(name string, a authv1.ResourceAttributes) bool {
				return name == nameProvider && (a.Resource == "machines" || a.Resource == "statefulsets" && a.Verb == "patch")
			},
			want: []string{"The provider (crossplane-system/provider-tailscale) lacks 5 of", "delete machines.tailnet.gateway.tailscale.com", "patch statefulsets.apps", "create machines.tailnet.gateway.tailscale.com/write and 2 more"},
		},
		"EnvoyGateway": {
			reason: "Envoy Gateway does not become ready without its role.",
			denied: func(name string, a authv1.ResourceAttributes) bool {
				return name == nameEnvoyGateway && a.Resource == "tailscaleservices" && a.Verb == "watch"
			},
			want: []string{"Envoy Gateway (envoy-gateway-system/envoy-gateway) lacks 1 of", "watch tailscaleservices.gateway.tailscale.com"}, fix: "helm upgrade --install tailscale-gateway-extension ",
		},
		"Extension": {
			reason: "Nor does the extension without its own.",
			denied: func(name string, a authv1.ResourceAttributes) bool {
				return name == nameExtension && a.Resource == "endpointslices" && a.Verb == "list"
			},
			want: []string{"The extension (envoy-gateway-system/tailscale-gateway-extension) lacks 1 of", "list endpointslices.discovery.k8s.io"},
		},
		"UsersPermissions": {
			reason: "Permissions of users are not required of Crossplane. The provider watches the kinds that users scale.",
			denied: func(name string, a authv1.ResourceAttributes) bool {
				return (name == nameCrossplane || name == nameProvider) && a.Group == "gateway.tailscale.com" && a.Verb != "list" && a.Verb != "watch"
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := healthy(t, products.FlavourNamespaced)
			for n := range f.Rights {
				r := &f.Rights[n]
				r.Missing = slices.DeleteFunc(slices.Clone(r.Required), func(a authv1.ResourceAttributes) bool { return !tc.denied(r.Name, a) })
			}
			r := Make(f, defaults())
			if (r.Count(Wrong) > 0) != (tc.want != nil) {
				t.Errorf("%s\nMake(...):\n%s", tc.reason, r.Text())
			}
			for _, want := range tc.want {
				if !strings.Contains(r.Findings[0].Summary, want) {
					t.Errorf("%s\nMake(...): %q lacks %q", tc.reason, r.Findings[0].Summary, want)
				}
			}
			if !strings.Contains(r.Findings[0].Fix, tc.fix) {
				t.Errorf("%s\nFix: got %q, want %q", tc.reason, r.Findings[0].Fix, tc.fix)
			}
		})
	}
}
