// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// key is the key of each object of these tests.
var key = types.NamespacedName{Namespace: "default", Name: "set-0"}

// A request is what the API server sees of a request.
type request struct {
	Method, URL, ContentType, Accept, Body string
}

// newClient returns a client of an API server that gives one answer, and its last request.
func newClient(t *testing.T, code int, contentType, answer string) (*APIClient, *request) {
	t.Helper()
	got := &request{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("ReadAll(...): %v", err)
		}
		*got = request{Method: r.Method, URL: r.URL.String(), ContentType: r.Header.Get("Content-Type"), Accept: r.Header.Get("Accept"), Body: string(b)}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		if _, err := io.WriteString(w, answer); err != nil {
			t.Errorf("WriteString(...): %v", err)
		}
	}))
	t.Cleanup(s.Close)
	c, err := NewClient(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatalf("NewClient(...): %v", err)
	}
	return c, got
}

// encoded returns an object in Protobuf.
func encoded(t *testing.T, obj runtime.Object) string {
	t.Helper()
	s := newScheme()
	b, err := runtime.Encode(protobuf.NewSerializer(s, s), obj)
	if err != nil {
		t.Fatalf("Encode(...): %v", err)
	}
	return string(b)
}

// TestClientRequests checks requests: the agent has rights to these only.
func TestClientRequests(t *testing.T) {
	const (
		base       = "/apis/tailnet.gateway.tailscale.com/v1alpha1/namespaces/default/"
		inProtobuf = runtime.ContentTypeProtobuf + ", */*"
		inJSON     = runtime.ContentTypeJSON + ", */*"
	)
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set-0"},
		Data:       map[string][]byte{"key": []byte("value")},
	}
	secrets := &corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}, Items: []corev1.Secret{*secret}}
	bare := secret.DeepCopy()
	bare.TypeMeta = metav1.TypeMeta{}
	machine := `{"apiVersion":"tailnet.gateway.tailscale.com/v1alpha1","kind":"Machine","metadata":{"namespace":"default","name":"set-0"},"spec":{},"status":{"agent":{"podIP":"10.0.0.7"}}}`
	cases := map[string]struct {
		reason      string
		contentType string
		answer      string
		call        func(ctx context.Context, c Client) (any, error)
		want        any
		request     request
	}{
		"ListSecrets": {
			reason:      "Secrets must be selected by name, because the role has no others, and decoded from Protobuf.",
			contentType: runtime.ContentTypeProtobuf,
			answer:      encoded(t, secrets),
			call: func(ctx context.Context, c Client) (any, error) {
				l, err := c.List(ctx, Secrets, "default", metav1.ListOptions{FieldSelector: "metadata.name=set-0"})
				if err != nil {
					return nil, err
				}
				return l.(*corev1.SecretList).Items, nil
			},
			want:    []corev1.Secret{*bare},
			request: request{Method: http.MethodGet, URL: "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dset-0", Accept: inProtobuf},
		},
		"ListAttachments": {
			reason:      "Objects of a CRD have no Protobuf.",
			contentType: runtime.ContentTypeJSON,
			answer:      `{"apiVersion":"tailnet.gateway.tailscale.com/v1alpha1","kind":"ServiceAttachmentList","metadata":{},"items":[{"metadata":{"name":"web"},"spec":{}}]}`,
			call: func(ctx context.Context, c Client) (any, error) {
				l, err := c.List(ctx, ServiceAttachments, "default", metav1.ListOptions{LabelSelector: "a=b"})
				if err != nil {
					return nil, err
				}
				return l.(*v1alpha1.ServiceAttachmentList).Items[0].Name, nil
			},
			want:    "web",
			request: request{Method: http.MethodGet, URL: base + "serviceattachments?labelSelector=a%3Db", Accept: inJSON},
		},
		"Watch": {
			reason:      "Changes must be decoded, as those of objects that the scheme has.",
			contentType: runtime.ContentTypeJSON,
			answer:      `{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"set-0"},"data":{"a":"b"}}}`,
			call: func(ctx context.Context, c Client) (any, error) {
				w, err := c.Watch(ctx, ConfigMaps, "default", metav1.ListOptions{FieldSelector: "metadata.name=set-0", ResourceVersion: "7"})
				if err != nil {
					return nil, err
				}
				defer w.Stop()
				return <-w.ResultChan(), nil
			},
			want:    watch.Event{Type: watch.Modified, Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "set-0"}, Data: map[string]string{"a": "b"}}},
			request: request{Method: http.MethodGet, URL: "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dset-0&resourceVersion=7&watch=true", Accept: inProtobuf},
		},
		"RemoveSecretKeys": {
			reason:      "A key must be removed by a patch that leaves all others as they are.",
			contentType: runtime.ContentTypeProtobuf,
			answer:      encoded(t, secret),
			call: func(ctx context.Context, c Client) (any, error) {
				return nil, RemoveSecretKeys(ctx, c, key, []string{"web.crt"})
			},
			request: request{Method: http.MethodPatch, URL: "/api/v1/namespaces/default/secrets/set-0", ContentType: "application/merge-patch+json", Accept: inProtobuf, Body: `{"data":{"web.crt":null}}`},
		},
		"GetMachine": {
			reason:      "The status that the Machine has decides whether there is something to report.",
			contentType: runtime.ContentTypeJSON,
			answer:      machine,
			call: func(ctx context.Context, c Client) (any, error) {
				m, err := c.GetMachine(ctx, key)
				return m.Status.Agent, err
			},
			want:    &v1alpha1.MachineAgentStatus{PodIP: "10.0.0.7"},
			request: request{Method: http.MethodGet, URL: base + "machines/set-0", Accept: inJSON},
		},
		"ApplyMachineStatus": {
			reason:      "Only the status subresource must be applied, by the agent's field manager, and by force.",
			contentType: runtime.ContentTypeJSON,
			answer:      machine,
			call: func(ctx context.Context, c Client) (any, error) {
				return nil, c.ApplyMachineStatus(ctx, key, []byte(machine))
			},
			request: request{Method: http.MethodPatch, URL: base + "machines/set-0/status?fieldManager=tailscale-gateway-agent&force=true", ContentType: "application/apply-patch+yaml", Accept: inJSON, Body: machine},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, got := newClient(t, http.StatusOK, tc.contentType, tc.answer)
			result, err := tc.call(t.Context(), c)
			if err != nil {
				t.Fatalf("\n%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, result); diff != "" {
				t.Errorf("\n%s\nresult: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.request, *got); diff != "" {
				t.Errorf("\n%s\nrequest: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestClientErrors checks that an error of the API server keeps its reason.
func TestClientErrors(t *testing.T) {
	answer := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"no such object","code":404}`
	cases := map[string]struct {
		reason string
		call   func(ctx context.Context, c Client) error
	}{
		"List": {
			reason: "An informer decides by the reason whether to list again.",
			call: func(ctx context.Context, c Client) error {
				_, err := c.List(ctx, Secrets, "default", metav1.ListOptions{})
				return err
			},
		},
		"Watch": {
			reason: "The same is true for a watch.",
			call: func(ctx context.Context, c Client) error {
				_, err := c.Watch(ctx, Secrets, "default", metav1.ListOptions{})
				return err
			},
		},
		"PatchSecret": {
			reason: "A Secret may be deleted in the meantime.",
			call: func(ctx context.Context, c Client) error {
				return RemoveSecretKeys(ctx, c, key, []string{"web.crt"})
			},
		},
		"GetMachine": {
			reason: "An API server that does not find the Machine does answer.",
			call: func(ctx context.Context, c Client) error {
				_, err := c.GetMachine(ctx, key)
				return err
			},
		},
		"ApplyMachineStatus": {
			reason: "A Machine may be deleted before its status is applied.",
			call: func(ctx context.Context, c Client) error {
				return c.ApplyMachineStatus(ctx, key, []byte(`{}`))
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := newClient(t, http.StatusNotFound, runtime.ContentTypeJSON, answer)
			if err := tc.call(t.Context(), c); !kerrors.IsNotFound(err) {
				t.Errorf("\n%s\nwant an error that nothing was found, got: %v", tc.reason, err)
			}
		})
	}
}
