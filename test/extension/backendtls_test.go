//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// backendTLS checks that Envoy uses TLS with backends of both kinds as a BackendTLSPolicy requires,
// and rejects backends with another certificate.
func backendTLS(t *testing.T, w *environment) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.tls["192.0.2.10:9444"].Certificate().Raw})
	meta := metav1.ObjectMeta{Namespace: "default", Name: "authority"}
	if err := w.kube.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"ca.crt": string(ca)}}); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.Create(t.Context(), &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"ca.crt": ca}}); err != nil {
		t.Fatal(err)
	}
	w.serveTLS(t, "192.0.2.20:10016")
	w.apply(t, "backendtls.yaml")
	w.answers(t, "secure.example.com", "192.0.2.10:9444")
	w.answers(t, "secure-endpoints.example.com", "192.0.2.20:10016")

	// The backend's certificate has another name than this policy.
	w.until(t, func(ctx context.Context) error {
		if err := w.Gets(ctx, gateway, "misnamed.example.com", http.StatusServiceUnavailable); err != nil {
			return err
		}
		return w.counted(ctx, "cluster.tailscale/services/default/misnamed/80/http.ssl.fail_verify_san")
	})

	// The authority is in a Secret, which the extension may not read.
	w.until(t, func(ctx context.Context) error {
		if err := w.Gets(ctx, gateway, "secret.example.com", http.StatusServiceUnavailable); err != nil {
			return err
		}
		return w.explained(ctx, "secret.example.com", "BackendTLSPolicy default/secret has a certificate that is not in a ConfigMap, but in a Secret; put it into a ConfigMap, with the key ca.crt")
	})
}

// counted returns an error unless a counter of Envoy is above zero.
func (w *environment) counted(ctx context.Context, counter string) error {
	b, err := w.Admin(ctx, "/stats?usedonly&filter="+counter)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(b), counter+": ") {
		return errors.Errorf("%s is still zero", counter)
	}
	return nil
}

// explained returns an error unless the extension's explanation of the first backend of a host is
// want.
func (w *environment) explained(ctx context.Context, host, want string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:5007/explain?path=/&host="+host, nil)
	if err != nil {
		return err
	}
	c := w.Client()
	defer c.CloseIdleConnections()
	rsp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer rsp.Body.Close() // The body is only read.
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		return err
	}
	var explained struct {
		Rules []struct {
			Backends []struct {
				Problem string `json:"problem"`
			} `json:"backends"`
		} `json:"rules"`
	}
	if err := json.Unmarshal(b, &explained); err != nil {
		return errors.Wrap(err, "cannot read the extension's response")
	}
	if len(explained.Rules) != 1 || len(explained.Rules[0].Backends) != 1 || explained.Rules[0].Backends[0].Problem != want {
		return errors.Errorf("the extension returns %s, want %q", b, want)
	}
	return nil
}
