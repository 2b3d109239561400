// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

func crossplane(version string) check.Answer[[]appsv1.Deployment] {
	d := appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "crossplane", Labels: map[string]string{check.LabelVersion: version}},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "crossplane"}}},
		Status:     appsv1.DeploymentStatus{UpdatedReplicas: 1, AvailableReplicas: 1},
	}
	return check.Answer[[]appsv1.Deployment]{Value: []appsv1.Deployment{d}}
}

// empty returns the facts of a cluster with Crossplane alone.
func empty() Facts {
	f := Facts{Cluster: check.Facts{Deployments: crossplane("2.4.0")}}
	f.Cluster.Kubernetes.Value, f.Helm.Value, f.ChartVersion.Value, f.Namespace.Value = "v1.35.4", "v3.18.0", "0.2.0", true
	return f
}

// installed returns the facts of a cluster with a release.
func installed(version string) Facts {
	f := empty()
	f.Cluster.Packages.Value = map[string]check.Package{products.Provider: {}}
	f.Release.Value = &Release{Name: charts.Install, Namespace: "crossplane-system", Version: version, Status: "deployed", Tailnet: "example", Secret: "oauth", Tags: []string{"tag:k8s"}, Credential: true}
	f.Secret.Value = &Secret{}
	return f
}

const policyText = `{
  // Who may what.
  "tagOwners": {"tag:k8s-operator": [], "tag:k8s": ["tag:k8s-operator"]},
  "grants": [{"src": ["*"], "dst": ["tag:k8s"], "ip": ["*"]}],
}`

func tailnetOf(policy string, scopes ...string) *Tailnet {
	return &Tailnet{Scopes: scopes, Policy: check.Answer[string]{Value: policy}}
}

func TestMake(t *testing.T) {
	all := []string{"all"}
	cases := map[string]struct {
		reason  string
		facts   func() Facts
		options func(o *Options)
		// want are the steps that are not OK, and text is in the plan for people, as others are not.
		want   []string
		text   []string
		others []string
	}{
		"Alone": {
			reason: "Without a tailnet, the packages are installed alone.", facts: empty,
			want: []string{"Skipped secret", "Skipped scopes", "Do release", "Do wait"},
			text: []string{"$ helm upgrade --install tailscale-gateway oci://ghcr.io/tailscale-gateway/charts/tailscale-gateway --version=0.2.0 --namespace=crossplane-system\n"},
		},
		"Tailnet": {
			reason: "The Secret is created before the release that names it, and its content is not shown.",
			facts: func() Facts {
				f := empty()
				f.Tailnet = tailnetOf(policyText, all...)
				return f
			},
			options: func(o *Options) { o.Tailnet, o.Client = "example", true },
			want:    []string{"Do secret", "Do release", "Do wait"},
			text:    []string{"name: tailscale-oauth", "client_secret: (not shown)", "--set=tailnet.name=example --set=tailnet.oauthSecretName=tailscale-oauth '--set=tailnet.spec.tags={tag:k8s}'", "TailscaleTailnet example is ready"},
		},
		"NoCredential": {
			reason: "A tailnet without a credential names the flags.", facts: empty,
			options: func(o *Options) { o.Tailnet = "example" },
			want:    []string{"Blocked secret", "Skipped scopes", "Do release", "Do wait"},
			text:    []string{"--oauth-secret", "--client-id and --client-secret-file"},
		},
		"NoCrossplane": {
			reason: "Crossplane is not installed unasked; the command is printed.",
			facts: func() Facts {
				f := empty()
				f.Cluster.Deployments.Value = nil
				return f
			},
			want: []string{"Blocked crossplane", "Skipped secret", "Skipped scopes", "Do release", "Do wait"},
			text: []string{"$ helm upgrade --install crossplane crossplane --repo=https://charts.crossplane.io/stable '--version=^2.4' --namespace=crossplane-system --create-namespace --wait", "add --crossplane"},
		},
		"Crossplane": {
			reason: "It is installed on request, with its namespace.",
			facts: func() Facts {
				f := empty()
				f.Cluster.Deployments.Value, f.Namespace.Value = nil, false
				return f
			},
			options: func(o *Options) { o.Crossplane, o.Check.Context = true, "lab" },
			want:    []string{"Do crossplane", "Skipped secret", "Skipped scopes", "Do release", "Do wait"},
			text:    []string{"$ helm --kube-context=lab upgrade --install crossplane"},
		},
		"OldCrossplane": {
			reason: "An old Crossplane is not upgraded: it is the caller's.",
			facts: func() Facts {
				f := empty()
				f.Cluster.Deployments = crossplane("2.3.1")
				return f
			},
			options: func(o *Options) { o.Crossplane = true },
			want:    []string{"Blocked crossplane", "Skipped secret", "Skipped scopes", "Do release", "Do wait"},
			text:    []string{"Crossplane is 2.3.1, which is older than 2.4"},
		},
		"UnknownCrossplane": {
			reason: "Unknown is not absent.",
			facts: func() Facts {
				f := empty()
				f.Cluster.Deployments = check.Answer[[]appsv1.Deployment]{Unknown: "forbidden"}
				return f
			},
			options: func(o *Options) { o.Crossplane = true },
			want:    []string{"Blocked crossplane", "Blocked crossplane's cache", "Skipped secret", "Skipped scopes", "Do release", "Do wait"},
		},
		"NoHelm": {
			reason: "Without Helm, the link says where to get it.",
			facts: func() Facts {
				f := empty()
				f.Helm = check.Answer[string]{Unknown: "there is no program helm in the PATH"}
				return f
			},
			want: []string{"Blocked helm", "Skipped secret", "Skipped scopes", "Unknown release", "Do wait"},
			text: []string{"https://helm.sh/docs/intro/install/"},
		},
		"OldHelm": {
			reason: "An old Helm cannot keep the values of a release.",
			facts: func() Facts {
				f := empty()
				f.Helm.Value = "v3.13.3"
				return f
			},
			want: []string{"Blocked helm", "Skipped secret", "Skipped scopes", "Do release", "Do wait"},
		},
		"Denied": {
			reason: "Missing permissions are named before anything changes.",
			facts: func() Facts {
				f := empty()
				f.Denied.Value, f.Namespace.Value = []string{"create clusterroles"}, false
				return f
			},
			want: []string{"Blocked permissions", "Do namespace", "Skipped secret", "Skipped scopes", "Do release", "Do wait"},
			text: []string{"you may not create clusterroles"},
		},
		"Again": {
			reason: "A second run does nothing new.",
			facts: func() Facts {
				f := installed("0.2.0")
				f.Tailnet = tailnetOf(policyText, all...)
				return f
			},
			options: func(o *Options) { o.Tailnet, o.Secret = "example", "oauth" },
			want:    []string{"Do wait"},
		},
		"Upgrade": {
			reason: "An upgrade keeps the values of the release.",
			facts:  func() Facts { return installed("0.1.0") },
			want:   []string{"Unknown scopes", "Do release", "Do wait"},
			text:   []string{"from version 0.1.0 to 0.2.0", "--reset-then-reuse-values"}, others: []string{"--set"},
		},
		"Values": {
			reason:  "Values of the caller are applied to a release of the same version.",
			facts:   func() Facts { return installed("0.2.0") },
			options: func(o *Options) { o.Values, o.Set = []string{"my values.yaml"}, []string{"provider.replicas=2"} },
			want:    []string{"Unknown scopes", "Do release", "Do wait"},
			text:    []string{"--reset-then-reuse-values '--values=my values.yaml' --set=provider.replicas=2"},
		},
		"Downgrade": {
			reason: "A downgrade is refused.",
			facts:  func() Facts { return installed("0.3.0") },
			want:   []string{"Unknown scopes", "Blocked release", "Do wait"},
			text:   []string{"has version 0.3.0, and 0.2.0 is older", "--allow-downgrade", "--chart-version"},
		},
		"DowngradeAllowed": {
			reason: "Unless the caller asks for it.",
			facts:  func() Facts { return installed("0.3.0") }, options: func(o *Options) { o.Downgrade = true },
			want: []string{"Unknown scopes", "Do release", "Do wait"},
		},
		"Prerelease": {
			reason: "A prerelease is older than its release.",
			facts: func() Facts {
				f := installed("0.2.0")
				f.ChartVersion.Value = "0.2.0-rc.1"
				return f
			},
			want: []string{"Unknown scopes", "Blocked release", "Do wait"},
		},
		"Pending": {
			reason: "Helm refuses to touch a release while another command runs.",
			facts: func() Facts {
				f := installed("0.2.0")
				f.Release.Value.Status = "pending-upgrade"
				return f
			},
			want: []string{"Unknown scopes", "Blocked release", "Do wait"},
			text: []string{"helm rollback tailscale-gateway --namespace=crossplane-system"},
		},
		"Failed": {
			reason: "A release that failed is applied again.",
			facts: func() Facts {
				f := installed("0.2.0")
				f.Release.Value.Status = "failed"
				return f
			},
			want: []string{"Unknown scopes", "Do release", "Do wait"},
		},
		"Elsewhere": {
			reason: "A release of another name is not installed a second time.",
			facts: func() Facts {
				f := empty()
				f.Cluster.Packages.Value = map[string]check.Package{products.Provider: {}}
				f.Cluster.Releases = map[string]check.Release{charts.Install: {Name: "tsgw", Namespace: "platform"}}
				return f
			},
			want: []string{"Skipped secret", "Skipped scopes", "Blocked release", "Do wait"},
			text: []string{"--release=tsgw --namespace=platform"},
		},
		"WithoutHelm": {
			reason: "Neither is one that Helm did not make.",
			facts: func() Facts {
				f := empty()
				f.Cluster.Packages.Value = map[string]check.Package{products.Provider: {}}
				return f
			},
			want: []string{"Skipped secret", "Skipped scopes", "Blocked release", "Do wait"},
		},
		"NoChart": {
			reason: "A chart that cannot be read is found before anything changes.",
			facts: func() Facts {
				f := empty()
				f.ChartVersion = check.Answer[string]{Unknown: "unauthorized"}
				return f
			},
			options: func(o *Options) { o.Chart = "oci://registry.example/charts/tailscale-gateway" },
			want:    []string{"Skipped secret", "Skipped scopes", "Blocked release", "Do wait"},
			text:    []string{"helm registry login"},
		},
		"OtherSecret": {
			reason: "A Secret that exists is not overwritten.",
			facts: func() Facts {
				f := empty()
				f.Secret.Value = &Secret{}
				return f
			},
			options: func(o *Options) { o.Tailnet, o.Client = "example", true },
			want:    []string{"Blocked secret", "Unknown scopes", "Do release", "Do wait"},
			text:    []string{"exists with another OAuth client, and stays"},
		},
		"SameSecret": {
			reason: "One with the same OAuth client is used.",
			facts: func() Facts {
				f := empty()
				f.Secret.Value, f.Tailnet = &Secret{Same: true}, tailnetOf(policyText, all...)
				return f
			},
			options: func(o *Options) { o.Tailnet, o.Client = "example", true },
			want:    []string{"Do release", "Do wait"},
		},
		"NoSecret": {
			reason: "A Secret that does not exist has a command that creates it.", facts: empty,
			options: func(o *Options) { o.Tailnet, o.Secret = "example", "oauth" },
			want:    []string{"Blocked secret", "Unknown scopes", "Do release", "Do wait"},
			text:    []string{"kubectl create secret generic oauth --namespace=crossplane-system --from-literal=client_id=ID"},
		},
		"EmptySecret": {
			reason: "Keys that a Secret lacks are named.",
			facts: func() Facts {
				f := empty()
				f.Secret.Value = &Secret{Missing: []string{"client_secret"}}
				return f
			},
			options: func(o *Options) { o.Tailnet, o.Secret = "example", "oauth" },
			want:    []string{"Blocked secret", "Unknown scopes", "Do release", "Do wait"},
		},
		"HiddenSecret": {
			reason: "A Secret that the caller may not read is no reason to stop.",
			facts: func() Facts {
				f := empty()
				f.Secret.Unknown = "forbidden"
				return f
			},
			options: func(o *Options) { o.Tailnet, o.Secret = "example", "oauth" },
			want:    []string{"Unknown secret", "Unknown scopes", "Do release", "Do wait"},
		},
		"NoScope": {
			reason: "A missing scope is named, with where to add it.",
			facts: func() Facts {
				f := empty()
				f.Secret.Value, f.Tailnet = &Secret{}, tailnetOf(policyText, "devices:core", "services:read", "policy_file:read")
				return f
			},
			options: func(o *Options) { o.Tailnet, o.Secret = "example", "oauth" },
			want:    []string{"Blocked scopes", "Do release", "Do wait"},
			text:    []string{"lacks the OAuth scopes auth_keys, services", "Trust credentials"},
		},
		"Refused": {
			reason: "Where the tailnet names no scopes, its refusals count.",
			facts: func() Facts {
				f := empty()
				f.Secret.Value, f.Tailnet = &Secret{}, &Tailnet{Refused: []string{"auth_keys"}, Policy: check.Answer[string]{Value: policyText}}
				return f
			},
			options: func(o *Options) { o.Tailnet, o.Secret = "example", "oauth" },
			want:    []string{"Blocked scopes", "Do release", "Do wait"},
		},
		"Unreachable": {
			reason: "A tailnet that does not answer blocks, and the flag says how to go on.",
			facts: func() Facts {
				f := empty()
				f.Secret.Value, f.Tailnet = &Secret{}, &Tailnet{Failure: "Tailscale's API is not available: connection refused"}
				return f
			},
			options: func(o *Options) { o.Tailnet, o.Secret = "example", "oauth" },
			want:    []string{"Blocked scopes", "Do release", "Do wait"},
			text:    []string{"--skip-tailnet-check"},
		},
		"SkipTailnet": {
			reason: "Clusters without access to the API skip the question.",
			facts: func() Facts {
				f := empty()
				f.Secret.Value = &Secret{}
				return f
			},
			options: func(o *Options) { o.Tailnet, o.Secret, o.SkipTailnet = "example", "oauth", true },
			want:    []string{"Skipped scopes", "Do release", "Do wait"},
		},
		"Namespace": {
			reason: "Another namespace of Crossplane is a value of the chart.", facts: empty,
			options: func(o *Options) { o.Check.CrossplaneNamespace = "upbound-system" },
			want:    []string{"Skipped secret", "Skipped scopes", "Do release", "Do wait"},
			text:    []string{"--set=crossplane.namespace=upbound-system"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := tc.facts()
			o := Options{
				Check:   check.Options{CrossplaneNamespace: "crossplane-system", CrossplaneAccount: "crossplane", Version: "v0.2.0"},
				Release: charts.Install, Namespace: "crossplane-system", CredentialTag: "tag:k8s-operator",
			}
			if tc.options != nil {
				tc.options(&o)
			}
			p := Make(f, o.Completed(f.Release.Value))
			var got []string
			for _, s := range p.Steps {
				if s.State != OK {
					got = append(got, string(s.State)+" "+s.Name)
				}
				if s.State == Blocked && s.Next == "" {
					t.Errorf("%s\nstep %s does not say how to go on", tc.reason, s.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nMake(...): -want, +got:\n%s\n%s", tc.reason, diff, p.Text())
			}
			for _, want := range tc.text {
				if !strings.Contains(p.Text(), want) {
					t.Errorf("%s\nthe plan lacks %q:\n%s", tc.reason, want, p.Text())
				}
			}
			for _, other := range tc.others {
				if strings.Contains(p.Text(), other) {
					t.Errorf("%s\nthe plan has %q:\n%s", tc.reason, other, p.Text())
				}
			}
		})
	}
}

func TestPolicy(t *testing.T) {
	cases := map[string]struct {
		reason  string
		tailnet Tailnet
		tags    []string
		merge   bool
		want    State
		content string
		policy  string
	}{
		"Complete": {reason: "Nothing is added to a file that has all.", tailnet: *tailnetOf(policyText, "all"), merge: true, want: OK},
		"Printed": {
			reason: "Missing entries are printed.", tailnet: *tailnetOf(`{"grants": []}`, "all"), want: Yours,
			content: "{\n  \"tagOwners\": {\n    \"tag:k8s-operator\": [],\n    \"tag:k8s\": [\"tag:k8s-operator\"],\n  },\n  \"grants\": [\n    {\"src\": [\"autogroup:member\"], \"dst\": [\"tag:k8s\"], \"ip\": [\"tcp:80\", \"tcp:443\"]},\n  ],\n}\n",
		},
		"AllowAll": {
			reason: "A file without rules allows all, which a first grant would end.", tailnet: *tailnetOf(`{"tagOwners": {"tag:k8s-operator": []}}`, "all"), want: Yours,
			content: "{\n  \"tagOwners\": {\n    \"tag:k8s\": [\"tag:k8s-operator\"],\n  },\n}\n",
		},
		"Merged": {
			reason: "Only what is missing is added, and comments stay.", merge: true, want: Action,
			tailnet: *tailnetOf("{\n  // Tags.\n  \"tagOwners\": {\n    \"tag:k8s-operator\": [], // The cluster.\n    \"tag:k8s\": [\"group:ops\"], // Proxies.\n  },\n  \"acls\": [{\"action\": \"accept\", \"src\": [\"*\"], \"dst\": [\"tag:k8s:443\"]}],\n}\n", "policy_file"),
			content: "{\n  \"tagOwners\": {\n    \"tag:k8s\": [\"group:ops\", \"tag:k8s-operator\"],\n  },\n}\n",
			policy:  "{\n  // Tags.\n  \"tagOwners\": {\n    \"tag:k8s-operator\": [], // The cluster.\n    \"tag:k8s\": [\"group:ops\", \"tag:k8s-operator\"], // Proxies.\n  },\n  \"acls\": [{\"action\": \"accept\", \"src\": [\"*\"], \"dst\": [\"tag:k8s:443\"]}],\n}\n",
		},
		"OwnTag": {
			reason: "A credential may assign its own tags.", want: OK,
			tailnet: Tailnet{Scopes: []string{"all"}, Tags: []string{"tag:k8s"}, Policy: check.Answer[string]{Value: `{"tagOwners": {"tag:k8s": []}}`}},
		},
		"KnownTag": {
			reason: "The tags of the credential count before the assumed one.", merge: true, want: Action,
			tailnet: Tailnet{Scopes: []string{"all"}, Tags: []string{"tag:ci"}, Policy: check.Answer[string]{Value: `{"tagOwners": {"tag:ci": []}}`}},
			content: "{\n  \"tagOwners\": {\n    \"tag:k8s\": [\"tag:ci\"],\n  },\n}\n",
		},
		"WrongTag": {
			reason: "A tag that does not exist is not the credential's.", merge: true, want: Blocked, tailnet: *tailnetOf(`{}`, "all"),
			content: "{\n  \"tagOwners\": {\n    \"tag:k8s-operator\": [],\n    \"tag:k8s\": [\"tag:k8s-operator\"],\n  },\n}\n",
		},
		"NotRead": {
			reason: "Without the scope to read it, the whole snippet is printed.", want: Yours,
			tailnet: Tailnet{Scopes: []string{"services"}, Policy: check.Answer[string]{Unknown: "forbidden"}},
			content: "{\n  \"tagOwners\": {\n    \"tag:k8s-operator\": [],\n    \"tag:k8s\": [\"tag:k8s-operator\"],\n  },\n  \"grants\": [\n    {\"src\": [\"autogroup:member\"], \"dst\": [\"tag:k8s\"], \"ip\": [\"tcp:80\", \"tcp:443\"]},\n  ],\n}\n",
		},
		"NotWritten": {
			reason: "Without the scope to write it, a merge is blocked.", merge: true, want: Blocked, tailnet: *tailnetOf(`{"tagOwners": {"tag:k8s-operator": []}}`, "policy_file:read"),
			content: "{\n  \"tagOwners\": {\n    \"tag:k8s\": [\"tag:k8s-operator\"],\n  },\n}\n",
		},
		"Broken": {
			reason: "A file that cannot be read is not edited.", want: Yours, tailnet: *tailnetOf(`[`, "all"), tags: []string{"tag:a"},
			content: "{\n  \"tagOwners\": {\n    \"tag:k8s-operator\": [],\n    \"tag:a\": [\"tag:k8s-operator\"],\n  },\n  \"grants\": [\n    {\"src\": [\"autogroup:member\"], \"dst\": [\"tag:a\"], \"ip\": [\"tcp:80\", \"tcp:443\"]},\n  ],\n}\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := policy(Facts{Tailnet: &tc.tailnet}, Options{CredentialTag: "tag:k8s-operator", MergePolicy: tc.merge, Tags: tc.tags})
			if s.State != tc.want {
				t.Errorf("%s\npolicy(...): %s, want %s: %s", tc.reason, s.State, tc.want, s.Summary)
			}
			if diff := cmp.Diff(tc.content, s.Content); diff != "" {
				t.Errorf("%s\npolicy(...): -want content, +got:\n%s", tc.reason, diff)
			}
			if tc.policy != "" {
				if diff := cmp.Diff(tc.policy, s.Policy); diff != "" {
					t.Errorf("%s\npolicy(...): -want policy file, +got:\n%s", tc.reason, diff)
				}
			}
			if s.Policy != "" {
				if lacking, err := lacks(s.Policy, []string{"tag:k8s"}, Options{CredentialTag: "tag:k8s-operator"}.owners(&tc.tailnet)); len(lacking) > 0 || err != nil {
					t.Errorf("%s\nthe new policy file still lacks %v, %v", tc.reason, lacking, err)
				}
			}
		})
	}
}

func TestAllows(t *testing.T) {
	cases := map[string]struct {
		reason string
		scopes []string
		scope  string
		want   bool
	}{
		"Same":      {reason: "A scope includes itself.", scopes: []string{"services"}, scope: "services", want: true},
		"All":       {reason: "All includes each.", scopes: []string{"all"}, scope: "auth_keys", want: true},
		"Old":       {reason: "The older name includes the newer ones.", scopes: []string{"devices"}, scope: "devices:core", want: true},
		"Read":      {reason: "To read is a part.", scopes: []string{"policy_file"}, scope: "policy_file:read", want: true},
		"ReadAll":   {reason: "So it is of all.", scopes: []string{"all:read"}, scope: "policy_file:read", want: true},
		"ReadOnly":  {reason: "The part is not the whole.", scopes: []string{"all:read", "services:read"}, scope: "services"},
		"Other":     {reason: "Another scope is another.", scopes: []string{"devices:routes"}, scope: "devices:core"},
		"ReadGroup": {reason: "The older name may be for reading.", scopes: []string{"devices:read"}, scope: "devices:core:read", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Allows(tc.scopes, tc.scope); got != tc.want {
				t.Errorf("%s\nAllows(%v, %q): got %v", tc.reason, tc.scopes, tc.scope, got)
			}
		})
	}
}
