// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// KeyAuthorities has the authorities in Secrets of cert-manager and of the extension's chart.
const KeyAuthorities = "ca.crt"

// Secrets returns the Secrets of the extension with the keys that each must have.
func Secrets() map[string][]string {
	pair := []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, KeyAuthorities}
	return map[string][]string{
		secretAuthority:              {corev1.TLSCertKey},
		secretServer:                 pair,
		charts.Extension + "-client": pair,
		charts.Extension + "-envoy":  pair,
	}
}

// Secrets of the authority that Envoy Gateway trusts, and of the certificate that the extension presents.
const (
	secretAuthority = charts.Extension + "-ca"
	secretServer    = charts.Extension + "-tls"
)

// The chart's CronJob and cert-manager renew a certificate when a third of its life is left. One of which less than
// three tenths are left was not renewed in time: the CronJob runs once a day.
const (
	dueParts = 3
	dueOf    = 10
)

// A certificateFault is a kind of fault of certificates.
type certificateFault struct {
	status  Status
	summary string
	impact  string

	// secrets are the Secrets with the fault, each with what is wrong with it.
	secrets []string

	fix string
}

func certificates(f Facts, o Options) result {
	const (
		missing = iota
		unparsed
		expired
		early
		mismatched
		due
	)
	const disconnected = "Envoy Gateway and Envoys do not connect to the extension, so changes of routes have no effect."
	faults := []certificateFault{
		missing:    {status: Wrong, summary: "Secrets are missing: ", impact: "Pods of the extension wait for them."},
		unparsed:   {status: Wrong, summary: "Certificates of the extension cannot be read: Secret ", impact: disconnected},
		expired:    {status: Wrong, summary: "Certificates of the extension are expired: Secret ", impact: disconnected},
		early:      {status: Wrong, summary: "Certificates of the extension are not valid yet: Secret ", impact: disconnected},
		mismatched: {status: Wrong, summary: "Certificates of the extension are not by the authority that the other side trusts: Secret ", impact: disconnected},
		due:        {status: Warning, summary: "Certificates of the extension were not renewed in time: Secret ", impact: "When they end, changes of routes have no effect."},
	}
	add := func(n int, name, detail string) {
		fault := &faults[n]
		fault.secrets = append(fault.secrets, o.ExtensionNamespace+"/"+name+detail)
		if fault.fix == "" {
			fault.fix = o.certificates(f, name)
		}
	}
	out := result{summary: "certificates"}
	var unread []string
	for _, name := range sorted(Secrets()) {
		answer := f.Gateway.Secrets[name]
		s := answer.Value
		lacking := slices.DeleteFunc(slices.Clone(Secrets()[name]), func(key string) bool { return s.Keys[key] })
		switch {
		case answer.Unknown != "":
			unread = append(unread, name)
		case len(s.Keys) == 0:
			add(missing, name, "")
		case len(lacking) > 0:
			add(missing, name, " with "+strings.Join(lacking, " and "))
		case len(s.Chain) == 0:
			add(unparsed, name, "")
		case !f.At.Before(s.Chain[0].NotAfter):
			add(expired, name, " ended "+day(s.Chain[0].NotAfter))
		case f.At.Before(s.Chain[0].NotBefore):
			add(early, name, " begins "+s.Chain[0].NotBefore.UTC().Format(time.RFC3339))
		case untrusted(f, name) != "":
			add(mismatched, name, " is not by an authority of "+untrusted(f, name))
		case late(s.Chain[0], f.At):
			add(due, name, " ends "+day(s.Chain[0].NotAfter))
		}
	}
	for _, fault := range faults {
		if len(fault.secrets) > 0 {
			out.findings = append(out.findings, Finding{Status: fault.status, Summary: fault.summary + listed(fault.secrets), Impact: fault.impact, Fix: fault.fix})
		}
	}
	if len(unread) > 0 {
		out.findings = append(out.findings, Finding{Status: Unknown, Summary: "whether certificates of the extension are valid: " + f.Gateway.Secrets[unread[0]].Unknown})
	}
	return out
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02") }

// late reports whether a certificate should have been renewed.
func late(c *x509.Certificate, at time.Time) bool {
	return c.NotAfter.Sub(at) < c.NotAfter.Sub(c.NotBefore)/dueOf*dueParts
}

// untrusted returns the Secret whose authorities did not issue the certificate of a Secret, although a side that reads
// them there trusts no others. It is empty if there is none, or if the authorities are not known.
func untrusted(f Facts, name string) string {
	s := f.Gateway.Secrets[name].Value
	trusted := map[string][]*x509.Certificate{name: s.Authorities}
	if name == secretServer {
		trusted[secretAuthority] = f.Gateway.Secrets[secretAuthority].Value.Chain
	}
	if name == secretAuthority {
		return ""
	}
	intermediates := x509.NewCertPool()
	for _, c := range s.Chain[1:] {
		intermediates.AddCert(c)
	}
	for _, name := range sorted(trusted) {
		if len(trusted[name]) == 0 {
			continue
		}
		roots := x509.NewCertPool()
		for _, c := range trusted[name] {
			roots.AddCert(c)
		}
		_, err := s.Chain[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: intermediates, CurrentTime: f.At, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		})
		if err != nil {
			return "Secret " + name
		}
	}
	return ""
}

// certificates returns what creates or renews a Secret of the extension: a run of the chart's CronJob, cert-manager, the
// user who created it, or the chart.
func (o Options) certificates(f Facts, name string) string {
	s := f.Gateway.Secrets[name].Value
	switch {
	case s.CertManager != "":
		return o.kubectl(fmt.Sprintf("describe certificates.cert-manager.io %s --namespace=%s", Quote(s.CertManager), Quote(o.ExtensionNamespace)))
	case f.Gateway.CronJob.Value:
		cron := charts.Extension + "-certificates"
		return o.kubectl(fmt.Sprintf("create job certificates-%d --from=cronjob/%s --namespace=%s", f.At.Unix(), cron, Quote(o.ExtensionNamespace)))
	case len(s.Chain) > 0 && f.Gateway.CronJob.Unknown == "":
		return "put a new certificate into the Secret: neither cert-manager nor a CronJob of the chart renews it"
	}
	return o.ours(f, charts.Extension, "")
}
