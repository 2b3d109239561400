// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/installation"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// fakeHelm is a program that records its arguments, and remembers the release. It uses only what the shell has itself.
const fakeHelm = `#!/bin/sh
printf '%%s\n' "$*" >> '%[1]s/calls'
case "$*" in
version*) echo v3.18.0 ;;
"show chart"*) echo 'name: tailscale-gateway'; read -r v < '%[1]s/chart'; echo "version: $v" ;;
"get metadata"*)
  if [ ! -f '%[1]s/release' ]; then echo 'Error: release: not found' >&2; exit 1; fi
  read -r v < '%[1]s/release'
  echo "{\"chart\": \"tailscale-gateway\", \"version\": \"$v\", \"status\": \"deployed\"}" ;;
"get values"*) echo '{"tailnet": {"name": "example", "oauthSecretName": "tailscale-oauth", "spec": {"tags": ["tag:k8s"]}}}' ;;
*"upgrade --install tailscale-gateway"*)
  if [ -f '%[1]s/broken' ]; then echo 'Error: the server is on fire' >&2; exit 1; fi
  read -r v < '%[1]s/chart'; echo "$v" > '%[1]s/release' ;;
esac
`

// A site is a world with a Helm that the test looks at.
type site struct {
	*world

	dir    string
	secret string // File with the secret of the OAuth client.
}

func newSite(t *testing.T, objects ...client.Object) *site {
	t.Helper()
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "crossplane-system"}})
	s := &site{world: newWorld(t, objects...), dir: t.TempDir()}
	s.secret = filepath.Join(s.dir, "secret")
	bin := t.TempDir()
	for path, content := range map[string]string{
		filepath.Join(bin, "helm"): fmt.Sprintf(fakeHelm, s.dir), filepath.Join(s.dir, "chart"): "0.2.0\n", s.secret: simtest.ClientSecret + "\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	return s
}

// crossplane returns a Crossplane that runs.
func crossplane() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "crossplane", Labels: map[string]string{check.LabelVersion: "2.4.0"}},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "crossplane"}}},
		Status:     appsv1.DeploymentStatus{UpdatedReplicas: 1, AvailableReplicas: 1},
	}
}

// file returns a file of the site, or nothing.
func (s *site) file(name string) string {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(b)
}

// upgrades returns the calls of Helm that change something.
func (s *site) upgrades() []string {
	var out []string
	for l := range strings.Lines(s.file("calls")) {
		if strings.Contains(l, "upgrade") {
			out = append(out, strings.TrimSpace(l))
		}
	}
	return out
}

// install runs the command with the tailnet of the site, and checks that no secret is anywhere but in the Secret.
func (s *site) install(args ...string) (int, string, string) {
	s.t.Helper()
	code, out, errs := s.run(append([]string{"install", "--api-url=" + s.url, "--chart=charts/tailscale-gateway"}, args...)...)
	if all := out + errs + s.file("calls"); strings.Contains(all, simtest.ClientSecret) || strings.Contains(all, "tskey-") {
		s.t.Errorf("install %v: a secret is in the output or in arguments:\n%s", args, all)
	}
	return code, out, errs
}

// setPolicy sets the policy file of the tailnet.
func (s *site) setPolicy(text string) {
	s.t.Helper()
	if _, err := s.api.PolicyFile().EditPolicyFile(s.t.Context(), func(string) (string, error) { return text, nil }); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) policy() string {
	s.t.Helper()
	p, err := s.api.PolicyFile().PolicyFile(s.t.Context(), tailscale.Current)
	if err != nil {
		s.t.Fatal(err)
	}
	return p.Text
}

// credential returns the Secret with the credential, or nil.
func (s *site) credential() *corev1.Secret {
	s.t.Helper()
	o := &corev1.Secret{}
	err := s.kube.Get(s.t.Context(), types.NamespacedName{Namespace: "crossplane-system", Name: "tailscale-oauth"}, o)
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// start has Crossplane install the packages, and the provider create the tailnet.
func (s *site) start() {
	s.t.Helper()
	condition := func(t xpv2.ConditionType) xpv2.Condition {
		return xpv2.Condition{Type: t, Status: corev1.ConditionTrue}
	}
	healthy := []xpv2.Condition{condition(pkgv1.TypeInstalled), condition(pkgv1.TypeHealthy)}
	provider := &pkgv1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	provider.Spec.Package = products.Image(products.Provider, "v0.2.0")
	provider.SetConditions(healthy...)
	function := &pkgv1.Function{ObjectMeta: metav1.ObjectMeta{Name: "f"}}
	function.Spec.Package = products.Image(products.Function, "v0.2.0")
	function.SetConditions(healthy...)
	configuration := &pkgv1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	configuration.Spec.Package = products.Image(products.Configuration, "v0.2.0")
	configuration.SetConditions(healthy...)
	definition := &apiextv1.CompositeResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "tailscaletailnets.gateway.tailscale.com"}}
	definition.Spec.Group = gatewayv1alpha1.Group
	definition.Status.SetConditions(condition(apiextv1.TypeEstablished))
	request := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: meta.FirstTailnetConfigMap},
		Data:       map[string]string{meta.FirstTailnetName: "example", meta.FirstTailnetCreated: "example"},
	}
	for _, o := range []client.Object{provider, function, configuration, definition, request} {
		if err := s.kube.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
}

const lackingPolicy = `{
  // The team's tags.
  "tagOwners": {
    "tag:k8s-operator": [], // The cluster.
  },
  "grants": [
    {"src": ["*"], "dst": ["tag:k8s-operator"], "ip": ["*"]},
  ],
}
`

// TestInstallDryRun checks that a dry run prints all that the command would do, and changes nothing.
func TestInstallDryRun(t *testing.T) {
	s := newSite(t)
	s.setPolicy(lackingPolicy)
	code, out, errs := s.install("--dry-run", "--crossplane", "--merge-policy", "--tailnet=example", "--client-id="+simtest.ClientID, "--client-secret-file="+s.secret)
	if code != ExitNone || errs != "" {
		t.Errorf("install --dry-run: code %d, %s", code, errs)
	}
	for _, want := range []string{
		"$ helm upgrade --install crossplane crossplane --repo=https://charts.crossplane.io/stable", "client_secret: (not shown)",
		`"tag:k8s": ["tag:k8s-operator"]`, `"dst": ["tag:k8s"]`, "--set=tailnet.oauthSecretName=tailscale-oauth", "Nothing was changed",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("install --dry-run: the output lacks %q:\n%s", want, out)
		}
	}
	if diff := cmp.Diff([]string(nil), s.upgrades()); diff != "" {
		t.Errorf("calls of Helm: -want, +got:\n%s", diff)
	}
	if s.credential() != nil || s.policy() != lackingPolicy {
		t.Errorf("the dry run changed the Secret to %v, and the policy file to\n%s", s.credential(), s.policy())
	}
	code, out, _ = s.install("--dry-run", "-o", "json")
	report := installReport{}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != ExitFound || report.Count(installation.Blocked) != 1 || !report.DryRun {
		t.Errorf("install -o json: code %d, %v, want the missing Crossplane alone to block:\n%s", code, err, out)
	}
}

// TestInstall checks each step, and that a second run does nothing new.
func TestInstall(t *testing.T) {
	s := newSite(t, crossplane())
	s.setPolicy(lackingPolicy)
	started := false
	s.starting = func() {
		if !started && len(s.upgrades()) > 0 {
			s.start()
			started = true
		}
	}
	args := []string{"--merge-policy", "--tailnet=example", "--client-id=" + simtest.ClientID, "--client-secret-file=" + s.secret}
	code, out, errs := s.install(args...)
	// The fake cluster has no roles, which the checks at the end find.
	if code != ExitFound || errs != "" || !strings.Contains(out, "Wrong    ") || !strings.Contains(out, "waiting for the package provider-tailscale") || strings.Contains(out, "is over") {
		t.Errorf("install: code %d, %s:\n%s", code, errs, out)
	}
	want := []string{"upgrade --install tailscale-gateway charts/tailscale-gateway --namespace=crossplane-system --set=tailnet.name=example --set=tailnet.oauthSecretName=tailscale-oauth --set=tailnet.spec.tags={tag:k8s}"}
	if diff := cmp.Diff(want, s.upgrades()); diff != "" {
		t.Errorf("calls of Helm: -want, +got:\n%s", diff)
	}
	data := map[string][]byte{meta.SecretKeyClientID: []byte(simtest.ClientID), meta.SecretKeyClientSecret: []byte(simtest.ClientSecret)}
	secret := s.credential()
	if secret == nil {
		t.Fatal("there is no Secret with the credential")
	}
	if diff := cmp.Diff(data, secret.Data); diff != "" {
		t.Errorf("Secret: -want, +got:\n%s", diff)
	}
	policy := strings.NewReplacer(
		"[], // The cluster.\n", "[], // The cluster.\n    \"tag:k8s\": [\"tag:k8s-operator\"],\n",
		"\"ip\": [\"*\"]},\n", "\"ip\": [\"*\"]},\n    {\"src\": [\"autogroup:member\"], \"dst\": [\"tag:k8s\"], \"ip\": [\"tcp:80\", \"tcp:443\"]},\n",
	).Replace(lackingPolicy)
	if diff := cmp.Diff(policy, s.policy()); diff != "" {
		t.Errorf("policy file: -want, +got:\n%s", diff)
	}

	_, out, _ = s.install(args...)
	if strings.Contains(out, "Blocked") || strings.Contains(out, "create Secret") || strings.Contains(out, "helm upgrade --install tailscale-gateway charts/") {
		t.Errorf("a second run does something new:\n%s", out)
	}
	if diff := cmp.Diff(want, s.upgrades()); diff != "" {
		t.Errorf("calls of Helm after a second run: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(secret, s.credential()); diff != "" {
		t.Errorf("Secret after a second run: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(policy, s.policy()); diff != "" {
		t.Errorf("policy file after a second run: -want, +got:\n%s", diff)
	}
}

// TestInstallTimeout checks that a wait that takes too long is a failure that names what is missing.
func TestInstallTimeout(t *testing.T) {
	s := newSite(t, crossplane())
	code, out, _ := s.install("--timeout=10s")
	if code != ExitFound || !strings.Contains(out, "10s is over, and it still waits for the package provider-tailscale") || !strings.Contains(out, "Wrong    Tailscale Gateway is not installed") {
		t.Errorf("install: code %d:\n%s", code, out)
	}
}

// TestInstallStops checks what ends an installation.
func TestInstallStops(t *testing.T) {
	limited := func(scopes ...string) simtest.Option {
		return func(o *tailnetsim.Options) { o.Clients[0].Scopes = scopes }
	}
	cases := map[string]struct {
		reason  string
		site    func(t *testing.T) *site
		args    func(t *testing.T, s *site) []string
		code    int
		want    []string
		changed bool
	}{
		"NoCrossplane": {
			reason: "Without Crossplane the command is printed.", code: ExitFound, want: []string{"Blocked  Crossplane is not installed", "$ helm upgrade --install crossplane", "--crossplane"},
			site: func(t *testing.T) *site { return newSite(t) },
		},
		"NoScope": {
			reason: "A scope that the credential lacks is named.", code: ExitFound, want: []string{"Blocked  the credential lacks the OAuth scopes auth_keys, services", "Trust credentials", `"tag:k8s": ["tag:k8s-operator"]`},
			args: func(t *testing.T, s *site) []string {
				return []string{"--tailnet=example", "--client-id=" + simtest.ClientID, "--client-secret-file=" + s.secret, "--api-url=" + simtest.StartAPI(t, limited("devices:core")).URL}
			},
		},
		"Rejected": {
			reason: "So is a credential that the tailnet rejects.", code: ExitFound, want: []string{"Blocked  the tailnet did not answer: ", "the OAuth client of --client-id"},
			args: func(_ *testing.T, s *site) []string {
				return []string{"--tailnet=example", "--client-id=nonsense", "--client-secret-file=" + s.secret}
			},
		},
		"Powerless": {
			reason: "A caller without rights learns it before anything changes.", code: ExitFound, want: []string{"Blocked  you may not create secrets in namespace crossplane-system, create clusterroles.rbac.authorization.k8s.io"},
			site: func(t *testing.T) *site {
				s := newSite(t, crossplane())
				s.powerless = true
				return s
			},
		},
		"Downgrade": {
			reason: "A release that is newer stays.", code: ExitFound, want: []string{"Blocked  the release crossplane-system/tailscale-gateway has version 0.3.0, and 0.2.0 is older"},
			args: func(t *testing.T, s *site) []string {
				if err := os.WriteFile(filepath.Join(s.dir, "release"), []byte("0.3.0\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return []string{"--skip-tailnet-check"}
			},
		},
		"OtherSecret": {
			reason: "A Secret with another OAuth client stays.", code: ExitFound, want: []string{"exists with another OAuth client, and stays"},
			site: func(t *testing.T) *site {
				return newSite(t, crossplane(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "tailscale-oauth"}, Data: map[string][]byte{meta.SecretKeyClientID: []byte("a"), meta.SecretKeyClientSecret: []byte("b")}})
			},
			args: func(_ *testing.T, s *site) []string {
				return []string{"--tailnet=example", "--client-id=" + simtest.ClientID, "--client-secret-file=" + s.secret}
			},
		},
		"Broken": {
			reason: "An error of Helm ends the installation, and says how to go on.", code: ExitFound, want: []string{"Wrong    cannot install Tailscale Gateway 0.2.0", "the server is on fire", "run the command again"}, changed: true,
			args: func(t *testing.T, s *site) []string {
				if err := os.WriteFile(filepath.Join(s.dir, "broken"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				return nil
			},
		},
		"NoHelm": {
			reason: "Without Helm, the link says where it is.", code: ExitFound, want: []string{"https://helm.sh/docs/intro/install/"},
			args: func(t *testing.T, _ *site) []string {
				t.Setenv("PATH", t.TempDir())
				return nil
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			build := tc.site
			if build == nil {
				build = func(t *testing.T) *site { return newSite(t, crossplane()) }
			}
			s := build(t)
			var args []string
			if tc.args != nil {
				args = tc.args(t, s)
			}
			code, out, errs := s.install(args...)
			if code != tc.code || errs != "" || strings.Contains(out, "Nothing was changed") == tc.changed {
				t.Errorf("%s\ninstall %v: code %d, %s:\n%s", tc.reason, args, code, errs, out)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s\ninstall %v: the output lacks %q:\n%s", tc.reason, args, want, out)
				}
			}
			if !tc.changed && len(s.upgrades()) > 0 {
				t.Errorf("%s\ninstall %v: calls of Helm: %v", tc.reason, args, s.upgrades())
			}
		})
	}
}

// TestInstallQuestions checks that a person is asked for what is missing before anything changes.
func TestInstallQuestions(t *testing.T) {
	cases := map[string]struct {
		reason  string
		answers string
		args    []string
		code    int
		prompts []string
		planned string
	}{
		"No":     {reason: "The last question is whether to go on.", answers: "y\nexample\n" + simtest.ClientID + "\nn\n", code: ExitFound, prompts: []string{"Install it into namespace crossplane-system?", "Name of the first TailscaleTailnet", "Client ID", "not shown", "Do this?"}, planned: "install Crossplane"},
		"Named":  {reason: "A Secret may be named instead.", answers: "n\nexample\n\noauth\n", code: ExitFound, prompts: []string{"Name of the Secret in namespace crossplane-system:"}, planned: "Secret crossplane-system/oauth does not exist"},
		"Bad":    {reason: "An answer is checked as a flag is.", answers: "n\nNo Name\n\noauth\n", code: ExitFailed, prompts: []string{"--tailnet: "}},
		"Gone":   {reason: "Without an answer, nothing happens.", answers: "", code: ExitFailed, prompts: []string{"cannot read the answer"}},
		"Silent": {reason: "With --yes, nobody is asked.", args: []string{"--yes"}, code: ExitFound, planned: "Crossplane is not installed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.input, s.person = tc.answers, person{present: func() bool { return true }, hidden: func(context.Context) (string, error) { return simtest.ClientSecret, nil }}
			code, out, errs := s.install(tc.args...)
			if code != tc.code || !strings.Contains(out, tc.planned) {
				t.Errorf("%s\ninstall: code %d:\n%s%s", tc.reason, code, errs, out)
			}
			for _, want := range tc.prompts {
				if !strings.Contains(errs, want) {
					t.Errorf("%s\ninstall: no question %q:\n%s", tc.reason, want, errs)
				}
			}
			if len(tc.prompts) == 0 && errs != "" {
				t.Errorf("%s\ninstall: asked %q", tc.reason, errs)
			}
			if len(s.upgrades()) > 0 || s.credential() != nil {
				t.Errorf("%s\ninstall: changed something: %v", tc.reason, s.upgrades())
			}
		})
	}
}

func TestInstallUsage(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"NoFile":     {args: []string{"--client-id=a"}, want: "--client-secret-file"},
		"NoClient":   {args: []string{"--client-secret-file=-"}, want: "--client-id"},
		"Absent":     {args: []string{"--client-id=a", "--client-secret-file=nonsense"}, want: "--client-secret-file"},
		"Empty":      {args: []string{"--client-id=a", "--client-secret-file=" + os.DevNull}, want: "--client-secret-file"},
		"Argument":   {args: []string{"--set=tailnet.oauth.clientSecret=hush"}, want: "--client-secret-file"},
		"Injection":  {args: []string{"--tailnet=a,provider.replicas=3"}, want: "--tailnet"},
		"Tag":        {args: []string{"--tailnet=a", "--tags=k8s"}, want: "--tags"},
		"Chart":      {args: []string{"--chart=--post-renderer=x"}, want: "--chart"},
		"TwoStreams": {args: []string{"--client-id=a", "--client-secret-file=-", "-f", "-"}, want: "--values"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			code, out, errs := s.run(append([]string{"install"}, tc.args...)...)
			if code != ExitFailed || out != "" || !strings.Contains(errs, tc.want) || strings.Contains(errs, "hush") {
				t.Errorf("install %v: code %d, want %d with %q:\n%s%s", tc.args, code, ExitFailed, tc.want, out, errs)
			}
		})
	}
}
