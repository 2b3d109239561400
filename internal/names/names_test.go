// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestChildName(t *testing.T) {
	long := strings.Repeat("x", 63)
	cases := map[string]struct {
		reason string
		parts  []string
		want   string
	}{
		"Short": {
			reason: "Short, plain parts are joined unchanged",
			parts:  []string{"web-proxies", "ingress"},
			want:   "web-proxies-ingress",
		},
		"Longest": {
			reason: "52 characters fit",
			parts:  []string{long[:44], "ingress"},
			want:   long[:44] + "-ingress",
		},
		"TooLong": {
			reason: "53 characters do not fit",
			parts:  []string{long[:45], "ingress"},
			want:   long[:43] + "-5f88a81f",
		},
		"CutAtDash": {
			reason: "Dashes are not doubled",
			parts:  []string{long[:42] + "-" + long[:20], "ingress"},
			want:   long[:42] + "-6bac9036",
		},
		"Ambiguous": {
			reason: "A dash in a later part is ambiguous",
			parts:  []string{"web", "a-b"},
			want:   "web-a-b-7811fff2",
		},
		"OtherCharacters": {
			reason: "Host names of pods have no dots",
			parts:  []string{"web.shop", "ingress"},
			want:   "web-shop-ingress-d8aed327",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Child(tc.parts...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if len(got) > 52 {
				t.Errorf("%q has %d characters", got, len(got))
			}
			if errs := validation.IsDNS1123Label(got); len(errs) > 0 {
				t.Errorf("%q: %v", got, errs)
			}
		})
	}
}

func TestChildNamesDiffer(t *testing.T) {
	names := []string{"a", "a-b", "a-b-c", "b", "b-c", "c", "a.b", strings.Repeat("a", 60), strings.Repeat("a", 61), "1"}
	seen := map[string][2]string{}
	for _, a := range names {
		for _, b := range names {
			n := Child(a, b)
			if other, ok := seen[n]; ok {
				t.Errorf("%v and %v are both called %q", other, [2]string{a, b}, n)
			}
			seen[n] = [2]string{a, b}
		}
	}
}

// TestServiceOfNothing checks that an empty name, which the schema allows, does not panic.
func TestServiceOfNothing(t *testing.T) {
	if got := Service(""); got != "" {
		t.Errorf("Service(\"\"): want nothing, got %q", got)
	}
}

func TestServiceName(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		want   string
	}{
		"Letter": {reason: "A name that starts with a letter is kept", name: "web-ingress", want: "web-ingress"},
		"Digit":  {reason: "A Service's name starts with a letter", name: "1-ingress", want: "ts-1-ingress-c26da609"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Service(tc.name)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if errs := validation.IsDNS1035Label(got); len(errs) > 0 {
				t.Errorf("%q: %v", got, errs)
			}
		})
	}
}

func TestHostName(t *testing.T) {
	cases := map[string]struct {
		reason    string
		namespace string
		machine   string
		want      string
	}{
		"Short": {reason: "Short names are joined unchanged", namespace: "default", machine: "web-ingress-0", want: "default-web-ingress-0"},
		"Long": {
			reason:    "A DNS label has 63 characters",
			namespace: strings.Repeat("n", 63),
			machine:   "web-ingress-0",
			want:      strings.Repeat("n", 54) + "-416713de",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Host(tc.namespace, tc.machine)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if errs := validation.IsDNS1123Label(got); len(errs) > 0 {
				t.Errorf("%q: %v", got, errs)
			}
		})
	}
}

func TestTailscaleService(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   func(parts ...string) string
		parts  []string
		want   string
	}{
		"Plain": {
			reason: "Users type the name, so dashes do not add a hash",
			name:   TailscaleService,
			parts:  []string{"route-web", "team-a"},
			want:   "route-web-team-a",
		},
		"Long": {
			reason: "A DNS label has 63 characters",
			name:   TailscaleService,
			parts:  []string{strings.Repeat("r", 63), "shop"},
			want:   strings.Repeat("r", 54) + "-0f5a7bc6",
		},
		"Other": {
			reason: "A name with a hash is unique",
			name:   OtherTailscaleService,
			parts:  []string{"route-web", "shop", "grpcroute"},
			want:   "route-web-shop-grpcroute-ac6ff381",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.name(tc.parts...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if errs := validation.IsDNS1123Label(got); len(errs) > 0 {
				t.Errorf("%q: %v", got, errs)
			}
		})
	}
}

func TestUniqueHost(t *testing.T) {
	// A namespace and a machine with the same host name as another pair, and the set of another
	// cluster.
	owners := map[string]string{}
	for _, m := range [][3]string{
		{"team", "a-edge-ingress-0", "uid-1"},
		{"team-a", "edge-ingress-0", "uid-2"},
		{"team-a", "edge-ingress-0", "uid-3"},
		{"team-a", "edge-ingress-1", "uid-3"},
		{strings.Repeat("n", 63), "edge-ingress-0", "uid-4"},
		{strings.Repeat("n", 63), "edge-ingress-1", "uid-4"},
	} {
		host := Host(m[0], m[1])
		got := UniqueHost(host, m[2], m[1])
		if other, ok := owners[got]; ok {
			t.Errorf("%v and %s are both called %q", m, other, got)
		}
		owners[got] = strings.Join(m[:], ",")
		if !IsUniqueHost(got, host) || IsUniqueHost(got, "x"+host) || IsUniqueHost(got+"0", host) || IsUniqueHost(got[:len(got)-1]+"x", host) {
			t.Errorf("IsUniqueHost(%q, %q): want true, and false for others", got, host)
		}
		if second := UniqueHost(host, m[2], m[1]); second != got {
			t.Errorf("%v: want the same name each time, got %q and %q", m, got, second)
		}
		if errs := validation.IsDNS1123Label(got); len(errs) > 0 || len(host) < 50 && !strings.HasPrefix(got, host+"-") {
			t.Errorf("%v: want a label that begins with %q, got %q: %v", m, host, got, errs)
		}
	}
}

func TestEndpointService(t *testing.T) {
	long := strings.Repeat("x", 40)
	cases := map[string]struct {
		reason          string
		owner, endpoint string
		want            string
	}{
		"Short":      {reason: "The names are joined.", owner: "web", endpoint: "db", want: "web-db"},
		"Dash":       {reason: "Dashes do not add a hash; callers use the alternative if the name is in use.", owner: "web", endpoint: "a-b", want: "web-a-b"},
		"TooLong":    {reason: "A Service's name has 63 characters.", owner: long, endpoint: long, want: long + "-" + long[:13] + "-8173c2ef"},
		"Digit":      {reason: "A Service's name begins with a letter.", owner: "7up", endpoint: "db", want: "ts-7up-db-49295721"},
		"Ingress":    {reason: "The Service of the proxies has the plain name.", owner: "web", endpoint: "ingress", want: "web-ingress-"},
		"OfOthers":   {reason: "The Service of web-a's proxies would have the plain name.", owner: "web", endpoint: "a-egress", want: "web-a-egress-"},
		"LikeEgress": {reason: "Only the last part matters.", owner: "web", endpoint: "egress-a", want: "web-egress-a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, other := EndpointService(tc.owner, tc.endpoint), OtherEndpointService(tc.owner, tc.endpoint)
			if prefix, hashed := strings.CutSuffix(tc.want, "-"); hashed {
				if got != other || !strings.HasPrefix(got, prefix+"-") {
					t.Errorf("%s: want a hash, got %q", tc.reason, got)
				}
			} else if got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
			for _, n := range []string{got, other} {
				if errs := validation.IsDNS1035Label(n); len(errs) > 0 {
					t.Errorf("%q: %v", n, errs)
				}
			}
		})
	}
}
