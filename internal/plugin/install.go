// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/installation"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

type installCmd struct {
	Tailnet          string   `help:"Name of the first TailscaleTailnet, which the provider creates once. The default is that of the release, or none." placeholder:"NAME" group:"Tailnet"`
	Tags             []string `help:"Tags of the proxies of the first tailnet. The default is those of the release, or tag:k8s." placeholder:"TAG" group:"Tailnet"`
	OAuthSecret      string   `name:"oauth-secret" help:"Secret in the release's namespace with client_id and client_secret of an OAuth client. With --client-id it is created; the default is then tailscale-oauth." placeholder:"NAME" group:"Tailnet"`
	ClientID         string   `name:"client-id" help:"ID of an OAuth client, of which the command creates the Secret." placeholder:"ID" group:"Tailnet"`
	ClientSecretFile string   `help:"File with the secret of the OAuth client; - is the standard input." placeholder:"FILE" group:"Tailnet"`
	CredentialTag    string   `default:"tag:k8s-operator" help:"Tag of the OAuth client, if the client may not read its own tags." placeholder:"TAG" group:"Tailnet"`
	MergePolicy      bool     `help:"Add what is missing to the policy file of the tailnet, and keep all else in it. The default prints it." group:"Tailnet"`
	SkipTailnetCheck bool     `help:"Ask the tailnet nothing: only the provider can reach Tailscale's API." group:"Tailnet"`
	APIURL           string   `name:"api-url" default:"https://api.tailscale.com" help:"URL of Tailscale's API." group:"Tailnet"`

	Chart        string   `help:"Path or OCI reference of the chart, such as that of a mirror. The default is the published chart." placeholder:"CHART" group:"Helm"`
	ChartVersion string   `help:"Version of the chart. The default is that of the plugin." placeholder:"VERSION" group:"Helm"`
	Values       []string `short:"f" sep:"none" help:"File with values for the chart; may be repeated." placeholder:"FILE" group:"Helm"`
	Set          []string `sep:"none" help:"Value for the chart, as KEY=VALUE; may be repeated." placeholder:"VALUE" group:"Helm"`
	Release      string   `default:"tailscale-gateway" help:"Name of the release." placeholder:"NAME" group:"Helm"`
	Namespace    string   `short:"n" help:"Namespace of the release and of the Secret. The default is that of Crossplane." placeholder:"NAMESPACE" group:"Helm"`
	Downgrade    bool     `name:"allow-downgrade" help:"Allow a chart that is older than the release." group:"Helm"`

	Crossplane          bool   `help:"Install Crossplane if the cluster has none."`
	CrossplaneNamespace string `default:"crossplane-system" help:"Namespace of Crossplane and the provider." group:"Names"`
	CrossplaneAccount   string `default:"crossplane" help:"Service account that Crossplane runs as." group:"Names"`

	DryRun  bool          `help:"Print what the command would do, and change nothing in the cluster or the tailnet."`
	NoInput bool          `name:"yes" help:"Ask nothing. The command also asks nothing if its standard input is no terminal."`
	Timeout time.Duration `default:"5m" help:"How long to wait until the installation is ready."`
	Output  string        `short:"o" default:"text" enum:"text,json,yaml" help:"Format: text, json or yaml." placeholder:"FORMAT"`
}

// Examples of the help, which tests run.
const (
	exampleInstall        = "kubectl tailscale-gateway install --dry-run"
	exampleInstallTailnet = "kubectl tailscale-gateway install --dry-run --crossplane --tailnet=example --client-id=ID --client-secret-file=secret.txt"
	exampleInstallSecret  = "kubectl tailscale-gateway install --dry-run --yes --tailnet=example --oauth-secret=tailscale-oauth --merge-policy"
)

// Help returns the long help.
func (*installCmd) Help() string {
	return `The command installs Tailscale Gateway by Helm, waits until it is ready, and says whether it is healthy. Before anything changes, it reads the versions, your permissions, the scopes of the credential and the policy file of the tailnet, asks on a terminal for what is missing, and prints all that it will do. It then creates the Secret with the credential, runs helm upgrade --install, and has the provider create the first tailnet. Run it again to continue: what exists is kept, a Secret is never overwritten, and a release keeps its values.

Examples, without --dry-run to install:

    See what is missing:
      ` + exampleInstall + `

    Install Crossplane as well, and register a tailnet:
      ` + exampleInstallTailnet + `

    Use an existing Secret, ask nothing, and edit the policy file of the tailnet:
      ` + exampleInstallSecret + `

Exit codes: 0 if it is installed and healthy, or if nothing blocks a dry run; 1 if something is wrong; 2 if the command failed, or could not find out.`
}

// tagForm is the form of a tag in a policy file.
var tagForm = regexp.MustCompile(`^tag:[a-zA-Z][a-zA-Z0-9-]*$`)

// valid returns an error that names the flag with a wrong value. Names are parts of arguments of Helm.
func (c *installCmd) valid() error {
	names := []struct {
		flag, value string
		valid       func(string) []string
	}{
		{"--tailnet", c.Tailnet, validation.IsDNS1123Label},
		{"--oauth-secret", c.OAuthSecret, validation.IsDNS1123Subdomain},
		{"--release", c.Release, validation.IsDNS1123Subdomain},
		{"--namespace", c.Namespace, validation.IsDNS1123Label},
		{"--crossplane-namespace", c.CrossplaneNamespace, validation.IsDNS1123Label},
	}
	for _, n := range names {
		if n.value != "" && len(n.valid(n.value)) > 0 {
			return errors.Errorf("%s: %s", n.flag, n.valid(n.value)[0])
		}
	}
	for _, t := range append([]string{c.CredentialTag}, c.Tags...) {
		if !tagForm.MatchString(t) {
			return errors.Errorf("--tags and --credential-tag: %q is not a tag such as tag:k8s", t)
		}
	}
	for flag, v := range map[string]string{"--chart": c.Chart, "--chart-version": c.ChartVersion} {
		if strings.HasPrefix(v, "-") {
			return errors.Errorf("%s: %q begins with a dash", flag, v)
		}
	}
	switch {
	case slices.ContainsFunc(c.Set, func(v string) bool {
		return strings.Contains(v, "clientSecret") || strings.Contains(v, "tailnet.oauth.")
	}):
		return errors.New("--set: name an OAuth client by --client-id and --client-secret-file, which keep its secret out of arguments and of the release")
	case c.ClientSecretFile != "" && c.ClientID == "":
		return errors.New("--client-secret-file needs --client-id")
	case c.ClientSecretFile == "-" && slices.Contains(c.Values, "-"):
		return errors.New("--client-secret-file and --values cannot both be the standard input")
	case len(c.Tags) > 0 && c.Tailnet == "":
		return errors.New("--tags needs --tailnet")
	}
	return nil
}

// options returns what the caller chose.
func (c *installCmd) options(f kubeFlags) installation.Options {
	namespace := c.Namespace
	if namespace == "" {
		namespace = c.CrossplaneNamespace
	}
	return installation.Options{
		Check: check.Options{
			CrossplaneNamespace: c.CrossplaneNamespace, CrossplaneAccount: c.CrossplaneAccount, ProviderAccount: "provider-tailscale",
			EnvoyGatewayNamespace: "envoy-gateway-system", ExtensionNamespace: "envoy-gateway-system",
			EnvoyGateway: check.Auto, Admission: true, Objects: true,
			Version: version.Version, Context: f.Context, Kubeconfig: f.Kubeconfig,
		},
		As: f.As, AsGroup: f.AsGroup,
		Release: c.Release, Namespace: namespace, Chart: c.Chart, Version: strings.TrimPrefix(c.ChartVersion, "v"), Values: c.Values, Set: c.Set,
		Crossplane: c.Crossplane, Downgrade: c.Downgrade, Secret: c.OAuthSecret, Client: c.ClientID != "", Tailnet: c.Tailnet, Tags: c.Tags,
		CredentialTag: c.CredentialTag, SkipTailnet: c.SkipTailnetCheck, MergePolicy: c.MergePolicy,
	}
}

// An installReport is what the command install prints. Its fields are stable.
type installReport struct {
	DryRun bool `json:"dryRun"`

	installation.Plan `json:",inline"`

	// Check is the outcome of the checks after the installation.
	Check *check.Report `json:"check,omitempty"`
}

// Run plans the installation, and makes it.
func (c *installCmd) Run(s *session, f *kubeFlags) error {
	if err := c.valid(); err != nil {
		return err
	}
	i, err := newInstaller(s, c, *f)
	if err != nil {
		return err
	}
	if err := i.prepare(); err != nil {
		return err
	}
	report := installReport{DryRun: c.DryRun, Plan: installation.Make(i.facts, i.options)}
	if err := i.proceed(&report); err != nil {
		return err
	}
	if c.Output == "text" {
		return nil
	}
	return encode(s.out, c.Output, report)
}

// proceed prints a plan, and carries it out unless something blocks it.
func (i *installer) proceed(report *installReport) error {
	i.say("%s\n", report.Text())
	if n := report.Count(installation.Blocked); n > 0 {
		i.session.code = ExitFound
		i.say("Nothing was changed: %d of these block the installation.\n", n)
		return nil
	}
	if i.cmd.DryRun {
		i.say("Nothing was changed: this is a dry run.\n")
		return nil
	}
	if ok, err := i.confirm("Do this?"); err != nil || !ok {
		i.say("Nothing was changed.\n")
		i.session.code = ExitFound
		return err
	}
	for n := range report.Steps {
		s := &report.Steps[n]
		if s.State != installation.Action {
			continue
		}
		i.say("%s ...\n", Quoted(s.Summary))
		s.Result = "done"
		if err := i.act(*s); err != nil {
			if i.session.ctx.Err() != nil {
				return errors.Wrapf(err, "interrupted: %s; run the command again to continue", s.Summary)
			}
			i.session.code, s.Result = ExitFound, "failed: "+Quoted(err.Error())
			i.say("Wrong    cannot %s: %s\n         Next: correct this, and run the command again: it continues here\n", Quoted(s.Summary), Quoted(err.Error()))
			if s.Name != installation.StepWait {
				return nil
			}
		}
	}
	return i.judge(report)
}

// judge runs the checks, and prints their verdict.
func (i *installer) judge(report *installReport) error {
	late := i.session.code
	r := i.reader()
	verdict, err := i.session.judge(r, nil)
	if err != nil {
		return err
	}
	if late != ExitNone {
		i.session.code = late
	}
	report.Check = &verdict
	i.say("\n%s", verdict.Text())
	if n := report.Count(installation.Yours); n > 0 {
		i.say("\nLeft to you: %d\n", n)
		for _, s := range report.Steps {
			if s.State == installation.Yours {
				i.say("%s", s.Text())
			}
		}
	}
	return nil
}

// say prints to people: where the output is for programs, to the standard error.
func (i *installer) say(format string, args ...any) {
	w := i.session.out
	if i.cmd.Output != "text" {
		w = i.session.errs
	}
	// A terminal that is gone must not end an installation.
	_, _ = io.WriteString(w, fmt.Sprintf(format, args...))
}
