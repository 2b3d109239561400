// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/ipn"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// release has the provider answer that services have another host.
func release(l *loop, services ...string) {
	l.requests.handover = meta.Handover{StopTime: metav1.Time{Time: l.drains.current.start}, Services: services}
}

// TestHoldServices checks when a pod that is being stopped withdraws its services. Its grace period is
// 60 s, of which tailscaled needs 15 s to stop, and clients have 20 s to move.
func TestHoldServices(t *testing.T) {
	both, db := []string{"svc:db", "svc:web"}, []string{"svc:db"}
	type moment struct {
		reason  string
		elapsed time.Duration
		action  func(*loop)
		want    []string
		ended   bool
	}
	released := func(services ...string) func(*loop) { return func(l *loop) { release(l, services...) } }
	cases := map[string][]moment{
		"Single": {
			{reason: "Without an answer, nothing is known about other hosts.", elapsed: time.Second, want: both},
			{reason: "No other host has the services, and none will come.", elapsed: 2 * time.Second, action: released(both...)},
			{reason: "Clients have the whole time to move.", elapsed: 21 * time.Second},
			{reason: "The drain ends.", elapsed: 22 * time.Second, ended: true},
		},
		"OneByOne": {
			{reason: "A service that another host has is withdrawn.", elapsed: time.Second, action: released("svc:web"), want: db},
			{reason: "The other one waits.", elapsed: 10 * time.Second, want: db},
			{reason: "It has a host, too.", elapsed: 11 * time.Second, action: released(both...)},
			{reason: "The clients' time begins with the last withdrawal.", elapsed: 30 * time.Second},
			{reason: "The drain ends.", elapsed: 31 * time.Second, ended: true},
		},
		"NoAnswer": {
			{reason: "Unknown is not no.", elapsed: 24 * time.Second, want: both},
			{reason: "Clients need the rest of the grace period.", elapsed: 25 * time.Second},
			{reason: "They have the time that a drain takes.", elapsed: 44 * time.Second},
			{reason: "The drain ends while there is time for a clean stop.", elapsed: 45 * time.Second, ended: true},
		},
		"OldAnswer": {
			{reason: "An answer to an earlier stop means nothing.", elapsed: time.Second, want: both, action: func(l *loop) {
				release(l, both...)
				l.requests.handover.StopTime = metav1.Time{Time: l.drains.current.start.Add(-time.Second)}
			}},
		},
		"NotAccepted": {
			{reason: "A service that control does not accept any more has no clients.", elapsed: time.Second, want: db, action: func(l *loop) {
				l.setTailnet(localapi.State{Session: 1, Running: true, AcceptedKnown: true, Accepted: map[string]bool{"svc:db": true}})
			}},
		},
		"PartialReload": {
			{reason: "A service that another host has is withdrawn.", elapsed: time.Second, action: released("svc:web"), want: db},
			{reason: "The clients' time does not begin while a service waits.", elapsed: 2 * time.Second, want: db, action: func(l *loop) {
				l.drains.current.withdrawn(l.drains.current.start.Add(2 * time.Second))
			}},
			{reason: "The service still waits.", elapsed: 24 * time.Second, want: db},
		},
		"TailscaledGone": {
			{reason: "There is nothing to wait for without tailscaled.", elapsed: time.Second, ended: true, action: func(l *loop) { l.setTailnet(localapi.State{Session: 1}) }},
		},
	}
	for name, moments := range cases {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(1000, 0)
			l, _ := newLoop(t, t.TempDir())
			l.drains.grace = time.Minute
			l.setSecret(secret())
			l.advertised = both
			l.setTailnet(localapi.State{Session: 1, Running: true, AcceptedKnown: true, Accepted: map[string]bool{"svc:web": true, "svc:db": true}})
			l.startDrain(at)
			for _, m := range moments {
				if m.action != nil {
					m.action(l)
				}
				next := l.step(t.Context(), at.Add(m.elapsed))
				if diff := cmp.Diff(m.want, l.advertised, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("\n%s\nafter %s: advertised: -want, +got:\n%s", m.reason, m.elapsed, diff)
				}
				if l.drains.current.over() != m.ended {
					t.Errorf("\n%s\nafter %s: want over %t, got %t", m.reason, m.elapsed, m.ended, l.drains.current.over())
				}
				if !m.ended && !next.After(at.Add(m.elapsed)) {
					t.Errorf("after %s: nothing is due", m.elapsed)
				}
			}
		})
	}
}

// TestHandover checks the whole agent: a pod that is being stopped reports it, and keeps its service
// until the provider answers, or until no backend answers.
func TestHandover(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		end    func(t *testing.T, p *pod, start metav1.Time)
	}{
		"Answer": {
			reason: "The service must be withdrawn once another host has it.",
			end: func(t *testing.T, p *pod, start metav1.Time) {
				t.Helper()
				b, err := json.Marshal(meta.Handover{StopTime: start, Services: []string{"svc:web"}})
				if err != nil {
					t.Fatal(err)
				}
				s := secret()
				if err := p.kube.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
					t.Fatalf("Get(...): %v", err)
				}
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, meta.AnnotationHandover, string(b))
				if err := p.kube.Update(t.Context(), s); err != nil {
					t.Fatalf("Update(...): %v", err)
				}
			},
		},
		"BackendDies": {
			reason: "A service without a backend must be withdrawn.",
			end:    func(_ *testing.T, p *pod, _ metav1.Time) { p.healthy.Store(false) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, machine(), secret(), attachment())
			p.grace = time.Hour
			p.start()
			p.local.Set(ipn.Running, "svc:web")
			eventually(t, "The service must be advertised and accepted.", true, func() bool { return p.service().Advertised && p.service().Accepted })

			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				p.preStop()
			}()
			stoppingSince := func() *metav1.Time {
				m := &v1alpha1.Machine{}
				if err := p.kube.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "set-0"}, m); err != nil {
					t.Fatalf("Get(...): %v", err)
				}
				return m.Status.Agent.StoppingSince
			}
			eventually(t, "The provider must learn that the pod stops.", true, func() bool { return stoppingSince() != nil })
			if diff := cmp.Diff([2]string{configWeb, serveWeb}, p.files()); diff != "" {
				t.Errorf("\nThe service must stay advertised: -want, +got:\n%s", diff)
			}
			if !p.service().Advertised {
				t.Error("The report about the service must stay")
			}
			tc.end(t, p, *stoppingSince())
			eventually(t, tc.reason, [2]string{configNone, serveWeb}, p.files)
			<-stopped

			p.healthy.Store(true)
			p.local.Stop()
			p.local.Start()
			p.local.Set(ipn.Running)
			eventually(t, "A pod that serves again does not stop.", true, func() bool { return stoppingSince() == nil })
		})
	}
}

// TestFollow checks how long clients have to move while control still sends them to the pod that is being
// stopped. They have 20 s of a grace period of 2 min.
func TestFollow(t *testing.T) {
	web := netip.MustParseAddr(attachment().Spec.Addresses[0])
	type moment struct {
		reason  string
		elapsed time.Duration
		primary bool
		ended   bool
	}
	cases := map[string]struct {
		hosted  []string
		moments []moment
	}{
		"InTime": {
			hosted: []string{"svc:web"},
			moments: []moment{
				{reason: "Control has not moved the addresses.", elapsed: time.Second, primary: true},
				{reason: "Control moves them within half of the time.", elapsed: 9 * time.Second},
				{reason: "Clients have the other half.", elapsed: 19 * time.Second},
				{reason: "The drain does not take longer than before.", elapsed: 20 * time.Second, ended: true},
			},
		},
		"Late": {
			hosted: []string{"svc:web"},
			moments: []moment{
				{reason: "Control has not moved the addresses: they lead to this machine only.", elapsed: 20 * time.Second, primary: true},
				{reason: "Control moves them late.", elapsed: 25 * time.Second},
				{reason: "Clients need as much time as in any other drain.", elapsed: 34 * time.Second},
				{reason: "They have had it.", elapsed: 35 * time.Second, ended: true},
			},
		},
		"Never": {
			hosted: []string{"svc:web"},
			moments: []moment{
				{reason: "Control has not moved the addresses.", elapsed: 20 * time.Second, primary: true},
				{reason: "It may still do so.", elapsed: 30 * time.Second, primary: true},
				{reason: "A control that does not move them is not waited for.", elapsed: 40 * time.Second, primary: true, ended: true},
			},
		},
		"Single": {
			moments: []moment{
				{reason: "Without another host, control has nowhere to move the addresses.", elapsed: 19 * time.Second, primary: true},
				{reason: "So the drain does not wait for it.", elapsed: 20 * time.Second, primary: true, ended: true},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(1000, 0)
			l, _ := newLoop(t, t.TempDir())
			r := l.drains
			r.grace = 2 * time.Minute
			f := facts{
				tailnet:     localapi.State{Session: 1, Running: true, AcceptedKnown: true, Accepted: map[string]bool{"svc:web": true}},
				attachments: []v1alpha1.ServiceAttachment{*attachment()},
				advertised:  []string{"svc:web"},
			}
			d := r.begin(at, f)
			f.handover = meta.Handover{StopTime: metav1.Time{Time: d.start}, Services: []string{"svc:web"}, Hosted: tc.hosted}
			f.advertised = r.held(at, f)
			for _, m := range append([]moment{{primary: true}}, tc.moments...) {
				f.tailnet.Routes = localapi.Routes{Reported: true, Primary: map[netip.Addr]bool{web: m.primary}}
				next := r.step(t.Context(), at.Add(m.elapsed), f)
				if d.over() != m.ended {
					t.Errorf("\n%s\nafter %s: want over %t, got %t", m.reason, m.elapsed, m.ended, d.over())
				}
				if !m.ended && !next.After(at.Add(m.elapsed)) {
					t.Errorf("after %s: nothing is due", m.elapsed)
				}
			}
		})
	}
}
