// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// putService creates a service in the simulator that belongs to no run.
func putService(t *testing.T, r *simtest.Running, name string) {
	t.Helper()
	s := simSession(t, r)
	a, err := s.send(t.Context(), http.MethodPut, map[string]any{"name": name, "ports": []string{"tcp:80"}, "tags": []string{"tag:k8s"}}, s.tn("vip-services", name)...)
	if err != nil || !a.ok() {
		t.Fatalf("cannot create service %s: %v", name, err)
	}
}

// namesIn returns the names of the tailnet's services and devices.
func namesIn(r *simtest.Running) []string {
	st := r.State()
	var out []string
	for _, s := range st.Services {
		out = append(out, s.Name)
	}
	for _, d := range st.Devices {
		out = append(out, str(d, "hostname"))
	}
	slices.Sort(out)
	return out
}

// TestCleanupByName checks that a cleanup by name removes only objects with the prefix of a run,
// and only after the list is confirmed.
func TestCleanupByName(t *testing.T) {
	cases := map[string]struct {
		reason    string
		args      []string
		code      int
		says      string
		remaining []string
	}{
		"Foreign": {
			reason: "A prefix that runs do not have may be anybody's.",
			args:   []string{"--cleanup", "--prefix=production", "--yes"}, code: exitUsage, says: "tsgw-acc-",
			remaining: []string{"production-host", "svc:production-web", "svc:tsgw-acc-mine-web", "tsgw-acc-mine-host", "tsgw-acc-minefield"},
		},
		"Asked": {
			reason: "Without --yes, the objects are listed, and stay.",
			args:   []string{"--cleanup", "--prefix=tsgw-acc-mine"}, code: exitUsage, says: "svc:tsgw-acc-mine-web",
			remaining: []string{"production-host", "svc:production-web", "svc:tsgw-acc-mine-web", "tsgw-acc-mine-host", "tsgw-acc-minefield"},
		},
		"Confirmed": {
			reason: "With --yes, the listed objects are removed, and nothing else.",
			args:   []string{"--cleanup", "--prefix=tsgw-acc-mine", "--yes"}, code: exitPass, says: "svc:tsgw-acc-mine-web",
			remaining: []string{"production-host", "svc:production-web", "tsgw-acc-minefield"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := simtest.StartAPI(t)
			putService(t, r, "svc:production-web")
			putService(t, r, "svc:tsgw-acc-mine-web")
			for _, h := range []string{"production-host", "tsgw-acc-mine-host", "tsgw-acc-minefield"} {
				if _, err := r.Join(tailnetsim.Puppet{Hostname: h, Tags: []string{"tag:k8s"}}); err != nil {
					t.Fatalf("cannot join: %v", err)
				}
			}
			code, output := accept(t, flags(r, t.TempDir(), tc.args...))
			if code != tc.code || !strings.Contains(output, tc.says) {
				t.Errorf("%s exit code %d, want %d and %q", tc.reason, code, tc.code, tc.says)
			}
			if got := namesIn(r); !slices.Equal(got, tc.remaining) {
				t.Errorf("%s %v remain, want %v", tc.reason, got, tc.remaining)
			}
		})
	}
}

// TestRunLeavesOthers creates an object with the run's prefix during the run, which reports it but
// does not remove it.
func TestRunLeavesOthers(t *testing.T) {
	r := simtest.StartAPI(t)
	u, err := url.Parse(r.URL)
	if err != nil {
		t.Fatalf("cannot parse: %v", err)
	}
	forward := httputil.NewSingleHostReverseProxy(u)
	other := sync.OnceFunc(func() { putService(t, r, "svc:tsgw-acc-same-other") })
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPut {
			other()
		}
		forward.ServeHTTP(w, req)
	}))
	t.Cleanup(front.Close)
	args := flags(r, t.TempDir(), "--write", "--prefix=tsgw-acc-same", "--only=services/create")
	args[0] = "--api-url=" + front.URL
	code, output := accept(t, args)
	if code != exitFail || !strings.Contains(output, "svc:tsgw-acc-same-other") {
		t.Errorf("exit code %d, want an error that names the remaining object", code)
	}
	if got := namesIn(r); !slices.Equal(got, []string{"svc:tsgw-acc-same-other"}) {
		t.Errorf("%v remain, want only the object of somebody else", got)
	}
}

// TestCleanupOtherTailnet runs --cleanup with a credential of another tailnet than the
// ledger's: an object there may have the same name.
func TestCleanupOtherTailnet(t *testing.T) {
	cases := map[string]struct {
		reason string
		// domain and credential in the ledger.
		domain, credential string
		device             bool
		code               int
	}{
		"OtherDomain":     {reason: "The ledger's domain is that of another tailnet.", domain: "other.ts.net", credential: simtest.ClientID, device: true, code: exitUsage},
		"OtherClient":     {reason: "An unknown tailnet and another client: it may be any tailnet.", credential: "kOtherCNTRL", code: exitUsage},
		"SameClient":      {reason: "A client belongs to one tailnet.", credential: simtest.ClientID, code: exitPass},
		"SameDomain":      {reason: "Another client of the same tailnet may clean up.", domain: "tail1234.ts.net", credential: "kOtherCNTRL", device: true, code: exitPass},
		"DomainUnseen":    {reason: "Without devices the domain is not known, and the client decides.", domain: "tail1234.ts.net", credential: simtest.ClientID, code: exitPass},
		"NothingRecorded": {reason: "A ledger without domain and credential does not identify a tailnet.", code: exitUsage},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := simtest.StartAPI(t)
			putService(t, r, "svc:tsgw-acc-old-web")
			if tc.device {
				if _, err := r.Join(tailnetsim.Puppet{Hostname: "somebody-elses", Tags: []string{"tag:k8s"}}); err != nil {
					t.Fatalf("cannot join: %v", err)
				}
			}
			out := t.TempDir()
			l, err := openLedger(out)
			if err != nil {
				t.Fatalf("cannot open the ledger: %v", err)
			}
			place := place{APIURL: r.URL, Tailnet: "-", Domain: tc.domain}
			if tc.credential != "" {
				place.Credential = credential{clientID: tc.credential}.fingerprint()
			}
			if err := l.begin("tsgw-acc-old", place); err != nil {
				t.Fatalf("cannot begin: %v", err)
			}
			if _, err := l.intend("", kindService, "svc:tsgw-acc-old-web", ""); err != nil {
				t.Fatalf("cannot write: %v", err)
			}
			if err := l.close(); err != nil {
				t.Fatalf("cannot close: %v", err)
			}
			if code, _ := accept(t, flags(r, out, "--cleanup")); code != tc.code {
				t.Errorf("%s exit code %d, want %d", tc.reason, code, tc.code)
			}
			if remaining := len(r.State().Services) == 1; remaining != (tc.code != exitPass) {
				t.Errorf("%s the service still exists: %v", tc.reason, remaining)
			}
		})
	}
}

// TestPolicyWarnings checks a policy file with warnings, which the product accepts.
func TestPolicyWarnings(t *testing.T) {
	r := simtest.StartAPI(t)
	if err := r.SetSwitches(func(w *tailnetsim.Switches) { w.UnsyncedGroups = []string{"group:ops@example.com"} }); err != nil {
		t.Fatalf("cannot set a switch: %v", err)
	}
	s := simSession(t, r)
	p, err := getPolicy(t.Context(), s)
	if err != nil {
		t.Fatalf("cannot get the policy file: %v", err)
	}
	changed, err := withGrant(string(p.body), "group:ops@example.com")
	if err != nil {
		t.Fatalf("cannot change the policy file: %v", err)
	}
	if a, err := setPolicy(t.Context(), s, changed, p.header.Get("ETag")); err != nil || !a.ok() {
		t.Fatalf("cannot write the policy file: %v %s", err, a.message())
	}
	out := t.TempDir()
	if code, _ := accept(t, flags(r, out, "--only=policy/validate-good")); code != exitPass {
		t.Errorf("exit code %d: warnings are not a refusal", code)
	}
	if row := readSummary(t, out).Rows[0]; row.Observed["warnings"] != true {
		t.Errorf("the warnings are not observed: %v", row.Observed)
	}
}

// TestFreshClient runs with a new client, which the API rejects at first.
func TestFreshClient(t *testing.T) {
	for name, status := range map[string]int{"NotFound": http.StatusNotFound, "Unauthorized": http.StatusUnauthorized} {
		t.Run(name, func(t *testing.T) {
			r := simtest.StartAPI(t)
			if err := r.SetSwitches(func(w *tailnetsim.Switches) { w.FreshClient = tailnetsim.FreshClient{Status: status, Calls: 25} }); err != nil {
				t.Fatalf("cannot set a switch: %v", err)
			}
			s := simSession(t, r)
			a, err := s.send(t.Context(), http.MethodPost, map[string]any{"keyType": "client", "scopes": []string{"all"}, "tags": []string{"tag:k8s-operator"}}, s.tn("keys")...)
			if err != nil || !a.ok() {
				t.Fatalf("cannot create a client: %v %s", err, a.message())
			}
			for _, v := range credentialVars {
				t.Setenv(v, "")
			}
			t.Setenv("TS_CLIENT_ID", str(a.object(), "id"))
			t.Setenv("TS_CLIENT_SECRET", str(a.object(), "key"))
			out, output := t.TempDir(), &bytes.Buffer{}
			code := command(t.Context(), flags(r, out, "--write", "--only=credential|lists/devices|services/create"), output, output)
			t.Logf("%s", output)
			if code != exitPass {
				t.Errorf("exit code %d: the client works a moment later", code)
			}
			noSecrets(t, out)
		})
	}
}

// TestSplitDNSRemoval runs against APIs that remove a domain in one of two ways only:
// no source says that an empty list does.
func TestSplitDNSRemoval(t *testing.T) {
	for name, way := range map[string]struct{ null, empty bool }{"Null": {null: true}, "Empty": {empty: true}} {
		t.Run(name, func(t *testing.T) {
			r := simtest.StartAPI(t)
			u, err := url.Parse(r.URL)
			if err != nil {
				t.Fatalf("cannot parse: %v", err)
			}
			forward := httputil.NewSingleHostReverseProxy(u)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/split-dns") {
					b, err := io.ReadAll(req.Body)
					if err != nil {
						t.Errorf("cannot read: %v", err)
					}
					var domains map[string][]string
					if err := json.Unmarshal(b, &domains); err != nil {
						t.Errorf("cannot decode: %v", err)
					}
					for d, ns := range domains {
						ignored := ns == nil && !way.null || ns != nil && len(ns) == 0 && !way.empty
						if ignored {
							delete(domains, d)
						}
					}
					b = mustJSON(domains)
					req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
				}
				forward.ServeHTTP(w, req)
			}))
			t.Cleanup(front.Close)
			out := t.TempDir()
			args := flags(r, out, "--write", "--only=dns/")
			args[0] = "--api-url=" + front.URL
			if code, _ := accept(t, args); code != exitPass {
				t.Errorf("exit code %d: the product removes the domain, too", code)
			}
			if row := readSummary(t, out).Rows[0]; row.Observed["null removes a domain"] != way.null {
				t.Errorf("observed %v, want null to remove a domain: %v", row.Observed, way.null)
			}
		})
	}
}

// TestHostWords lets the API describe a host that serves by another word than the official client's
// only example. The row must pass.
func TestHostWords(t *testing.T) {
	r := simtest.Start(t, simtest.AutoApprove)
	u, err := url.Parse(r.URL)
	if err != nil {
		t.Fatalf("cannot parse: %v", err)
	}
	forward := httputil.NewSingleHostReverseProxy(u)
	forward.ModifyResponse = func(resp *http.Response) error {
		if !strings.Contains(resp.Request.URL.Path, "/services/") {
			return nil
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		b = bytes.ReplaceAll(b, []byte(`"configured":"ready"`), []byte(`"configured":"configured: has-config, config-valid"`))
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		resp.Header.Del("Content-Length")
		return nil
	}
	front := httptest.NewServer(forward)
	t.Cleanup(front.Close)
	out := t.TempDir()
	args := flags(r, out, "--write", "--only=hosts/accepted", "--timeout=15s")
	args[0] = "--api-url=" + front.URL
	if code, _ := accept(t, args); code != exitPass {
		t.Errorf("exit code %d: control has accepted the hosts", code)
	}
}
