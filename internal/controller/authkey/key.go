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
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// maxExpiry is how long a key can be used, and is by default.
	maxExpiry = 90 * 24 * time.Hour

	// maxDescription of a key, in bytes: the API takes letters, digits, dashes
	// and spaces.
	maxDescription = 50
)

// notAllowed are the characters that a key's description cannot have.
var notAllowed = regexp.MustCompile(`[^A-Za-z0-9-]`)

// descriptionPrefix is what descriptions of an object's keys begin with, and
// those of no other object of any cluster.
func descriptionPrefix(clusterID string, mg *v1alpha1.AuthKey) string {
	sum := sha256.Sum256([]byte("authkey/" + clusterID + "/" + mg.GetNamespace() + "/" + mg.GetName()))
	return "tsgw " + hex.EncodeToString(sum[:7]) + " "
}

// wanted returns the key that an object asks for.
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

// fingerprint distinguishes requests. Keys cannot be changed, so it is all that
// must be known of the request that a key was minted by.
func fingerprint(r tailscale.AuthKeyRequest) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %t %t %t", r.Description, strings.Join(r.Tags, ","),
		int64(r.Expiry.Seconds()), r.Reusable, r.Ephemeral, r.Preauthorized))
	return hex.EncodeToString(sum[:8])
}
