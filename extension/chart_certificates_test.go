// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/app"
	"github.com/tailscale-gateway/tailscale-gateway/extension/credentials"
	"github.com/tailscale-gateway/tailscale-gateway/extension/objecttest"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// certManagerCRDs stand for cert-manager's.
const certManagerCRDs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: issuers.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: Issuer, plural: issuers, singular: issuer, listKind: IssuerList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: Certificate, plural: certificates, singular: certificate, listKind: CertificateList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// TestChartAuto checks that the chart uses cert-manager if the cluster has it.
func TestChartAuto(t *testing.T) {
	for mode, values := range map[string][]string{"Job": nil, "CertManager": {"--api-versions=cert-manager.io/v1"}} {
		got, err := helm(t, append([]string{"template", chartName, chartDir, "--namespace=" + chartNamespace, "--kube-version=1.35.4"}, values...)...)
		if err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if diff := cmp.Diff(render(t, "certificates.mode="+mode), got); diff != "" {
			t.Errorf("Auto with %v: -%s, +got:\n%s", values, mode, diff)
		}
	}
}

// TestChartJobFlags checks that the binary accepts the flags of the Job and of the CronJob.
func TestChartJobFlags(t *testing.T) {
	rendered := render(t)
	templates := map[string]corev1.PodTemplateSpec{}
	for name, j := range objects[batchv1.Job](t, rendered, "Job") {
		templates[name] = j.Spec.Template
	}
	for name, j := range objects[batchv1.CronJob](t, rendered, "CronJob") {
		templates[name] = j.Spec.JobTemplate.Spec.Template
	}
	if len(templates) != 2 {
		t.Fatalf("want a Job and a CronJob, got %d templates", len(templates))
	}
	for name, template := range templates {
		cli := parseFlags(t, append(template.Spec.Containers[0].Args, "--namespace="+chartNamespace))
		if cli.WriteCertificates != chartName {
			t.Errorf("%s writes no certificates: %v", name, template.Spec.Containers[0].Args)
		}
	}
}

func parseFlags(t *testing.T, args []string) *CLI {
	t.Helper()
	cli, err := program().Parse(args, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatalf("the binary refuses %v: %v", args, err)
	}
	return cli.(*CLI)
}

// An installation is the chart's release on a real API server.
type installation struct {
	*testing.T

	kube client.Client
	cfg  *rest.Config
	// admin and account are kubeconfigs: of an administrator, and of the Job's ServiceAccount.
	admin, account string
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	api, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	})
	i := &installation{T: t, cfg: api.Config, account: filepath.Join(t.TempDir(), "account")}
	if i.admin, err = api.WriteKubeconfig(); err != nil {
		t.Fatal(err)
	}
	account, err := clientcmd.LoadFromFile(i.admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range account.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + chartNamespace + ":" + chartName + "-certificates"
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + chartNamespace, "system:authenticated"}
	}
	if err := clientcmd.WriteToFile(*account, i.account); err != nil {
		t.Fatal(err)
	}
	if i.kube, err = client.New(api.Config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	return i
}

// upgrade installs or upgrades the chart.
func (i *installation) upgrade(values ...string) {
	i.Helper()
	args := []string{"upgrade", "--install", chartName, chartDir, "--namespace=" + chartNamespace, "--create-namespace"}
	for _, v := range values {
		args = append(args, "--set="+v)
	}
	if out, err := helmOn(i.T, i.admin, args...); err != nil {
		i.Fatalf("helm %v: %v: %s", args, err, out)
	}
}

// job returns the only Job of the release.
func (i *installation) job() *batchv1.Job {
	i.Helper()
	jobs := &batchv1.JobList{}
	if err := i.kube.List(i.Context(), jobs, client.InNamespace(chartNamespace)); err != nil {
		i.Fatal(err)
	}
	if len(jobs.Items) != 1 {
		i.Fatalf("want one Job, got %d", len(jobs.Items))
	}
	return &jobs.Items[0]
}

// run does what the pod of the Job does, with the rights of its ServiceAccount alone.
func (i *installation) run() error {
	i.Helper()
	args := append(slices.Clone(i.job().Spec.Template.Spec.Containers[0].Args), "--namespace="+chartNamespace, "--kubeconfig="+i.account)
	c := parseFlags(i.T, args)
	return app.WriteCertificates(i.Context(), c.options(), c.WriteCertificates, c.CertificateNames, logging.NewNopLogger())
}

func (i *installation) mustRun() map[string]*corev1.Secret {
	i.Helper()
	if err := i.run(); err != nil {
		i.Fatal(err)
	}
	return i.secrets()
}

// secrets returns the Secrets of certificates, by suffix.
func (i *installation) secrets() map[string]*corev1.Secret {
	i.Helper()
	out := map[string]*corev1.Secret{}
	for _, suffix := range []string{"-tls", "-ca", "-client", "-envoy"} {
		s := &corev1.Secret{}
		if err := i.kube.Get(i.Context(), types.NamespacedName{Namespace: chartNamespace, Name: chartName + suffix}, s); err != nil {
			i.Fatal(err)
		}
		out[suffix] = s
	}
	return out
}

// versions returns the versions of Secrets: a write that changes nothing keeps them.
func versions(secrets map[string]*corev1.Secret) map[string]string {
	out := map[string]string{}
	for suffix, s := range secrets {
		out[suffix] = s.GetResourceVersion()
	}
	return out
}

// TestChartCertificates runs the chart's Job on a real API server, with the rights of its Role.
func TestChartCertificates(t *testing.T) {
	i := newInstallation(t)
	i.upgrade()
	secrets := i.mustRun()
	rendered := render(t)
	verifies(t, rendered, secrets)
	handshakes(t, rendered, secrets)

	// Valid certificates stay, and an upgrade that does not change the Job keeps it.
	if diff := cmp.Diff(versions(secrets), versions(i.mustRun())); diff != "" {
		t.Errorf("another run changes Secrets: -before, +after:\n%s", diff)
	}
	first := i.job()
	i.upgrade("replicas=3")
	if diff := cmp.Diff(first.GetUID(), i.job().GetUID()); diff != "" {
		t.Errorf("an upgrade of other values replaces the Job: -before, +after:\n%s", diff)
	}

	// A template of a Job is immutable: other names and images need another Job.
	i.upgrade("certificates.clusterDomain=example.org", "image.tag=v9.9.9")
	if second := i.job(); second.GetName() == first.GetName() {
		t.Errorf("Job %s has another template and the same name", second.GetName())
	}
	renamed := i.mustRun()
	if diff := cmp.Diff(secrets["-ca"].Data, renamed["-ca"].Data); diff != "" {
		t.Errorf("the authority should stay when names change: -before, +after:\n%s", diff)
	}
	if cert := leafOf(t, renamed["-tls"].Data); cert.VerifyHostname(chartName+"."+chartNamespace+".svc.example.org") != nil {
		t.Errorf("the server's certificate is for %v", cert.DNSNames)
	}

	i.renewsOld()
	i.refusesForeign()
	i.limitsRights()
}

// renewsOld replaces the certificates with ones that end in two months.
func (i *installation) renewsOld() {
	i.Helper()
	at := time.Now().Add(-305 * 24 * time.Hour)
	a, err := credentials.NewAuthority(chartName, at)
	if err != nil {
		i.Fatal(err)
	}
	names := leafOf(i.T, i.secrets()["-tls"].Data).DNSNames
	server, err := a.Server(names, at)
	if err != nil {
		i.Fatal(err)
	}
	pairs := map[string]credentials.Pair{"-ca": a.Pair, "-tls": server}
	for _, suffix := range []string{"-client", "-envoy"} {
		if pairs[suffix], err = a.Client(chartName+suffix, at); err != nil {
			i.Fatal(err)
		}
	}
	for suffix, s := range i.secrets() {
		s.Data = map[string][]byte{"tls.crt": pairs[suffix].Cert, "tls.key": pairs[suffix].Key}
		if suffix != "-ca" {
			s.Data["ca.crt"] = a.Cert
		}
		if err := i.kube.Update(i.Context(), s); err != nil {
			i.Fatal(err)
		}
	}
	old := i.secrets()
	got := i.mustRun()
	if diff := cmp.Diff(versions(old)["-ca"], versions(got)["-ca"]); diff != "" {
		i.Errorf("the authority is not due: -before, +after:\n%s", diff)
	}
	for _, suffix := range []string{"-tls", "-client", "-envoy"} {
		if end := leafOf(i.T, got[suffix].Data).NotAfter; time.Until(end) < 300*24*time.Hour {
			i.Errorf("the certificate in Secret %s ends at %s and is not renewed", suffix, end)
		}
	}
	handshakes(i.T, render(i.T), got)
}

// refusesForeign checks that the Job changes nothing beside a Secret that it has not created.
func (i *installation) refusesForeign() {
	i.Helper()
	theirs := i.secrets()["-client"]
	labels := theirs.GetLabels()
	theirs.SetLabels(nil)
	theirs.Data["tls.crt"] = []byte("theirs")
	if err := i.kube.Update(i.Context(), theirs); err != nil {
		i.Fatal(err)
	}
	previous := versions(i.secrets())
	if err := i.run(); err == nil || !strings.Contains(err.Error(), theirs.GetName()) || strings.Contains(err.Error(), "theirs") {
		i.Errorf("want an error that names Secret %s, got %v", theirs.GetName(), err)
	}
	if diff := cmp.Diff(previous, versions(i.secrets())); diff != "" {
		i.Errorf("the Job changes Secrets beside one of others: -before, +after:\n%s", diff)
	}
	theirs.SetLabels(labels)
	if err := i.kube.Update(i.Context(), theirs); err != nil {
		i.Fatal(err)
	}
	i.mustRun()
}

// limitsRights checks what the Job's ServiceAccount may not do.
func (i *installation) limitsRights() {
	i.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", i.account)
	if err != nil {
		i.Fatal(err)
	}
	job, err := client.New(cfg, client.Options{})
	if err != nil {
		i.Fatal(err)
	}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: chartNamespace, Name: "envoy-gateway"}}
	if err := i.kube.Create(i.Context(), other.DeepCopy()); err != nil {
		i.Fatal(err)
	}
	ours := i.secrets()["-ca"]
	for action, err := range map[string]error{
		"reads another Secret":   job.Get(i.Context(), client.ObjectKeyFromObject(other), &corev1.Secret{}),
		"changes another Secret": job.Update(i.Context(), other),
		"lists Secrets":          job.List(i.Context(), &corev1.SecretList{}, client.InNamespace(chartNamespace)),
		"deletes a Secret":       job.Delete(i.Context(), ours),
		"creates elsewhere":      job.Create(i.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}),
	} {
		if !kerrors.IsForbidden(err) {
			i.Errorf("the Job's ServiceAccount %s: %v", action, err)
		}
	}
}

// TestChartApply applies the rendered chart twice, and another version, as kubectl, Argo CD and Flux
// do: the API server refuses changes of immutable fields.
func TestChartApply(t *testing.T) {
	i := newInstallation(t)
	if err := i.kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: chartNamespace}}); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"v1.0.0", "v1.0.0", "v1.0.1"} {
		objecttest.Apply(t.Context(), t, i.kube, strings.TrimPrefix(render(t, "image.tag="+tag), "---\n"))
	}
	jobs := &batchv1.JobList{}
	if err := i.kube.List(t.Context(), jobs, client.InNamespace(chartNamespace)); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, j := range jobs.Items {
		got[j.Spec.Template.Spec.Containers[0].Image]++
	}
	const image = "ghcr.io/tailscale-gateway/extension:"
	if diff := cmp.Diff(map[string]int{image + "v1.0.0": 1, image + "v1.0.1": 1}, got); diff != "" {
		t.Errorf("Jobs by image: -want, +got:\n%s", diff)
	}
}

// TestChartInstall upgrades a release of the default mode after cert-manager was installed: Helm
// finds its API in the cluster.
func TestChartInstall(t *testing.T) {
	i := newInstallation(t)
	i.upgrade()
	secrets := i.mustRun()
	file := filepath.Join(t.TempDir(), "crds.yaml")
	if err := os.WriteFile(file, []byte(certManagerCRDs), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(i.cfg, envtest.CRDInstallOptions{Paths: []string{file}}); err != nil {
		t.Fatal(err)
	}

	// The chosen mode stays.
	i.upgrade("certificates.mode=Job")
	i.job()

	i.upgrade("certificates.mode=Auto")
	jobs := &batchv1.JobList{}
	if err := i.kube.List(t.Context(), jobs, client.InNamespace(chartNamespace)); err != nil || len(jobs.Items) != 0 {
		t.Errorf("with cert-manager, want no Job, got %d: %v", len(jobs.Items), err)
	}
	certificates := &metav1.PartialObjectMetadataList{}
	certificates.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "CertificateList"})
	if err := i.kube.List(t.Context(), certificates, client.InNamespace(chartNamespace)); err != nil || len(certificates.Items) != 4 {
		t.Errorf("want four Certificates, got %d: %v", len(certificates.Items), err)
	}
	// cert-manager writes into the same Secrets, and keeps the authority's key.
	if diff := cmp.Diff(versions(secrets), versions(i.secrets())); diff != "" {
		t.Errorf("Helm changes Secrets: -before, +after:\n%s", diff)
	}
}

// verifies verifies certificates as Envoy Gateway and Envoy do.
func verifies(t *testing.T, rendered string, secrets map[string]*corev1.Secret) {
	t.Helper()
	server, ca := secrets["-tls"], secrets["-ca"]
	if diff := cmp.Diff(server.Data["ca.crt"], ca.Data["tls.crt"]); diff != "" {
		t.Errorf("Envoys and Envoy Gateway trust different authorities:\n%s", diff)
	}
	roots := poolOf(t, ca.Data["tls.crt"])
	for _, name := range []string{
		// As package/envoy-gateway/values.yaml names it.
		chartName + ".envoy-gateway-system.svc.cluster.local",
		// As the extension's flags name it for Envoys.
		strings.TrimPrefix(arg(t, rendered, "--eds-server-name="), "--eds-server-name="),
	} {
		if _, err := leafOf(t, server.Data).Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("the server's certificate is refused under the name %s: %v", name, err)
		}
	}
	// The servers verify clients.
	for suffix, flag := range map[string]string{"-client": "--hooks-client-name=", "-envoy": "--eds-client-name="} {
		data := secrets[suffix].Data
		opts := x509.VerifyOptions{DNSName: strings.TrimPrefix(arg(t, rendered, flag), flag), Roots: poolOf(t, data["ca.crt"]), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if _, err := leafOf(t, data).Verify(opts); err != nil {
			t.Errorf("the certificate of Secret %s is refused: %v", suffix, err)
		}
		if len(data["tls.crt"])+len(data["tls.key"]) > 1200 {
			t.Errorf("Secret %s has %d bytes, and each cluster has a copy for Envoys", suffix, len(data["tls.crt"])+len(data["tls.key"]))
		}
	}
}

// handshakes connects to a server with the certificates and the name of the client for hooks.
func handshakes(t *testing.T, rendered string, secrets map[string]*corev1.Secret) {
	t.Helper()
	dir := t.TempDir()
	for file, b := range map[string][]byte{"tls.crt": secrets["-tls"].Data["tls.crt"], "tls.key": secrets["-tls"].Data["tls.key"], "ca.crt": secrets["-client"].Data["ca.crt"]} {
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := serve.NewCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := serve.ClientsOf(filepath.Join(dir, "ca.crt"), strings.TrimPrefix(arg(t, rendered, "--hooks-client-name="), "--hooks-client-name="))
	if err != nil {
		t.Fatal(err)
	}
	server := serve.Credentials(shown.Get, clients)
	for suffix, ok := range map[string]bool{"-client": true, "-envoy": false} {
		pair, err := tls.X509KeyPair(secrets[suffix].Data["tls.crt"], secrets[suffix].Data["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		a, b := net.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		dialed := make(chan error, 1)
		go func() {
			c := tls.Client(b, &tls.Config{RootCAs: poolOf(t, secrets["-ca"].Data["tls.crt"]), ServerName: chartName + "." + chartNamespace + ".svc", Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
			dialed <- c.HandshakeContext(ctx)
			// Read the alert of a server that refuses the certificate.
			_, _ = c.Read(make([]byte, 1))
		}()
		_, _, served := server.ServerHandshake(a)
		_ = a.Close()
		if err := <-dialed; err != nil && ok {
			t.Errorf("the client with Secret %s refuses the server: %v", suffix, err)
		}
		if (served == nil) != ok {
			t.Errorf("the client with Secret %s: want an answer: %t, got %v", suffix, ok, served)
		}
		cancel()
	}
}

func poolOf(t *testing.T, pem []byte) *x509.CertPool {
	t.Helper()
	out := x509.NewCertPool()
	if !out.AppendCertsFromPEM(pem) {
		t.Error("a Secret has no authority")
	}
	return out
}

func leafOf(t *testing.T, data map[string][]byte) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return out
}
