// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets && upgrade

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/test/e2e/internal/upgrade"
	"github.com/tailscale-gateway/tailscale-gateway/test/retry"
)

const (
	// upgradeCommand is the command of docs/upgrading.md, on one line.
	upgradeCommand = "helm upgrade tailscale-gateway oci://ghcr.io/tailscale-gateway/charts/tailscale-gateway --version VERSION --namespace crossplane-system --reset-then-reuse-values"

	// extensionCommand is that of the extension's chart.
	extensionCommand = "helm upgrade tailscale-gateway-extension oci://ghcr.io/tailscale-gateway/charts/tailscale-gateway-extension --version VERSION --namespace envoy-gateway-system --reset-then-reuse-values"

	// upgradeWait bounds the wait for all components of a version, on a busy machine.
	upgradeWait = 20 * time.Minute

	// settledFor is how long the state of everything must stay the same before it is compared.
	settledFor = time.Minute

	// smallRequests lets all examples run on one node with two cores: each Gateway has an Envoy.
	smallRequests = `deployment:
  envoyGateway: {resources: {requests: {cpu: 10m, memory: 64Mi}}}
config:
  envoyGateway:
    envoyProxy:
      provider:
        kubernetes:
          envoyDeployment:
            container: {resources: {requests: {cpu: 10m, memory: 64Mi}}}
`
)

// An upgraded lab.
type upgraded struct {
	// tree is the folder of the previous version's source.
	tree string

	// values is a file with smallRequests.
	values string

	// answers are URLs in the tailnet, and the Deployments whose pods answer there.
	answers map[string]string
}

// TestUpgrade installs the version that CHANGELOG.md names as the previous one, as that version's
// README describes, and applies its examples. Under load, it upgrades to this version as
// docs/upgrading.md describes, and rolls back.
func TestUpgrade(t *testing.T) {
	if *flavour != products.FlavourNamespaced {
		t.Fatalf("the chart upgrades no packages of the flavour %s: Crossplane's command line does", *flavour)
	}
	u := &upgraded{tree: t.TempDir(), values: filepath.Join(t.TempDir(), "small.yaml"), answers: map[string]string{}}
	var (
		previous upgrade.Snapshot
		chart    upgrade.Snapshot
		rows     []upgrade.Row
	)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"InstallsPrevious", u.installsPrevious},
		{"AppliesExamples", u.appliesAll},
		{"PreparesLoad", u.preparesLoad},
		{"Settles", func(t *testing.T) {
			runsVersion(t, upgrade.Version)
			previous, chart = settled(t), chartObjects(t)
			for _, o := range previous.NotReady() {
				t.Logf("not ready before the upgrade: %s", o)
			}
		}},
		{"PushesThis", pushesThis},
		{"Upgrades", func(t *testing.T) { rows = append(rows, phase(t, "upgrade", u.upgrades)...) }},
		{"KeepsAll", func(t *testing.T) { u.keeps(t, previous, upgrade.Newer) }},
		{"RollsBack", func(t *testing.T) { rows = append(rows, phase(t, "rollback", rollsBack)...) }},
		{"LeavesNothing", func(t *testing.T) {
			u.keeps(t, previous, upgrade.Same)
			if ds := upgrade.Differences(chart, chartObjects(t), upgrade.Same); len(ds) > 0 {
				t.Errorf("objects of the charts differ:\n%s", strings.Join(ds, "\n"))
			}
		}},
		{"NeverOpensCircuitBreaker", breakerStaysClosed},
	} {
		if !t.Run(step.name, step.run) {
			break
		}
	}
	t.Logf("results of the upgrade from the previous version\n%s", upgrade.Table(rows))
	for _, r := range rows {
		for _, p := range r.Problems() {
			t.Error(p)
		}
	}
}

// installsPrevious installs the previous version from its source.
func (u *upgraded) installsPrevious(t *testing.T) {
	commit, err := upgrade.Previous(readFile(t, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "previous.tar")
	for _, args := range [][]string{{"git", "archive", "--output=" + archive, commit}, {"tar", "-x", "-C", u.tree, "-f", archive}} {
		if err := stream(t.Context(), args[0], args[1:]...); err != nil {
			t.Fatalf("cannot get the source of %s: %v", commit, err)
		}
	}
	labRun(t, "up", "--install", "--tailnets=2")
	// The demo of that version builds and pushes its packages, and runs the commands of its README.
	u.demo(t, "up", "--version="+upgrade.Version, "--flavour="+*flavour)
	u.demo(t, "tailnet", string(tailnetTwo), "--as="+partnerTailnet)
	labRun(t, "cert-manager")
	setsBudget(t, budgetOfDocs)

	// These values must survive the upgrade.
	if err := os.WriteFile(u.values, []byte(smallRequests), 0o600); err != nil {
		t.Fatal(err)
	}
	labRun(t, "envoy-gateway", "--values="+filepath.Join(u.folder(t, upgrade.Values), "values.yaml"), "--values="+u.values)
	helm(t, "upgrade", charts.Install, filepath.Join(u.folder(t, upgrade.Charts), charts.Install), "--namespace", crossplaneNamespace,
		"--reset-then-reuse-values", "--set=function.envoyGatewayNamespaces={"+extensionNamespace+","+team+"}")
	helm(t, "upgrade", extension, filepath.Join(u.folder(t, upgrade.Charts), extension), "--namespace", extensionNamespace,
		"--reset-then-reuse-values", "--set=resources.requests.cpu=10m", "--wait", "--timeout=4m")
}

// folder returns the folder of the previous version's source that a pattern matches.
func (u *upgraded) folder(t *testing.T, pattern string) string {
	t.Helper()
	dir, err := upgrade.Find(u.tree, pattern)
	if err != nil {
		t.Fatalf("the source of the previous version: %v", err)
	}
	return dir
}

// demo runs the demo of the previous version.
func (u *upgraded) demo(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "./cluster/demo"}, args...)...)
	cmd.Dir = u.tree
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("demo %s of the previous version: %v", strings.Join(args, " "), err)
	}
}

// pushesThis builds this version and pushes it to the lab's registry, before there is any load.
func pushesThis(t *testing.T) {
	if err := stream(t.Context(), "make", "--no-print-directory", "push", "VERSION="+*version, "REGISTRY="+fromLab(t, "REGISTRY")+"/tailscale-gateway"); err != nil {
		t.Fatalf("cannot push this version: %v", err)
	}
}

// upgrades runs the commands of the docs, with the charts of this tree.
func (u *upgraded) upgrades(t *testing.T) {
	inDocs(t, upgradeCommand)
	helm(t, append(fromTree(upgradeCommand), "--set=packages.version="+*version)...)
	hasPackages(t, *version)
	inDocs(t, extensionCommand)
	helm(t, append(fromTree(extensionCommand), "--set=image.tag="+*version, "--wait", "--timeout=4m")...)
	labRun(t, "envoy-gateway", "--values=package/envoy-gateway/values.yaml", "--values="+u.values)
	runsVersion(t, *version)
}

// rollsBack undoes the upgrade in the opposite order.
func rollsBack(t *testing.T) {
	helm(t, "rollback", "eg", "--namespace", extensionNamespace, "--wait", "--timeout=4m")
	helm(t, "rollback", extension, "--namespace", extensionNamespace, "--wait", "--timeout=4m")
	helm(t, "rollback", charts.Install, "--namespace", crossplaneNamespace)
	runsVersion(t, upgrade.Version)
}

// fromTree returns the arguments of a helm command with the chart of this tree in the place of a released one.
func fromTree(command string) []string {
	var out []string
	for _, arg := range strings.Fields(strings.ReplaceAll(command, " --version VERSION", ""))[1:] {
		if chart, ok := strings.CutPrefix(arg, "oci://"+products.Charts+"/"); ok {
			arg = "package/charts/" + chart
		}
		out = append(out, arg)
	}
	return out
}

// inDocs checks that docs/upgrading.md has a command, which may continue on several lines.
func inDocs(t *testing.T, command string) {
	t.Helper()
	const page = "docs/upgrading.md"
	text := strings.Join(strings.Fields(strings.ReplaceAll(readFile(t, page), "\\\n", " ")), " ")
	if !strings.Contains(text, command) {
		t.Fatalf("%s does not contain %q", page, command)
	}
}

func helm(t *testing.T, args ...string) {
	t.Helper()
	if out, err := tryRun(t, "", "helm", args...); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// list returns objects as JSON. Stderr, which may hold warnings, is not part of it.
func list(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, labBin(t, "kubectl"), append([]string{"get", "-o=json"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+fromLab(t, "KUBECONFIG"))
	return cmd.Output()
}

// hasPackages waits until all packages have a version, and nothing runs another one.
func hasPackages(t *testing.T, version string) {
	t.Helper()
	took := slowly(t, "packages of version "+version, func() string {
		var lists [3][]byte
		for i, args := range [][]string{
			{"providers.pkg.crossplane.io,functions.pkg.crossplane.io,configurations.pkg.crossplane.io"},
			{"providerrevisions.pkg.crossplane.io,functionrevisions.pkg.crossplane.io,configurationrevisions.pkg.crossplane.io"},
			{"pods", "-n", crossplaneNamespace, "-l=pkg.crossplane.io/revision"},
		} {
			var err error
			if lists[i], err = list(t, args...); err != nil {
				return err.Error()
			}
		}
		return pending(upgrade.Pending(lists[0], lists[1], lists[2], version))
	})
	t.Logf("all packages have version %s after %s", version, took.Round(time.Second))
}

// runsVersion waits until packages and all pods have a version, and are ready.
func runsVersion(t *testing.T, version string) {
	t.Helper()
	hasPackages(t, version)
	took := slowly(t, "pods of version "+version, func() string {
		pods, err := list(t, "pods", "-A")
		if err != nil {
			return err.Error()
		}
		return pending(upgrade.Outdated(pods, version, products.Agent, products.Extension))
	})
	t.Logf("all pods have version %s after %s more", version, took.Round(time.Second))
}

// slowly polls like eventually, but leaves the machine to the load.
func slowly(t *testing.T, description string, check func() string) time.Duration {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), upgradeWait)
	defer cancel()
	if err := retry.Until(ctx, 3*time.Second, func(context.Context) error {
		if missing := check(); missing != "" {
			return errors.New(missing)
		}
		return nil
	}); err != nil {
		t.Fatalf("%s: not within %s: %v", description, upgradeWait, err)
	}
	return time.Since(began)
}

// pending joins what a wait lacks.
func pending(missing []string, err error) string {
	if err != nil {
		return err.Error()
	}
	return strings.Join(missing[:min(len(missing), 5)], "; ")
}

const (
	// writtenKinds are kinds that users write, and kinds of objects in the tailnet.
	writtenKinds = "tailscaletailnets,tailscaleproxygroups,tailscaleendpoints,tailscaleservices,tailscalegateways,tailscaleroutepolicies," +
		"gateways.gateway.networking.k8s.io,apps.platform.example.org," + managedKinds
	managedKinds = "vipservices.tailnet.gateway.tailscale.com,splitdns.tailnet.gateway.tailscale.com,tailnets.tailnet.gateway.tailscale.com," +
		"discoveries.tailnet.gateway.tailscale.com,authkeys.tailnet.gateway.tailscale.com,contacts.tailnet.gateway.tailscale.com," +
		"devices.tailnet.gateway.tailscale.com,dns.tailnet.gateway.tailscale.com,federatedidentities.tailnet.gateway.tailscale.com," +
		"logstreamconfigurations.tailnet.gateway.tailscale.com,oauthclients.tailnet.gateway.tailscale.com,policyfragments.tailnet.gateway.tailscale.com," +
		"postureintegrations.tailnet.gateway.tailscale.com,webhooks.tailnet.gateway.tailscale.com"

	// createdKinds are kinds of objects that ours create. Pods are replaced, and the content of the
	// objects may change.
	createdKinds = "machinesets,machines,serviceattachments,proxysets,statefulsets,deployments,services,configmaps,secrets,serviceaccounts,roles,rolebindings," +
		"poddisruptionbudgets,networkpolicies,httproutes.gateway.networking.k8s.io,grpcroutes.gateway.networking.k8s.io"

	// clusterKinds are kinds without a namespace.
	clusterKinds = "clusterproviderconfigs.tailnet.gateway.tailscale.com,clusterusages.protection.crossplane.io"

	// chartKinds are kinds in our charts. Their CustomResourceDefinitions stay, as those of packages
	// do: deleting one would delete its objects.
	chartKinds = "clusterroles,clusterrolebindings,roles,rolebindings,services,serviceaccounts,configmaps,secrets,deployments,networkpolicies,poddisruptionbudgets," +
		"validatingadmissionpolicies,validatingadmissionpolicybindings,imageconfigs.pkg.crossplane.io,deploymentruntimeconfigs.pkg.crossplane.io," +
		"providers.pkg.crossplane.io,functions.pkg.crossplane.io,configurations.pkg.crossplane.io"
)

// ofExamples selects objects outside of the namespaces of controllers.
const ofExamples = "--field-selector=metadata.namespace!=crossplane-system,metadata.namespace!=envoy-gateway-system,metadata.namespace!=kube-system,metadata.namespace!=cert-manager"

// snapshot reads the cluster and both tailnets.
func snapshot(t *testing.T) (upgrade.Snapshot, error) {
	t.Helper()
	s := upgrade.Snapshot{}
	for _, query := range []struct {
		detail upgrade.Detail
		args   []string
	}{
		{upgrade.UID, []string{createdKinds, "-A", ofExamples}},
		{upgrade.UID, []string{clusterKinds}},
		{upgrade.Everything, []string{writtenKinds, "-A"}},
	} {
		b, err := list(t, query.args...)
		if err != nil {
			return s, err
		}
		if err := s.AddObjects(b, query.detail); err != nil {
			return s, err
		}
	}
	for _, n := range []tailnet{tailnetOne, tailnetTwo} {
		b, err := rawState(t.Context(), n.env(t, "TAILNET_API"))
		if err != nil {
			return s, err
		}
		if err := s.AddTailnet(string(n), b); err != nil {
			return s, err
		}
	}
	return s, nil
}

// chartObjects returns the names of the objects of the charts.
func chartObjects(t *testing.T) upgrade.Snapshot {
	t.Helper()
	s := upgrade.Snapshot{}
	b, err := list(t, chartKinds, "-A", "-l=app.kubernetes.io/managed-by=Helm")
	if err != nil {
		t.Fatalf("cannot list the objects of charts: %v", err)
	}
	if err := s.AddObjects(b, upgrade.Presence); err != nil {
		t.Fatal(err)
	}
	if len(s.Objects) == 0 {
		t.Fatal("Helm has no objects")
	}
	return s
}

// settled waits until nothing changes any more, and returns that state.
func settled(t *testing.T) upgrade.Snapshot {
	t.Helper()
	var (
		last       upgrade.Snapshot
		lastChange time.Time
	)
	slowly(t, "everything at rest", func() string {
		s, err := snapshot(t)
		if err != nil {
			return err.Error()
		}
		if ds := upgrade.Differences(last, s, upgrade.Same); lastChange.IsZero() || len(ds) > 0 {
			last, lastChange = s, time.Now()
			return pending(ds, nil) + " changed"
		}
		if time.Since(lastChange) < settledFor {
			return "changed " + time.Since(lastChange).Round(time.Second).String() + " ago"
		}
		return ""
	})
	return last
}

// keeps waits until the state is that of previous, and checks that the examples answer.
func (u *upgraded) keeps(t *testing.T, previous upgrade.Snapshot, s upgrade.Strictness) {
	t.Helper()
	took := slowly(t, "the state of before", func() string {
		current, err := snapshot(t)
		if err != nil {
			return err.Error()
		}
		ds := upgrade.Differences(previous, current, s)
		return strings.Join(ds[:min(len(ds), 30)], "\n")
	})
	t.Logf("the state is that of before after %s", took.Round(time.Second))
	urls := make([]string, 0, len(u.answers))
	for url := range u.answers {
		urls = append(urls, url)
	}
	slices.Sort(urls)
	for _, url := range urls {
		answeredAt(t, url, u.answers[url], patience)
	}
	// An equal state may still change.
	current := settled(t)
	if ds := upgrade.Differences(previous, current, s); len(ds) > 0 {
		t.Errorf("the state differs from before:\n%s", strings.Join(ds, "\n"))
	}
}
