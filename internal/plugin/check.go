// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"io"
	"os"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

type checkCmd struct {
	Objects      bool   `default:"true" negatable:"" help:"Check the objects of users too: tailnets, proxies, services and Gateways that are not ready."`
	Admission    bool   `default:"true" negatable:"" help:"Check the admission policies that protect internal kinds. Turn it off if the chart tailscale-gateway is installed with admission.enabled=false on purpose."`
	EnvoyGateway string `default:"auto" enum:"auto,require,skip" help:"Check Envoy Gateway and the extension: auto if the extension is installed, require, or skip." placeholder:"MODE"`

	Images string `help:"Compare the digests of the images that run with those of a list: images.txt of a release, or the output of its mirror.sh. - reads standard input." placeholder:"FILE"`

	CrossplaneNamespace   string `default:"crossplane-system" help:"Namespace of Crossplane and the provider." group:"Names"`
	CrossplaneAccount     string `default:"crossplane" help:"Service account that Crossplane runs as." group:"Names"`
	ProviderAccount       string `default:"provider-tailscale" help:"Service account that the provider runs as." group:"Names"`
	EnvoyGatewayNamespace string `default:"envoy-gateway-system" help:"Namespace of Envoy Gateway." group:"Names"`
	ExtensionNamespace    string `default:"envoy-gateway-system" help:"Namespace of the extension." group:"Names"`

	Output string `short:"o" default:"text" enum:"text,json,yaml" help:"Format: text, json or yaml." placeholder:"FORMAT"`
}

// Examples of the help, which tests run.
const (
	exampleCheck       = "kubectl tailscale-gateway check"
	exampleCheckRoutes = "kubectl tailscale-gateway check --envoy-gateway=require --no-objects"
	exampleCheckImages = "kubectl tailscale-gateway check --images=images.txt"
)

// Help returns the long help.
func (*checkCmd) Help() string {
	return `The command reads versions, images, packages, kinds, roles, admission policies, network policies, certificates, the configuration of Envoy Gateway, and the state of your objects and how near they are to limits. It prints each fault once: what is wrong, why it matters, what fixes it, and what was not checked because of it. Facts that you may not read are Unknown, and count neither as absent nor as right. It changes nothing; to ask what service accounts may do, you need the right to create subjectaccessreviews.

Examples:

    Check an installation and the objects in it:
      ` + exampleCheck + `

    Check that routes can use our kinds:
      ` + exampleCheckRoutes + `

    Check that the images of a release run:
      ` + exampleCheckImages + `

Exit codes: 0 if all is right, also with warnings, 1 if something is wrong, 2 if the command failed, or if nothing is wrong as far as you may read.`
}

func (c *checkCmd) options(f kubeFlags) check.Options {
	return check.Options{
		CrossplaneNamespace: c.CrossplaneNamespace, CrossplaneAccount: c.CrossplaneAccount, ProviderAccount: c.ProviderAccount,
		EnvoyGatewayNamespace: c.EnvoyGatewayNamespace, ExtensionNamespace: c.ExtensionNamespace,
		EnvoyGateway: c.EnvoyGateway, Admission: c.Admission, Objects: c.Objects,
		Version: version.Version, Context: f.Context, Kubeconfig: f.Kubeconfig,
	}
}

// Run checks the cluster.
func (c *checkCmd) Run(s *session, f *kubeFlags) error {
	listed, err := c.images(s.input)
	if err != nil {
		return err
	}
	kube, err := s.kube()
	if err != nil {
		return err
	}
	server, err := s.server()
	if err != nil {
		return err
	}
	r := &reader{ctx: s.ctx, kube: kube, server: server, options: c.options(*f), at: s.time.Now()}
	report, err := s.judge(r, listed)
	if err != nil {
		return err
	}
	if c.Output == "text" {
		_, err := io.WriteString(s.out, report.Text())
		return errors.Wrap(err, "cannot print")
	}
	return encode(s.out, c.Output, report)
}

// judge makes all checks, and sets the exit code. Images that run are compared with listed ones, unless these
// are nil.
func (s *session) judge(r *reader, listed []string) (check.Report, error) {
	facts, err := r.readFacts()
	if err != nil {
		return check.Report{}, err
	}
	facts.Listed = listed
	report := check.Make(facts, r.options)
	switch {
	case report.Count(check.Wrong) > 0:
		s.code = ExitFound
	case report.Count(check.Unknown) > 0:
		s.code = ExitFailed
	}
	return report, nil
}

// maxList is the length of a list of images that is read, in bytes.
const maxList = 1 << 20

// images returns the images of the list that the caller named, and nil without one.
func (c *checkCmd) images(input io.Reader) ([]string, error) {
	switch c.Images {
	case "":
		return nil, nil
	case "-":
	default:
		f, err := os.Open(c.Images)
		if err != nil {
			return nil, errors.Wrap(err, "cannot read the list of images")
		}
		defer func() { _ = f.Close() }()
		input = f
	}
	b, err := io.ReadAll(io.LimitReader(input, maxList))
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the list of images")
	}
	out, err := check.ParseImages(string(b))
	return out, errors.Wrapf(err, "cannot use the list of images %q", c.Images)
}
