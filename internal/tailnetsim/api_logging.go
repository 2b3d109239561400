// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/http"
	"slices"
)

var logDestinations = []string{"splunk", "elastic", "panther", "cribl", "datadog", "axiom", "s3", "gcs"}

// A logstream says where logs of a type are sent; here none are. Its secrets are
// kept as hashes.
type logstream struct {
	LogType              string   `json:"logType"`
	DestinationType      string   `json:"destinationType"`
	URL                  string   `json:"url"`
	User                 string   `json:"user"`
	UploadPeriodMinutes  int      `json:"uploadPeriodMinutes,omitempty"`
	CompressionFormat    string   `json:"compressionFormat"`
	S3Bucket             string   `json:"s3Bucket,omitempty"`
	S3Region             string   `json:"s3Region,omitempty"`
	S3KeyPrefix          string   `json:"s3KeyPrefix,omitempty"`
	S3AuthenticationType string   `json:"s3AuthenticationType,omitempty"`
	S3AccessKeyID        string   `json:"s3AccessKeyId,omitempty"`
	S3RoleARN            string   `json:"s3RoleArn,omitempty"`
	S3ExternalID         string   `json:"s3ExternalId,omitempty"`
	GCSBucket            string   `json:"gcsBucket,omitempty"`
	GCSKeyPrefix         string   `json:"gcsKeyPrefix,omitempty"`
	GCSScopes            []string `json:"gcsScopes"`
}

// keptLogstream is a logstream in the store.
type keptLogstream struct {
	logstream

	SecretHashes map[string]string `json:"secretHashes"`
}

// logType is configuration or network, or empty after an answer.
func (c *call) logType() string {
	t := c.r.PathValue("type")
	if t != "configuration" && t != "network" {
		c.fail(http.StatusNotFound, "unsupported log type "+t)
		return ""
	}
	return t
}

func (c *call) getLogstream() {
	t := c.logType()
	if t == "" {
		return
	}
	l := c.s.st.Logstreams[t]
	if l == nil {
		c.fail(http.StatusNotFound, "log streaming is not configured")
		return
	}
	c.json(l.logstream)
}

// setLogstream replaces the configuration: secrets must be given each time.
func (c *call) setLogstream() {
	t := c.logType()
	if t == "" {
		return
	}
	var req struct {
		logstream

		Token             string `json:"token"`
		S3SecretAccessKey string `json:"s3SecretAccessKey"`
		GCSCredentials    string `json:"gcsCredentials"`
	}
	if !c.decode(&req) {
		return
	}
	needed := map[string]string{"url": req.URL, "token": req.Token}
	switch req.DestinationType {
	case "s3":
		needed = map[string]string{"s3Bucket": req.S3Bucket, "s3Region": req.S3Region, "s3AuthenticationType": req.S3AuthenticationType}
		if req.S3AuthenticationType == "rolearn" {
			needed["s3RoleArn"], needed["s3ExternalId"] = req.S3RoleARN, req.S3ExternalID
		} else {
			needed["s3AccessKeyId"], needed["s3SecretAccessKey"] = req.S3AccessKeyID, req.S3SecretAccessKey
		}
		if req.User != "" {
			c.fail(http.StatusBadRequest, "user must not be set for s3")
			return
		}
	case "gcs":
		needed = map[string]string{"gcsBucket": req.GCSBucket, "gcsCredentials": req.GCSCredentials}
	}
	if !slices.Contains(logDestinations, req.DestinationType) {
		c.fail(http.StatusBadRequest, "unknown destinationType "+req.DestinationType)
		return
	}
	for _, field := range []string{"url", "token", "s3Bucket", "s3Region", "s3AuthenticationType", "s3RoleArn", "s3ExternalId", "s3AccessKeyId", "s3SecretAccessKey", "gcsBucket", "gcsCredentials"} {
		if v, ok := needed[field]; ok && v == "" {
			c.fail(http.StatusBadRequest, field+" must be set for destinationType "+req.DestinationType)
			return
		}
	}
	l := &keptLogstream{logstream: req.logstream, SecretHashes: map[string]string{}}
	l.LogType = t
	if l.CompressionFormat == "" {
		l.CompressionFormat = "none"
	}
	for k, v := range map[string]string{"token": req.Token, "s3SecretAccessKey": req.S3SecretAccessKey, "gcsCredentials": req.GCSCredentials} {
		if v != "" {
			l.SecretHashes[k] = hashSecret(v)
		}
	}
	c.s.st.Logstreams[t] = l
	c.s.dirty()
	c.ok()
}

func (c *call) deleteLogstream() {
	t := c.logType()
	if t == "" {
		return
	}
	if c.s.st.Logstreams[t] == nil {
		c.fail(http.StatusNotFound, "log streaming is not configured")
		return
	}
	delete(c.s.st.Logstreams, t)
	c.s.dirty()
	c.ok()
}
