// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"bytes"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// inMounts runs a program with a folder as that of the pod's service account. Only the program sees
// the mounts. Containerboot also links its socket in /run.
const inMounts = `mount -t tmpfs none /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
mount --bind "$ACCOUNT" /run/secrets/kubernetes.io/serviceaccount
exec "$PROGRAM"`

// A boot is the real containerboot, with its tailscaled, of one Machine.
type boot struct {
	*env

	program string
	dir     string
	process *apiserver.Process
	log     lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newBoot returns a containerboot that does not run yet, with the rights of a proxy on its state Secret.
// version is empty for the default one, or -1.86.
func newBoot(e *env, version string) *boot {
	e.Helper()
	root, err := apiserver.Root()
	e.must(err)
	b := &boot{env: e}
	find := func(name string) string {
		variable := strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper("test_asset_" + name + version))
		program, err := apiserver.Program(e.Context(), root, name+version, variable)
		e.must(err)
		return program
	}
	b.program = find("containerboot")
	// The path of a socket is short.
	b.dir, err = os.MkdirTemp("", "boot")
	e.must(err)
	// Containerboot looks for tailscaled by its name.
	b.must(os.Mkdir(filepath.Join(b.dir, "bin"), 0o700))
	b.must(os.Symlink(find("tailscaled"), filepath.Join(b.dir, "bin", "tailscaled")))
	e.Cleanup(func() { _ = os.RemoveAll(b.dir) })

	om := metav1.ObjectMeta{Namespace: e.namespace, Name: "proxy"}
	account := &corev1.ServiceAccount{ObjectMeta: om}
	e.must(shared.kube.Create(e.Context(), account))
	e.must(shared.kube.Create(e.Context(), &rbacv1.Role{ObjectMeta: om, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{subject}, Verbs: []string{"get", "patch", "update"},
	}}}))
	e.must(shared.kube.Create(e.Context(), &rbacv1.RoleBinding{
		ObjectMeta: om, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: om.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: om.Namespace, Name: om.Name}},
	}))
	token := &authenticationv1.TokenRequest{}
	e.must(shared.kube.SubResource("token").Create(e.Context(), account, token))
	b.file("account/namespace", []byte(e.namespace))
	b.file("account/token", []byte(token.Status.Token))
	b.file("account/ca.crt", shared.config.CAData)
	return b
}

func (b *boot) file(name string, content []byte) {
	b.Helper()
	path := filepath.Join(b.dir, name)
	b.must(os.MkdirAll(filepath.Dir(path), 0o700))
	b.must(os.WriteFile(path, content, 0o600))
}

// start starts containerboot with the config in the config Secret, as kubelet and the agent do.
func (b *boot) start() {
	b.Helper()
	s := &corev1.Secret{}
	b.must(shared.kube.Get(b.Context(), client.ObjectKey{Namespace: b.namespace, Name: subject + meta.ConfigSecretSuffix}, s))
	b.file(filepath.Join("config", meta.ConfigKey), s.Data[meta.ConfigKey])
	u, err := url.Parse(shared.config.Host)
	b.must(err)
	host, port, err := net.SplitHostPort(u.Host)
	b.must(err)
	b.process, err = apiserver.StartProcess(apiserver.ProcessOptions{Log: &b.log, Env: []string{
		"PATH=" + filepath.Join(b.dir, "bin") + string(os.PathListSeparator) + os.Getenv("PATH"),
		"ACCOUNT=" + filepath.Join(b.dir, "account"), "PROGRAM=" + b.program, "HOME=" + b.dir,
		"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "KUBERNETES_SERVICE_PORT_HTTPS=" + port,
		"TS_KUBERNETES_READ_API_SERVER_ADDRESS_FROM_ENV=true", "TS_KUBE_SECRET=" + subject, "POD_NAME=" + subject,
		"TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR=" + filepath.Join(b.dir, "config"), "TS_USERSPACE=true",
		"TS_SOCKET=" + filepath.Join(b.dir, "s"), "TS_STATE_DIR=" + filepath.Join(b.dir, "state"),
		"TS_NO_LOGS_NO_SUPPORT=true", "TS_DISABLE_PORTMAPPER=1", "TS_ASSUME_NETWORK_UP_FOR_TEST=1", "TS_PANIC_IF_HIT_MAIN_CONTROL=1",
	}}, "unshare", "--mount", "--map-root-user", "sh", "-ec", inMounts)
	b.must(err)
}

func (b *boot) stop() {
	b.Helper()
	b.must(b.process.Stop(30 * time.Second))
	_ = os.Remove(filepath.Join(b.dir, "s")) // Tailscaled may have removed it.
}

// annotation returns an annotation of the config Secret.
func (b *boot) annotation(name string) string {
	b.Helper()
	s := &corev1.Secret{}
	b.must(shared.kube.Get(b.Context(), client.ObjectKey{Namespace: b.namespace, Name: subject + meta.ConfigSecretSuffix}, s))
	return s.GetAnnotations()[name]
}

// joined returns a Machine whose device the given containerboot has, in a simulated tailnet.
func joined(e *env, r *simtest.Running, version string) (*v1alpha1.Machine, *boot) {
	e.Helper()
	e.apply(`
apiVersion: ` + v1alpha1.SchemeGroupVersion.String() + `
kind: ProviderConfig
metadata: {name: control, namespace: ` + e.namespace + `}
spec:
  apiURL: ` + r.URL + `
  controlURL: ` + r.URL + `
  clusterID: ` + e.clusterID + `
  credentials: {oauthSecretRef: {name: ` + credentialsSecret + `, namespace: ` + e.namespace + `}}
`)
	mg := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: subject}, Spec: v1alpha1.MachineSpec{
		ForProvider: v1alpha1.MachineParameters{Hostname: machineHostname, Tags: []v1alpha1.Tag{"tag:k8s"}},
	}}
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ProviderConfigKind, Name: "control"})
	e.create(mg)
	b := newBoot(e, version)
	e.Cleanup(func() {
		if e.Failed() {
			e.Logf("containerboot:\n%s", b.log.String())
		}
	})
	e.keyIssued(mg)
	b.start()
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	return mg, b
}

// keyIssued waits for an auth key in a Machine's config Secret.
func (e *env) keyIssued(mg *v1alpha1.Machine) {
	e.Helper()
	e.eventually("an auth key", func() error {
		if err := e.refresh(mg); err != nil {
			return err
		}
		if !mg.Status.AtProvider.KeyIssued {
			return errors.New("there is none")
		}
		return nil
	})
}

// TestContainerboot starts the real containerboot again while control refuses connections: it asks
// for a new key, and the provider keeps its device and requests a restart.
func TestContainerboot(t *testing.T) {
	t.Parallel()
	r := simtest.Start(t, func(o *tailnetsim.Options) { o.Policy = policy })
	e := newEnv(t)
	mg, b := joined(e, r, "")
	id, addresses := mg.Status.AtProvider.NodeID, mg.Status.AtProvider.Addresses
	b.stop()

	e.must(r.SetFaults(tailnetsim.Fault{Path: tailnetsim.ControlPaths, Refuse: true}))
	b.start()
	e.condition(mg, xpv2.TypeReady, corev1.ConditionFalse, meta.ReasonLoginFailed)
	if !strings.Contains(b.log.String(), "Requesting a new auth key from operator") {
		e.Error("want containerboot to ask for a key")
	}
	e.must(r.SetFaults())
	e.eventually("a request for a restart", func() error {
		if b.annotation(meta.AnnotationRestart) == "" {
			return errors.New("there is none")
		}
		return nil
	})
	b.stop()
	b.start()
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	if current := mg.Status.AtProvider; current.NodeID != id || !slices.Equal(current.Addresses, addresses) || current.KeyIssued {
		e.Errorf("the device was %s %v, is %s %v; key issued: %t", id, addresses, current.NodeID, current.Addresses, current.KeyIssued)
	}
	b.stop()
}

// TestOldContainerboot deletes the device of a containerboot that does not ask for keys: its node logs in
// with the next one, and becomes another device.
func TestOldContainerboot(t *testing.T) {
	t.Parallel()
	r := simtest.Start(t, func(o *tailnetsim.Options) { o.Policy = policy })
	e := newEnv(t)
	mg, b := joined(e, r, "-"+tailscaled.Oldest[:strings.LastIndexByte(tailscaled.Oldest, '.')])
	e.eventually("no auth key", func() error {
		if err := e.refresh(mg); err != nil {
			return err
		}
		if mg.Status.AtProvider.KeyIssued {
			return errors.New("there is one")
		}
		return nil
	})
	id := mg.Status.AtProvider.NodeID
	// The agent reports the version.
	original := mg.DeepCopy()
	mg.Status.Agent = &v1alpha1.MachineAgentStatus{TailscaledVersion: tailscaled.Oldest}
	e.must(shared.kube.Status().Patch(e.Context(), mg, client.MergeFrom(original)))

	e.must(r.Client(t).Devices().Delete(e.Context(), id))
	e.keyIssued(mg)
	b.stop()
	b.start()
	e.eventually("another device", func() error {
		if err := e.refresh(mg); err != nil {
			return err
		}
		if current := mg.Status.AtProvider.NodeID; current == "" || current == id {
			return errors.Errorf("the device is %q", current)
		}
		return nil
	})
	e.condition(mg, xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable)
	b.stop()
}
