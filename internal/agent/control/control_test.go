// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"encoding/pem"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailscale.com/ipn"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// serveKey answers as a control server does.
func serveKey(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/key" || r.URL.Query().Get("v") == "" {
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(tailcfg.OverTLSPublicKeyResponse{PublicKey: key.NewMachine().Public()})
}

func config(t *testing.T, url string) []byte {
	t.Helper()
	b, err := json.Marshal(ipn.ConfigVAlpha{Version: "alpha0", ServerURL: &url})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAnswers(t *testing.T) {
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
		}
	}
	cases := map[string]struct {
		reason string
		serve  http.HandlerFunc
		want   string
		delay  time.Duration
	}{
		"Answers":     {reason: "A key is an answer.", serve: serveKey},
		"Limited":     {reason: "A limited server says when to ask again.", serve: status(429, "Retry-After", "7"), want: "answers 429", delay: 7 * time.Second},
		"Overflow":    {reason: "A time that no duration holds is a long one.", serve: status(429, "Retry-After", "9223372037"), want: "answers 429", delay: math.MaxUint32 * time.Second},
		"Unavailable": {reason: "A server that is down does not answer.", serve: status(503), want: "answers 503"},
		"Reset": {
			reason: "Neither does one that resets connections.",
			serve:  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			want:   "cannot reach the control server",
		},
		"Portal": {
			reason: "A page of somebody else is no answer.",
			serve:  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>log in</html>")) },
			want:   "cannot read the control server's key",
		},
		"NoKey": {
			reason: "An answer without a key is none.",
			serve:  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) },
			want:   "without a key",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tc.serve)
			defer s.Close()
			err := NewClient(Options{}).Answers(t.Context(), config(t, s.URL))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\n%s\nAnswers(...): want %q, got %v", tc.reason, tc.want, err)
			}
			w := &WaitError{}
			if errors.As(err, &w); w.Delay != tc.delay {
				t.Errorf("\n%s\nAnswers(...): want a wait of %s, got %s", tc.reason, tc.delay, w.Delay)
			}
		})
	}
}

func TestAnswersByProxy(t *testing.T) {
	var host string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host = r.URL.Host
		serveKey(w, r)
	}))
	defer proxy.Close()
	c := config(t, "http://control.example.com")
	if err := NewClient(Options{HTTPProxy: proxy.URL}).Answers(t.Context(), c); err != nil || host != "control.example.com" {
		t.Errorf("Answers(...): want an answer by the proxy, got %v; the proxy was asked for %q", err, host)
	}
	// RFC 2606: the name never resolves.
	c = config(t, "http://control.invalid")
	if err := NewClient(Options{HTTPProxy: proxy.URL, NoProxy: ".invalid"}).Answers(t.Context(), c); err == nil {
		t.Error("Answers(...): want no answer by a proxy that is not for the name")
	}
}

func TestAnswersWithAuthority(t *testing.T) {
	code := http.StatusServiceUnavailable
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason  string
		options Options
		want    bool
	}{
		"File":      {reason: "A trusted server's answer counts.", options: Options{CertFile: file}},
		"Directory": {reason: "Authorities may be in a directory.", options: Options{CertDir: filepath.Dir(file)}},
		"Unknown":   {reason: "Tailscaled may trust a server that the agent does not: containerboot must not wait for ever.", want: true},
		"Missing":   {reason: "The file may be in tailscaled's image only.", options: Options{CertFile: file + "x"}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := NewClient(tc.options).Answers(t.Context(), config(t, s.URL)); (err == nil) != tc.want {
				t.Errorf("\n%s\nAnswers(...): %v", tc.reason, err)
			}
		})
	}
}
