// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// maxValue is the longest value of an annotation that a plan has, in bytes.
	maxValue = 4 << 10

	// maxListed is how many entries a list in a record may have.
	maxListed = 64
)

var testTime = time.Date(2026, 1, 8, 12, 0, 0, 0, time.UTC)

var me = registry.Self{Cluster: "a", Operator: "default/web"}

func wanted() registry.Want {
	return registry.Want{Service: modelService, Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}}
}

// A strict tailnet rejects annotations longer than most bytes.
type strict struct {
	most     int
	services map[string]tailscale.Service
	puts     int
}

func (s *strict) Service(_ context.Context, name string) (*tailscale.Service, error) {
	if v, ok := s.services[name]; ok {
		return &v, nil
	}
	return nil, &tailscale.Error{Class: tailscale.ClassNotFound}
}

func (s *strict) PutService(_ context.Context, v tailscale.Service) (*tailscale.Service, error) {
	s.puts++
	for k, a := range v.Annotations {
		if len(a) > s.most {
			return nil, &tailscale.Error{Class: tailscale.ClassInvalid, Status: 400, Message: "annotation " + k + " is too long"}
		}
	}
	if len(v.Addrs) < 2 {
		v.Addrs = []string{fmt.Sprintf("100.96.0.%d", len(s.services)+1), fmt.Sprintf("fd7a::%d", len(s.services)+1)}
	}
	s.services[v.Name] = v
	return &v, nil
}

func (s *strict) DeleteService(_ context.Context, name string) error {
	delete(s.services, name)
	return nil
}

func (s *strict) look(context.Context, tailscale.Staleness) (registry.View, error) {
	v := registry.View{ServicesAt: testTime, DevicesAt: testTime}
	for _, x := range s.services {
		v.Services = append(v.Services, x)
	}
	return v, nil
}

func large(w *registry.Want) {
	for i := range maxListed {
		w.Routes = append(w.Routes, fmt.Sprintf("HTTPRoute/%s/route-%d", strings.Repeat("n", 200), i))
		w.Nodes = append(w.Nodes, fmt.Sprintf("n%015dCNTRL", i))
	}
	w.Health = &registry.Health{Ready: 2, Total: 2, Score: 100}
}

func TestLimits(t *testing.T) {
	cases := map[string]struct {
		reason  string
		most    int
		compact bool
	}{
		"None":   {reason: "Annotations are small for any size of a cluster.", most: maxValue},
		"Strict": {reason: "Annotations are compact for a tailnet with a lower limit.", most: 600, compact: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := &strict{most: tc.most, services: map[string]tailscale.Service{}}
			want := wanted()
			large(&want)
			for range 2 {
				if _, err := AttachPass(t.Context(), api, api.look, me, want); err != nil {
					t.Fatalf("\n%s\nAttachPass(...): %v", tc.reason, err)
				}
			}
			puts := api.puts
			if _, err := AttachPass(t.Context(), api, api.look, me, want); err != nil || api.puts != puts {
				t.Errorf("\n%s\nwant no writes without changes: %d writes, %v", tc.reason, api.puts-puts, err)
			}
			v, _ := api.look(t.Context(), tailscale.Current)
			members, ignored := v.Members(modelService)
			if len(members) != 1 || len(ignored) != 0 || len(members[0].Nodes) == 0 {
				t.Fatalf("\n%s\nwant one member with nodes, got %v, %v", tc.reason, members, ignored)
			}
			if got := members[0].Health == nil; got != tc.compact {
				t.Errorf("\n%s\ncompact: want %t, got %t", tc.reason, tc.compact, got)
			}
		})
	}
}

func TestLostMarks(t *testing.T) {
	api := &strict{most: maxValue, services: map[string]tailscale.Service{}}
	for range 2 {
		if _, err := AttachPass(t.Context(), api, api.look, me, wanted()); err != nil {
			t.Fatal(err)
		}
	}
	original := map[string]tailscale.Service{}
	for n, s := range api.services {
		original[n] = s
		s.Annotations = nil // Like an edit in the admin console.
		api.services[n] = s
	}
	want := wanted()
	want.Seen = original[modelService].Addrs
	for range 2 {
		if _, err := AttachPass(t.Context(), api, api.look, me, want); err != nil {
			t.Fatalf("AttachPass(...): %v", err)
		}
	}
	for n, s := range api.services {
		if diff := cmp.Diff(original[n].Annotations, s.Annotations); diff != "" {
			t.Errorf("%s: annotations: -want, +got:\n%s", n, diff)
		}
	}

	// Another client's service of that name is not changed.
	api.services[modelService] = tailscale.Service{Name: modelService, Addrs: []string{"100.99.9.9", "fd7a::99"}, Ports: []string{"tcp:22"}}
	delete(api.services, registry.RecordName(modelService, me.Cluster))
	if _, err := AttachPass(t.Context(), api, api.look, me, want); err == nil {
		t.Error("AttachPass(...): want a refusal")
	} else if r, ok := registry.Refusal(err); !ok || r.Reason != meta.ReasonForeignService {
		t.Errorf("AttachPass(...): want ForeignService, got %v", err)
	}
}
