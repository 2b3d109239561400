// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

var keyWeb = ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}

// TestUnappliedTLSPolicies checks which BackendTLSPolicies are not applied, and that nothing is sent
// without the one that counts.
func TestUnappliedTLSPolicies(t *testing.T) {
	policyWith := func(validation string) string {
		return strings.Replace(tlsPolicy, "wellKnownCACertificates: System", validation, 1)
	}
	older := strings.NewReplacer("name: web, creation", "name: zzz, creation", "2026-01-02", "2026-01-01").Replace(tlsPolicy)
	cases := map[string]struct {
		reason  string
		objects []string

		// want has the name, the reasons and the beginning of the message of each policy.
		want [][4]string
		open bool
	}{
		"Fine": {reason: "A policy that is applied is not among them.", objects: []string{tlsPolicy}, open: true},
		"Secret": {
			reason: "A Secret is a reference of another kind.", objects: []string{policyWith(`caCertificateRefs: [{group: "", kind: Secret, name: ca}]`)},
			want: [][4]string{{"web", "NoValidCACertificate", "InvalidKind", "has a certificate that is not in a ConfigMap, but in a Secret; put it into a ConfigMap"}},
		},
		"Bundle": {
			reason: "So is a ClusterTrustBundle.", objects: []string{policyWith(`caCertificateRefs: [{group: certificates.k8s.io, kind: ClusterTrustBundle, name: ca}]`)},
			want: [][4]string{{"web", "NoValidCACertificate", "InvalidKind", "has a certificate that is not in a ConfigMap, but in a ClusterTrustBundle; put it into a ConfigMap"}},
		},
		"Unknown": {
			reason: "A ConfigMap that is not known yet cannot be used.", objects: []string{tlsPolicyOfPort},
			want: [][4]string{{"web-80", "NoValidCACertificate", "InvalidCACertificateRef", "names ConfigMap ca, which is not known yet"}},
		},
		"NoKey": {
			reason: "A ConfigMap without the key is an invalid reference.", objects: []string{tlsPolicyOfPort, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ca}\n"},
			want: [][4]string{{"web-80", "NoValidCACertificate", "InvalidCACertificateRef", "names ConfigMap ca, which has no key ca.crt"}},
		},
		"NoPEM": {
			reason: "So is one without a certificate.", objects: []string{tlsPolicyOfPort, strings.Replace(configMapCA, certificateInYAML, "none", 1)},
			want: [][4]string{{"web-80", "NoValidCACertificate", "InvalidCACertificateRef", "names ConfigMap ca, which cannot be used, under ca.crt: it has no certificate in PEM"}},
		},
		"TooLarge": {
			reason: "So is one with too many.", objects: []string{tlsPolicyOfPort, strings.Replace(configMapCA, certificateInYAML, strings.Repeat("x", 1<<19), 1)},
			want: [][4]string{{"web-80", "NoValidCACertificate", "InvalidCACertificateRef", "names ConfigMap ca, which cannot be used, under ca.crt: it has more than"}},
		},
		"WellKnown": {
			reason: "Authorities that Envoy does not know are no reference.", objects: []string{policyWith("wellKnownCACertificates: example.com/ours")},
			want: [][4]string{{"web", "Invalid", "", "has wellKnownCACertificates example.com/ours, which is not supported; use System"}},
		},
		"AltName": {
			reason: "A name of an unknown type is not ignored: Envoy would trust other backends.", objects: []string{policyWith("wellKnownCACertificates: System, subjectAltNames: [{type: Email, hostname: a}]")},
			want: [][4]string{{"web", "Invalid", "", "has a subjectAltName of type Email, which is not supported; use Hostname or URI"}},
		},
		"Conflict": {
			reason: "The younger of two policies is not applied.", objects: []string{tlsPolicy, older}, open: true,
			want: [][4]string{{"web", "Conflicted", "", "conflicts with BackendTLSPolicy zzz, which has the same target and takes precedence"}},
		},
		"Both": {
			reason: "Of two policies both may not be applied.", objects: []string{tlsPolicy, strings.Replace(older, "wellKnownCACertificates: System", "wellKnownCACertificates: example.com/ours", 1)},
			want: [][4]string{{"web", "Conflicted", "", "conflicts with BackendTLSPolicy zzz"}, {"zzz", "Invalid", "", "has wellKnownCACertificates example.com/ours"}},
		},
		"Port": {reason: "A policy of all ports does not conflict with one of the port.", objects: []string{tlsPolicy, tlsPolicyOfPort, configMapCA}, open: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(t, append([]string{routeToWeb, servicesWeb, serviceApp, sliceApp}, tc.objects...)...)
			target := s.Target(keyWeb)
			var got [][4]string
			for i, p := range target.TLSPolicies {
				message := p.Message
				if i < len(tc.want) && strings.HasPrefix(message, tc.want[i][3]) {
					message = tc.want[i][3]
				}
				got = append(got, [4]string{p.Name.Name, p.Accepted, p.ResolvedRefs, message})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nTLSPolicies: -want, +got:\n%s", tc.reason, diff)
			}
			if open := target.Problem == ""; open != tc.open || open != (len(target.Localities) > 0) {
				t.Errorf("\n%s\nwant problem: %t, got %q and %v", tc.reason, !tc.open, target.Problem, target.Localities)
			}
		})
	}
}

// TestUnappliedTLSPolicyRevised checks that another reason is announced, although nothing changes for
// Envoy.
func TestUnappliedTLSPolicyRevised(t *testing.T) {
	s := NewStore()
	apply(t, s, false, routeToWeb, servicesWeb, serviceApp, sliceApp, tlsPolicyOfPort)
	changed, end := s.Revised()
	defer end()
	revision := s.Snapshot().Revision
	apply(t, s, false, strings.Replace(configMapCA, certificateInYAML, "none", 1))
	select {
	case <-changed:
	default:
		t.Error("want a notification of the other reason")
	}
	if got := s.Snapshot().Revision; got != revision {
		t.Errorf("revision %d, want %d: Envoy Gateway need not translate again", got, revision)
	}
	apply(t, s, false, strings.Replace(configMapCA, certificateInYAML, "nothing", 1))
	select {
	case <-changed:
		t.Error("want no notification of the same reason")
	default:
	}
}
