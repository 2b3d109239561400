// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/installation"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// helmGrace is how long an interrupted Helm may take to end.
const helmGrace = 30 * time.Second

// maxComplaint limits what is repeated of an error of Helm, in bytes.
const maxComplaint = 2000

// A helmProgram runs the caller's Helm, to which the caller's logins to registries and plugins belong. No secret is
// among its arguments.
type helmProgram struct {
	ctx context.Context //nolint:containedctx // It lives for one command.

	// input is the caller's standard input, for values from there.
	input io.Reader
}

// run runs Helm, and returns its standard output.
func (h helmProgram) run(args ...string) (string, error) {
	path, err := exec.LookPath("helm")
	if err != nil {
		return "", errors.New("there is no program helm in the PATH")
	}
	cmd := exec.CommandContext(h.ctx, path, args...)
	// A killed Helm would leave the release pending.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = helmGrace
	out, complaint := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, complaint
	if slices.Contains(args, "--values=-") {
		cmd.Stdin = h.input
	}
	if err := cmd.Run(); err != nil {
		complaints := text.Cut(strings.TrimSpace(text.Visible(complaint.String())), maxComplaint)
		if complaints == "" {
			complaints = err.Error()
		}
		return "", errors.New("helm: " + complaints)
	}
	return out.String(), nil
}

// answered returns the answer of Helm to a question.
func answered[T any](v T, err error) check.Answer[T] {
	if err != nil {
		var zero T
		return check.Answer[T]{Value: zero, Unknown: err.Error()}
	}
	return check.Answer[T]{Value: v}
}

// version returns the version of Helm.
func (h helmProgram) version() (string, error) {
	out, err := h.run("version", "--template={{.Version}}")
	return strings.TrimSpace(out), err
}

// chartVersion returns the version of a chart.
func (h helmProgram) chartVersion(source []string) (string, error) {
	out, err := h.run(append([]string{"show", "chart"}, source...)...)
	if err != nil {
		return "", err
	}
	chart := struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}{}
	if err := yaml.Unmarshal([]byte(out), &chart); err != nil {
		return "", errors.Wrap(err, "cannot parse the chart's metadata")
	}
	if chart.Name != charts.Install {
		return "", errors.Errorf("it is the chart %q, and not %s", chart.Name, charts.Install)
	}
	return chart.Version, nil
}

// release returns a release, or nil if there is none. It keeps no value that may be secret.
func (h helmProgram) release(o installation.Options) (*installation.Release, error) {
	flags := append(o.Cluster(), "--namespace="+o.Namespace, "--output=json")
	out, err := h.run(append([]string{"get", "metadata", o.Release}, flags...)...)
	if err != nil && strings.Contains(err.Error(), "release: not found") {
		return nil, nil //nolint:nilnil // An absent release is no error.
	}
	if err != nil {
		return nil, err
	}
	metadata := struct {
		Chart   string `json:"chart"`
		Version string `json:"version"`
		Status  string `json:"status"`
	}{}
	if err := json.Unmarshal([]byte(out), &metadata); err != nil {
		return nil, errors.Wrap(err, "cannot parse the metadata of the release")
	}
	if metadata.Chart != charts.Install {
		return nil, errors.Errorf("it is of the chart %q; name another one by --release", metadata.Chart)
	}
	if out, err = h.run(append([]string{"get", "values", o.Release}, flags...)...); err != nil {
		return nil, err
	}
	values := struct {
		Tailnet struct {
			Name            string         `json:"name"`
			OAuthSecretName string         `json:"oauthSecretName"`
			OAuth           map[string]any `json:"oauth"`
			Spec            struct {
				Tags             []string       `json:"tags"`
				OAuthSecretName  string         `json:"oauthSecretName"`
				WorkloadIdentity map[string]any `json:"workloadIdentity"`
				APIKeySecret     map[string]any `json:"apiKeySecret"`
			} `json:"spec"`
		} `json:"tailnet"`
	}{}
	if err := json.Unmarshal([]byte(out), &values); err != nil {
		// The error of the parser could repeat a value.
		return nil, errors.New("cannot parse the values of the release")
	}
	t := values.Tailnet
	return &installation.Release{
		Name: o.Release, Namespace: o.Namespace, Version: metadata.Version, Status: metadata.Status,
		Tailnet: t.Name, Secret: t.OAuthSecretName, Tags: t.Spec.Tags,
		Credential: t.OAuthSecretName != "" || len(t.OAuth) > 0 || t.Spec.OAuthSecretName != "" || len(t.Spec.WorkloadIdentity) > 0 || len(t.Spec.APIKeySecret) > 0,
	}, nil
}
