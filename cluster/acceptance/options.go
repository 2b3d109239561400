// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// URLs of Tailscale's servers.
const (
	defaultAPI     = "https://api.tailscale.com"
	defaultControl = "https://controlplane.tailscale.com"
)

// prefixRoot begins the prefix of every run, so that its name alone shows that an object belongs to
// a run.
const prefixRoot = "tsgw-acc-"

// options are the flags of a run.
type options struct {
	Tailnet    string `default:"-" help:"Name of the tailnet in the API; - is the tailnet of the credential."`
	APIURL     string `name:"api-url" default:"https://api.tailscale.com" help:"URL of the API, without /api/v2."`
	ControlURL string `name:"control-url" default:"https://controlplane.tailscale.com" help:"URL of the coordination server that nodes join."`
	Tag        string `default:"tag:k8s" help:"Tag of auth keys, nodes and services. The credential must own it."`
	Prefix     string `help:"Prefix of the names of all created objects, which begins with tsgw-acc-. Default: that and random characters."`

	Write      bool   `help:"Create services, keys, nodes, split-DNS domains, webhooks and posture attributes, and remove them."`
	Policy     bool   `help:"Add a comment and a fragment to the tailnet's policy file, and remove them."`
	Settings   bool   `help:"Change the tailnet's route selection to each of its values, and back."`
	Certs      bool   `help:"Request a certificate for a service. It counts against the issuer's limits, and its name becomes public."`
	Kubeconfig string `type:"path" help:"Run examples/quickstart in the cluster of this file, where Crossplane and the packages are installed. The OAuth client is stored in a Secret there."`

	Quickstart    string        `type:"path" default:"examples/quickstart" help:"Folder of the quickstart's manifests."`
	OldestImage   string        `help:"Run the quickstart with this image of tailscale, too: the oldest that you run. The provider's grants must allow it."`
	NewestImage   string        `help:"Run the quickstart with this image of tailscale, too: the newest that you run."`
	Containerboot string        `type:"path" help:"Program containerboot, with tailscaled beside it. Default: that of the lab, if it is built."`
	Out           string        `type:"path" default:"_out/acceptance" help:"Folder of the ledger and the results."`
	Timeout       time.Duration `default:"3m" help:"How long to wait for each change in the tailnet."`
	Settle        time.Duration `default:"5s" help:"How long a value must be unchanged to be final."`
	Rows          string        `name:"only" help:"Run only rows whose SECTION/NAME matches this regular expression."`
	Cleanup       bool          `help:"Only remove the objects in the ledger in --out. With --prefix, for a ledger that is lost, list objects by name instead."`
	Confirmed     bool          `name:"yes" help:"With --cleanup and --prefix: remove the objects that are listed."`
}

// prefixes matches prefixes: DNS labels with room for a suffix. They end without another dash, which
// separates the suffix: no prefix of a run begins the names of another run.
var prefixes = regexp.MustCompile(`^` + prefixRoot + `[a-z0-9]{1,20}$`)

// check compiles Rows, and returns a usageError if an option is invalid.
func (o *options) check() (*regexp.Regexp, error) {
	pattern, err := regexp.Compile(o.Rows)
	if err != nil {
		return nil, usageError{errors.Wrap(err, "cannot parse --only")}
	}
	for name, u := range map[string]string{"--api-url": o.APIURL, "--control-url": o.ControlURL} {
		if p, err := url.Parse(u); err != nil || p.Host == "" || (p.Scheme != "https" && p.Scheme != "http") {
			return nil, usageError{errors.Errorf("%s must be an http or https URL", name)}
		}
	}
	if !strings.HasPrefix(o.Tag, "tag:") {
		return nil, usageError{errors.New("--tag must begin with tag:")}
	}
	if o.Prefix != "" && !prefixes.MatchString(o.Prefix) {
		return nil, usageError{errors.Errorf("--prefix must be %s and up to 20 lowercase letters and digits", prefixRoot)}
	}
	if o.Confirmed && (!o.Cleanup || o.Prefix == "") {
		return nil, usageError{errors.New("--yes needs --cleanup and --prefix")}
	}
	if o.Timeout <= 0 || o.Settle <= 0 {
		return nil, usageError{errors.New("--timeout and --settle must be positive")}
	}
	return pattern, nil
}

// newPrefix returns a random prefix.
func newPrefix() string { return prefixRoot + strings.ToLower(rand.Text()[:6]) }

// real reports whether nodes join Tailscale's own coordination server.
func (o *options) real() bool { return o.ControlURL == defaultControl }

// A credential of the API. One of the three kinds is set.
type credential struct {
	clientID, clientSecret string
	idToken                string
	apiKey                 string
}

// credentialVars are removed from the environment, because nodes of this process and programs that
// it starts would use them.
var credentialVars = []string{"TS_CLIENT_ID", "TS_CLIENT_SECRET", "TS_ID_TOKEN", "TS_API_KEY", "TS_AUTHKEY", "TS_AUTH_KEY"}

// takeCredential reads the credential from the environment, and removes it there.
func takeCredential() (credential, error) {
	v := map[string]string{}
	for _, name := range credentialVars {
		v[name] = strings.TrimSpace(os.Getenv(name))
		if err := os.Unsetenv(name); err != nil {
			return credential{}, errors.Wrapf(err, "cannot unset %s", name)
		}
	}
	c := credential{clientID: v["TS_CLIENT_ID"], clientSecret: v["TS_CLIENT_SECRET"], idToken: v["TS_ID_TOKEN"], apiKey: v["TS_API_KEY"]}
	return c, c.check()
}

func (c credential) check() error {
	switch {
	case c.apiKey != "":
		if c.clientSecret != "" || c.idToken != "" {
			return usageError{errors.New("TS_API_KEY and another credential are both set")}
		}
	case c.clientSecret != "" && c.idToken != "":
		return usageError{errors.New("TS_CLIENT_SECRET and TS_ID_TOKEN are both set")}
	case c.clientID != "" && (c.clientSecret != "" || c.idToken != ""):
	default:
		return usageError{errors.New("no credential: set TS_CLIENT_ID and TS_CLIENT_SECRET, or TS_CLIENT_ID and TS_ID_TOKEN, or TS_API_KEY")}
	}
	return nil
}

// kind names the credential without showing it.
func (c credential) kind() string {
	switch {
	case c.apiKey != "":
		return "API access token"
	case c.idToken != "":
		return "federated identity"
	}
	return "OAuth client"
}
