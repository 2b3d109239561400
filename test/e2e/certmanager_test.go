// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	// certifiedExample serves TLS with a certificate from cert-manager.
	certifiedExample   = "examples/tls-cert-manager.yaml"
	certified          = "certified"
	certifiedSecret    = "certified-tls"
	certifiedAuthority = "certified-authority"

	// journal has the role of the ledger in another test. cert-manager issues its client
	// certificate as the comment of ledgerExample describes.
	journal       = "journal"
	journalClient = "journal-client"
	archivist     = "archivist"

	// journalClients issues certificates for clients of the journal.
	journalClients = `apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: journal-clients, namespace: ` + namespace + `}
spec: {ca: {secretName: ` + certifiedAuthority + `}}
`

	// startsIssuing makes cert-manager issue a certificate again, as `cmctl renew` does.
	startsIssuing = `[{"op":"add","path":"/status/conditions/-","value":{"type":"Issuing","status":"True","reason":"ManuallyTriggered","message":"renewed by a test"}}]`

	// renewals is the number of renewals under load.
	renewals = 3
)

// issuesCertificates checks the certificates of a real cert-manager in each place that uses one.
func issuesCertificates(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Answers", answersCertified},
		{"Renews", renewsCertified},
		{"SecuresGeneratedHosts", securesGeneratedHosts},
		{"IdentifiesGateway", identifiesGateway},
		{"IssuesExtensionCertificates", issuesExtensionCertificates},
		{"LeavesNothing", leavesNothingCertified},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

func certifiedURL(t *testing.T) string {
	t.Helper()
	return strings.Replace(tailnetOne.url(t, certified), "http:", "https:", 1)
}

// answersCertified checks the response to clients that trust only the authority.
func answersCertified(t *testing.T) {
	apply(t, strings.ReplaceAll(readFile(t, certifiedExample), "tail1234.ts.net", fromLab(t, "TAILNET_DOMAIN")))
	u := certifiedURL(t)
	isReady(t, certified)
	number := serialOf(t, certifiedSecret)
	authority := rootsOf(t, certifiedAuthority)
	took := eventually(t, patience, "answer of "+u, func() string {
		body, n, err := trustedBy(t, authority, u)
		if err != nil {
			return err.Error()
		}
		if !strings.HasPrefix(body, "web-") || n != number {
			return fmt.Sprintf("the response is %q with certificate %s, not %s", body, n, number)
		}
		return ""
	})
	t.Logf("response with certificate %s after %s", number, took.Round(100*time.Millisecond))
	eventually(t, patience, "refusal by a client that does not trust the authority", func() string {
		if out, err := labOutput(t, "tailnet-curl", "--timeout=5s", u); err == nil || !strings.Contains(out, "unknown authority") {
			return out
		}
		return ""
	})
}

// renewsCertified loses no request while the certificate is renewed.
func renewsCertified(t *testing.T) {
	u := certifiedURL(t)
	authority := rootsOf(t, certifiedAuthority)
	r := underLoad(t, func() {
		for range renewals {
			number := renewed(t, certified, certifiedSecret)
			took := eventually(t, patience, "certificate "+number, func() string {
				if _, n, err := trustedBy(t, authority, u); err != nil || n != number {
					return fmt.Sprintf("the certificate is %s, %v", n, err)
				}
				return ""
			})
			t.Logf("certificate %s is in use after %s", number, took.Round(100*time.Millisecond))
		}
	}, "--rate=20", "--new-connections", "--for="+(renewals*2*patience).String(), "--cacert="+authority, u)
	if r.Lost > 0 {
		t.Error(r)
	}
}

// securesGeneratedHosts requests the generated host of a Service with a certificate of cert-manager.
func securesGeneratedHosts(t *testing.T) {
	const example, secured, host = "examples/gateway-certificates.yaml", "secured", "web.quickstart.gateway.local"
	apply(t, readFile(t, example))
	isReady(t, secured)
	number := serialOf(t, "secured-tls")
	u := strings.Replace(tailnetOne.url(t, secured), "http:", "https:", 1)
	eventually(t, patience, "answer of "+host, func() string {
		body, n, err := trustedBy(t, rootsOf(t, certifiedAuthority), u, "--host="+host)
		if err != nil {
			return err.Error()
		}
		if !strings.HasPrefix(body, "web-") || n != number {
			return fmt.Sprintf("the response is %q with certificate %s, not %s", body, n, number)
		}
		return ""
	})
	kubectl(t, "delete", "-f", example, "--timeout=3m")
	kubectl(t, "delete", "secret", "secured-tls", "-n", namespace)
	goneFrom(t, namespace, secured)
}

// identifiesGateway checks that Envoy presents a certificate of cert-manager to a service of the
// tailnet, and then the renewed one.
func identifiesGateway(t *testing.T) {
	serverCert, serverKey := certificate(t, "journal.example.com")
	tailnetOne.serveAt(t, archivist, "svc:"+journal, "443", demandsCertificate(t, serverCert, serverKey, rootsOf(t, certifiedAuthority)))
	apply(t, asJournal(fmt.Sprintf(ledgerEgress, ledger+"."+fromLab(t, "TAILNET_DOMAIN"))))
	kubectl(t, "create", "configmap", "journal-ca", "-n", namespace, "--from-file=ca.crt="+serverCert)
	apply(t, journalClients)
	apply(t, asJournal(documented(t)))
	apply(t, asJournal(ledgerByEgress(t)))
	isReady(t, journalClient)

	u := "http://" + addressOfGateway(t, "web") + "/" + journal
	knows := func(number string) {
		t.Helper()
		took := eventually(t, patience, "client's certificate "+number, func() string {
			// A refusal is an error, too.
			if response, _ := labCurl(t, "cluster", u, "web.example.com"); response != "client gateway by certificate "+number {
				return "the response is " + response
			}
			return ""
		})
		t.Logf("the journal sees certificate %s after %s", number, took.Round(100*time.Millisecond))
	}
	knows(serialOf(t, journalClient))
	r := underLoad(t, func() {
		for range renewals {
			knows(renewed(t, journalClient, journalClient))
		}
	}, "--from=cluster", "--host=web.example.com", "--rate=10", "--for="+(renewals*2*patience).String(), u)
	if r.Lost > 0 {
		t.Error(r)
	}

	tailnetOne.withdraw(t, archivist, "svc:"+journal)
	remove(t, asJournal(ledgerByEgress(t)))
	remove(t, asJournal(documented(t)))
	remove(t, journalClients)
	kubectl(t, "delete", "secret,configmap", journalClient, "journal-ca", "-n", namespace, "--ignore-not-found")
	leavesNothing(t, journal)
}

// asJournal renames the objects of the ledger example.
func asJournal(manifest string) string {
	return strings.NewReplacer("ledger", journal, ledgerClient, journalClient).Replace(manifest)
}

// documented returns the Certificate in the comment of ledgerExample.
func documented(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(readFile(t, ledgerExample)) {
		if y, ok := strings.CutPrefix(line, "#   "); ok {
			out.WriteString(y)
		}
	}
	return out.String()
}

// issuesExtensionCertificates checks that the Job of the extension's chart creates certificates, and
// that cert-manager takes its Secrets over and issues the chart's Certificates.
func issuesExtensionCertificates(t *testing.T) {
	const release = "tailscale-gateway-extension"
	render := func(mode string) string {
		out, err := tryRun(t, "", "helm", "template", release, "package/charts/"+release, "--namespace="+namespace,
			"--kube-version=1.35.4", "--set=image.tag="+*version, "--set=certificates.mode="+mode, "--show-only=templates/certificates.yaml")
		if err != nil {
			t.Fatalf("cannot render the chart: %v\n%s", err, out)
		}
		return out
	}
	job := render("Job")
	apply(t, job)
	kubectl(t, "wait", "jobs", "--selector=app.kubernetes.io/instance="+release, "-n", namespace, "--for=condition=Complete", "--timeout=2m")
	roots := x509.NewCertPool()
	// Envoys have this authority until they receive another configuration.
	roots.AddCert(certificateIn(t, release+"-ca", "tls.crt"))
	remove(t, job)

	manifest := render("CertManager")
	apply(t, manifest)
	isReady(t, release+"-tls")
	renewed(t, release+"-tls", release+"-tls")
	for _, host := range []string{release + "." + namespace + ".svc", release + "-eds." + namespace + ".svc"} {
		if _, err := certificateIn(t, release+"-tls", "tls.crt").Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("the extension has no certificate for %s: %v", host, err)
		}
	}
	// The extension's servers verify these two clients by the authority.
	for _, client := range []string{release + "-client", release + "-envoy"} {
		isReady(t, client)
		clients := x509.NewCertPool()
		clients.AddCert(certificateIn(t, client, "ca.crt"))
		if _, err := certificateIn(t, client, "tls.crt").Verify(x509.VerifyOptions{Roots: clients, DNSName: client, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("the extension would refuse %s: %v", client, err)
		}
	}
	remove(t, manifest)
	kubectl(t, "delete", "secret", release+"-tls", release+"-ca", release+"-client", release+"-envoy", "-n", namespace)
}

func leavesNothingCertified(t *testing.T) {
	kubectl(t, "delete", "-f", certifiedExample, "--timeout=3m")
	kubectl(t, "delete", "secret", certifiedSecret, certifiedAuthority, "-n", namespace)
	goneFrom(t, namespace, certified)
	eventually(t, patience, "nothing left of cert-manager", func() string {
		return kubectl(t, "get", "issuers,certificates.cert-manager.io,certificaterequests", "-n", namespace, "-o=name")
	})
}

// isReady waits until a Certificate is issued.
func isReady(t *testing.T, name string) {
	t.Helper()
	conditionOf(t, "certificates.cert-manager.io", name, "Ready", "True", "Ready", patience)
}

// renewed issues a Certificate again and returns the serial number of the new one.
func renewed(t *testing.T, name, secret string) (number string) {
	t.Helper()
	previous := serialOf(t, secret)
	kubectl(t, "patch", "certificates.cert-manager.io", name, "-n", namespace, "--subresource=status", "--type=json", "--patch="+startsIssuing)
	eventually(t, patience, "another certificate in "+secret, func() string {
		// The next renewal may start once Issuing is false.
		issuing := conditionNow(t, namespace, "certificates.cert-manager.io", name, "Issuing")
		if number = serialOf(t, secret); number == previous || issuing != "" {
			return fmt.Sprintf("the certificate is %s, and Issuing is %q", number, issuing)
		}
		return ""
	})
	return number
}

// serialOf returns the serial number of the certificate in a Secret, as clients print it.
func serialOf(t *testing.T, secret string) string {
	t.Helper()
	return fmt.Sprintf("%x", certificateIn(t, secret, "tls.crt").SerialNumber)
}

// rootsOf writes a file with the authority that issued the certificate in a Secret.
func rootsOf(t *testing.T, secret string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "ca.crt")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificateIn(t, secret, "ca.crt").Raw})
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// certificateIn returns the certificate in a key of a Secret.
func certificateIn(t *testing.T, secret, key string) *x509.Certificate {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(jsonpath(t, "secrets", secret, "{.data."+strings.ReplaceAll(key, ".", `\.`)+"}"))
	if err != nil {
		t.Fatalf("cannot decode %s of Secret %s: %v", key, secret, err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("Secret %s has no certificate at %s", secret, key)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatalf("cannot parse %s of Secret %s: %v", key, secret, err)
	}
	return c
}

// remove deletes the objects of a manifest.
func remove(t *testing.T, manifest string) {
	t.Helper()
	if out, err := tryRun(t, manifest, "kubectl", "delete", "-f", "-", "--timeout=3m"); err != nil {
		t.Fatalf("cannot delete: %v\n%s\n%s", err, out, manifest)
	}
}
