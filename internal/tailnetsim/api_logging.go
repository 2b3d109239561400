// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
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
	// GCSCredentials are not write-only in the OpenAPI document, and the Terraform
	// provider reads them back (resource_logstream_configuration.go): they configure
	// a workload identity and are no secret.
	GCSCredentials string `json:"gcsCredentials,omitempty"`
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

func getLogstream(c *call) {
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
func setLogstream(c *call) {
	t := c.logType()
	if t == "" {
		return
	}
	var req struct {
		logstream

		Token             string `json:"token"`
		S3SecretAccessKey string `json:"s3SecretAccessKey"`
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
	for k, v := range map[string]string{"token": req.Token, "s3SecretAccessKey": req.S3SecretAccessKey} {
		if v != "" {
			l.SecretHashes[k] = hashSecret(v)
		}
	}
	c.s.st.Logstreams[t] = l
	c.s.dirty()
	c.ok()
}

func deleteLogstream(c *call) {
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

// getLogstreamStatus answers as for a stream that works.
func getLogstreamStatus(c *call) {
	t := c.logType()
	if t == "" {
		return
	}
	if c.s.st.Logstreams[t] == nil {
		c.fail(http.StatusNotFound, "log streaming is not configured")
		return
	}
	c.json(map[string]any{"lastActivity": c.s.now().UTC(), "lastError": "", "maxBodySize": 0, "numBytesSent": 0, "rateBytesSent": 0, "numEntriesSent": 0})
}

// awsAccount is made up: the account that assumes a role to stream logs to S3.
const awsAccount = "001234567890"

// An externalAWSID is the external ID that Tailscale presents to AWS when it assumes a role.
type externalAWSID struct {
	Reusable bool `json:"reusable"`
}

// createExternalID makes an id, or returns the reusable one that is not in use yet
// (OpenAPI: paths./tailnet/{tailnet}/aws-external-id).
func createExternalID(c *call) {
	var req struct {
		Reusable bool `json:"reusable"`
	}
	if len(c.body) > 0 && !c.decode(&req) {
		return
	}
	id := ""
	for _, existing := range slices.Sorted(maps.Keys(c.s.st.ExternalIDs)) {
		if req.Reusable && c.s.st.ExternalIDs[existing].Reusable && !c.s.st.linked(existing) {
			id = existing
		}
	}
	if id == "" {
		id = randomHex(16)
		c.s.st.ExternalIDs[id] = &externalAWSID{Reusable: req.Reusable}
		c.s.dirty()
	}
	c.json(map[string]any{"externalId": id, "tailscaleAwsAccountId": awsAccount})
}

// linked reports whether a log stream uses an external id.
func (st *state) linked(id string) bool {
	for _, l := range st.Logstreams {
		if l.S3ExternalID == id {
			return true
		}
	}
	return false
}

// validateTrustPolicy succeeds for every role, without a request to AWS.
func validateTrustPolicy(c *call) {
	if c.s.st.ExternalIDs[c.r.PathValue("id")] == nil {
		c.fail(http.StatusNotFound, "external id not found")
		return
	}
	var req struct {
		RoleARN string `json:"roleArn"`
	}
	if !c.decode(&req) {
		return
	}
	if !strings.HasPrefix(req.RoleARN, "arn:aws:iam::") {
		c.fail(http.StatusUnprocessableEntity, "validation failed: not the ARN of a role")
		return
	}
	c.ok()
}

// window checks the times of a request for logs, and answers 400 if one is wrong
// (abn/ansible-tailscale-admin, tests/live/test_logging_module_live.py).
func (c *call) window() bool {
	for _, name := range []string{"start", "end"} {
		at := c.r.URL.Query().Get(name)
		if _, err := time.Parse(time.RFC3339, at); err != nil {
			c.fail(http.StatusBadRequest, "invalid "+strconv.Quote(name)+" time: "+strconv.Quote(at))
			return false
		}
	}
	return true
}

// listAuditLog has no entries: an empty window is null in the API (the same source).
func listAuditLog(c *call) {
	if c.window() {
		c.json(map[string]any{"version": "1.1", "tailnet": c.s.opts.Tailnet, "logs": nil})
	}
}

// listFlowLogs has no entries: the simulator carries no traffic itself.
func listFlowLogs(c *call) {
	if c.window() {
		c.json(map[string]any{"logs": []any{}})
	}
}
