// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/installation"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// An installer reads the facts of an installation, and carries out its plan.
type installer struct {
	session *session
	cmd     *installCmd
	kube    client.Client
	server  server
	helm    helmProgram
	options installation.Options
	facts   installation.Facts

	// credential is the OAuth client, of the caller or of the Secret, and api the client that logs in with it.
	credential tailscale.Config
	api        *tailscale.Client

	// lines are the answers of the person at the terminal.
	lines *bufio.Reader
}

func newInstaller(s *session, c *installCmd, f kubeFlags) (*installer, error) {
	kube, err := s.kube()
	if err != nil {
		return nil, err
	}
	server, err := s.server()
	if err != nil {
		return nil, err
	}
	return &installer{session: s, cmd: c, kube: kube, server: server, helm: helmProgram{ctx: s.ctx, input: s.input}, options: c.options(f)}, nil
}

func (i *installer) reader() *reader {
	return &reader{ctx: i.session.ctx, kube: i.kube, server: i.server, options: i.options.Check, at: i.session.time.Now()}
}

// prepare reads all facts, and asks for what is missing. It changes nothing.
func (i *installer) prepare() error {
	r := i.reader()
	if err := i.readCluster(r); err != nil {
		return err
	}
	if err := i.ask(); err != nil {
		return err
	}
	if err := i.readClient(); err != nil {
		return err
	}
	i.options = i.options.Completed(i.facts.Release.Value)
	i.facts.Secret = ask(r, func() (*installation.Secret, error) { return i.readSecret(r.ctx) })
	if r.failure != nil {
		return r.failure
	}
	return i.readTailnet(r.ctx)
}

// readCluster reads what is in the cluster, and what Helm knows.
func (i *installer) readCluster(r *reader) error {
	f := &i.facts
	f.Cluster = check.Facts{At: i.session.time.Now(), Kubernetes: ask(r, r.version)}
	if r.failure != nil {
		return r.failure
	}
	f.Cluster.Deployments = ask(r, func() ([]appsv1.Deployment, error) {
		l := &appsv1.DeploymentList{}
		err := r.kube.List(r.ctx, l, client.InNamespace(r.options.CrossplaneNamespace))
		return l.Items, err
	})
	f.Cluster.Packages = ask(r, r.packages)
	f.Cluster.Releases = r.releases
	f.Namespace = ask(r, func() (bool, error) {
		ns := &metav1.PartialObjectMetadata{}
		ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		err := r.kube.Get(r.ctx, types.NamespacedName{Name: i.options.Namespace}, ns)
		return err == nil, err
	})
	f.Denied = ask(r, func() ([]string, error) { return i.denied(r.ctx) })
	if r.failure != nil {
		return r.failure
	}
	if f.Helm = answered(i.helm.version()); f.Helm.Unknown == "" {
		f.ChartVersion = answered(i.helm.chartVersion(i.options.Source()))
		f.Release = answered(i.helm.release(i.options))
	}
	return errors.Wrap(i.session.ctx.Err(), "interrupted")
}

// denied returns what the caller may not do, of what an installation cannot do without.
func (i *installer) denied(ctx context.Context) ([]string, error) {
	var out []string
	for _, a := range []authv1.ResourceAttributes{
		{Resource: "secrets", Namespace: i.options.Namespace},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
		{Group: "pkg.crossplane.io", Resource: "configurations"},
	} {
		a.Verb = "create"
		review := &authv1.SelfSubjectAccessReview{Spec: authv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		if err := i.kube.Create(ctx, review); err != nil {
			return nil, err
		}
		if review.Status.Allowed {
			continue
		}
		name := "create " + strings.TrimSuffix(a.Resource+"."+a.Group, ".")
		if a.Namespace != "" {
			name += " in namespace " + a.Namespace
		}
		out = append(out, name)
	}
	return out, nil
}

// maxSecretFile limits the file with the secret of an OAuth client, in bytes.
const maxSecretFile = 4096

// readClient reads the OAuth client that the caller named.
func (i *installer) readClient() error {
	if i.cmd.ClientID == "" {
		return nil
	}
	secret, err := i.clientSecret()
	if err != nil {
		return err
	}
	if secret = strings.TrimSpace(secret); secret == "" || len(secret) >= maxSecretFile {
		return errors.Errorf("--client-secret-file: the secret of the OAuth client must have between 1 and %d characters", maxSecretFile)
	}
	i.credential = tailscale.Config{
		ClientID: i.cmd.ClientID, ClientSecret: secret,
		Credential: "the OAuth client of --client-id", Hint: "check its ID and its secret, and that it was not revoked",
	}
	return nil
}

func (i *installer) clientSecret() (string, error) {
	var input io.Reader
	switch i.cmd.ClientSecretFile {
	case "":
		if !i.asks() {
			return "", errors.New("--client-id needs --client-secret-file; with - it is the standard input")
		}
		fmt.Fprint(i.session.errs, "Client secret of the OAuth client, which is not shown: ")
		secret, err := i.session.person.hidden(i.session.ctx)
		fmt.Fprintln(i.session.errs)
		return secret, err
	case "-":
		input = i.session.input
	default:
		f, err := os.Open(i.cmd.ClientSecretFile)
		if err != nil {
			return "", errors.Wrap(err, "--client-secret-file")
		}
		defer f.Close() // It is only read.
		input = f
	}
	b, err := io.ReadAll(io.LimitReader(input, maxSecretFile))
	return string(b), errors.Wrap(err, "--client-secret-file")
}

// readSecret reads the Secret with the credential. It keeps the credential to ask the tailnet, and of what is in the
// plan only which keys are missing.
func (i *installer) readSecret(ctx context.Context) (*installation.Secret, error) {
	if i.options.Secret == "" {
		return nil, nil //nolint:nilnil // Nobody named one.
	}
	s := &corev1.Secret{}
	if err := i.kube.Get(ctx, types.NamespacedName{Namespace: i.options.Namespace, Name: i.options.Secret}, s); err != nil {
		return nil, err
	}
	out := &installation.Secret{}
	for _, key := range []string{meta.SecretKeyClientID, meta.SecretKeyClientSecret} {
		if strings.TrimSpace(string(s.Data[key])) == "" {
			out.Missing = append(out.Missing, key)
		}
	}
	if len(out.Missing) > 0 {
		return out, nil
	}
	cfg, err := clients.OAuth(s)
	if err != nil {
		return nil, err
	}
	if i.options.Client {
		out.Same = cfg.ClientID == i.credential.ClientID && cfg.ClientSecret == i.credential.ClientSecret
		return out, nil
	}
	i.credential = cfg
	return out, nil
}

// readTailnet asks the tailnet, if there is a credential.
func (i *installer) readTailnet(ctx context.Context) error {
	if i.options.SkipTailnet || i.credential.ClientID == "" {
		return nil
	}
	i.credential.URL, i.credential.Tailnet = i.cmd.APIURL, "-"
	api, err := newPool(i.session.time).Client("install", i.credential)
	if err != nil {
		return errors.Wrap(err, "cannot make a client of Tailscale's API")
	}
	i.api = api
	i.facts.Tailnet = askTailnet(ctx, api, i.credential.ClientID)
	return errors.Wrap(ctx.Err(), "interrupted")
}

// askTailnet reads what a tailnet says of a credential, and its policy file.
func askTailnet(ctx context.Context, api *tailscale.Client, id string) *installation.Tailnet {
	out := &installation.Tailnet{}
	reads := []struct {
		scope string
		read  func() error
	}{
		{"devices:core", func() error { _, err := api.Devices().Devices(ctx, tailscale.Current); return err }},
		{"services", func() error { _, err := api.Services().Services(ctx, tailscale.Current); return err }},
		{"auth_keys", func() error { _, err := api.Keys().AuthKeys(ctx, tailscale.Current); return err }},
	}
	for _, r := range reads {
		err := r.read()
		switch {
		case tailscale.ClassOf(err) == tailscale.ClassForbidden:
			out.Refused = append(out.Refused, r.scope)
		case err != nil:
			out.Failure = err.Error()
			return out
		}
		// The answer to the login has the scopes, and no further question is needed.
		if info, err := api.Tailnet().Credential(ctx); err == nil && len(info.Scopes) > 0 {
			out.Scopes, out.Refused = info.Scopes, nil
			break
		}
	}
	if out.Scopes != nil && installation.Allows(out.Scopes, "oauth_keys:read") {
		out.Tags = tagsOf(ctx, api, id)
	}
	switch p, err := api.PolicyFile().PolicyFile(ctx, tailscale.Current); {
	case err != nil:
		out.Policy.Unknown = err.Error()
	default:
		out.Policy.Value = p.Text
	}
	return out
}

// tagsOf returns the tags of an OAuth client, or nil if they are not known.
func tagsOf(ctx context.Context, api *tailscale.Client, id string) []string {
	credentials, err := api.TrustCredentials().TrustCredentials(ctx, tailscale.Current)
	if err != nil {
		return nil
	}
	for n := range credentials {
		if credentials[n].ID == id && len(credentials[n].Tags) > 0 {
			return credentials[n].Tags
		}
	}
	return nil
}
