// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// within makes the provider config of a cluster name a set.
func (p *provider) within(set string) *provider {
	connect := p.connect
	p.connect = func(ctx context.Context, mg resource.ModernManaged) (connection, error) {
		c, err := connect(ctx, mg)
		c.clusterSet = set
		return c, err
	}
	return p
}

// TestClusterSet shares a service between two clusters of a set, and refuses clusters outside of it.
func TestClusterSet(t *testing.T) {
	n := newTailnet(t)
	bySet := func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Sharing = v1alpha1.SharingClusterSet }
	a, b := n.provider("a").within("prod"), n.provider("b").within("prod")
	ma, mb := a.share(bySet), b.share(bySet)
	a.settle(ma)
	b.settle(mb)
	n.later(2 * time.Minute)
	a.settle(ma)
	if diff := cmp.Diff(ma.Status.AtProvider.Addresses, mb.Status.AtProvider.Addresses); diff != "" {
		t.Errorf("addresses of the clusters of a set: -a, +b:\n%s", diff)
	}
	var sets []string
	for _, c := range ma.Status.AtProvider.Consumers {
		sets = append(sets, c.ClusterID+"="+c.ClusterSet)
	}
	if diff := cmp.Diff([]string{"a=prod", "b=prod"}, sets); diff != "" {
		t.Errorf("consumers: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff("prod", n.find("svc:web").Annotations[meta.AnnotationClusterSet]); diff != "" {
		t.Errorf("annotation of the shared service: -want, +got:\n%s", diff)
	}

	strangers := map[string]struct {
		reason    string
		clusterID string
		set       string
		change    func(*v1alpha1.VIPService)
		want      xpv2.ConditionReason
		message   string
	}{
		"Exclusive": {
			reason: "A cluster without a set does not share by default.", clusterID: "c",
			change: func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Sharing = v1alpha1.SharingExclusive },
			want:   meta.ReasonSharedByOthers, message: `set clusterSet to "prod"`,
		},
		"Shared": {
			reason: "A cluster that shares with any other one is no member of the set.", clusterID: "d",
			change: func(*v1alpha1.VIPService) {},
			want:   meta.ReasonSharedByOthers, message: `set clusterSet to "prod"`,
		},
		"OtherSet": {
			reason: "A cluster of another set is a stranger.", clusterID: "e", set: "test", change: bySet,
			want: meta.ReasonSharedByOthers, message: `set clusterSet to "prod"`,
		},
		"OtherObject": {
			reason: "An object of another namespace is another service, although the name in the tailnet is the same.", clusterID: "f", set: "prod",
			change: func(v *v1alpha1.VIPService) { bySet(v); v.Namespace = "other" },
			want:   meta.ReasonSharedByOthers, message: "belongs to default/web",
		},
		"NoSet": {
			reason: "Without a set, the message says where to name it.", clusterID: "g", change: bySet,
			want: meta.ReasonNoClusterSet, message: "set clusterSet in the TailscaleTailnet",
		},
	}
	previous := n.State().Services
	for name, tc := range strangers {
		t.Run(name, func(t *testing.T) {
			p := n.provider(tc.clusterID).within(tc.set)
			mg := p.share(tc.change)
			_, err := p.reconcile(mg)
			if err == nil || !strings.Contains(err.Error(), tc.message) {
				t.Errorf("\n%s\nreconcile(...): want an error with %q, got %v", tc.reason, tc.message, err)
			}
			if diff := cmp.Diff(tc.want, mg.GetCondition(xpv2.TypeReady).Reason); diff != "" {
				t.Errorf("\n%s\nreconcile(...): reason of Ready: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if diff := cmp.Diff(previous, n.State().Services); diff != "" {
		t.Errorf("services after the strangers: -before, +after:\n%s", diff)
	}

	// The platform team takes a cluster out of the set: what it shares stays shared.
	b.within("")
	b.settle(mb)
	if got := mb.Status.AtProvider.Consumers; len(got) != 2 || got[1].ClusterSet != "prod" {
		t.Errorf("want cluster b to stay in the set that it has recorded, got %+v", got)
	}

	// A set gets another name: no cluster is refused meanwhile, and both say what differs.
	a.within("live")
	a.settle(ma)
	n.later(2 * time.Minute)
	b.within("prod").settle(mb)
	if c := mb.GetCondition(meta.TypeConflict); c.Status != "True" || !strings.Contains(c.Message, `cluster set "live", not cluster set "prod"`) {
		t.Errorf("want a conflict that names both sets, got %+v", c)
	}
	b.within("live").settle(mb)
	n.later(2 * time.Minute)
	a.settle(ma)
	if c := ma.GetCondition(meta.TypeConflict); c.Status != "False" {
		t.Errorf("want no conflict once both clusters are in the set, got %+v", c)
	}

	// The service exists until the last cluster of the set leaves it.
	a.leave(ma)
	if n.find("svc:web") == nil {
		t.Fatal("the service is gone though cluster b shares it")
	}
	b.leave(mb)
	if remaining := n.State().Services; len(remaining) != 0 {
		t.Errorf("want nothing left, got %+v", remaining)
	}
}
