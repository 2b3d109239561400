// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/network"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

// Contents of the files.
const (
	configNone = `{"AuthKey":"tskey-auth-1","Version":"alpha0"}`
	configWeb  = `{"AdvertiseServices":["svc:web"],"AuthKey":"tskey-auth-1","Version":"alpha0"}`
	serveNone  = `{}`
	serveWeb   = `{"Services":{"svc:web":{"TCP":{"80":{"TCPForward":"10.96.0.10:8080"}}}}}`

	// serveByName has the agent connect to a backend whose address no probe has found.
	serveByName = `{"Services":{"svc:web":{"TCP":{"80":{"TCPForward":"127.36.0.1:16464","ProxyProtocol":2}}}}}`
)

// patience bounds every wait of a test, also on a busy machine.
const patience = time.Minute

// drainTime is long enough to detect a drain: a busy machine does without one in less.
const drainTime = 5 * time.Second

// spreadTime is how long ports of an egress pod stay open for clients. A busy machine opens a
// connection in less.
const spreadTime = 5 * time.Second

// A pod is an agent and all objects that it uses. Tests of pods run in parallel, because they
// mostly wait.
type pod struct {
	t       *testing.T
	dir     string
	kube    client.WithWatch
	local   *localapitest.Server
	healthy atomic.Bool
	away    atomic.Bool
	logged  logs

	// egress is the name of the ConfigMap of an egress pod.
	egress string

	// dns is the name of the ConfigMap of a pod that resolves names, and dnsPort is the port it
	// answers on.
	dns     string
	dnsPort uint16

	// kernel reports that the pod has Kernel networking. openTCP and networkReport are parts of its
	// options.
	kernel        bool
	openTCP       func(network.Forwarded) (bool, error)
	networkReport network.Report
	podAddresses  []netip.Addr

	// begin is ten seconds, unless a test sets it.
	begin time.Duration

	// warm is ten seconds, unless a test sets it.
	warm time.Duration

	// accept is zero, unless a test sets it.
	accept time.Duration

	// primary is an hour, unless a test sets it.
	primary time.Duration

	// absence is an hour, unless a test sets it.
	absence time.Duration

	// egressDrain is a minute, unless a test sets it.
	egressDrain time.Duration

	// grace is zero, unless a test sets it.
	grace time.Duration

	// statePatience is a minute, unless a test sets it.
	statePatience time.Duration

	// controlAnswers, controlPatience and containerboot are as in Options.
	controlAnswers  func(context.Context, []byte) error
	controlPatience time.Duration
	containerboot   string

	url, hooks string
	stop       func()
}

func byName(o client.Object) []string { return []string{o.GetName()} }

// newPod returns a pod whose agent does not run yet.
func newPod(t *testing.T, objs ...client.Object) *pod {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatalf("AddToScheme(...): %v", err)
	}
	p := &pod{t: t, dir: t.TempDir(), statePatience: time.Minute, begin: 10 * time.Second, warm: 10 * time.Second, primary: time.Hour, absence: time.Hour, egressDrain: time.Minute}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithStatusSubresource(&v1alpha1.Machine{}).
		WithIndex(&corev1.Secret{}, "metadata.name", byName).WithIndex(&corev1.ConfigMap{}, "metadata.name", byName).Build()
	p.kube = &apiServer{WithWatch: c, away: &p.away}
	p.local = localapitest.New(t, func() {})
	p.healthy.Store(true)
	t.Cleanup(func() {
		if p.stop != nil {
			p.stop()
		}
	})
	return p
}

// An apiServer can be made unavailable.
type apiServer struct {
	client.WithWatch
	away *atomic.Bool
}

func (a *apiServer) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	if a.away.Load() {
		return errors.New("connection refused")
	}
	return a.WithWatch.Get(ctx, key, obj, o...)
}

func (a *apiServer) List(ctx context.Context, l client.ObjectList, o ...client.ListOption) error {
	if a.away.Load() {
		return errors.New("connection refused")
	}
	return a.WithWatch.List(ctx, l, o...)
}

// Watch begins with the existing objects: the fake does not keep the changes since the client's
// list, which an API server would send.
func (a *apiServer) Watch(ctx context.Context, l client.ObjectList, o ...client.ListOption) (watch.Interface, error) {
	w, err := a.WithWatch.Watch(ctx, l, o...)
	if err != nil {
		return nil, err
	}
	if err := a.WithWatch.List(ctx, l, o...); err != nil {
		w.Stop()
		return nil, err
	}
	items, err := apimeta.ExtractList(l)
	if err != nil {
		w.Stop()
		return nil, err
	}
	events := make(chan watch.Event)
	out := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		send := func(e watch.Event) bool {
			select {
			case events <- e:
				return true
			case <-out.StopChan():
				return false
			}
		}
		for _, o := range items {
			if !send(watch.Event{Type: watch.Modified, Object: o}) {
				return
			}
		}
		for {
			select {
			case e, ok := <-w.ResultChan():
				if !ok || !send(e) {
					return
				}
			case <-out.StopChan():
				return
			}
		}
	}()
	return out, nil
}

// logs holds the log messages of an agent.
type logs struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logs) logger() logging.Logger {
	return logging.NewLogrLogger(funcr.NewJSON(func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.b.WriteString(line + "\n")
	}, funcr.Options{Verbosity: 10}))
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs an agent.
func (p *pod) start() {
	p.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatalf("net.Listen(...): %v", err)
	}
	p.hooks = filepath.Join(p.dir, "agent.sock")
	hooks, err := ListenHooks(p.t.Context(), p.hooks)
	if err != nil {
		p.t.Fatalf("ListenHooks(...): %v", err)
	}
	checker := probe.CheckerFn(func(_ context.Context, t probe.Target) (netip.Addr, error) {
		if p.healthy.Load() && !strings.HasPrefix(t.Host, "dead.") {
			return netip.MustParseAddr("10.96.0.10"), nil
		}
		return netip.Addr{}, errors.New("boom")
	})
	a := New(Options{
		PodName:             "set-0",
		PodNamespace:        "default",
		PodIP:               "10.0.0.7",
		Endpoints:           "set",
		TailscaledConfigDir: filepath.Join(p.dir, "tsconfig", "set-0"),
		TLSDir:              filepath.Join(p.dir, "tls"),
		ServeConfigPath:     filepath.Join(p.dir, "proxies", "serve-config.json"),
		Drain:               drainTime,
		Grace:               p.grace,
		StatePatience:       p.statePatience,
		ControlAnswers:      p.controlAnswers, ControlPatience: p.controlPatience, ContainerbootMetrics: p.containerboot,
		Pauses: Pauses{Retry: 50 * time.Millisecond, Report: 10 * time.Millisecond, Settle: 50 * time.Millisecond, Warm: p.warm, Accept: p.accept, Primary: p.primary, Absence: p.absence, Begin: p.begin},
		Kernel: p.kernelOptions(),
		Egress: EgressOptions{
			ConfigMap: p.egress,
			Dir:       filepath.Join(p.dir, "egress"),
			Spread:    spreadTime,
			Drain:     p.egressDrain,
		},
		DNS: DNSOptions{ConfigMap: p.dns, Dir: filepath.Join(p.dir, "dns"), Port: p.dnsPort},
	}, kubeClient{api: p.kube}, localapi.NewClient(p.local.Socket), localapi.NewDialer(p.local.Socket), checker, NewMetrics(), p.logged.logger())

	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, l, hooks) }()
	p.url = "http://" + l.Addr().String()
	p.stop = func() {
		cancel()
		if err := <-done; err != nil {
			p.t.Errorf("Run(...): %v", err)
		}
		p.stop = nil
		if strings.Contains(p.logged.String(), "tskey") {
			p.t.Errorf("No log may hold a key:\n%s", p.logged.String())
		}
	}
}

// kernelOptions returns the options of Kernel networking, or nil without it.
func (p *pod) kernelOptions() *KernelOptions {
	if !p.kernel {
		return nil
	}
	return &KernelOptions{Forwarding: address.Families{IPv4: true, IPv6: true}, PodAddresses: p.podAddresses, OpenTCP: p.openTCP, Report: p.networkReport}
}

// get returns the status and body of the agent's response.
func (p *pod) get(path string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+path, nil)
	if err != nil {
		p.t.Fatalf("NewRequest(...): %v", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatalf("GET %s: %v", path, err)
	}
	b, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		p.t.Fatalf("GET %s: %v", path, err)
	}
	return res.StatusCode, string(b)
}

// preStop runs the hooks of both containers, as kubelet does, and returns when kubelet would
// send SIGTERM to the pod's containers.
func (p *pod) preStop() {
	p.t.Helper()
	hook := make(chan error, 1)
	go func() { hook <- PreStop(p.t.Context(), p.hooks) }()
	if code, body := p.get(sidecar.PathDrained); code != http.StatusOK {
		p.t.Errorf("GET %s: %d: %s", sidecar.PathDrained, code, body)
	}
	if err := <-hook; err != nil {
		p.t.Errorf("PreStop(...): %v", err)
	}
}

// files returns the config and the serve config. Empty means that the file does not exist.
func (p *pod) files() [2]string {
	p.t.Helper()
	var out [2]string
	for i, name := range []string{filepath.Join("tsconfig", "set-0", meta.ConfigKey), filepath.Join("proxies", "serve-config.json")} {
		b, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			p.t.Fatalf("ReadFile(...): %v", err)
		}
		out[i] = string(b)
	}
	return out
}

// service returns the state of svc:web in the Machine's status.
func (p *pod) service() v1alpha1.HostedService {
	p.t.Helper()
	m := &v1alpha1.Machine{}
	if err := p.kube.Get(p.t.Context(), client.ObjectKey{Namespace: "default", Name: "set-0"}, m); err != nil {
		p.t.Fatalf("Get(...): %v", err)
	}
	if m.Status.Agent == nil {
		return v1alpha1.HostedService{}
	}
	for _, s := range m.Status.Agent.Services {
		if s.Name == "svc:web" {
			return s
		}
	}
	return v1alpha1.HostedService{}
}

// eventually waits until got returns the wanted value.
func eventually[T any](t *testing.T, reason string, want T, got func() T) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		current := got()
		if cmp.Equal(want, current) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("\n%s\n-want, +got:\n%s", reason, cmp.Diff(want, current))
		}
	}
}

func secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set-0-config"},
		Data:       map[string][]byte{meta.ConfigKey: []byte(`{"Version":"alpha0","AuthKey":"tskey-auth-1"}`)},
	}
}

func machine() *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set-0"},
		Spec: v1alpha1.MachineSpec{
			ForProvider:    v1alpha1.MachineParameters{Hostname: "set-0"},
			ReportInterval: &metav1.Duration{Duration: time.Millisecond},
		},
	}
}

func attachment() *v1alpha1.ServiceAttachment {
	return &v1alpha1.ServiceAttachment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-set", Labels: map[string]string{meta.LabelEndpoints: "set"}},
		Spec: v1alpha1.ServiceAttachmentSpec{
			Endpoints:   "set",
			Services:    "web",
			Direction:   v1alpha1.DirectionIngress,
			ServiceName: "svc:web",
			Addresses:   []string{"100.100.0.1"},
			Ports:       []v1alpha1.AttachmentPort{{Port: 80, Backend: &v1alpha1.AttachmentBackend{Host: "web.default.svc", Port: 8080}}},
			HealthCheck: v1alpha1.AttachmentHealthCheck{
				Interval:           metav1.Duration{Duration: 10 * time.Millisecond},
				Timeout:            metav1.Duration{Duration: time.Second},
				HealthyThreshold:   2,
				UnhealthyThreshold: 2,
			},
		},
	}
}
