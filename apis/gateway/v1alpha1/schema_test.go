// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// A served is a kind as the API server serves it once Crossplane has made a
// CustomResourceDefinition of ours.
type served struct {
	crd        *extv1.CustomResourceDefinition
	internal   *apiextensions.JSONSchemaProps
	structural *schema.Structural

	// claims are the kind in the configuration of claims: the claim, and the
	// composite that gets all that the claim says.
	claims []served
}

// loaded kinds, by plural name: to judge the cost of rules takes seconds.
var loaded = map[string]served{}

// load a kind by its plural name, and check that an API server would take it, in
// either configuration: the cost of its rules included.
func load(t *testing.T, plural string) served {
	t.Helper()
	if s, ok := loaded[plural]; ok {
		return s
	}
	xrd := definition(t, "configuration", plural)
	crd, err := xcrd.ForCompositeResource(xrd)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, crd)
	if xrd = definition(t, "configuration-claims", plural); xrd.OffersClaim() {
		claim, err := xcrd.ForCompositeResourceClaim(xrd)
		if err != nil {
			t.Fatal(err)
		}
		composite, err := xcrd.ForCompositeResource(xrd)
		if err != nil {
			t.Fatal(err)
		}
		s.claims = []served{serve(t, claim), serve(t, composite)}
		checkSame(t, crd, claim)
	}
	loaded[plural] = s
	return s
}

// checkSame fails unless a claim is what a composite is, for who uses it.
func checkSame(t *testing.T, composite, claim *extv1.CustomResourceDefinition) {
	t.Helper()
	names := func(crd *extv1.CustomResourceDefinition) extv1.CustomResourceDefinitionNames {
		n := *crd.Spec.Names.DeepCopy()
		n.Categories = slices.DeleteFunc(n.Categories, func(c string) bool { return c == xcrd.CategoryClaim || c == xcrd.CategoryComposite })
		return n
	}
	if diff := cmp.Diff(names(composite), names(claim)); diff != "" {
		t.Errorf("names: -composite, +claim:\n%s", diff)
	}
	if diff := cmp.Diff(composite.Spec.Scope, claim.Spec.Scope); diff != "" {
		t.Errorf("scope: -composite, +claim:\n%s", diff)
	}
	if diff := cmp.Diff(composite.Spec.Versions[0].Subresources, claim.Spec.Versions[0].Subresources); diff != "" {
		t.Errorf("subresources: -composite, +claim:\n%s", diff)
	}
}

// definition in the folder of a configuration.
func definition(t *testing.T, folder, plural string) *xpextv1.CompositeResourceDefinition {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "package", folder, "xrds", "gateway.tailscale.com_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	xrd := &xpextv1.CompositeResourceDefinition{}
	if err := yaml.Unmarshal(b, xrd); err != nil {
		t.Fatal(err)
	}
	return xrd
}

// serve a kind as an API server does.
func serve(t *testing.T, crd *extv1.CustomResourceDefinition) served {
	t.Helper()
	// The API server sets these, and the owner's UID comes with the XRD.
	crd.OwnerReferences = nil
	crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	extv1.SetDefaults_CustomResourceDefinition(crd)
	extv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	c := &apiextensions.CustomResourceDefinition{}
	if err := extv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), c, nil); err != nil {
		t.Fatal(err)
	}
	for _, e := range extvalidation.ValidateCustomResourceDefinition(t.Context(), c) {
		t.Errorf("an API server would not take the definition: %v", e)
	}
	s := served{crd: crd, internal: &apiextensions.JSONSchemaProps{}}
	var err error
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, s.internal, nil); err != nil {
		t.Fatal(err)
	}
	if s.structural, err = schema.NewStructural(s.internal); err != nil {
		t.Fatal(err)
	}
	return s
}

// create validates an object as the API server does when it is created.
func (s served) create(t *testing.T, spec string) field.ErrorList {
	t.Helper()
	manifest := "apiVersion: " + s.crd.Spec.Group + "/" + s.crd.Spec.Versions[0].Name + "\nkind: " + s.crd.Spec.Names.Kind + "\nmetadata: {name: web, namespace: default}\nspec: " + spec
	return s.validate(t, parse(t, manifest), nil)
}

// parse an object; nothing is none.
func parse(t *testing.T, y string) map[string]any {
	t.Helper()
	if y == "" {
		return nil
	}
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(y), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// validate an object that is created, or that takes the place of old. A claim must
// get the same answer.
func (s served) validate(t *testing.T, o, old map[string]any) field.ErrorList {
	t.Helper()
	asked, before := runtime.DeepCopyJSON(o), runtime.DeepCopyJSON(old)
	errs := s.answer(t, o, old)
	for _, c := range s.claims {
		claim := runtime.DeepCopyJSON(asked)
		got := c.answer(t, claim, runtime.DeepCopyJSON(before))
		if diff := cmp.Diff(messages(errs), messages(got)); diff != "" {
			t.Errorf("answers: -%s, +%s of claims:\n%s", s.crd.Spec.Names.Kind, c.crd.Spec.Names.Kind, diff)
		}
		// How a claim is deleted is beside what is ours.
		if spec, ok := claim["spec"].(map[string]any); ok {
			delete(spec, "compositeDeletePolicy")
		}
		if diff := cmp.Diff(o, claim); diff != "" {
			t.Errorf("defaults: -%s, +%s of claims:\n%s", s.crd.Spec.Names.Kind, c.crd.Spec.Names.Kind, diff)
		}
	}
	return errs
}

// messages of errors, in order.
func messages(errs field.ErrorList) []string {
	out := make([]string, 0, len(errs))
	for _, e := range errs {
		out = append(out, e.Error())
	}
	slices.Sort(out)
	return out
}

// answer of the API server to an object that is created, or that takes the place
// of old.
func (s served) answer(t *testing.T, o, old map[string]any) field.ErrorList {
	t.Helper()
	defaulting.Default(o, s.structural)
	v, _, err := validation.NewSchemaValidator(s.internal)
	if err != nil {
		t.Fatal(err)
	}
	errs := validation.ValidateCustomResource(nil, o, v)
	rules := schemacel.NewValidator(s.structural, true, cel.PerCallLimit)
	if rules == nil {
		return errs
	}
	var before any
	if old != nil {
		defaulting.Default(old, s.structural)
		before = old
	}
	more, _ := rules.Validate(t.Context(), nil, s.structural, o, before, cel.RuntimeCELCostBudget)
	return append(errs, more...)
}

// TestServed takes every definition of the configuration to what an API server
// would say of it.
func TestServed(t *testing.T) {
	for _, plural := range []string{"tailscaleendpoints", "tailscaleproxygroups", "tailscaleservices", "tailscaletailnets"} {
		t.Run(plural, func(t *testing.T) { load(t, plural) })
	}
}

// TestScale finds what kubectl scale reads and writes.
func TestScale(t *testing.T) {
	for plural, path := range map[string]string{
		"tailscaleendpoints":   ".spec.proxy.replicas",
		"tailscaleproxygroups": ".spec.replicas",
	} {
		t.Run(plural, func(t *testing.T) { scale(t, load(t, plural), path) })
	}
}

func scale(t *testing.T, s served, specPath string) {
	t.Helper()
	got := s.crd.Spec.Versions[0].Subresources.Scale
	want := &extv1.CustomResourceSubresourceScale{
		SpecReplicasPath:   specPath,
		StatusReplicasPath: ".status.replicas",
		LabelSelectorPath:  ptr.To(".status.selector"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want, +got:\n%s", diff)
	}
	for _, path := range []string{got.SpecReplicasPath, got.StatusReplicasPath, *got.LabelSelectorPath} {
		p := *s.crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, f := range strings.Split(path, ".")[1:] {
			var ok bool
			if p, ok = p.Properties[f]; !ok {
				t.Errorf("%s is not in the schema", path)
			}
		}
	}
}

func TestTailscaleEndpointsSchema(t *testing.T) {
	s := load(t, "tailscaleendpoints")
	cases := map[string]struct {
		reason string
		proxy  string

		// want are parts of the message. Empty when the object is taken.
		want []string
	}{
		"Nothing": {
			reason: "All of proxy is optional",
			proxy:  "{}",
		},
		"All": {
			reason: "Everything that may be set of a pod",
			proxy: `
    labels: {team: edge, app.kubernetes.io/part-of: web}
    annotations: {example.org/note: any text, cluster-autoscaler.kubernetes.io/safe-to-evict: "true"}
    serviceAccountAnnotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/x"}
    priorityClassName: system-cluster-critical
    agentResources: {limits: {memory: 64Mi}}
    affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
    env:
    - {name: PORT, value: "41641"}
    - {name: TS_DEBUG_MTU, value: "1280"}
    - {name: https_proxy, valueFrom: {secretKeyRef: {name: proxy, key: url}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    securityContext: {runAsUser: 2000, seLinuxOptions: {type: container_t}}
    metrics: {podMonitor: {labels: {release: prometheus}, interval: 1m30s}}`,
		},
		"PodMonitorDisabled": {
			reason: "What is asked for must not be ignored",
			proxy:  `{metrics: {enabled: false, podMonitor: {}}}`,
			want:   []string{"spec.proxy.metrics", "podMonitor needs enabled"},
		},
		"PodMonitorInterval": {
			reason: "The Prometheus operator would refuse it later",
			proxy:  `{metrics: {podMonitor: {interval: 30 seconds}}}`,
			want:   []string{"spec.proxy.metrics.podMonitor.interval"},
		},
		"OurLabel": {
			reason: "A label that selects the pods is not the user's to set",
			proxy:  `{labels: {gateway.tailscale.com/endpoints: other}}`,
			want:   []string{"spec.proxy.labels", "use a prefix of your own"},
		},
		"LabelOfKubernetes": {
			reason: "Kubernetes numbers the pods of a StatefulSet itself",
			proxy:  `{labels: {apps.kubernetes.io/pod-index: "1"}}`,
			want:   []string{"spec.proxy.labels", "are set by Kubernetes"},
		},
		"LabelValue": {
			reason: "Else the StatefulSet would be refused later",
			proxy:  `{labels: {team: "a b"}}`,
			want:   []string{"spec.proxy.labels.team"},
		},
		"OurAnnotation": {
			reason: "Our prefix is ours",
			proxy:  `{annotations: {tailnet.gateway.tailscale.com/x: y}}`,
			want:   []string{"spec.proxy.annotations", "use a prefix of your own"},
		},
		"AccountAnnotationOfKubernetes": {
			reason: "The token controllers write there",
			proxy:  `{serviceAccountAnnotations: {kubernetes.io/enforce-mountable-secrets: "true"}}`,
			want:   []string{"spec.proxy.serviceAccountAnnotations"},
		},
		"EnvValueAndSource": {
			reason: "A variable has one value",
			proxy:  `{env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}`,
			want:   []string{"spec.proxy.env[0]", "value or valueFrom"},
		},
		"EnvTwoSources": {
			reason: "A variable has one source",
			proxy:  `{env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}, secretKeyRef: {name: a, key: b}}}]}`,
			want:   []string{"spec.proxy.env[0].valueFrom", "exactly one"},
		},
		"EnvName": {
			reason: "Kubernetes would refuse the name later",
			proxy:  `{env: [{name: "a=b"}]}`,
			want:   []string{"spec.proxy.env[0].name"},
		},
		"PriorityClassName": {
			reason: "It is the name of an object",
			proxy:  `{priorityClassName: High Priority}`,
			want:   []string{"spec.proxy.priorityClassName"},
		},
		"Root": {
			reason: "The pods must pass PodSecurity's restricted",
			proxy:  `{securityContext: {runAsUser: 0}}`,
			want:   []string{"spec.proxy.securityContext.runAsUser"},
		},
		"SELinuxType": {
			reason: "The pods must pass PodSecurity's restricted",
			proxy:  `{securityContext: {seLinuxOptions: {type: spc_t}}}`,
			want:   []string{"spec.proxy.securityContext.seLinuxOptions.type"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			errs := s.create(t, "\n  tailnet: example\n  proxy: "+tc.proxy)
			if len(tc.want) == 0 && len(errs) > 0 {
				t.Fatalf("%s: refused: %v", tc.reason, errs.ToAggregate())
			}
			if len(tc.want) > 0 && len(errs) == 0 {
				t.Fatalf("%s: it was taken", tc.reason)
			}
			for _, w := range tc.want {
				if !strings.Contains(errs.ToAggregate().Error(), w) {
					t.Errorf("%s: the answer does not say %q: %v", tc.reason, w, errs.ToAggregate())
				}
			}
		})
	}
}

// TestTailscaleEndpointsSchemaEnv tries the variables that containerboot reads
// (cmd/containerboot/settings.go of tailscale.com) and we set, or that would
// break it beside a config directory.
func TestTailscaleEndpointsSchemaEnv(t *testing.T) {
	s := load(t, "tailscaleendpoints")
	names := []string{
		"EXPERIMENTAL_ALLOW_PROXYING_CLUSTER_TRAFFIC_VIA_INGRESS", "HOME", "KUBERNETES_SERVICE_HOST", "POD_IP", "POD_IPS",
		"POD_NAME", "POD_NAMESPACE", "POD_UID", "TS_ACCEPT_DNS", "TS_AUDIENCE", "TS_AUTHKEY", "TS_AUTH_KEY", "TS_AUTH_ONCE",
		"TS_CERT_SHARE_MODE", "TS_CLIENT_ID", "TS_CLIENT_SECRET", "TS_DEST_IP", "TS_EGRESS_PROXIES_CONFIG_PATH",
		"TS_ENABLE_HEALTH_CHECK", "TS_ENABLE_METRICS", "TS_EXPERIMENTAL_CERT_SHARE", "TS_EXPERIMENTAL_DEST_DNS_NAME",
		"TS_EXPERIMENTAL_SERVICE_AUTO_ADVERTISEMENT", "TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR", "TS_EXTRA_ARGS",
		"TS_HEALTHCHECK_ADDR_PORT", "TS_HOSTNAME", "TS_ID_TOKEN", "TS_INGRESS_PROXIES_CONFIG_PATH", "TS_INTERNAL_APP",
		"TS_KUBE_SECRET", "TS_KUBERNETES_READ_API_SERVER_ADDRESS_FROM_ENV", "TS_LOCAL_ADDR_PORT",
		"TS_OUTBOUND_HTTP_PROXY_LISTEN", "TS_ROUTES", "TS_SERVE_CONFIG", "TS_SOCKET", "TS_SOCKS5_SERVER", "TS_STATE",
		"TS_STATE_DIR", "TS_TAILNET_TARGET_FQDN", "TS_TAILNET_TARGET_IP", "TS_TAILSCALED_EXTRA_ARGS", "TS_TEST_ONLY_ROOT",
		"TS_USERSPACE",
	}
	for _, e := range proxy.StatefulSet(proxy.Options{}).Spec.Template.Spec.Containers[0].Env {
		names = append(names, e.Name)
	}
	for _, name := range names {
		errs := s.create(t, "{tailnet: example, proxy: {env: [{name: "+name+", value: x}]}}")
		if len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), "this proxy's own configuration") {
			t.Errorf("variable %s: want it refused as the proxy's own, got %v", name, errs.ToAggregate())
		}
	}
}
