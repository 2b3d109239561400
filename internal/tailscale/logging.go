// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"

	tsclient "tailscale.com/client/tailscale/v2"
)

// scopeLogStreaming is the scope of where logs are sent. To send them to a
// private endpoint, Tailscale asks for device_invites and policy_file as well.
const scopeLogStreaming = "log_streaming"

// Types of the client library that callers see.
type (
	// A LogstreamConfiguration says where logs of one type are sent, without
	// secrets.
	LogstreamConfiguration = tsclient.LogstreamConfiguration

	// A LogstreamRequest is a LogstreamConfiguration to set, with secrets.
	LogstreamRequest = tsclient.SetLogstreamConfigurationRequest
)

// LogstreamConfiguration returns where logs of a type, configuration or network,
// are sent, fresh. Nil means nowhere.
func (c *Client) LogstreamConfiguration(ctx context.Context, logType string) (*LogstreamConfiguration, error) {
	l, err := c.api.Logging().LogstreamConfiguration(ctx, tsclient.LogType(logType))
	err = classify(err, scopeLogStreaming, false)
	if IsNotFound(err) {
		return nil, nil // None is an answer.
	}
	if err != nil {
		return nil, err
	}
	// Tailscale may also answer with an empty configuration.
	if l.DestinationType == "" {
		return nil, nil // None is an answer.
	}
	return l, nil
}

// SetLogstreamConfiguration replaces where logs of a type are sent.
func (c *Client) SetLogstreamConfiguration(ctx context.Context, logType string, r LogstreamRequest) error {
	err := c.api.Logging().SetLogstreamConfiguration(ctx, tsclient.LogType(logType), r)
	return classify(err, scopeLogStreaming, false)
}

// DeleteLogstreamConfiguration has logs of a type sent nowhere. That they are not
// sent anyway is no error.
func (c *Client) DeleteLogstreamConfiguration(ctx context.Context, logType string) error {
	err := c.api.Logging().DeleteLogstreamConfiguration(ctx, tsclient.LogType(logType))
	return ignoreNotFound(classify(err, scopeLogStreaming, false))
}
