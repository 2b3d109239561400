// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

func TestCertificates(t *testing.T) {
	const (
		prefix       = "envoy-gateway-system/tailscale-gateway-extension"
		disconnected = "Envoy Gateway and Envoys do not connect to the extension, so changes of routes have no effect."
		job          = "kubectl create job certificates-1795867200 --from=cronjob/tailscale-gateway-extension-certificates --namespace=envoy-gateway-system"
		client       = charts.Extension + "-client"
	)
	// A leaf lives for 365 days, with the skew of clocks before its begin.
	issued := func(days int) map[string]Answer[Secret] { return secrets(t, at.AddDate(0, 0, -days)) }
	cases := map[string]struct {
		reason string
		change func(*Facts)
		want   []Finding
	}{
		"Fresh": {reason: "A certificate of which two thirds are left is right.", change: func(f *Facts) { f.Gateway.Secrets = issued(120) }},
		"Due":   {reason: "The CronJob that renews it may run within a day.", change: func(f *Facts) { f.Gateway.Secrets = issued(250) }},
		"Late": {
			reason: "A certificate that nobody renewed in time will end.",
			change: func(f *Facts) { f.Gateway.Secrets = issued(300) },
			want: []Finding{{
				Status: Warning, Summary: "Certificates of the extension were not renewed in time: Secret " + prefix + "-client ends 2027-02-01, " + prefix + "-envoy ends 2027-02-01, " + prefix + "-tls ends 2027-02-01",
				Impact: "When they end, changes of routes have no effect.", Fix: job,
			}},
		},
		"Early": {
			reason: "A certificate of another clock is refused.",
			change: func(f *Facts) { f.Gateway.Secrets[client] = secrets(t, at.Add(time.Hour))[client] },
			want: []Finding{{
				Status: Wrong, Summary: "Certificates of the extension are not valid yet: Secret " + prefix + "-client begins 2026-11-28T12:55:00Z", Impact: disconnected, Fix: job,
			}},
		},
		"OtherAuthority": {
			reason: "Envoy Gateway trusts the authority in its own Secret.",
			change: func(f *Facts) { f.Gateway.Secrets[secretAuthority] = issued(1)[secretAuthority] },
			want: []Finding{{
				Status:  Wrong,
				Summary: "Certificates of the extension are not by the authority that the other side trusts: Secret " + prefix + "-tls is not by an authority of Secret tailscale-gateway-extension-ca", Impact: disconnected, Fix: job,
			}},
		},
		"OtherClient": {
			reason: "The extension trusts the authority beside the client's certificate.",
			change: func(f *Facts) {
				s := f.Gateway.Secrets[client].Value
				s.Chain = issued(1)[client].Value.Chain
				f.Gateway.Secrets[client] = Answer[Secret]{Value: s}
			},
			want: []Finding{{
				Status:  Wrong,
				Summary: "Certificates of the extension are not by the authority that the other side trusts: Secret " + prefix + "-client is not by an authority of Secret tailscale-gateway-extension-client", Impact: disconnected, Fix: job,
			}},
		},
		"Unparsed": {
			reason: "A Secret without a certificate is as good as none.",
			change: func(f *Facts) {
				s := f.Gateway.Secrets[client].Value
				s.Chain = nil
				f.Gateway.Secrets[client] = Answer[Secret]{Value: s}
			},
			want: []Finding{{Status: Wrong, Summary: "Certificates of the extension cannot be read: Secret " + prefix + "-client", Impact: disconnected, Fix: job}},
		},
		"CertManager": {
			reason: "cert-manager says why it does not renew.",
			change: func(f *Facts) {
				s := issued(400)[client].Value
				s.CertManager = client
				f.Gateway.Secrets[client], f.Gateway.CronJob.Value = Answer[Secret]{Value: s}, false
			},
			want: []Finding{{
				Status: Wrong, Summary: "Certificates of the extension are expired: Secret " + prefix + "-client ended 2026-10-24", Impact: disconnected,
				Fix: "kubectl describe certificates.cert-manager.io tailscale-gateway-extension-client --namespace=envoy-gateway-system",
			}},
		},
		"Existing": {
			reason: "The chart does not renew what a user created.",
			change: func(f *Facts) {
				f.Gateway.Secrets[client], f.Gateway.CronJob.Value = issued(400)[client], false
			},
			want: []Finding{{
				Status: Wrong, Summary: "Certificates of the extension are expired: Secret " + prefix + "-client ended 2026-10-24", Impact: disconnected,
				Fix: "put a new certificate into the Secret: neither cert-manager nor a CronJob of the chart renews it",
			}},
		},
		"Unread": {
			reason: "Without the right to read Secrets nothing is known.",
			change: func(f *Facts) { f.Gateway.Secrets[client] = Answer[Secret]{Unknown: "forbidden"} },
			want:   []Finding{{Status: Unknown, Summary: "whether certificates of the extension are valid: forbidden"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := Facts{At: at, Gateway: GatewayFacts{CronJob: Answer[bool]{Value: true}, Secrets: issued(1)}}
			tc.change(&f)
			if diff := cmp.Diff(tc.want, certificates(f, defaults()).findings); diff != "" {
				t.Errorf("%s\ncertificates(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
