// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	tsclient "tailscale.com/client/tailscale/v2"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const sharedService = "svc:web"

var testTime = time.Date(2026, 1, 8, 12, 0, 0, 0, time.UTC)

var me = Self{Cluster: "a", Operator: "default/web"}

func wanted(change ...func(*Want)) Want {
	w := Want{Service: sharedService, Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}}
	for _, f := range change {
		f(&w)
	}
	return w
}

// recordOf returns the record of a cluster, written at a time.
func recordOf(t *testing.T, cluster string, at time.Time, change ...func(*Record)) tailscale.Service {
	t.Helper()
	r := wanted().record(Self{Cluster: cluster, Operator: "default/web"})
	r.Updated = at
	for _, f := range change {
		f(&r)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return tailscale.Service{Name: RecordName(r.Service, cluster), Addrs: []string{"100.96.9.9", "fd7a::9"}, Annotations: map[string]string{
		meta.AnnotationOwner:         cluster + "/default/web",
		meta.AnnotationSchemaVersion: meta.SchemaVersion,
		meta.AnnotationSharedService: r.Service,
		meta.AnnotationRecord:        string(b),
	}}
}

func nodes(ids ...string) func(*Record) { return func(r *Record) { r.Nodes = ids } }

// device returns a device that was last seen the given time ago; zero means that it is online.
func device(id string, ago time.Duration) tsclient.Device {
	d := tsclient.Device{NodeID: id, ConnectedToControl: ago == 0}
	if ago > 0 {
		d.LastSeen = &tsclient.Time{Time: testTime.Add(-ago)}
	}
	return d
}

func view(services []tailscale.Service, devices ...tsclient.Device) View {
	return View{Services: services, ServicesAt: testTime, Devices: devices, DevicesAt: testTime}
}

func TestRecordName(t *testing.T) {
	seen := map[string]bool{}
	for _, service := range []string{"svc:web", "svc:" + strings.Repeat("a", 63), "svc:" + strings.Repeat("a", 51) + "-b", "svc:web-0"} {
		for _, cluster := range []string{"a", "b", "1d7a0f6e-7d3f-4b1c-9a53-2d7a0c5f4e11"} {
			name := RecordName(service, cluster)
			if err := tailcfg.ServiceName(name).Validate(); err != nil || seen[name] || strings.Contains(name, "--") {
				t.Errorf("RecordName(%q, %q): bad or equal name %q: %v", service, cluster, name, err)
			}
			seen[name] = true
		}
	}
	if diff := cmp.Diff("svc:web-0d5f420486", RecordName("svc:web", "a")); diff != "" {
		t.Errorf("RecordName(...): names must never change: -want, +got:\n%s", diff)
	}
}

func TestMembers(t *testing.T) {
	long := testTime.Add(-30 * 24 * time.Hour)
	forged := recordOf(t, "b", testTime)
	forged.Name = "svc:other"
	newer := recordOf(t, "b", testTime)
	newer.Annotations[meta.AnnotationSchemaVersion] = "v2"
	garbled := recordOf(t, "b", testTime)
	garbled.Annotations[meta.AnnotationRecord] = "{"
	type want struct {
		alive, expired []string
		all            []string
		ignored        []string
	}
	cases := map[string]struct {
		reason string
		v      View
		want   want
	}{
		"Online": {
			reason: "A cluster is alive while one of its machines is online.",
			v:      view([]tailscale.Service{recordOf(t, "b", long, nodes("n1", "n2"))}, device("n1", time.Hour), device("n2", 0)),
			want:   want{all: []string{"b"}, alive: []string{"b"}},
		},
		"JustOffline": {
			reason: "A cluster is alive for 30 minutes after its last machine was online.",
			v:      view([]tailscale.Service{recordOf(t, "b", long, nodes("n1"))}, device("n1", 30*time.Minute)),
			want:   want{all: []string{"b"}, alive: []string{"b"}},
		},
		"Dead": {
			reason: "A cluster is dead after 30 minutes without a machine.",
			v:      view([]tailscale.Service{recordOf(t, "b", long, nodes("n1"))}, device("n1", 31*time.Minute)),
			want:   want{all: []string{"b"}},
		},
		"Expired": {
			reason: "A record may be deleted after seven days, also if its machines were deleted.",
			v:      view([]tailscale.Service{recordOf(t, "b", long, nodes("n1")), recordOf(t, "c", long, nodes("gone"))}, device("n1", ExpiresAfter+time.Minute)),
			want:   want{all: []string{"b", "c"}, expired: []string{"b", "c"}},
		},
		"JustWritten": {
			reason: "A cluster with a new record is alive before its machines are in the list of devices.",
			v:      view([]tailscale.Service{recordOf(t, "b", testTime.Add(-time.Minute), nodes("n1"))}),
			want:   want{all: []string{"b"}, alive: []string{"b"}},
		},
		"FromTheFuture": {
			reason: "A record time in the future is not a sign of life.",
			v:      view([]tailscale.Service{recordOf(t, "b", testTime.Add(time.Hour), nodes("n1"))}),
			want:   want{all: []string{"b"}, expired: []string{"b"}},
		},
		"NoMachines": {
			reason: "A cluster without machines in its record is alive until the record expires.",
			v:      view([]tailscale.Service{recordOf(t, "b", testTime.Add(-ExpiresAfter))}),
			want:   want{all: []string{"b"}, alive: []string{"b"}},
		},
		"NoMachinesExpired": {
			reason: "A record without machines may be deleted after seven days.",
			v:      view([]tailscale.Service{recordOf(t, "b", testTime.Add(-ExpiresAfter-time.Minute))}),
			want:   want{all: []string{"b"}, expired: []string{"b"}},
		},
		"NoMachinesFromTheFuture": {
			reason: "A record time in the future keeps no record without machines.",
			v:      view([]tailscale.Service{recordOf(t, "b", testTime.Add(time.Hour))}),
			want:   want{all: []string{"b"}, expired: []string{"b"}},
		},
		"Ignored": {
			reason: "Records that are not valid are reported and ignored.",
			v:      view([]tailscale.Service{forged, newer, garbled, recordOf(t, "c", testTime)}),
			want:   want{all: []string{"c"}, alive: []string{"c"}, ignored: []string{"svc:other", newer.Name, garbled.Name}},
		},
		"OtherService": {
			reason: "Records of other services are ignored.",
			v:      view([]tailscale.Service{recordOf(t, "b", testTime, func(r *Record) { r.Service = "svc:api" })}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{}
			members, ignored := tc.v.Members(sharedService)
			got.ignored = ignored
			for _, m := range members {
				got.all = append(got.all, m.Cluster)
				if m.Alive {
					got.alive = append(got.alive, m.Cluster)
				}
				if m.Expired {
					got.expired = append(got.expired, m.Cluster)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
				t.Errorf("\n%s\nMembers(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// settled returns a view in which the cluster is a member and nothing is left to do.
func settled(t *testing.T, change ...func(*tailscale.Service)) View {
	t.Helper()
	addrs := []string{"100.96.0.1", "fd7a::1"}
	w := wanted(func(w *Want) { w.Addresses = addrs })
	r, err := ownRecord(view(nil), me, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := shared(view([]tailscale.Service{r}), me, w, &tailscale.Service{Name: sharedService, Addrs: addrs})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		s.Annotations = maps.Clone(s.Annotations)
		f(&s)
	}
	return view([]tailscale.Service{r, s})
}

func TestAttach(t *testing.T) {
	name := RecordName(sharedService, "a")
	foreignRecord := recordOf(t, "a", testTime)
	delete(foreignRecord.Annotations, meta.AnnotationOwner)
	twin := recordOf(t, "a", testTime)
	twin.Annotations[meta.AnnotationOwner] = "a/default/other"
	type want struct {
		actions []Action
		reason  xpv2.ConditionReason
	}
	cases := map[string]struct {
		reason string
		v      View
		w      Want
		want   want
	}{
		"First": {
			reason: "The cluster's record comes first, then the shared service.",
			v:      view(nil), w: wanted(),
			want: want{actions: []Action{{Op: OpPutRecord, Name: name}, {Op: OpCreateShared, Name: sharedService}}},
		},
		"AtRest": {reason: "There is nothing to do if the service is up to date.", v: settled(t), w: wanted()},
		"LaterIsNoChange": {
			reason: "A new time alone causes no write.",
			v: func() View {
				v := settled(t)
				v.ServicesAt, v.DevicesAt = testTime.Add(time.Hour), testTime.Add(time.Hour)
				return v
			}(),
			w: wanted(),
		},
		"Gone": {
			reason: "A missing service is created with the address in the records.",
			v:      view(settled(t).Services[:1]), w: wanted(),
			want: want{actions: []Action{{Op: OpCreateShared, Name: sharedService, IPv4: "100.96.0.1"}}},
		},
		"RememberedByStatus": {
			reason: "Without an address in the records, the cluster's own status is used.",
			v:      view(nil), w: wanted(func(w *Want) { w.Addresses, w.OwnAddresses = []string{"100.96.0.7"}, []string{"fd7a::8", "100.96.0.8"} }),
			want: want{actions: []Action{{Op: OpPutRecord, Name: name, IPv4: "100.96.0.8"}, {Op: OpCreateShared, Name: sharedService, IPv4: "100.96.0.7"}}},
		},
		"Drift": {
			reason: "The owner reverts changes of other writers.",
			v:      settled(t, func(s *tailscale.Service) { s.Ports = []string{"tcp:80"} }), w: wanted(),
			want: want{actions: []Action{{Op: OpPutShared, Name: sharedService}}},
		},
		"CopyLost": {
			reason: "A corrupted copy is written again.",
			v:      settled(t, func(s *tailscale.Service) { delete(s.Annotations, meta.AnnotationRegistry) }), w: wanted(),
			want: want{actions: []Action{{Op: OpPutShared, Name: sharedService}}},
		},
		"LongDead": {
			reason: "The record of an expired cluster is deleted.",
			v: func() View {
				v := settled(t)
				v.Services = append(v.Services, recordOf(t, "b", testTime.Add(-8*24*time.Hour), nodes("gone")))
				return v
			}(),
			w:    wanted(),
			want: want{actions: []Action{{Op: OpDeleteExpired, Name: RecordName(sharedService, "b")}}},
		},
		"Foreign": {
			reason: "A service without our annotations is refused.",
			v:      view([]tailscale.Service{{Name: sharedService}}), w: wanted(),
			want: want{reason: meta.ReasonForeignService},
		},
		"Adopted": {
			reason: "A service without our annotations can be adopted.",
			v:      view([]tailscale.Service{{Name: sharedService, Addrs: []string{"100.96.0.1"}}}), w: wanted(func(w *Want) { w.Adopt = true }),
			want: want{actions: []Action{{Op: OpPutRecord, Name: name}, {Op: OpPutShared, Name: sharedService}}},
		},
		"ExclusiveOfOther": {
			reason: "A service that belongs to another cluster alone is refused.",
			v:      view([]tailscale.Service{{Name: sharedService, Annotations: map[string]string{meta.AnnotationOwner: "b/default/web"}}}), w: wanted(),
			want: want{reason: meta.ReasonForeignService},
		},
		"ExclusiveOfTwin": {
			reason: "A service that belongs to another object of this cluster alone is refused with a separate message.",
			v:      view([]tailscale.Service{{Name: sharedService, Annotations: map[string]string{meta.AnnotationOwner: me.Cluster + "/default/twin"}}}), w: wanted(),
			want: want{reason: meta.ReasonNameTaken},
		},
		"OwnExclusive": {
			reason: "A service that belonged to this cluster alone becomes shared.",
			v:      view([]tailscale.Service{{Name: sharedService, Annotations: map[string]string{meta.AnnotationOwner: me.Owner()}}}), w: wanted(),
			want: want{actions: []Action{{Op: OpPutRecord, Name: name}, {Op: OpPutShared, Name: sharedService}}},
		},
		"ExclusiveOfOperator": {
			reason: "A service that Tailscale's operator does not share is refused, even with adoption.",
			v: view([]tailscale.Service{{Name: sharedService, Annotations: map[string]string{
				meta.AnnotationOwnerReferences: `{"ownerRefs":[{"operatorID":"n1","resource":{}}]}`,
			}}}),
			w:    wanted(func(w *Want) { w.Adopt = true }),
			want: want{reason: meta.ReasonForeignService},
		},
		"NewerVersion": {
			reason: "A service written by a newer provider is not changed.",
			v:      settled(t, func(s *tailscale.Service) { s.Annotations[meta.AnnotationSchemaVersion] = "v2" }), w: wanted(),
			want: want{reason: meta.ReasonForeignService},
		},
		"RecordIsForeign": {
			reason: "A service of another writer does not become this cluster's record.",
			v:      view([]tailscale.Service{foreignRecord}), w: wanted(),
			want: want{reason: meta.ReasonForeignService},
		},
		"Twin": {
			reason: "Only one object of a cluster can share a service.",
			v:      view([]tailscale.Service{twin}), w: wanted(),
			want: want{reason: meta.ReasonNameTaken},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{}
			var err error
			got.actions, err = Attach(tc.v, me, tc.w)
			var r *RefusalError
			if errors.As(err, &r) {
				got.reason = r.Reason
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nAttach(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDetach(t *testing.T) {
	waited := testTime.Add(-Pause)
	alone := view(settled(t).Services[1:])
	viewWith := func(s ...tailscale.Service) View { return view(append(s, alone.Services...)) }
	owned := func(v string) View {
		s := alone.Services[0]
		s.Annotations = maps.Clone(s.Annotations)
		s.Annotations[meta.AnnotationOwnerReferences] = v
		return view([]tailscale.Service{s})
	}
	cases := map[string]struct {
		reason    string
		v         View
		waitStart time.Time
		retain    bool
		want      Op
	}{
		"Begin":      {reason: "The cluster's record is deleted first.", v: settled(t), waitStart: waited, want: OpDeleteRecord},
		"Wait":       {reason: "Then requests in transit must end.", v: alone, want: OpWait},
		"StillWait":  {reason: "The wait lasts for the whole pause.", v: alone, waitStart: waited.Add(time.Second), want: OpWait},
		"Last":       {reason: "The last cluster deletes the service.", v: alone, waitStart: waited, want: OpDeleteShared},
		"DeadStays":  {reason: "A dead member does not prevent the deletion.", v: viewWith(recordOf(t, "b", testTime.Add(-time.Hour), nodes("n1"))), waitStart: waited, want: OpDeleteShared},
		"OthersLive": {reason: "Live members prevent the deletion.", v: viewWith(recordOf(t, "b", testTime)), waitStart: waited},
		"Gone":       {reason: "A missing service is not deleted.", v: view(nil), waitStart: waited},
		"Foreign":    {reason: "A service of another writer is not deleted.", v: view([]tailscale.Service{{Name: sharedService}}), waitStart: waited},
		"CoOwned":    {reason: "A service that Tailscale's operator also owns is not deleted.", v: owned(`{"ownerRefs":[{"operatorID":"n1"},{"operatorID":"a"}]}`), waitStart: waited, want: OpRelease},
		"LastOwner":  {reason: "This cluster's own reference does not prevent the deletion.", v: owned(`{"ownerRefs":[{"operatorID":"a"}]}`), waitStart: waited, want: OpDeleteShared},

		"Retained":        {reason: "The service stays, with the annotations by which a cluster finds it again.", v: alone, waitStart: waited, retain: true},
		"RetainedRecord":  {reason: "The cluster's record does not stay: it would be a member for ever.", v: settled(t), waitStart: waited, retain: true, want: OpDeleteRecord},
		"RetainedCoOwned": {reason: "Tailscale's operator gets a service that it also owns.", v: owned(`{"ownerRefs":[{"operatorID":"n1"},{"operatorID":"a"}]}`), waitStart: waited, retain: true, want: OpRelease},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			actions, err := Detach(tc.v, me, Want{Service: sharedService, Retain: tc.retain}, tc.waitStart)
			if err != nil {
				t.Fatal(err)
			}
			var got Op
			if len(actions) > 0 {
				got = actions[0].Op
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nDetach(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConflict(t *testing.T) {
	differs := func(r *Record) { r.Ports, r.Tags = []string{"tcp:80"}, []string{"tag:b"} }
	v := settled(t)
	s := v.Service(sharedService)
	theirs := *s
	theirs.Annotations = maps.Clone(s.Annotations)
	theirs.Annotations[meta.AnnotationOwnerOperator] = "b/default/web"
	cases := map[string]struct {
		reason  string
		record  tailscale.Service
		current *tailscale.Service
		want    string
	}{
		"Agree": {reason: "Equal desired states are no conflict.", record: recordOf(t, "b", testTime), current: s},
		"Owner": {
			reason: "The owner's message lists the other clusters and the differences.", record: recordOf(t, "b", testTime, differs), current: s,
			want: "The service keeps what this cluster wants, but cluster b wants ports [tcp:80], not [tcp:443] and tags [tag:b], not [tag:k8s]; make all clusters want the same",
		},
		"Other": {
			reason: "The message of another cluster names the owner.", record: recordOf(t, "b", testTime, differs), current: &theirs,
			want: "The service keeps what cluster b wants: ports [tcp:80], not [tcp:443] and tags [tag:b], not [tag:k8s]; make both clusters want the same",
		},
		"Dead": {reason: "Dead clusters cause no conflict.", record: recordOf(t, "b", testTime.Add(-time.Hour), differs, nodes("n1")), current: s},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Conflict(view(append([]tailscale.Service{tc.record}, v.Services...)), me, wanted(), tc.current)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nConflict(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOwnerOf(t *testing.T) {
	members := func(alive ...string) []Member {
		var out []Member
		for _, c := range []string{"a", "b", "c"} {
			m := Member{Record: Record{Cluster: c, Operator: "default/web"}}
			for _, x := range alive {
				m.Alive = m.Alive || x == c
			}
			out = append(out, m)
		}
		return out
	}
	cases := map[string]struct {
		reason  string
		named   string
		members []Member
		want    string
	}{
		"Named":     {reason: "The owner in the annotation stays the owner.", named: "c/default/web", members: members("a", "b", "c"), want: "c/default/web"},
		"NamedDead": {reason: "The live cluster with the smallest ID replaces a dead owner.", named: "c/default/web", members: members("a", "b"), want: "a/default/web"},
		"NamedGone": {reason: "The live cluster with the smallest ID replaces an owner that detached.", named: "x/default/web", members: members("b", "c"), want: "b/default/web"},
		"AllDead":   {reason: "The owner stays while all clusters are dead.", named: "c/default/web", members: members(), want: "c/default/web"},
		"Slash":     {reason: "A cluster ID may have a slash.", named: "eu/1/default/web", members: members("b"), want: "b/default/web"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := OwnerOf(&tailscale.Service{Annotations: map[string]string{meta.AnnotationOwnerOperator: tc.named}}, tc.members)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nOwnerOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if got := ClusterOf("eu/1/default/web"); got != "eu/1" {
		t.Errorf("ClusterOf(...): %q", got)
	}
}
