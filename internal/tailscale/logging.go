// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"slices"

	tsclient "tailscale.com/client/tailscale/v2"
)

// scopeLogStreaming is the OAuth scope of log streaming. For a private endpoint, Tailscale also
// requires device_invites and policy_file.
const scopeLogStreaming = "log_streaming"

// Types of the client library that callers use.
type (
	// A LogstreamConfiguration describes where Tailscale sends logs of one type, without secrets.
	LogstreamConfiguration = tsclient.LogstreamConfiguration

	// A LogstreamRequest is a LogstreamConfiguration to set, with secrets.
	LogstreamRequest = tsclient.SetLogstreamConfigurationRequest
)

// A LoggingResource calls the API for log streaming.
type LoggingResource struct{ *core }

// LogstreamConfiguration returns where Tailscale sends logs of a type, configuration or network. It
// always sends a request, and returns nil if the logs are not sent.
func (c LoggingResource) LogstreamConfiguration(ctx context.Context, logType string) (*LogstreamConfiguration, error) {
	l, err := c.api.Logging().LogstreamConfiguration(ctx, tsclient.LogType(logType))
	err = classify(err, scopeLogStreaming, false)
	if IsNotFound(err) {
		return nil, nil // No configuration is a valid result.
	}
	if err != nil {
		return nil, err
	}
	// Tailscale may also return an empty configuration.
	if l.DestinationType == "" {
		return nil, nil // No configuration is a valid result.
	}
	return l, nil
}

// SetLogstreamConfiguration replaces the configuration of logs of a type. The client library drops
// fields that it does not know.
func (c LoggingResource) SetLogstreamConfiguration(ctx context.Context, logType string, r LogstreamRequest) error {
	w := request{scope: scopeLogStreaming, method: http.MethodPut, path: []string{"tailnet", c.tailnet, "logging", logType, "stream"}}
	return c.replace(ctx, w, r, slices.Concat(namesOf[LogstreamConfiguration](), namesOf[LogstreamRequest]())...)
}

// DeleteLogstreamConfiguration stops sending logs of a type. It returns no error if they are not
// sent.
func (c LoggingResource) DeleteLogstreamConfiguration(ctx context.Context, logType string) error {
	err := c.api.Logging().DeleteLogstreamConfiguration(ctx, tsclient.LogType(logType))
	return ignoreNotFound(classify(err, scopeLogStreaming, false))
}
