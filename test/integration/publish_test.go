// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/publish"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// publisher is the provider's account.
const publisher = "provider-tailscale"

// TestPublish publishes Services by their class and label, with the permissions of the chart and its admission
// policy, in a manager that starts and stops. There is no Crossplane: the test writes what it would.
func TestPublish(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	as := e.installPublisher()
	stop := e.runPublish(as)
	defer func() { stop() }()
	e.applyExample("web", "api")
	proxies := names.Child("published", e.namespace)

	// Without its tailnet, a Service gets nothing.
	e.eventually("an event says that there is no such tailnet", e.hasServiceEvent("web", "TailnetNotFound"))
	e.must(e.lacks(gatewayv1alpha1.TailscaleServicesKind, "web")())
	e.apply(fmt.Sprintf(`
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: ClusterProviderConfig
metadata: {name: %[1]s}
spec:
  apiURL: %[2]s
  credentials: {oauthSecretRef: {name: %[3]s, namespace: %[1]s}}
  allowedNamespaces: {from: List, names: [%[1]s]}
`, e.namespace, e.sim.URL, credentialsSecret))
	e.eventually("the Service of the class is published", e.publishes("web", e.namespace+"-web", ""))
	e.eventually("so is that with the label", e.publishes("api", "store", "tag:web"))
	e.eventually("proxies exist", e.exists(gatewayv1alpha1.TailscaleEndpointsKind, proxies))

	original := e.coreService("web")
	e.answers("web", e.namespace+"-web")
	e.eventually("the status has the name and the address", e.hasIngress("web", e.namespace+"-web"))
	// A tool that compares a Service with its manifest sees no difference.
	changed := e.coreService("web")
	if diff := cmp.Diff(asManifest(original), asManifest(changed)); diff != "" {
		t.Errorf("the controller changed the Service: -original, +changed:\n%s", diff)
	}

	// Another name is another Tailscale Service.
	e.patch(changed, `{"metadata":{"annotations":{"gateway.tailscale.com/hostname":"front"}}}`)
	e.eventually("the Service has another name", e.publishes("web", "front", ""))
	e.eventually("its address is gone", e.hasIngress("web"))

	// An object of the user stays.
	e.apply(fmt.Sprintf(`
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: mine, namespace: %[1]s}
spec: {selector: {matchLabels: {app: proxies}}}
---
apiVersion: v1
kind: Service
metadata: {name: mine, namespace: %[1]s, labels: {gateway.tailscale.com/publish: "true"}}
spec: {ports: [{port: 80}]}
`, e.namespace))
	e.eventually("an event says so", e.hasServiceEvent("mine", "TailscaleServicesExists"))
	if o := e.composite(gatewayv1alpha1.TailscaleServicesKind, "mine"); o.GetLabels()[meta.LabelManagedBy] != "" {
		t.Errorf("the controller has changed an object of the user: %v", o.Object)
	}

	// Another class: the API server itself removes the status.
	e.answers("web", "front")
	e.eventually("the status is back", e.hasIngress("web", "front"))
	e.patch(e.coreService("web"), `{"spec":{"type":"ClusterIP","loadBalancerClass":null}}`)
	e.eventually("the Service is withdrawn", e.lacks(gatewayv1alpha1.TailscaleServicesKind, "web"))
	e.must(e.hasIngress("web")())

	// A label that is removed, and a Service that is deleted, while the provider is down.
	e.patch(e.coreService("web"), `{"metadata":{"labels":{"gateway.tailscale.com/publish":"true"}}}`)
	e.eventually("the label publishes the Service", e.publishes("web", "front", ""))
	stop()
	e.patch(e.coreService("web"), `{"metadata":{"labels":null}}`)
	e.must(shared.kube.Delete(t.Context(), e.coreService("api")))
	e.eventually("the garbage collector removes what published the deleted one", e.lacks(gatewayv1alpha1.TailscaleServicesKind, "api"))
	e.must(e.exists(gatewayv1alpha1.TailscaleServicesKind, "web")())
	stop = e.runPublish(as)
	e.eventually("the other one is withdrawn", e.lacks(gatewayv1alpha1.TailscaleServicesKind, "web"))
	e.eventually("the proxies of the namespace are gone", e.lacks(gatewayv1alpha1.TailscaleEndpointsKind, proxies))
	e.must(e.exists(gatewayv1alpha1.TailscaleServicesKind, "mine")())
	e.refusesStatuses(as)
}

// refusesStatuses checks that the admission policy lets the provider write nothing but the load balancer status of its
// class.
func (e *env) refusesStatuses(as *rest.Config) {
	e.Helper()
	kube, err := client.New(as, client.Options{Scheme: shared.kube.Scheme()})
	e.must(err)
	e.apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: cloud, namespace: %[1]s}
spec: {type: LoadBalancer, loadBalancerClass: example.org/cloud, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: tailnet, namespace: %[1]s}
spec: {type: LoadBalancer, loadBalancerClass: gateway.tailscale.com/service, ports: [{port: 80}]}
`, e.namespace))
	for _, c := range []struct{ reason, service, patch, message string }{
		{reason: "the status of another class", service: "cloud", patch: `{"status":{"loadBalancer":{"ingress":[{"ip":"100.100.1.2","ipMode":"Proxy"}]}}}`, message: "of its class"},
		{reason: "an address that kube-proxy would serve", service: "tailnet", patch: `{"status":{"loadBalancer":{"ingress":[{"ip":"100.100.1.2"}]}}}`, message: "ipMode Proxy"},
		{reason: "a condition", service: "tailnet", patch: `{"status":{"conditions":[{"type":"X","status":"True","reason":"X","message":"","lastTransitionTime":"2026-05-01T12:00:00Z"}]}}`, message: "only the load balancer status"},
		{reason: "a label", service: "tailnet", patch: `{"metadata":{"labels":{"a":"b"}}}`, message: "only the load balancer status"},
		{reason: "a finalizer", service: "tailnet", patch: `{"metadata":{"finalizers":["example.org/keep"]}}`, message: "only the load balancer status"},
	} {
		e.eventually("the admission policy refuses "+c.reason, func() error {
			err := kube.Status().Patch(e.Context(), e.coreService(c.service), client.RawPatch(types.MergePatchType, []byte(c.patch)))
			if err == nil || !strings.Contains(err.Error(), c.message) {
				return errors.Errorf("want an error with %q, got %v", c.message, err)
			}
			return nil
		})
	}
}

// installPublisher installs the roles and the admission policy of the chart for an account of the case's namespace. It
// returns a config with the account's permissions.
func (e *env) installPublisher() *rest.Config {
	e.Helper()
	root, err := apiserver.Root()
	e.must(err)
	cmd := exec.CommandContext(e.Context(), os.Getenv("TEST_ASSET_HELM"), "template", charts.Install, filepath.Join(root, charts.Folder, charts.Install),
		"--namespace="+e.namespace, "--kube-version=1.35.4", "--show-only=templates/rbac.yaml", "--show-only=templates/admission-services.yaml",
		"--set=provider.publishServices=true", "--set=crossplane.namespace="+e.namespace)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	out, err := cmd.Output()
	e.must(errors.Wrap(err, stderr.String()))
	roles := map[string]bool{"ClusterRole tailscale-gateway:provider": true, "ClusterRoleBinding tailscale-gateway:provider": true}
	for _, o := range e.parse(string(out)) {
		if !strings.HasPrefix(o.GetKind(), "ValidatingAdmission") && !roles[o.GetKind()+" "+o.GetName()] {
			continue
		}
		// The provider of the other cases has the same names.
		o.SetName(e.namespace + "-" + o.GetName())
		for _, field := range [][]string{{"roleRef", "name"}, {"spec", "policyName"}} {
			if v, ok, _ := unstructured.NestedString(o.Object, field...); ok {
				e.must(unstructured.SetNestedField(o.Object, e.namespace+"-"+v, field...))
			}
		}
		e.create(o)
	}
	objects, err := apiserver.ProviderRoles(root)
	e.must(err)
	for _, o := range objects {
		if b, ok := o.(*rbacv1.ClusterRoleBinding); ok {
			b.Name, b.Subjects[0].Namespace = e.namespace+"-"+b.Name, e.namespace
			e.create(b)
		}
	}
	as := rest.CopyConfig(shared.config)
	as.Impersonate.UserName = "system:serviceaccount:" + e.namespace + ":" + publisher
	return as
}

// runPublish runs the controllers in a separate manager, and returns a function that stops it.
func (e *env) runPublish(as *rest.Config) func() {
	e.Helper()
	mgr, err := ctrl.NewManager(as, ctrl.Options{
		Scheme:     shared.kube.Scheme(),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{e.namespace: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	e.must(err)
	e.must(publish.Setup(mgr, setup.Options{
		Options:         xpcontroller.Options{Logger: logging.NewNopLogger(), MaxConcurrentReconciles: 1, GlobalRateLimiter: ratelimiter.NewGlobal(10)},
		Namespace:       e.namespace,
		WatchNamespaces: []string{e.namespace},
		Pool:            tailscale.NewPool(tailscale.Options{Rate: 1000, Burst: 1000, ListMaxAge: listMaxAge, Metrics: tailscale.NewMetrics()}),
		Permits:         permits.New(shared.kube, e.namespace),
		AllowedHosts:    tailscale.Hosts{"127.0.0.1:*"},
	}))
	ctx, cancel := context.WithCancel(e.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if ended == nil {
			return
		}
		if err := <-ended; err != nil {
			e.Errorf("cannot run the manager: %v", err)
		}
		ended = nil
	}
}

// applyExample applies the Services of examples/publish in the case's namespace.
//
// The Services name the case's tailnet: other cases have some that allow all namespaces.
func (e *env) applyExample(services ...string) {
	e.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", "publish", "service.yaml"))
	e.must(err)
	var found []string
	for _, o := range e.parse(string(b)) {
		o.SetNamespace(e.namespace)
		annotations := map[string]string{meta.AnnotationTailnet: e.namespace}
		maps.Copy(annotations, o.GetAnnotations())
		o.SetAnnotations(annotations)
		e.create(o)
		found = append(found, o.GetName())
	}
	if diff := cmp.Diff(services, found); diff != "" {
		e.Fatalf("the example has other Services: -want, +got:\n%s", diff)
	}
}

// coreService reads a Service of the case.
func (e *env) coreService(name string) *corev1.Service {
	e.Helper()
	s := &corev1.Service{}
	e.must(e.get(name, s))
	return s
}

// patch patches an object as a user does.
func (e *env) patch(o client.Object, patch string) {
	e.Helper()
	e.must(shared.kube.Patch(e.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// asManifest returns a Service without what no manifest has.
func asManifest(s *corev1.Service) *corev1.Service {
	out := s.DeepCopy()
	out.ManagedFields, out.ResourceVersion, out.Status = nil, "", corev1.ServiceStatus{}
	return out
}

// composite reads an object of a composite kind.
func (e *env) composite(kind, name string) *unstructured.Unstructured {
	e.Helper()
	o, err := e.find(kind, name)
	e.must(err)
	return o
}

func (e *env) find(kind, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(kind))
	return o, shared.kube.Get(e.Context(), types.NamespacedName{Namespace: e.namespace, Name: name}, o)
}

// exists returns a check that an object of a composite kind exists, and lacks one that it does not.
func (e *env) exists(kind, name string) func() error {
	return func() error {
		_, err := e.find(kind, name)
		return err
	}
}

func (e *env) lacks(kind, name string) func() error {
	return func() error {
		if _, err := e.find(kind, name); !kerrors.IsNotFound(err) {
			return errors.Errorf("%s %q exists: %v", kind, name, err)
		}
		return nil
	}
}

// publishes returns a check that a TailscaleServices of a Service has a hostname, and a tag if that is not empty.
func (e *env) publishes(name, hostname, tag string) func() error {
	return func() error {
		o, err := e.find(gatewayv1alpha1.TailscaleServicesKind, name)
		if err != nil {
			return err
		}
		vip, _, _ := unstructured.NestedMap(o.Object, "spec", "vipService")
		tags, _, _ := unstructured.NestedStringSlice(vip, "tags")
		if vip["name"] != "svc:"+hostname || strings.Join(tags, ",") != tag || o.GetDeletionTimestamp() != nil {
			return errors.Errorf("vipService is %v", vip)
		}
		return nil
	}
}

// answers writes the status of a TailscaleServices whose service answers, as its function does.
func (e *env) answers(name, hostname string) {
	e.Helper()
	status, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-05-01T12:00:00Z"}},
		"vipService": map[string]any{"addresses": []string{"100.100.1.2"}, "dnsName": hostname + ".example.ts.net", "backendCount": 1, "healthyBackends": 1},
	}})
	e.must(err)
	e.must(shared.kube.Status().Patch(e.Context(), e.composite(gatewayv1alpha1.TailscaleServicesKind, name), client.RawPatch(types.MergePatchType, status)))
}

// hasIngress returns a check that a Service has the load balancer status for a hostname, or none.
func (e *env) hasIngress(name string, hostname ...string) func() error {
	return func() error {
		s := &corev1.Service{}
		if err := e.get(name, s); err != nil {
			return err
		}
		var want []corev1.LoadBalancerIngress
		for _, h := range hostname {
			want = []corev1.LoadBalancerIngress{{Hostname: h + ".example.ts.net"}, {IP: "100.100.1.2", IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)}}
		}
		if diff := cmp.Diff(want, s.Status.LoadBalancer.Ingress); diff != "" {
			return errors.Errorf("status: -want, +got:\n%s", diff)
		}
		return nil
	}
}

// hasServiceEvent returns a check that a Service has an event with a reason.
func (e *env) hasServiceEvent(name, reason string) func() error {
	return func() error {
		l := &corev1.EventList{}
		if err := shared.kube.List(e.Context(), l, client.InNamespace(e.namespace)); err != nil {
			return err
		}
		for _, v := range l.Items {
			if v.Reason == reason && v.InvolvedObject.Kind == "Service" && v.InvolvedObject.Name == name {
				return nil
			}
		}
		return errors.Errorf("there are %d other events", len(l.Items))
	}
}
