// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// patience bounds every wait. A conflict after many failures is retried after a minute; everything
// else takes little time, unless the machine is overloaded.
const patience = 3 * time.Minute

// conflicts is how a write is retried when a controller writes first: for 25 seconds. On a slow
// machine the retries of client-go's default all meet a controller that retries, too.
var conflicts = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 16}

// policy of every case's tailnet. The credential may assign tag:k8s, tag:web and tag:db. Only the
// provider approves hosts of services.
const policy = `{
	// A comment of another owner.
	"tagOwners": {
		"tag:k8s-operator": [],
		"tag:k8s":          ["tag:k8s-operator"],
		"tag:web":          ["tag:k8s-operator"],
		"tag:db":           ["tag:k8s-operator"],
	},
	"grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"]}],
	// A service that no case has.
	"autoApprovers": {"services": {"svc:elsewhere": ["tag:db"]}},
}
`

const (
	// subject is the name of the object under test.
	subject = "subject"

	configName        = "default"
	credentialsSecret = "credentials"
	connectionSecret  = "connection"
)

var envs atomic.Int64

// An env is a namespace with a separate tailnet, for one case.
type env struct {
	*testing.T

	// namespace of all objects of the case.
	namespace string
	// clusterID in the provider config.
	clusterID string
	// sim is the tailnet. It injects faults and counts calls.
	sim *simtest.Running
	// tailnet is a client for the test's use, with all permissions. It gets no faults and is not
	// counted.
	tailnet *tsclient.Client

	created []client.Object
}

// newEnv returns an env with a provider config and its credentials. Its objects are deleted when
// the test ends.
func newEnv(t *testing.T, opts ...simtest.Option) *env {
	t.Helper()
	e := bareEnv(t, opts...)
	e.create(credentials(e, simtest.ClientSecret))
	return e
}

// bareEnv is like newEnv, without the credentials Secret.
func bareEnv(t *testing.T, opts ...simtest.Option) *env {
	t.Helper()
	n := envs.Add(1)
	e := &env{T: t, namespace: fmt.Sprintf("case-%d", n), clusterID: fmt.Sprintf("cluster-%d", n)}
	e.sim = simtest.StartAPI(t, append([]simtest.Option{func(o *tailnetsim.Options) { o.Policy = policy }}, opts...)...)
	u, err := url.Parse(e.sim.URL)
	e.must(err)
	e.tailnet = &tsclient.Client{BaseURL: u, APIKey: simtest.APIKey, HTTP: &http.Client{Timeout: time.Minute, Transport: testTransport{}}}
	e.must(shared.kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}))
	t.Cleanup(e.leave)
	e.apply(fmt.Sprintf(`
apiVersion: %s
kind: ProviderConfig
metadata: {name: %s, namespace: %s}
spec:
  apiURL: %s
  clusterID: %s
  credentials: {oauthSecretRef: {name: %s, namespace: %s}}
`, v1alpha1.SchemeGroupVersion, configName, e.namespace, e.sim.URL, e.clusterID, credentialsSecret, e.namespace))
	return e
}

// credentials returns the Secret that the provider config names.
func credentials(e *env, secret string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: credentialsSecret},
		StringData: map[string]string{"client_id": simtest.ClientID, "client_secret": secret},
	}
}

// testTransport marks requests of the test.
type testTransport struct{}

// RoundTrip implements http.RoundTripper.
func (testTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(tailnetsim.HeaderBystander, "true")
	return http.DefaultTransport.RoundTrip(r)
}

// leave deletes the objects of the case in reverse order, and waits until they are gone, because
// that needs the tailnet. The namespace stays, unless the case deletes it: emptying a namespace
// costs the API server more than a case.
func (e *env) leave() {
	if e.Failed() {
		e.dump()
	}
	e.must(e.sim.SetFaults())
	ctx := context.WithoutCancel(e.Context())
	for _, o := range slices.Backward(e.created) {
		if err := client.IgnoreNotFound(shared.kube.Delete(ctx, o)); err != nil {
			e.Errorf("cannot delete %T %s: %v", o, o.GetName(), err)
		}
	}
	err := poll(patience, func() error {
		for len(e.created) > 0 {
			o := e.created[0]
			err := shared.kube.Get(ctx, client.ObjectKeyFromObject(o), o)
			if !kerrors.IsNotFound(err) {
				return errors.Errorf("%T %s still exists, finalizers %v: %v", o, o.GetName(), o.GetFinalizers(), err)
			}
			e.created = e.created[1:]
		}
		return nil
	})
	if err != nil {
		e.Errorf("timed out: %v", err)
		e.dump()
	}
}

// dump logs the objects that a failed case left behind.
func (e *env) dump() {
	ctx := context.WithoutCancel(e.Context())
	kinds := []string{v1alpha1.MachineSetKind}
	for _, k := range kindCases() {
		kinds = append(kinds, k.Kind)
	}
	for _, k := range kinds {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(k + "List"))
		if err := shared.kube.List(ctx, l, client.InNamespace(e.namespace)); err != nil {
			e.Logf("cannot list %s: %v", k, err)
			continue
		}
		for _, o := range l.Items {
			o.SetManagedFields(nil)
			b, _ := yaml.Marshal(o.Object)
			e.Logf("%s:\n%s", k, b)
		}
	}
	evs := &corev1.EventList{}
	if err := shared.kube.List(ctx, evs, client.InNamespace(e.namespace)); err == nil {
		for _, v := range evs.Items {
			e.Logf("event %s %s %s, %d times: %s", v.InvolvedObject.Kind, v.InvolvedObject.Name, v.Reason, v.Count, v.Message)
		}
	}
	e.Logf("calls: %v", e.sim.Calls())
	e.Logf("faults left: %+v", e.sim.Faults())
	e.Logf("log:\n%s", strings.Join(shared.audit.lines(e.namespace, 40), "\n"))
}

// must fails the test on an error.
func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// create creates an object, which is deleted with the case.
func (e *env) create(o client.Object) {
	e.Helper()
	e.must(shared.kube.Create(e.Context(), o))
	e.created = append(e.created, o.DeepCopyObject().(client.Object))
}

// apply creates the objects of a manifest in order.
func (e *env) apply(manifest string) {
	e.Helper()
	for _, o := range e.parse(manifest) {
		e.create(o)
	}
}

// parse returns the objects of a manifest.
func (e *env) parse(manifest string) []*unstructured.Unstructured {
	e.Helper()
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(manifest, "\n---\n") {
		o := &unstructured.Unstructured{}
		e.must(yaml.Unmarshal([]byte(doc), &o.Object))
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// subject returns New's object with the harness's settings, without applying it.
func (e *env) subject(k anyCase) resource.ModernManaged {
	mg := k.New(e)
	mg.SetNamespace(e.namespace)
	mg.SetName(subject)
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ProviderConfigKind, Name: configName})
	if len(k.Connection) > 0 {
		mg.SetWriteConnectionSecretToReference(&xpv2.LocalSecretReference{Name: connectionSecret})
	}
	return mg
}

// change modifies the latest version of an object.
func (e *env) change(mg resource.ModernManaged, modify func()) {
	e.Helper()
	e.must(retry.RetryOnConflict(conflicts, func() error {
		if err := shared.kube.Get(e.Context(), client.ObjectKeyFromObject(mg), mg); err != nil {
			return err
		}
		modify()
		return shared.kube.Update(e.Context(), mg)
	}))
}

// refresh reads the object from the cache, unless the cache is older than the test's last write.
func (e *env) refresh(mg resource.ModernManaged) error {
	o := mg.DeepCopyObject().(resource.ModernManaged)
	if err := shared.cache.Get(e.Context(), client.ObjectKeyFromObject(mg), o); err != nil {
		return err
	}
	if o.GetGeneration() < mg.GetGeneration() || o.GetUID() != mg.GetUID() {
		return errors.New("the cache is behind")
	}
	// Into the same object: DeepCopyInto is not part of the interface.
	reflect.ValueOf(mg).Elem().Set(reflect.ValueOf(o).Elem())
	return nil
}

// eventually waits until ok returns nil.
func (e *env) eventually(description string, ok func() error) {
	e.Helper()
	if err := poll(patience, ok); err != nil {
		e.Fatalf("timed out waiting: %s: %v", description, err)
	}
}

// poll waits until ok returns nil, or returns its last error.
func poll(limit time.Duration, ok func() error) error {
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	end := time.After(limit)
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-end:
			return err
		}
	}
}

// ready returns an error unless mg is Ready and Synced.
func ready(mg resource.ModernManaged) error {
	for _, t := range []xpv2.ConditionType{xpv2.TypeSynced, xpv2.TypeReady} {
		if c := mg.GetCondition(t); c.Status != corev1.ConditionTrue {
			return errors.Errorf("%s is %s, reason %s: %s", t, c.Status, c.Reason, c.Message)
		}
	}
	return nil
}

// hasMessage returns an error unless a False condition contains part.
func hasMessage(mg resource.ModernManaged, part string) error {
	cs := conditionsOf(mg)
	for _, c := range cs {
		if c.Status == corev1.ConditionFalse && strings.Contains(c.Message, part) {
			return nil
		}
	}
	return errors.Errorf("no condition contains %q: %v", part, cs)
}

func conditionsOf(mg resource.ModernManaged) []xpv2.Condition {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(mg)
	if err != nil {
		return nil
	}
	raw, _, _ := unstructured.NestedSlice(u, "status", "conditions")
	var out []xpv2.Condition
	for _, r := range raw {
		m, _ := r.(map[string]any)
		t, _ := m["type"].(string)
		out = append(out, mg.GetCondition(xpv2.ConditionType(t)))
	}
	return out
}

// writes returns the calls other than GET and token requests.
func (e *env) writes() []string {
	var out []string
	for c, n := range e.sim.Calls() {
		if !strings.HasPrefix(c, "GET ") && !strings.Contains(c, "/oauth/") && !strings.HasSuffix(c, "/validate") {
			out = append(out, fmt.Sprintf("%s: %d", c, n))
		}
	}
	slices.Sort(out)
	return out
}
