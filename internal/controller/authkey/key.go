// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package authkey

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/marks"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// maxExpiry is the maximum and default expiry of a key.
	maxExpiry = 90 * 24 * time.Hour

	// maxDescription is the maximum length of a key's description in bytes. The API accepts
	// letters, digits, dashes and spaces.
	maxDescription = 50
)

// notAllowed matches characters that a key's description cannot contain.
var notAllowed = regexp.MustCompile(`[^A-Za-z0-9-]`)

// descriptionPrefix returns the prefix of the descriptions of an object's keys. It is unique to the
// object among all clusters.
func descriptionPrefix(clusterID string, mg *v1alpha1.AuthKey) string {
	return marks.AuthKey(clusterID, mg.GetNamespace(), mg.GetName()) + " "
}

// wanted returns the request for the key that an object describes.
func wanted(clusterID string, configTags []string, mg *v1alpha1.AuthKey) tailscale.AuthKeyRequest {
	p := mg.Spec.ForProvider
	description := p.Description
	if description == "" {
		description = notAllowed.ReplaceAllString(mg.GetNamespace()+"-"+mg.GetName(), "-")
	}
	description = descriptionPrefix(clusterID, mg) + description
	if len(description) > maxDescription {
		description = description[:maxDescription]
	}
	tags := slices.Clone(configTags)
	for _, t := range p.Tags {
		tags = append(tags, string(t))
	}
	slices.Sort(tags)
	return tailscale.AuthKeyRequest{
		Description:   description,
		Tags:          slices.Compact(tags),
		Expiry:        expiry(mg),
		Reusable:      p.Reusable,
		Ephemeral:     p.Ephemeral,
		Preauthorized: p.Preauthorized == nil || *p.Preauthorized,
	}
}

// fingerprint returns a value that distinguishes requests. Keys cannot be changed, so the
// fingerprint of a key's request is all that the controller records of it.
func fingerprint(r tailscale.AuthKeyRequest) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %t %t %t", r.Description, strings.Join(r.Tags, ","),
		int64(r.Expiry.Seconds()), r.Reusable, r.Ephemeral, r.Preauthorized))
	return hex.EncodeToString(sum[:8])
}
