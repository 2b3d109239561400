// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"tailscale.com/ipn"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// keyAdvertiseServices is the only key of tailscaled's config that the agent sets.
const keyAdvertiseServices = "AdvertiseServices"

// configVersion is the only version that tailscaled supports (ipn/conf.go).
const configVersion = "alpha0"

// TailscaledConfig returns base with services as its AdvertiseServices. services need not be
// sorted. base is a tailscaled config in HuJSON; all its other keys are kept. TailscaledConfig
// returns an error when tailscaled would refuse base: tailscaled exits on an unknown key.
// Errors contain nothing of base, which can hold an auth key.
func TailscaledConfig(base []byte, services []string) ([]byte, error) {
	fields, err := parseConfig(base)
	if err != nil {
		return nil, err
	}
	for k := range fields {
		if strings.EqualFold(k, keyAdvertiseServices) {
			delete(fields, k)
		}
	}
	if len(services) > 0 {
		sorted := slices.Sorted(slices.Values(services))
		b, err := json.Marshal(slices.Compact(sorted))
		if err != nil {
			return nil, errors.Wrap(err, "cannot encode advertised services")
		}
		fields[keyAdvertiseServices] = b
	}

	// Map keys are encoded in sorted order.
	out, err := json.Marshal(fields)
	return out, errors.Wrap(err, "cannot encode config")
}

// AdvertisedIn returns the AdvertiseServices of a tailscaled config.
func AdvertisedIn(config []byte) ([]string, error) {
	fields, err := parseConfig(config)
	if err != nil {
		return nil, err
	}
	var out []string
	if raw, ok := fields[keyAdvertiseServices]; ok {
		if err := json.Unmarshal(raw, &out); err != nil {
			return nil, errors.New("advertised services are not a list of names")
		}
	}
	return out, nil
}

// HasAuthKey reports whether a tailscaled config holds a key to log in with.
func HasAuthKey(config []byte) bool {
	fields, err := parseConfig(config)
	if err != nil {
		return false
	}
	var key string
	return json.Unmarshal(fields["AuthKey"], &key) == nil && key != ""
}

// parseConfig returns the fields of a tailscaled config, or an error if tailscaled would refuse
// the config (ipn/conffile/conffile.go, Load).
func parseConfig(config []byte) (map[string]json.RawMessage, error) {
	std, err := hujson.Standardize(bytes.Clone(config))
	if err != nil {
		return nil, errors.New("not HuJSON")
	}

	d := json.NewDecoder(bytes.NewReader(std))
	d.DisallowUnknownFields()
	var typed ipn.ConfigVAlpha
	if err := d.Decode(&typed); err != nil {
		return nil, errors.New("not a tailscaled config")
	}
	if typed.Version != configVersion {
		return nil, errors.Errorf("version is not %q", configVersion)
	}

	var fields map[string]json.RawMessage
	if err := json.Unmarshal(std, &fields); err != nil {
		return nil, errors.New("not a JSON object")
	}
	return fields, nil
}
