// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package restore

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
	"tailscale.com/ipn"
	"tailscale.com/kube/kubetypes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/provider"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// patience bounds every wait.
const patience = 2 * time.Minute

// asProvider is the environment variable that makes this program a provider: its metrics and
// controllers exist once in a process, and the test needs two of them.
const asProvider = "TEST_RESTORE_PROVIDER"

func TestMain(m *testing.M) {
	if os.Getenv(asProvider) == "" {
		os.Exit(m.Run())
	}
	err := provider.Run(ctrl.SetupSignalHandler(), provider.Options{
		Poll: time.Second, Sync: time.Hour, PollStateMetric: time.Minute,
		MaxReconcileRate: 50, APIRate: 1000, APIBurst: 1000, ListMaxAge: 200 * time.Millisecond,
		Namespace:          metav1.NamespaceSystem,
		Images:             proxy.Images{Tailscale: "tailscale:test", Agent: "agent:test"},
		ManagementPolicies: true, MetricsAddress: "0", HealthAddress: "0", ProfileAddress: "0",
	})
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// A cluster is an API server with the provider.
type cluster struct {
	*testing.T

	kube     client.Client
	server   *apiserver.Server
	provider *apiserver.Process
	stopped  bool
}

// newCluster starts an empty cluster.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	s, err := apiserver.Start(t.Context(), apiserver.Options{Composites: true, Controllers: apiserver.DeletionControllers()})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, server: s}
	t.Cleanup(c.stop)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		c.must(add(scheme))
	}
	c.kube, err = client.New(s.Config, client.Options{Scheme: scheme})
	c.must(err)
	c.startProvider()
	return c
}

// startProvider starts the provider with the permissions of an installation.
func (c *cluster) startProvider() {
	c.Helper()
	root, err := apiserver.Root()
	c.must(err)
	roles, err := apiserver.ProviderRoles(root)
	c.must(err)
	installed, err := apiserver.Installed()
	c.must(err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: apiserver.CrossplaneNamespace}}
	for _, o := range slices.Concat([]client.Object{ns}, roles, installed) {
		c.must(c.kube.Create(c.Context(), o))
	}
	kubeconfig, err := clientcmd.Load(c.server.Kubeconfig)
	c.must(err)
	for _, u := range kubeconfig.AuthInfos {
		u.Impersonate = "system:serviceaccount:" + apiserver.CrossplaneNamespace + ":" + apiserver.AccountProvider
	}
	file := filepath.Join(c.TempDir(), "kubeconfig")
	c.must(clientcmd.WriteToFile(*kubeconfig, file))
	self, err := os.Executable()
	c.must(err)
	c.provider, err = apiserver.StartProcess(apiserver.ProcessOptions{
		Env: []string{asProvider + "=1", clientcmd.RecommendedConfigPathEnvVar + "=" + file},
		Log: os.Stderr,
	}, self)
	c.must(err)
}

// stop loses the cluster. Nothing in it is deleted.
func (c *cluster) stop() {
	c.Helper()
	if c.stopped {
		return
	}
	c.stopped = true
	if c.provider != nil {
		// It is killed if it does not end.
		_ = c.provider.Stop(10 * time.Second)
	}
	if err := c.server.Stop(); err != nil {
		c.Error(err)
	}
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// apply creates the objects of a manifest.
func (c *cluster) apply(manifest string) {
	c.Helper()
	for doc := range strings.SplitSeq(manifest, "\n---\n") {
		o := &unstructured.Unstructured{}
		c.must(yaml.Unmarshal([]byte(doc), &o.Object))
		c.must(c.kube.Create(c.Context(), o))
	}
}

// eventually waits until ok returns nil.
func (c *cluster) eventually(description string, ok func() error) {
	c.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-c.provider.Exited():
			c.Fatalf("the provider has ended: %v", c.provider.Err())
		case <-end:
			c.Fatalf("timed out waiting: %s: %v", description, err)
		}
	}
}

// machines returns the Machines by name.
func (c *cluster) machines() map[string]v1alpha1.Machine {
	c.Helper()
	l := &v1alpha1.MachineList{}
	c.must(c.kube.List(c.Context(), l, client.InNamespace(namespace)))
	out := map[string]v1alpha1.Machine{}
	for _, m := range l.Items {
		out[m.GetName()] = m
	}
	return out
}

// runPods acts as the proxy pods: each joins with the auth key in its config Secret, or with the
// state in its state Secret, as containerboot does. A pod without a config Secret waits for it, as
// the agent does.
func (c *cluster) runPods(sim *simtest.Running) error {
	l := &corev1.SecretList{}
	if err := c.kube.List(c.Context(), l, client.MatchingLabels{meta.LabelSecretType: meta.SecretTypeConfig}); err != nil {
		return err
	}
	for i := range l.Items {
		if err := c.runPod(c.Context(), sim, &l.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) runPod(ctx context.Context, sim *simtest.Running, config *corev1.Secret) error {
	state := &corev1.Secret{}
	name := strings.TrimSuffix(config.GetName(), meta.ConfigSecretSuffix)
	if err := c.kube.Get(ctx, client.ObjectKey{Namespace: config.GetNamespace(), Name: name}, state); err != nil {
		return err
	}
	if id := string(state.Data[kubetypes.KeyDeviceID]); id != "" {
		if !sim.SetOnline(id, true) {
			return errors.Errorf("the tailnet has no device %s", id)
		}
		return nil
	}
	var conf ipn.ConfigVAlpha
	if err := json.Unmarshal(config.Data[meta.ConfigKey], &conf); err != nil || conf.AuthKey == nil || conf.Hostname == nil {
		return errors.New("a pod has neither a key nor a state yet")
	}
	id, err := sim.Join(tailnetsim.Puppet{Hostname: *conf.Hostname, AuthKey: *conf.AuthKey})
	if err != nil {
		return err
	}
	original := state.DeepCopy()
	state.Data = map[string][]byte{kubetypes.KeyDeviceID: []byte(id)}
	return c.kube.Patch(ctx, state, client.MergeFrom(original))
}

// gone returns an error unless an object is gone.
func (c *cluster) gone(o client.Object) error {
	err := c.kube.Get(c.Context(), client.ObjectKeyFromObject(o), o)
	if kerrors.IsNotFound(err) {
		return nil
	}
	return errors.Errorf("%s still exists: %v", o.GetName(), err)
}
