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

// backendTLS is spoken to backends of both kinds as a BackendTLSPolicy says, and to none
// whose certificate is not what it says.
func backendTLS(t *testing.T, w *world) {
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

	// The backend's certificate is for another name than this policy's.
	w.until(t, func(ctx context.Context) error {
		if err := w.Gets(ctx, gateway, "misnamed.example.com", http.StatusServiceUnavailable); err != nil {
			return err
		}
		return w.counted(ctx, "cluster.tailscale/services/default/misnamed/80/http.ssl.fail_verify_san")
	})

	// The authority of this one is in a Secret, which the extension may not read.
	w.until(t, func(ctx context.Context) error {
		if err := w.Gets(ctx, gateway, "secret.example.com", http.StatusServiceUnavailable); err != nil {
			return err
		}
		return w.explained(ctx, "secret.example.com", "BackendTLSPolicy default/secret has a certificate that is not in a ConfigMap; put it into one, with the key ca.crt")
	})
}

// counted returns an error unless a counter of Envoy's is above zero.
func (w *world) counted(ctx context.Context, counter string) error {
	b, err := w.Admin(ctx, "/stats?usedonly&filter="+counter)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(b), counter+": ") {
		return errors.Errorf("%s is still zero", counter)
	}
	return nil
}

// explained returns an error unless the extension says of the first backend of a host
// what is wrong.
func (w *world) explained(ctx context.Context, host, want string) error {
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
	defer rsp.Body.Close() // Only read.
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		return err
	}
	var said struct {
		Rules []struct {
			Backends []struct {
				Problem string `json:"problem"`
			} `json:"backends"`
		} `json:"rules"`
	}
	if err := json.Unmarshal(b, &said); err != nil {
		return errors.Wrap(err, "cannot read the extension's answer")
	}
	if len(said.Rules) != 1 || len(said.Rules[0].Backends) != 1 || said.Rules[0].Backends[0].Problem != want {
		return errors.Errorf("the extension says %s, not %q", b, want)
	}
	return nil
}
