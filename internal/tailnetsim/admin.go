// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// StateView is a view of the simulator's state, for assertions. It has no secrets.
type StateView struct {
	Devices  []map[string]any `json:"devices"`
	Keys     []map[string]any `json:"keys"`
	Services []ServiceView    `json:"services"`
	Calls    map[string]int   `json:"calls"`
	// TXT are the records that nodes have set in public DNS, by name.
	TXT map[string][]string `json:"txt"`
}

// ServiceView is a service with its hosts.
type ServiceView struct {
	Name        string            `json:"name"`
	Addrs       []string          `json:"addrs"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Ports       []string          `json:"ports"`
	Tags        []string          `json:"tags"`
	// Primary is the node id of the host that has the addresses now.
	Primary string `json:"primary,omitempty"`
	Hosts   []host `json:"hosts"`
}

// State shows devices, keys (used up ones too) and services.
func (s *Server) State() StateView {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := StateView{Devices: []map[string]any{}, Keys: []map[string]any{}, Services: []ServiceView{}, Calls: s.Calls(), TXT: map[string][]string{}}
	for _, id := range slices.Sorted(maps.Keys(s.st.Devices)) {
		v.Devices = append(v.Devices, s.deviceViewLocked(s.st.Devices[id], true))
	}
	for _, id := range slices.Sorted(maps.Keys(s.st.Keys)) {
		if k := s.st.Keys[id]; k.Revoked.IsZero() {
			v.Keys = append(v.Keys, k.view(s.now()))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(s.st.Services)) {
		svc := s.st.Services[n].clone()
		p := ""
		if d := s.st.Devices[s.elections[n].first()]; d != nil {
			p = string(d.StableID)
		}
		v.Services = append(v.Services, ServiceView{
			Name: n, Addrs: svc.Addrs, Annotations: svc.Annotations, Ports: nonNil(svc.Ports), Tags: nonNil(svc.Tags), Primary: p, Hosts: s.hostsLocked(svc),
		})
	}
	for name, values := range s.st.TXT {
		v.TXT[name] = slices.Clone(values)
	}
	return v
}

// adminRoutes adds the routes that control and inspect the simulator. They need no
// authentication.
func (s *Server) adminRoutes(m *http.ServeMux) {
	s.puppetRoutes(m)
	s.switchRoutes(m)
	s.factRoutes(m)
	m.HandleFunc("GET /sim/state", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.State()) })
	m.HandleFunc("GET /sim/faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.Faults()) })
	m.HandleFunc("DELETE /sim/faults", func(w http.ResponseWriter, _ *http.Request) { s.replaceFaults(w, nil) })
	m.HandleFunc("POST /sim/faults", func(w http.ResponseWriter, r *http.Request) {
		var fs []Fault
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&fs); err != nil {
			writeError(w, http.StatusBadRequest, "cannot decode a list of faults: "+err.Error())
			return
		}
		s.replaceFaults(w, fs)
	})
}

func (s *Server) replaceFaults(w http.ResponseWriter, fs []Fault) {
	if err := s.SetFaults(fs...); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, s.Faults())
}
