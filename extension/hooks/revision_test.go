// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
)

func TestAnswers(t *testing.T) {
	s := index.NewStore()
	err := s.Apply(index.Change{Object: &gwapiv1.TLSRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "db"},
		Spec: gwapiv1.TLSRouteSpec{
			CommonRouteSpec: gwapiv1.CommonRouteSpec{ParentRefs: []gwapiv1.ParentReference{{Name: "gw"}}},
			Rules: []gwapiv1.TLSRouteRule{{BackendRefs: []gwapiv1.BackendRef{{BackendObjectReference: gwapiv1.BackendObjectReference{
				Group: ptr.To[gwapiv1.Group](v1alpha1.Group), Kind: ptr.To[gwapiv1.Kind](v1alpha1.TailscaleServicesKind), Name: "db", Port: ptr.To[int32](5432),
			}}}}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	gw, other := types.NamespacedName{Namespace: "infra", Name: "gw"}, types.NamespacedName{Namespace: "infra", Name: "other"}
	digest := s.Snapshot().GatewayDigest(gw)
	if digest == "" {
		t.Fatal("the Gateway should have a digest")
	}
	revision := func(name, revision string) string {
		return `{"apiVersion":"gateway.tailscale.com/v1alpha1","kind":"TailscaleRevision","metadata":{"namespace":"infra","name":"` + name + `"},` +
			`"spec":{"targetRefs":[{"group":"gateway.networking.k8s.io","kind":"Gateway","name":"` + name + `"}],"revision":"` + revision + `","attempt":3}}`
	}
	cases := map[string]struct {
		reason    string
		resources []string
		want      []Answer
	}{
		"None":   {reason: "Without a TailscaleRevision there is no answer."},
		"Merged": {reason: "Each merged Gateway should have an answer.", resources: []string{revision("gw", digest), revision("other", "0123456789abcdef")}, want: []Answer{{Gateway: gw, Revision: digest, Digest: digest}, {Gateway: other, Revision: "0123456789abcdef"}}},
		"Others": {reason: "Other kinds and invalid objects should be ignored.", resources: []string{`{"kind":"RoutePolicy","spec":{}}`, `[]`, ``, revision("gw", "x")}, want: []Answer{{Gateway: gw, Revision: "x", Digest: digest}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := &pb.PostTranslateModifyRequest{PostTranslateContext: &pb.PostTranslateExtensionContext{}}
			for _, r := range tc.resources {
				req.PostTranslateContext.ExtensionResources = append(req.PostTranslateContext.ExtensionResources, &pb.ExtensionResource{UnstructuredBytes: []byte(r)})
			}
			var got []Answer
			server := NewServer(s, testSources, WithRecorder(RecorderFn(func(t Translation) { got = t.Answers })))
			if _, err := server.PostTranslateModify(t.Context(), req); err != nil {
				t.Fatalf("\n%s\nPostTranslateModify(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nPostTranslateModify(...): answers: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
