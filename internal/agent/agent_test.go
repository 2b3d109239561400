// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io"
	"net"
	"net/http"
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
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"tailscale.com/ipn"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/probe"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// What the files say.
const (
	configNone = `{"AuthKey":"tskey-auth-1","Version":"alpha0"}`
	configWeb  = `{"AdvertiseServices":["svc:web"],"AuthKey":"tskey-auth-1","Version":"alpha0"}`
	serveNone  = `{}`
	serveWeb   = `{"Services":{"svc:web":{"TCP":{"80":{"TCPForward":"web.default.svc:8080"}}}}}`
)

// drainTime is long enough to tell a drain from none.
const drainTime = time.Second

// spreadTime is for clients of an egress pod.
const spreadTime = time.Second

// A pod is an agent and all that it deals with. Tests of pods run side by side,
// for they wait more than they work.
type pod struct {
	t       *testing.T
	dir     string
	kube    client.WithWatch
	local   *localapitest.Server
	healthy atomic.Bool
	away    atomic.Bool
	logged  logs

	// egress is the ConfigMap of a pod for egress.
	egress string

	// kernel tells that the pod has Kernel networking.
	kernel bool

	// statePatience is a minute, unless a test sets it.
	statePatience time.Duration

	url, hooks string
	stop       func()
}

func byName(o client.Object) []string { return []string{o.GetName()} }

// newPod returns a pod whose agent does not run yet.
func newPod(t *testing.T, objs ...client.Object) *pod {
	t.Helper()
	s, err := kube.NewScheme()
	if err != nil {
		t.Fatalf("NewScheme(): %v", err)
	}
	p := &pod{t: t, dir: t.TempDir(), statePatience: time.Minute}
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

// An apiServer can be away. It has no watch-list, like all fakes.
type apiServer struct {
	client.WithWatch
	away *atomic.Bool
}

func (a *apiServer) IsWatchListSemanticsUnSupported() bool { return true }

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

// Watch begins with what there is: the fake forgets what happened since the list
// that an API server would begin from.
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

// Logs are what an agent said.
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
	hooks, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatalf("net.Listen(...): %v", err)
	}
	checker := probe.CheckerFn(func(context.Context, probe.Target) error {
		if p.healthy.Load() {
			return nil
		}
		return errors.New("boom")
	})
	a := New(Options{
		PodName:             "set-0",
		PodNamespace:        "default",
		PodIP:               "10.0.0.7",
		Endpoints:           "set",
		TailscaledConfigDir: filepath.Join(p.dir, "tsconfig", "set-0"),
		ServeConfigPath:     filepath.Join(p.dir, "proxies", "serve-config.json"),
		Drain:               drainTime,
		StatePatience:       p.statePatience,
		Pauses:              Pauses{Retry: 50 * time.Millisecond, Report: 10 * time.Millisecond, Settle: 50 * time.Millisecond},
		Kernel:              p.kernel,
		Egress: EgressOptions{
			ConfigMap: p.egress,
			Dir:       filepath.Join(p.dir, "egress"),
			Spread:    spreadTime,
			Drain:     time.Minute,
		},
	}, p.kube, localapi.NewClient(p.local.Socket), localapi.NewDialer(p.local.Socket), checker, NewMetrics(), p.logged.logger())

	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, l, hooks) }()
	p.url, p.hooks = "http://"+l.Addr().String(), "http://"+hooks.Addr().String()
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

// get returns status and body of an answer of the agent.
func (p *pod) get(path string) (int, string) {
	p.t.Helper()
	url := p.url
	if path == proxy.PathPreStop {
		url = p.hooks
	}
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, url+path, nil)
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

// files returns config and serve config. Empty means that there is none.
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

// service returns what the Machine's status says of svc:web.
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

// eventually waits for got to return what is wanted.
func eventually[T any](t *testing.T, reason string, want T, got func() T) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		have := got()
		if cmp.Equal(want, have) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("\n%s\n-want, +got:\n%s", reason, cmp.Diff(want, have))
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

func TestLife(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine())
	p.start()

	eventually(t, "Startup must wait for the config Secret, and say so.", true, func() bool {
		code, body := p.get(proxy.PathStartup)
		return code == http.StatusServiceUnavailable && strings.Contains(body, "default/set-0-config")
	})

	if err := p.kube.Create(t.Context(), secret()); err != nil {
		t.Fatalf("Create(...): %v", err)
	}
	eventually(t, "The first start must write empty files.", [2]string{configNone, serveNone}, p.files)
	eventually(t, "Containerboot may start then.", http.StatusOK, func() int {
		code, _ := p.get(proxy.PathStartup)
		return code
	})
	if code, body := p.get(proxy.PathReadiness); code != http.StatusOK {
		t.Errorf("A started agent must be ready, got %d: %s", code, body)
	}
	if code, body := p.get(proxy.PathLiveness); code != http.StatusOK {
		t.Errorf("A running agent must be alive, got %d: %s", code, body)
	}

	p.local.Set(ipn.Running)
	if err := p.kube.Create(t.Context(), attachment()); err != nil {
		t.Fatalf("Create(...): %v", err)
	}
	eventually(t, "A service with a healthy backend must be advertised.", [2]string{configWeb, serveWeb}, p.files)
	eventually(t, "It must be reported that control has not accepted it.", v1alpha1.HostedService{
		Name: "svc:web", Advertised: true, HealthyBackends: 1, TotalBackends: 1,
		Message: "Waiting for the tailnet to accept this machine as a host of the service; it may have to be approved",
	}, p.service)

	p.local.Set(ipn.Running, "svc:web")
	accepted := v1alpha1.HostedService{Name: "svc:web", Advertised: true, Accepted: true, HealthyBackends: 1, TotalBackends: 1}
	eventually(t, "It must be reported that control has accepted it.", accepted, p.service)
	if p.local.Reloads() == 0 {
		t.Error("Tailscaled must be told to reload its config")
	}

	p.healthy.Store(false)
	eventually(t, "A sick service must be withdrawn but keep its handlers.", [2]string{configNone, serveWeb}, p.files)
	eventually(t, "It must be reported why.", v1alpha1.HostedService{
		Name: "svc:web", Accepted: true, TotalBackends: 1,
		Message: "No backend answers: web.default.svc:8080 (cannot connect)",
	}, p.service)

	p.healthy.Store(true)
	eventually(t, "A service that is well again must come back.", [2]string{configWeb, serveWeb}, p.files)
	eventually(t, "That must be reported.", accepted, p.service)

	s := secret()
	if err := p.kube.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		t.Fatalf("Get(...): %v", err)
	}
	s.Data[meta.ConfigKey] = []byte(`{"Version":"alpha0","AuthKey":"tskey-auth-2"}`)
	if err := p.kube.Update(t.Context(), s); err != nil {
		t.Fatalf("Update(...): %v", err)
	}
	eventually(t, "A new key must reach containerboot.", strings.ReplaceAll(configWeb, "auth-1", "auth-2"), func() string { return p.files()[0] })

	removed := time.Now()
	if err := p.kube.Delete(t.Context(), attachment()); err != nil {
		t.Fatalf("Delete(...): %v", err)
	}
	eventually(t, "A service that nobody wants must be withdrawn.", strings.ReplaceAll(configNone, "auth-1", "auth-2"), func() string { return p.files()[0] })
	eventually(t, "Its handlers must go in the end.", serveNone, func() string { return p.files()[1] })
	if took := time.Since(removed); took < drainTime {
		t.Errorf("Handlers went after %s, want %s at least", took, drainTime)
	}
	eventually(t, "It must not be reported any more.", v1alpha1.HostedService{}, p.service)
}

func TestRestart(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), attachment())
	p.start()
	eventually(t, "The service must be advertised.", [2]string{configWeb, serveWeb}, p.files)
	p.stop()

	p.away.Store(true)
	p.start()
	eventually(t, "A restarted agent has started, with the API server away.", http.StatusOK, func() int {
		code, _ := p.get(proxy.PathStartup)
		return code
	})
	if diff := cmp.Diff([2]string{configWeb, serveWeb}, p.files()); diff != "" {
		t.Errorf("A restarted agent must leave the files as they are: -want, +got:\n%s", diff)
	}

	p.healthy.Store(false)
	p.away.Store(false)
	eventually(t, "It acts once attachments are listed and their backends were probed.", [2]string{configNone, serveWeb}, p.files)
}

func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), attachment())
	p.start()
	p.local.Set(ipn.Running)
	eventually(t, "The service must be advertised.", [2]string{configWeb, serveWeb}, p.files)

	p.away.Store(true)
	p.healthy.Store(false)
	eventually(t, "A sick service must be withdrawn without the API server.", [2]string{configNone, serveWeb}, p.files)
	p.healthy.Store(true)
	eventually(t, "It must come back without the API server.", [2]string{configWeb, serveWeb}, p.files)

	p.away.Store(false)
	eventually(t, "What is so must be reported when the API server is back.", true, func() bool {
		s := p.service()
		return s.Advertised && s.HealthyBackends == 1
	})
}

func TestPreStop(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		accepted []string
		drains   bool
	}{
		"Accepted":    {reason: "Clients of a service must be given time to move.", accepted: []string{"svc:web"}, drains: true},
		"NotAccepted": {reason: "Without a service that control gave there is no client to wait for."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, machine(), secret(), attachment())
			p.start()
			p.local.Set(ipn.Running, tc.accepted...)
			eventually(t, "The service must be advertised and its acceptance known.", v1alpha1.HostedService{
				Name: "svc:web", Advertised: true, Accepted: len(tc.accepted) > 0,
			}, func() v1alpha1.HostedService {
				s := p.service()
				return v1alpha1.HostedService{Name: s.Name, Advertised: s.Advertised, Accepted: s.Accepted}
			})

			start := time.Now()
			if code, body := p.get(proxy.PathPreStop); code != http.StatusOK {
				t.Errorf("\n%s\nGET %s: %d: %s", tc.reason, proxy.PathPreStop, code, body)
			}
			if drained := time.Since(start) >= drainTime; drained != tc.drains {
				t.Errorf("\n%s\nIt took %s with a drain of %s", tc.reason, time.Since(start), drainTime)
			}
			if diff := cmp.Diff([2]string{configNone, serveWeb}, p.files()); diff != "" {
				t.Errorf("\nServices must be withdrawn but keep their handlers: -want, +got:\n%s", diff)
			}
			if code, _ := p.get(proxy.PathReadiness); code != http.StatusServiceUnavailable {
				t.Errorf("A stopping pod must not be ready, got %d", code)
			}

			p.local.Stop()
			p.local.Start()
			p.local.Set(ipn.Running)
			eventually(t, "A new tailscaled in the same pod must serve again.", [2]string{configWeb, serveWeb}, p.files)
			eventually(t, "It must be ready again.", http.StatusOK, func() int {
				code, _ := p.get(proxy.PathReadiness)
				return code
			})
		})
	}
}

func TestUselessSecret(t *testing.T) {
	t.Parallel()
	s := secret()
	s.Data[meta.ConfigKey] = []byte(`{"Version":"alpha0","AuthKeys":"tskey-auth-1"}`)
	p := newPod(t, machine(), s)
	p.start()
	var body string
	eventually(t, "Startup must say that the Secret is of no use.", true, func() bool {
		_, body = p.get(proxy.PathStartup)
		return strings.Contains(body, "cannot use key cap-106.hujson")
	})
	if strings.Contains(body, "tskey") {
		t.Errorf("The key must not be told: %s", body)
	}
	if diff := cmp.Diff("", p.files()[0]); diff != "" {
		t.Errorf("It must not reach tailscaled: -want, +got:\n%s", diff)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), attachment())
	p.start()
	p.local.Set(ipn.Running, "svc:web")
	eventually(t, "Metrics must tell of services.", true, func() bool {
		_, body := p.get(proxy.PathMetrics)
		return strings.Contains(body, `tailscale_gateway_agent_services{state="accepted"} 1`) &&
			strings.Contains(body, `tailscale_gateway_agent_writes_total{file="serve"}`)
	})
}
