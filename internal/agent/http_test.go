// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

func TestHandlers(t *testing.T) {
	a := New(Options{}, nil, nil, nil, nil, NewMetrics(), logging.NewNopLogger())
	cases := map[string]struct {
		reason  string
		handler http.Handler
		path    string
		want    int
	}{
		"MetricsWithHooks": {
			reason:  "Clients that can read metrics must not be able to withdraw services",
			handler: a.handler(),
			path:    sidecar.PathPreStop,
			want:    http.StatusNotFound,
		},
		"Metrics": {
			reason:  "Scrapers are answered",
			handler: a.handler(),
			path:    sidecar.PathMetrics,
			want:    http.StatusOK,
		},
		"HooksWithMetrics": {
			reason:  "The socket of hooks serves nothing else",
			handler: a.hooks(),
			path:    sidecar.PathMetrics,
			want:    http.StatusNotFound,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			tc.handler.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, http.NoBody))
			if rec.Code != tc.want {
				t.Errorf("\n%s\nGET %s: want %d, got %d", tc.reason, tc.path, tc.want, rec.Code)
			}
		})
	}
}
