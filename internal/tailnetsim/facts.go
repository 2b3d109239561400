// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"encoding/json"
	"net/http"
)

// DeviceFacts are the fields of a device in the API that no call of the API can set (OpenAPI:
// Device).
type DeviceFacts struct {
	// MultipleConnections is whether two machines use the device's node key.
	MultipleConnections bool `json:"multipleConnections,omitempty"`
	// SerialNumbers are shown while the tailnet collects posture identities. A
	// device without any has not opted in.
	SerialNumbers []string `json:"serialNumbers,omitempty"`
}

// postureIdentity is as the API shows it.
func (f DeviceFacts) postureIdentity() map[string]any {
	if len(f.SerialNumbers) == 0 {
		return map[string]any{"disabled": true}
	}
	return map[string]any{"serialNumbers": f.SerialNumbers}
}

// SetDeviceFacts sets fields of a device, and reports whether the device exists.
func (s *Server) SetDeviceFacts(nodeID string, f DeviceFacts) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.st.device(nodeID)
	if d == nil {
		return false
	}
	d.Facts = f
	s.dirty()
	return true
}

// factRoutes adds routes with which other processes set facts and offers of devices, and edit
// services like a user.
func (s *Server) factRoutes(m *http.ServeMux) {
	m.HandleFunc("PUT /sim/devices/{device}/facts", func(w http.ResponseWriter, r *http.Request) {
		var f DeviceFacts
		if !decodeAdmin(w, r, &f) {
			return
		}
		if !s.SetDeviceFacts(r.PathValue("device"), f) {
			writeError(w, http.StatusNotFound, "no device with that id was found")
			return
		}
		writeJSON(w, http.StatusOK, f)
	})
	m.HandleFunc("PUT /sim/devices/{device}/offers", func(w http.ResponseWriter, r *http.Request) {
		var offers []Offer
		if !decodeAdmin(w, r, &offers) {
			return
		}
		if err := s.SetOffers(r.PathValue("device"), offers...); err != nil {
			writeError(w, http.StatusNotFound, err.Error())
			return
		}
		writeJSON(w, http.StatusOK, offers)
	})
	m.HandleFunc("POST /sim/services/{service}/edit", func(w http.ResponseWriter, r *http.Request) {
		var e ServiceEdit
		if !decodeAdmin(w, r, &e) {
			return
		}
		if err := s.EditService(r.PathValue("service"), e); err != nil {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
		writeJSON(w, http.StatusOK, e)
	})
}

// decodeAdmin reads the body of a request to /sim/, and answers 400 if it is wrong.
func decodeAdmin(w http.ResponseWriter, r *http.Request, v any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(v); err != nil {
		writeError(w, http.StatusBadRequest, "cannot decode: "+err.Error())
		return false
	}
	return true
}
