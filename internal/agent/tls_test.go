// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"tailscale.com/ipn"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/terminate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// certified returns a self-signed certificate and its key.
func certified(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// TestCertificate checks that tailscaled gets a certificate from Tailscale, which it keeps in
// its state Secret.
func TestCertificate(t *testing.T) {
	t.Parallel()
	const domain = "web.example.ts.net"
	a := attachment()
	a.Spec.DNSName = domain
	a.Spec.Ports = []v1alpha1.AttachmentPort{{Port: 443, TLS: &v1alpha1.AttachmentTLS{}, Backend: &v1alpha1.AttachmentBackend{Host: "web.default.svc", Port: 8080}}}
	state := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set-0"},
		Data:       wholeState(),
	}
	p := newPod(t, secret(), machine(), a, state.DeepCopy())
	p.start()
	p.local.Set(ipn.Running)
	reason := func() string { return p.service().Reason }
	eventually(t, "The report must say that HTTPS is off.", string(meta.ReasonHTTPSDisabled), reason)

	cert, key := certified(t, domain)
	var (
		requests atomic.Int32
		well     atomic.Bool
	)
	p.local.SetHTTPS(func(name string) error {
		requests.Add(1)
		if name != domain {
			return errors.Errorf("asked for %q", name)
		}
		if !well.Load() {
			return errors.New("429: too many certificates")
		}
		s := state.DeepCopy()
		s.Data[name+".crt"], s.Data[name+".key"] = cert, key
		return p.kube.Update(t.Context(), s)
	}, domain)
	eventually(t, "The report must say that the certificate was not issued.", string(meta.ReasonCertificateNotIssued), reason)
	if msg := p.service().Message; !strings.Contains(msg, "429: too many certificates") {
		t.Errorf("The report must contain the certificate authority's error, got %q", msg)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("The certificate must not be requested again at once, was requested %d times", n)
	}

	// A new tailscaled gets the request again.
	well.Store(true)
	p.local.Stop()
	p.local.Start()
	p.local.Set(ipn.Running, "svc:web")
	eventually(t, "The service must be advertised once it has its certificate.", true, func() bool { return p.service().Advertised })
	if diff := cmp.Diff("", reason()); diff != "" {
		t.Errorf("There must be no reason then: -want, +got:\n%s", diff)
	}
	want := `{"Services":{"svc:web":{"TCP":{"443":{"TCPForward":"127.36.0.1:16827","ProxyProtocol":2}}}}}`
	if diff := cmp.Diff(want, p.files()[1]); diff != "" {
		t.Errorf("Tailscaled must forward to the agent: -want, +got:\n%s", diff)
	}
	if strings.Contains(p.logged.String(), "PRIVATE KEY") {
		t.Error("No log may hold a private key")
	}
}

// TestCertificatesGoOn makes tailscaled unavailable for a moment while it gets a certificate.
func TestCertificatesGoOn(t *testing.T) {
	granted := []string{"web.example.ts.net"}
	cases := map[string]struct {
		reason string
		states []localapi.State
		want   []string
	}{
		"NotRunning": {
			reason: "A tailscaled that stops running for a moment gets no second request.",
			states: []localapi.State{
				{Session: 1, Running: true, HTTPS: true, HTTPSKnown: true, CertDomains: granted},
				{Session: 1, HTTPS: true, HTTPSKnown: true, CertDomains: granted},
				{Session: 1, Running: true, HTTPS: true, HTTPSKnown: true, CertDomains: granted},
			},
			want: []string{"web.example.ts.net"},
		},
		"NewSession": {
			reason: "A certificate that a new tailscaled may lack is requested once, when it runs.",
			states: []localapi.State{
				{Session: 1, Running: true, HTTPS: true, HTTPSKnown: true, CertDomains: granted},
				{Session: 1},
				{Session: 2},
				{Session: 2, Running: true},
				{Session: 2, Running: true, HTTPS: true, HTTPSKnown: true, CertDomains: granted},
			},
			want: []string{"web.example.ts.net", "web.example.ts.net"},
		},
		"Off": {
			reason: "Without HTTPS nothing is requested.",
			states: []localapi.State{{Session: 1, Running: true, HTTPSKnown: true}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l, _ := newLoop(t, t.TempDir())
				c := &certifier{}
				l.certificates.issuer = issue.New(ctx, c, issue.Options{Changed: func() {}, Attempted: func(issue.Result) {}, Log: logging.NewNopLogger()})
				l.setState(&corev1.Secret{Data: wholeState()})
				services := []plan.Service{{Name: "svc:web", Terminations: []plan.Termination{{Domain: "web.example.ts.net"}}}}
				for _, s := range tc.states {
					l.setTailnet(s)
					l.certificates.prepare(ctx, time.Now(), l.facts(time.Now(), services))
					synctest.Wait()
				}
				if diff := cmp.Diff(tc.want, c.names); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// A certifier records the requested names.
type certifier struct{ names []string }

func (c *certifier) CertPair(_ context.Context, domain string) (cert, key []byte, err error) {
	c.names = append(c.names, domain)
	return nil, nil, nil
}

func (c *certifier) CertPairWithValidity(ctx context.Context, domain string, _ time.Duration) (cert, key []byte, err error) {
	return c.CertPair(ctx, domain)
}

// TestAnonymous checks that an agent that does not know the version yet serves as before.
func TestAnonymous(t *testing.T) {
	t.Parallel()
	listen := netip.MustParseAddrPort("127.36.1.2:16827")
	cases := map[string]struct {
		reason  string
		version string
		served  plan.Termination
		want    bool
	}{
		"Old":            {reason: "An old version sends no addresses.", version: "1.86.2", want: true},
		"Current":        {reason: "A current version does.", version: "1.102.5"},
		"Unknown":        {reason: "An unknown version counts as a current one.", served: plan.Termination{Listen: listen, HTTP: true}},
		"RestartedOld":   {reason: "A restarted agent serves as before.", served: plan.Termination{Listen: listen, HTTP: true, Anonymous: true}, want: true},
		"ReplacedByANew": {reason: "A newer version is believed.", version: "1.102.5", served: plan.Termination{Listen: listen, HTTP: true, Anonymous: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := terminate.New(terminate.Options{Log: logging.NewNopLogger(), Store: atomicdir.New(t.TempDir(), fileTLS)})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Set(ctx, map[string][]plan.Termination{"svc:web": {tc.served}}); err != nil {
				t.Fatalf("Set(...): %v", err)
			}
			r := &tlsRole{server: s}
			if got := r.anonymous(tc.version); got != tc.want {
				t.Errorf("\n%s\nanonymous(): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
