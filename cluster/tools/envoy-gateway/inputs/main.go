// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command inputs translates resources as Envoy Gateway does, by its own translators, and
// prints what it would send to an extension. They are internal packages: this module's path
// begins with that of Envoy Gateway's, by which Go lets it import them.
//
// It reads one JSON object after the other, each a Case, and answers each by one Answer.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/internal/extension/registry"
	extension "github.com/envoyproxy/gateway/internal/extension/types"
	"github.com/envoyproxy/gateway/internal/gatewayapi"
	"github.com/envoyproxy/gateway/internal/gatewayapi/resource"
	"github.com/envoyproxy/gateway/internal/ir"
	"github.com/envoyproxy/gateway/internal/logging"
	"github.com/envoyproxy/gateway/internal/wasm"
	"github.com/envoyproxy/gateway/internal/xds/translator"
	pb "github.com/envoyproxy/gateway/proto/extension"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Case is what one translation is of.
type Case struct {
	Name      string              `json:"name"`
	Resources *resource.Resources `json:"resources"`

	// Features of Envoy Gateway's configuration.
	Features Features `json:"features"`
}

// Features of Envoy Gateway's configuration that are off unless they are set.
type Features struct {
	PatchPolicies    bool `json:"patchPolicies,omitempty"`
	Backends         bool `json:"backends,omitempty"`
	GatewayNamespace bool `json:"gatewayNamespace,omitempty"`
	OnHost           bool `json:"onHost,omitempty"`
	NoLua            bool `json:"noLua,omitempty"`
	SDS              bool `json:"sds,omitempty"`
	OwnSystemCA      bool `json:"ownSystemCA,omitempty"`
}

// An Answer to a Case.
type Answer struct {
	Name     string    `json:"name"`
	Messages []Message `json:"messages,omitempty"`
}

// A Message is what the extension is sent of one Gateway, or of those that are merged.
type Message struct {
	Gateway string `json:"gateway"`

	// Naming is the scheme of names: 1 or 2.
	Naming int `json:"naming"`

	// Request is a PostTranslateModifyRequest. Without one the extension is not asked.
	Request []byte `json:"request,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "inputs:", err)
		os.Exit(1)
	}
}

func run(input io.Reader, out io.Writer) error {
	w := bufio.NewWriter(out)
	r, e := json.NewDecoder(input), json.NewEncoder(w)
	for {
		c := Case{}
		if err := r.Decode(&c); errors.Is(err, io.EOF) {
			return w.Flush()
		} else if err != nil {
			return fmt.Errorf("cannot read the case after %q: %w", c.Name, err)
		}
		a, err := translate(&c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if err := e.Encode(a); err != nil {
			return err
		}
	}
}

const (
	class     = "envoy-gateway-class"
	namespace = "envoy-gateway-system"
	ours      = "gateway.tailscale.com"
	version   = "v1alpha1"
)

// kinds returns our kinds that routes reference as backends.
func kinds() []string { return []string{"TailscaleServices", "TailscaleEndpoints"} }

// translate translates a case in the same way as Envoy Gateway's runners
// (internal/gatewayapi/runner and internal/xds/runner).
func translate(c *Case) (*Answer, error) {
	log := logging.DefaultLogger(io.Discard, egv1a1.LogLevelError)
	t := &gatewayapi.Translator{
		GatewayControllerName:           egv1a1.GatewayControllerName,
		GatewayClassName:                class,
		GlobalRateLimitEnabled:          true,
		EnvoyPatchPolicyEnabled:         c.Features.PatchPolicies,
		BackendEnabled:                  c.Features.Backends,
		SDSSecretRefEnabled:             c.Features.SDS,
		PerResourceSystemCASecret:       c.Features.OwnSystemCA,
		ControllerNamespace:             namespace,
		MergeGateways:                   gatewayapi.IsMergeGatewaysEnabled(c.Resources),
		MergeBackends:                   gatewayapi.ResolveMergeBackendsConfig(c.Resources),
		GatewayNamespaceMode:            c.Features.GatewayNamespace,
		RunningOnHost:                   c.Features.OnHost,
		LuaEnvoyExtensionPolicyDisabled: c.Features.NoLua,
		WasmCache:                       modules{},
		Logger:                          log,
	}
	for _, k := range kinds() {
		t.ExtensionGroupKinds = append(t.ExtensionGroupKinds, schema.GroupKind{Group: ours, Kind: k})
	}
	// Invalid objects get a status, and the rest is translated.
	var result *gatewayapi.TranslateResult
	_ = recovered(func() error {
		var err error
		result, err = t.Translate(context.Background(), c.Resources)
		return err
	})
	a := &Answer{Name: c.Name}
	if result == nil {
		return a, nil
	}
	gateways := make([]string, 0, len(result.XdsIR))
	for g := range result.XdsIR {
		gateways = append(gateways, g)
	}
	slices.Sort(gateways)
	for _, g := range gateways {
		if result.XdsIR[g].Validate() != nil {
			// The runner skips it.
			continue
		}
		for naming := 1; naming <= 2; naming++ {
			m, err := send(g, naming, result.XdsIR[g].DeepCopy(), log)
			if err != nil {
				return nil, err
			}
			a.Messages = append(a.Messages, *m)
		}
	}
	return a, nil
}

// send sends a translation to an extension that records it and returns it unchanged.
func send(gateway string, naming int, xds *ir.Xds, log logging.Logger) (*Message, error) {
	all := true
	config := &egv1a1.ExtensionManager{
		PolicyResources: []egv1a1.GroupVersionKind{{Group: ours, Version: version, Kind: "TailscaleRevision"}},
		Hooks: &egv1a1.ExtensionHooks{XDSTranslator: &egv1a1.XDSTranslatorHooks{
			Post: []egv1a1.XDSTranslatorHook{egv1a1.XDSTranslation},
			Translation: &egv1a1.TranslationConfig{
				Cluster:  &egv1a1.ClusterTranslationConfig{IncludeAll: &all},
				Listener: &egv1a1.ListenerTranslationConfig{IncludeAll: &all},
				Route:    &egv1a1.RouteTranslationConfig{IncludeAll: &all},
				Secret:   &egv1a1.SecretTranslationConfig{IncludeAll: &all},
			},
		}},
	}
	for _, k := range kinds() {
		config.BackendResources = append(config.BackendResources, egv1a1.GroupVersionKind{Group: ours, Version: version, Kind: k})
	}
	recorder := &keeper{}
	manager, stop, err := registry.NewInMemoryManager(config, recorder)
	if err != nil {
		return nil, err
	}
	defer stop()
	var extensionManager extension.Manager = manager
	t := &translator.Translator{
		ControllerNamespace: namespace,
		FilterOrder:         xds.FilterOrder,
		GlobalRateLimit:     &translator.GlobalRateLimitSettings{ServiceURL: "grpc://envoy-ratelimit." + namespace + ".svc.cluster.local:8081"},
		ExtensionManager:    &extensionManager,
		Logger:              log,
	}
	if naming == 2 {
		t.RuntimeFlags = &egv1a1.RuntimeFlags{Enabled: []egv1a1.RuntimeFlag{egv1a1.XDSNameSchemeV2}}
	}
	m := &Message{Gateway: gateway, Naming: naming}
	// A translation that fails here may succeed after the extension has changed it.
	_ = recovered(func() error {
		_, err := t.Translate(context.Background(), xds)
		return err
	})
	m.Request = recorder.request
	return m, nil
}

// recovered calls a translator. A translator panics on some inputs of Envoy Gateway's tests, and
// the runners recover (HandleSubscription in internal/message).
func recovered(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return fn()
}

// A keeper is an extension that changes nothing.
type keeper struct {
	pb.UnimplementedEnvoyGatewayExtensionServer

	request []byte
}

func (k *keeper) PostTranslateModify(_ context.Context, r *pb.PostTranslateModifyRequest) (*pb.PostTranslateModifyResponse, error) {
	var err error
	k.request, err = proto.MarshalOptions{Deterministic: true}.Marshal(r)
	return &pb.PostTranslateModifyResponse{Clusters: r.GetClusters(), Secrets: r.GetSecrets(), Listeners: r.GetListeners(), Routes: r.GetRoutes()}, err
}

// modules of WebAssembly are downloaded by nobody.
type modules struct{}

func (modules) Start(context.Context) {}

func (modules) Cleanup() {}

// Get returns some place, and a digest of the right length.
func (modules) Get(_ string, o *wasm.GetOptions) (string, string, error) {
	digest := o.Checksum
	if digest == "" {
		digest = fmt.Sprintf("%064d", 0)
	}
	return "https://envoy-gateway." + namespace + ".svc.cluster.local:18002/module.wasm", digest, nil
}
