// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/marks"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var testTime = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const week = 7 * 24 * time.Hour

func owned(name, owner string) tailscale.Service {
	return tailscale.Service{Name: name, Annotations: map[string]string{meta.AnnotationOwner: owner}}
}

func recordOf(t *testing.T, service, cluster, operator string, updated time.Time, nodes ...string) tailscale.Service {
	t.Helper()
	b, err := json.Marshal(registry.Record{Service: service, Cluster: cluster, Operator: operator, Updated: updated, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	return tailscale.Service{Name: registry.RecordName(service, cluster), Annotations: map[string]string{
		meta.AnnotationOwner:         cluster + "/" + operator,
		meta.AnnotationSchemaVersion: meta.SchemaVersion,
		meta.AnnotationSharedService: service,
		meta.AnnotationRecord:        string(b),
	}}
}

func sharedBy(name, owner string) tailscale.Service {
	return tailscale.Service{Name: name, Annotations: map[string]string{
		meta.AnnotationSchemaVersion: meta.SchemaVersion,
		meta.AnnotationOwnerOperator: owner,
		meta.AnnotationLastUpdated:   testTime.Add(-2 * week).Format(time.RFC3339),
	}}
}

func dev(id, key string, online bool, seen time.Duration, tags ...string) tailscale.Device {
	d := tailscale.Device{NodeID: id, NodeKey: key, Name: id + ".tail.ts.net", ConnectedToControl: online, Tags: tags, Created: tsclient.Time{Time: testTime.Add(-4 * week)}}
	if !online {
		d.LastSeen = &tsclient.Time{Time: testTime.Add(-seen)}
	}
	return d
}

func view(services []tailscale.Service, devices ...tailscale.Device) registry.View {
	return registry.View{Services: services, ServicesAt: testTime, Devices: devices, DevicesAt: testTime}
}

func key(id, description, kind string, old time.Duration) tailscale.Key {
	return tailscale.Key{ID: id, Description: description, KeyType: kind, Created: testTime.Add(-old)}
}

func state(name, id, nodeKey string) Secret {
	return Secret{Namespace: "ns", Name: name, Type: meta.SecretTypeState, Machine: name, NodeID: id, NodeKey: nodeKey, Domain: "tail.ts.net", Created: testTime.Add(-4 * week)}
}

// A line is what a case expects of one item.
type line struct {
	Kind       Kind
	Verdict    Verdict
	Name       string
	Owner      string
	KeepReason string
}

func lines(r Report) []line {
	var out []line
	for _, i := range r.Items {
		out = append(out, line{i.Kind, i.Verdict, i.Name, i.Owner, i.KeepReason})
	}
	return out
}

const (
	keptOther   = "it belongs to another cluster"
	keptUnknown = "its mark does not show whether this cluster made it"
	keptAge     = "its age is unknown; --older-than=0 includes it"
	keptYoung   = "it was used or made less than 7d ago"
	keptOnline  = "a device that serves it is online"
	keptProof   = "it proves, with the other items of its Machine that stay, which device is this cluster's"
	keptName    = "the Secret does not hold the device's key, and a pod may name any device; delete it in the admin console"
	keptID      = "a device of this cluster ID is online, and nothing in this cluster names the ID: it may be another cluster's"
)

func TestOf(t *testing.T) {
	own := registry.RecordName("svc:web", "me")
	cases := map[string]struct {
		reason string
		facts  Facts
		grace  time.Duration
		want   []line
	}{
		"Nothing": {reason: "A tailnet without marks has no items.", facts: Facts{View: view([]tailscale.Service{{Name: "svc:byhand"}}, dev("n1", "k", false, week, "tag:a"))}},
		"Services": {
			reason: "Services of living objects and without marks are none; those of other clusters are never this cluster's.",
			facts: Facts{
				View:   view([]tailscale.Service{owned("svc:gone", "me/ns/gone"), owned("svc:living", "me/ns/living"), owned("svc:theirs", "other/ns/gone"), owned("svc:theirs2", "other/ns/living"), {Name: "svc:byhand"}, owned("svc:broken", "me")}),
				Living: Living{VIPServices: Names{"ns/living": true}},
			},
			want: []line{
				{KindService, VerdictOrphan, "svc:gone", "VIPService ns/gone", ""},
				{KindService, VerdictOther, "svc:theirs", "VIPService ns/gone", keptOther},
				{KindService, VerdictOther, "svc:theirs2", "VIPService ns/living", keptOther},
			},
		},
		"Retained": {
			reason: "A service whose object retained it is listed, and stays.",
			facts: Facts{View: view([]tailscale.Service{{Name: "svc:kept", Annotations: map[string]string{
				meta.AnnotationOwner: "me/ns/gone", meta.AnnotationDeletionPolicy: meta.RetainPolicy,
			}}})},
			want: []line{{KindService, VerdictOrphan, "svc:kept", "VIPService ns/gone", "its deletionPolicy is Retain; delete it by the admin console or the API"}},
		},
		"PrefixOfAnID": {
			reason: "A cluster ID that begins with this one, or has it as its first segment, is another cluster's.",
			facts:  Facts{View: view([]tailscale.Service{owned("svc:a", "me2/ns/a"), owned("svc:b", "me/x/ns/b")})},
			want: []line{
				{KindService, VerdictOther, "svc:a", "VIPService ns/a", keptOther},
				{KindService, VerdictOther, "svc:b", "VIPService ns/b", keptOther},
			},
		},
		"UnknownAge": {
			reason: "A service has no age, so a grace keeps it.",
			facts:  Facts{View: view([]tailscale.Service{owned("svc:gone", "me/ns/gone")})},
			grace:  week,
			want:   []line{{KindService, VerdictOrphan, "svc:gone", "VIPService ns/gone", keptAge}},
		},
		"OnlineHost": {
			reason: "A service that an online device hosts stays, also without a grace.",
			facts:  Facts{View: view([]tailscale.Service{owned("svc:gone", "me/ns/gone")}), Online: map[string][]string{"svc:gone": {"n1"}}},
			want:   []line{{KindService, VerdictOrphan, "svc:gone", "VIPService ns/gone", keptOnline}},
		},
		"UnconfirmedID": {
			reason: "If only the user names the cluster ID, a sign of life keeps everything.",
			facts: Facts{
				Confirmed: false,
				View:      view([]tailscale.Service{owned("svc:a", "me/ns/a"), owned("svc:b", "me/ns/b")}), Online: map[string][]string{"svc:a": {"n1"}},
			},
			want: []line{
				{KindService, VerdictOrphan, "svc:a", "VIPService ns/a", keptOnline},
				{KindService, VerdictOrphan, "svc:b", "VIPService ns/b", keptID},
			},
		},
		"Records": {
			reason: "Only this cluster's record is an orphan; a shared service with records of others stays.",
			facts: Facts{View: view([]tailscale.Service{
				sharedBy("svc:web", "me/ns/web"), recordOf(t, "svc:web", "me", "ns/web", testTime.Add(-2*week)), recordOf(t, "svc:web", "other", "ns/web", testTime.Add(-2*week)),
			})},
			grace: week,
			want: []line{
				{KindRecord, VerdictOrphan, own, "VIPService ns/web", ""},
				{KindRecord, VerdictOther, registry.RecordName("svc:web", "other"), "VIPService ns/web", keptOther},
			},
		},
		"LivingRecord": {
			reason: "The record of a living object is none.",
			facts: Facts{
				View:   view([]tailscale.Service{sharedBy("svc:web", "me/ns/web"), recordOf(t, "svc:web", "me", "ns/web", testTime)}),
				Living: Living{VIPServices: Names{"ns/web": true}},
			},
		},
		"OnlineRecord": {
			reason: "A record whose machine is online stays.",
			facts:  Facts{Confirmed: true, View: view([]tailscale.Service{recordOf(t, "svc:web", "me", "ns/web", testTime.Add(-2*week), "n1")}, dev("n1", "k", true, 0, "tag:a"))},
			want:   []line{{KindRecord, VerdictOrphan, own, "VIPService ns/web", keptOnline}},
		},
		"ForgedRecord": {
			reason: "A record with another owner than its content says is nobody's.",
			facts: Facts{View: view([]tailscale.Service{func() tailscale.Service {
				s := recordOf(t, "svc:web", "other", "ns/web", testTime)
				s.Annotations[meta.AnnotationOwner] = "me/ns/web"
				return s
			}()})},
		},
		"LastShared": {
			reason: "A shared service without records belongs to its last owner.",
			facts:  Facts{View: view([]tailscale.Service{sharedBy("svc:a", "me/ns/a"), sharedBy("svc:b", "other/ns/b")})},
			grace:  week,
			want: []line{
				{KindShared, VerdictOrphan, "svc:a", "VIPService ns/a", ""},
				{KindShared, VerdictOther, "svc:b", "VIPService ns/b", keptOther},
			},
		},
		"Policy": {
			reason: "Entries of living fragments and of other clusters stay; marks have no age.",
			facts:  Facts{Policy: map[string]int{"me/ns/gone": 2, "me/ns/living": 1, "other/ns/gone": 3, "nonsense": 1}, Living: Living{Owners: Names{"me/ns/living": true}}},
			want: []line{
				{KindPolicy, VerdictOrphan, "me/ns/gone", "PolicyFragment ns/gone", ""},
				{KindPolicy, VerdictOther, "other/ns/gone", "PolicyFragment ns/gone", keptOther},
			},
		},
		"Keys": {
			reason: "A mark proves the object that a description names; other marks prove nothing.",
			facts: Facts{
				AuthKeys: []tailscale.Key{
					key("k1", marks.AuthKey("me", "ns", "my-key")+" ns-my-key", "auth", 2*week),
					key("k2", marks.AuthKey("me", "ns", "living")+" ns-living", "auth", 2*week),
					key("k3", marks.AuthKey("other", "ns", "my-key")+" ns-my-key", "auth", 2*week),
					key("k4", "laptop", "auth", 2*week),
					key("k5", marks.Machine("me", "ns", "m-0")+" ns-m-0", "auth", time.Hour),
					key("k6", marks.AuthKey("me", "ns", "held")+" ns-held", "auth", 2*week),
					key("k7", marks.AuthKey("me", "ns", "named")+" a text", "auth", 2*week),
				},
				Former: []types.NamespacedName{{Namespace: "ns", Name: "named"}},
				Living: Living{AuthKeys: Names{"ns/living": true}, IDs: Names{"k6": true}},
			},
			grace: week,
			want: []line{
				{KindAuthKey, VerdictOrphan, "k1", "AuthKey ns/my-key", ""},
				{KindAuthKey, VerdictUnknown, "k3", "", keptUnknown},
				{KindAuthKey, VerdictOrphan, "k5", "Machine ns/m-0", keptYoung},
				{KindAuthKey, VerdictOrphan, "k7", "AuthKey ns/named", ""},
			},
		},
		"Credentials": {
			reason: "The credential that the command uses stays.",
			facts: Facts{InUse: "c2", Credentials: []tailscale.Key{
				key("c1", marks.Credential("me", "ns", "ci")+" ns-ci", tailscale.KeyTypeOAuthClient, 2*week),
				key("c2", marks.Credential("me", "ns", "us")+" ns-us", tailscale.KeyTypeOAuthClient, 2*week),
				key("c3", marks.Credential("me", "ns", "fed")+" ns-fed", "federated", 2*week),
			}},
			grace: week,
			want: []line{
				{KindOAuthClient, VerdictOrphan, "c1", "OAuthClient ns/ci", ""},
				{KindOAuthClient, VerdictOrphan, "c2", "OAuthClient ns/us", "this command uses it"},
				{KindFederatedIdentity, VerdictOrphan, "c3", "FederatedIdentity ns/fed", ""},
			},
		},
		"Devices": {
			reason: "The private key in a state proves a device; an ID alone does not, because pods write it. The proof outlives its device.",
			facts: Facts{
				Domain: "tail.ts.net",
				View: view(nil, dev("n1", "k1", false, 2*week, "tag:a"), dev("n2", "k2", false, 2*week, "tag:a"), dev("n3", "k3", true, 0, "tag:a"),
					dev("n4", "k4", false, time.Hour, "tag:a"), dev("n5", "k5", false, 2*week), dev("n6", "k6", false, 2*week, "tag:a")),
				Secrets: []Secret{state("m1", "n1", "k1"), state("m2", "n2", "forged"), state("m3", "n3", "k3"), state("m4", "n4", "k4"), state("m5", "n5", "k5"), state("m6", "n6", "k6"), state("m7", "n7", "k7")},
				Living:  Living{Machines: Names{"ns/m6": true}},
			},
			grace: week,
			want: []line{
				{KindDevice, VerdictOrphan, "n1", "Machine ns/m1", ""},
				{KindDevice, VerdictOrphan, "n2", "Machine ns/m2", keptName},
				{KindDevice, VerdictOrphan, "n3", "Machine ns/m3", keptOnline},
				{KindDevice, VerdictOrphan, "n4", "Machine ns/m4", keptYoung},
				{KindDevice, VerdictOrphan, "n5", "Machine ns/m5", "it has no tags, as a proxy has"},
				{KindSecret, VerdictOrphan, "ns/m1", "Machine ns/m1", ""},
				{KindSecret, VerdictOrphan, "ns/m2", "Machine ns/m2", keptProof},
				{KindSecret, VerdictOrphan, "ns/m3", "Machine ns/m3", keptProof},
				{KindSecret, VerdictOrphan, "ns/m4", "Machine ns/m4", keptProof},
				{KindSecret, VerdictOrphan, "ns/m5", "Machine ns/m5", keptProof},
				{KindSecret, VerdictOrphan, "ns/m7", "Machine ns/m7", ""},
			},
		},
		"DeviceOfALivingMachine": {
			reason: "A state that holds the key of a living Machine's device deletes neither.",
			facts: Facts{
				Confirmed: true, Domain: "tail.ts.net", View: view(nil, dev("n1", "k1", false, 2*week, "tag:a")), Secrets: []Secret{state("m1", "n1", "k1")},
				Living: Living{IDs: Names{"n1": true}},
			},
			grace: week,
			want:  []line{{KindSecret, VerdictOrphan, "ns/m1", "Machine ns/m1", ""}},
		},
		"OtherTailnet": {
			reason: "A Secret stays while its device may be in a tailnet that was not asked, and so does the other Secret of its Machine.",
			facts: Facts{Secrets: []Secret{
				state("m1", "n1", "k1"),
				{Namespace: "ns", Name: "m1-config", Type: meta.SecretTypeConfig, Machine: "m1", Created: testTime.Add(-2 * week)},
				{Namespace: "ns", Name: "m2", Type: meta.SecretTypeState, Machine: "m2", Created: testTime.Add(-2 * week)},
			}},
			grace: week,
			want: []line{
				{KindSecret, VerdictOrphan, "ns/m1", "Machine ns/m1", "its device n1 may be in a tailnet that was not asked"},
				{KindSecret, VerdictOrphan, "ns/m1-config", "Machine ns/m1", keptProof},
				{KindSecret, VerdictOrphan, "ns/m2", "Machine ns/m2", ""},
			},
		},
		"Routes": {
			reason: "A generated route lives as long as its TailscaleGateway.",
			facts: Facts{
				Routes: []Route{{Namespace: "eg", Name: "r1", Gateway: "ns/gw", Created: testTime.Add(-2 * week)}, {Namespace: "eg", Name: "r2", Gateway: "ns/gone", Created: testTime.Add(-2 * week)}},
				Living: Living{Gateways: Names{"ns/gw": true}},
			},
			grace: week,
			want:  []line{{KindRoute, VerdictOrphan, "eg/r2", "TailscaleGateway ns/gone", ""}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.facts.Cluster = "me"
			got := Of(tc.facts, tc.grace, testTime)
			if diff := cmp.Diff(tc.want, lines(got)); diff != "" {
				t.Errorf("\n%s\nOf(...): -want, +got:\n%s", tc.reason, diff)
			}
			for _, i := range got.Deletable() {
				if i.Cluster != "me" || i.Verdict != VerdictOrphan {
					t.Errorf("\n%s\nDeletable(): has %v", tc.reason, i)
				}
			}
			for range 5 {
				repeat, _ := json.Marshal(Of(tc.facts, tc.grace, testTime))
				first, _ := json.Marshal(got)
				if string(repeat) != string(first) {
					t.Fatalf("Of(...) differs between calls:\n%s\n%s", first, repeat)
				}
			}
		})
	}
}

func TestSplit(t *testing.T) {
	v := view(nil, dev("n1", "k1", false, week, "tag:a"))
	config := Secret{Namespace: "ns", Name: "m1-config", Type: meta.SecretTypeConfig, Machine: "m1"}
	present, absent, other := state("m1", "n1", "k1"), state("m2", "n2", "k2"), state("m3", "n3", "k3")
	other.Domain = "other.ts.net"
	matching, rest := Split([]Secret{config, present, absent, other}, v, "tail.ts.net")
	if diff := cmp.Diff([]Secret{config, present, absent}, matching); diff != "" {
		t.Errorf("Split(...): Secrets of the tailnet: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]Secret{other}, rest); diff != "" {
		t.Errorf("Split(...): other Secrets: -want, +got:\n%s", diff)
	}
}
