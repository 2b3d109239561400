// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package logstreamconfiguration

import (
	"slices"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// request returns the request for the parameters, without secrets.
func request(p v1alpha1.LogstreamConfigurationParameters) tailscale.LogstreamRequest {
	r := tailscale.LogstreamRequest{
		DestinationType:   tsclient.LogstreamEndpointType(p.DestinationType),
		URL:               p.URL,
		User:              p.User,
		CompressionFormat: tsclient.CompressionFormat(p.CompressionFormat),
	}
	if p.UploadPeriodMinutes != nil {
		r.UploadPeriodMinutes = int(*p.UploadPeriodMinutes)
	}
	if s := p.S3; s != nil {
		r.S3Bucket, r.S3Region, r.S3KeyPrefix = s.Bucket, s.Region, s.KeyPrefix
		r.S3AuthenticationType = tsclient.S3AuthenticationType(s.AuthenticationType)
		r.S3AccessKeyID, r.S3RoleARN, r.S3ExternalID = s.AccessKeyID, s.RoleARN, s.ExternalID
	}
	if g := p.GCS; g != nil {
		r.GCSBucket, r.GCSKeyPrefix = g.Bucket, g.KeyPrefix
		r.GCSScopes = slices.Sorted(slices.Values(g.Scopes))
	}
	return r
}
