// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// TestDeck checks that each fault hits each way often enough, whatever the random numbers are.
func TestDeck(t *testing.T) {
	c := &chaos{}
	cases := map[string]struct {
		reason string
		faults []string
		hits   int
		fails  bool
	}{
		"All":     {reason: "A run has all faults.", hits: 10},
		"Some":    {reason: "A run may have some of them.", faults: []string{"pod-killed", "api-429"}, hits: 3},
		"Unknown": {reason: "A wrong name is no run without faults.", faults: []string{"pod-kiled"}, hits: 1, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := newDeck(c.faults(), tc.faults, tc.hits)
			if (err != nil) != tc.fails {
				t.Fatalf("\n%s\nnewDeck(...): want an error: %t, got %v", tc.reason, tc.fails, err)
			}
			if tc.fails {
				return
			}
			got, want := map[pair]int{}, map[pair]int{}
			for _, cards := range d {
				for _, k := range cards {
					for _, w := range ways {
						if k.common || k.way == w {
							got[pair{k.name, w}]++
						}
					}
				}
			}
			for _, f := range c.faults() {
				if len(tc.faults) > 0 && !strings.Contains(strings.Join(tc.faults, " "), f.name) {
					continue
				}
				for _, w := range ways {
					want[pair{f.name, w}] = tc.hits
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("\n%s\nnewDeck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	a, b, other := random(7, "a"), random(7, "a"), random(7, "b")
	if x, y := a.Uint64(), b.Uint64(); x != y || x == other.Uint64() {
		t.Error("the numbers of an actor depend on its name and the seed alone")
	}
}

// TestLosses shows which fault is taken as the cause of a lost request.
func TestLosses(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(d) }
	kill := strike{Fault: "kill", Ways: []way{wayVIP}, Began: at(0), Ended: at(0), Recovered: at(20 * time.Second), Blind: map[way]time.Time{wayVIP: at(5 * time.Second)}}
	refusals := strike{Fault: "errors", Ways: ways, Began: at(2 * time.Second), Ended: at(3 * time.Second), Recovered: at(30 * time.Second)}
	cut := strike{Fault: "cut", Ways: []way{wayVIP}, Began: at(3 * time.Minute), Recovered: at(3*time.Minute + time.Second), Blind: map[way]time.Time{wayVIP: at(3*time.Minute + 10*time.Second)}}
	far := strike{Fault: "far", Ways: []way{wayEgress}, Cluster: "three", Began: at(0), Recovered: at(time.Minute)}
	cases := map[string]struct {
		reason string
		flow   flow
		began  time.Duration
		cause  string
		blind  bool
	}{
		"Unknown": {reason: "Nobody could know of the kill yet, so the later errors are not the cause.", flow: flow{way: wayVIP}, began: 3 * time.Second, cause: "kill", blind: true},
		"Known":   {reason: "Later, the fault that began last is the cause.", flow: flow{way: wayVIP}, began: 6 * time.Second, cause: "errors"},
		"Other":   {reason: "A fault of another way is no cause.", flow: flow{way: wayEnvoy}, began: 6 * time.Second, cause: "errors"},
		"Far":     {reason: "Egress of a cluster does not need the proxies of another one.", flow: flow{way: wayEgress, client: "two"}, began: time.Second, cause: "errors"},
		"Near":    {reason: "It needs those of the client's cluster.", flow: flow{way: wayEgress, client: "three"}, began: 40 * time.Second, cause: "far"},
		"Back":    {reason: "Control moves the addresses of a host that is back already.", flow: flow{way: wayVIP}, began: 3*time.Minute + 5*time.Second, cause: "cut", blind: true},
		"None":    {reason: "Without a fault, there is no cause.", flow: flow{way: wayVIP}, began: 2 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := flowResult{flow: tc.flow, report: load.Report{Failures: []load.Failure{{Began: at(tc.began), Ended: at(tc.began + 2*time.Second)}}}}
			got := losses(f, []strike{kill, refusals, far, cut})
			if len(got) != 1 || got[0].Fault != tc.cause || got[0].Blind != tc.blind {
				t.Errorf("\n%s\nlosses(...): got %+v, want the cause %q, blind: %t", tc.reason, got, tc.cause, tc.blind)
			}
		})
	}
}

// TestGoals shows what misses a goal.
func TestGoals(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lost := func(n int, delay time.Duration) []load.Failure {
		out := make([]load.Failure, n)
		for i := range out {
			out[i] = load.Failure{Began: at.Add(delay), Ended: at.Add(delay + time.Second), Error: "refused"}
		}
		return out
	}
	result := func(w way, requests int, gap time.Duration, fs ...load.Failure) flowResult {
		return flowResult{flow: flow{way: w, protocol: "http"}, report: load.Report{Requests: requests, Lost: len(fs), Failures: fs, Gap: gap.Seconds()}}
	}
	kill := strike{Fault: "kill", Ways: ways, Began: at, Recovered: at.Add(time.Minute), Blind: map[way]time.Time{wayVIP: at.Add(18 * time.Second), wayEnvoy: at.Add(18 * time.Second)}}
	cases := map[string]struct {
		reason string
		change func(c *chaos)
		missed []string
	}{
		"Reached": {reason: "One request in ten thousand may get lost.", change: func(c *chaos) {
			c.struck[0] = result(wayVIP, 20_000, 18*time.Second, append(lost(1, time.Second), lost(1, 20*time.Second)...)...)
		}},
		"Blind": {reason: "Those count, too, that get lost before anybody could know.", change: func(c *chaos) {
			c.struck[0] = result(wayVIP, 20_000, 0, lost(3, time.Second)...)
		}, missed: []string{"VIP: requests lost"}},
		"TooMany": {reason: "A third one is too many.", change: func(c *chaos) {
			c.struck[0] = result(wayVIP, 20_000, 0, lost(3, 20*time.Second)...)
		}, missed: []string{"VIP: requests lost"}},
		"Envoy": {reason: "Envoy must lose none, even while nobody can know.", change: func(c *chaos) {
			c.struck[1] = result(wayEnvoy, 20_000, 0, lost(1, time.Second)...)
		}, missed: []string{"Envoy: requests lost"}},
		"Gap": {reason: "A gap is as long as the detection at most.", change: func(c *chaos) {
			c.struck[2] = result(wayEgress, 20_000, 6*time.Second)
		}, missed: []string{"egress: longest gap"}},
		"Quiet": {reason: "A load without faults loses nothing.", change: func(c *chaos) {
			c.quiet = []flowResult{result(wayVIP, 100, 0, lost(1, 0)...)}
		}, missed: []string{"requests lost without faults"}},
		"Hits": {reason: "Each fault must hit each way.", change: func(c *chaos) { c.settings.Hits = 2 }, missed: []string{"hits of each fault"}},
		"Findings": {reason: "Each finding counts once: for records, for objects of others, or for ours.", change: func(c *chaos) {
			c.findings = []string{"foreign svc:a is missing", "record svc:b is missing", "service svc:c is left over"}
		}, missed: []string{"records lost", "objects of others", "other objects of ours"}},
		"Problem": {reason: "Everything must recover.", change: func(c *chaos) { c.strikes[0].Problem = "not ready" }, missed: []string{"faults without a recovery"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &chaos{
				deck: deck{"a": {{fault: fault{name: "kill", ways: ways, common: true}, way: wayVIP}}}, settings: chaosCmd{Hits: 1}, strikes: []strike{kill},
				struck: []flowResult{result(wayVIP, 20_000, 0), result(wayEnvoy, 20_000, 0), result(wayEgress, 20_000, 0)},
			}
			tc.change(c)
			out := &bytes.Buffer{}
			err := c.print(out)
			if (err != nil) != (len(tc.missed) > 0) {
				t.Errorf("\n%s\nprint(...): %v, want missed goals: %q", tc.reason, err, tc.missed)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				if strings.HasSuffix(strings.TrimSpace(line), "MISSED") {
					got = append(got, line)
				}
			}
			if len(got) != len(tc.missed) {
				t.Fatalf("\n%s\nprint(...): got %q, want %q", tc.reason, got, tc.missed)
			}
			for i, want := range tc.missed {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("\n%s\nprint(...): got %q, want %q", tc.reason, got[i], want)
				}
			}
		})
	}
}

// TestInventory shows what differs between two states of a tailnet.
func TestInventory(t *testing.T) {
	device := func(id, tag string) map[string]any {
		return map[string]any{"nodeId": id, "hostname": "h", "tags": []any{tag}, "lastSeen": id + tag}
	}
	record := func(updated string) tailnetsim.ServiceView {
		return tailnetsim.ServiceView{Name: "svc:a-1", Primary: updated, Annotations: map[string]string{meta.AnnotationRecord: `{"service":"svc:a","updated":"` + updated + `"}`}}
	}
	start := tailnetsim.StateView{
		Devices:  []map[string]any{device("n1", ownTag), device("n2", "tag:web")},
		Keys:     []map[string]any{{"id": "k1", "description": "of others"}},
		Services: []tailnetsim.ServiceView{record("t1"), {Name: "svc:foreign"}},
	}
	cases := map[string]struct {
		reason string
		end    tailnetsim.StateView
		want   []string
	}{
		"Same": {
			reason: "Times, hosts with the addresses and used keys may change.",
			end: tailnetsim.StateView{
				Devices: start.Devices, Services: []tailnetsim.ServiceView{record("t2"), {Name: "svc:foreign"}},
				Keys: append([]map[string]any{{"id": "k2", "description": "tsgw 1", "invalid": true}}, start.Keys...),
			},
		},
		"Different": {
			reason: "Anything else is missing, changed or left over.",
			end: tailnetsim.StateView{
				Devices:  []map[string]any{device("n2", "tag:web"), device("n3", ownTag)},
				Keys:     append([]map[string]any{{"id": "k2", "description": "tsgw 1"}}, start.Keys...),
				Services: []tailnetsim.ServiceView{{Name: "svc:foreign", Tags: []string{"tag:k8s"}}},
			},
			want: []string{"device n1 is missing", "foreign svc:foreign is ", "record svc:a-1 is missing", "service svc:a-1 is missing", "device n3 is left over", "key k2 is left over"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := inventory{}, inventory{}
			if err := a.addTailnet(start); err != nil {
				t.Fatal(err)
			}
			if err := b.addTailnet(tc.end); err != nil {
				t.Fatal(err)
			}
			got := a.differences(b)
			if len(got) != len(tc.want) {
				t.Fatalf("\n%s\ndifferences(...): got %q, want %q", tc.reason, got, tc.want)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("\n%s\ndifferences(...): got %q, want %q", tc.reason, got[i], want)
				}
			}
		})
	}
}

// TestSkew checks that a record keeps all but its time.
func TestSkew(t *testing.T) {
	got, err := skew(`{"a":[1],"updated":"2026-01-02T03:04:05Z"}`, -2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":[1],"updated":"2026-01-02T03:02:05Z"}`; got != want {
		t.Errorf("skew(...): got %s, want %s", got, want)
	}
}

// TestWaitsIn checks that the time for which programs waited is read from what Linux says about it.
func TestWaitsIn(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   time.Duration
		err    error
	}{
		"Linux": {reason: "The line some counts.", text: "some avg10=13.57 avg60=25.89 avg300=67.46 total=3233191125\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", want: 3233191125 * time.Microsecond},
		"Other": {reason: "Another line does not count.", text: "full avg10=0.00 total=1\n", err: cmpopts.AnyError},
		"Empty": {reason: "A number is missing.", text: "some avg10=0.00 total=\n", err: cmpopts.AnyError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := waitsIn(tc.text)
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("\n%s\nwaitsIn(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if got != tc.want {
				t.Errorf("\n%s\nwaitsIn(...): want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
