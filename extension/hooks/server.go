// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// Snapshots is where a server reads what it knows, such as an index.Store.
type Snapshots interface {
	// Snapshot is the newest. It is never nil, and reading it never waits.
	Snapshot() *ir.Snapshot
}

// A Recorder is told what each translation did. It must not wait: Envoy Gateway does
// so meanwhile, for all its Gateways.
type Recorder interface {
	RecordTranslation(t Translation)
}

// A Translation is what a PostTranslateModify did.
type Translation struct {
	// Gateway that it was for, as namespace/name: the first of those that are
	// merged, empty if the message does not tell.
	Gateway string

	Start    time.Time
	Duration time.Duration

	// Revision of the snapshot that it read.
	Revision uint64

	// Answers to the TailscaleRevisions that came along.
	Answers []Answer

	Summary
}

// A RecorderFn is a function that is a Recorder.
type RecorderFn func(t Translation)

// RecordTranslation calls the function.
func (fn RecorderFn) RecordTranslation(t Translation) { fn(t) }

// A Server answers Envoy Gateway's hooks. It never fails, for Envoy Gateway would
// publish nothing of that Gateway then: what cannot be served is left as Envoy
// Gateway made it, and counted.
type Server struct {
	pb.UnimplementedEnvoyGatewayExtensionServer

	snapshots Snapshots
	source    func(bootstrapped bool) xds.Source
	log       logging.Logger
	recorder  Recorder
}

var _ pb.EnvoyGatewayExtensionServer = &Server{}

// A ServerOption changes a Server.
type ServerOption func(s *Server)

// WithLogger sets where a server logs. The default is nowhere.
func WithLogger(l logging.Logger) ServerOption { return func(s *Server) { s.log = l } }

// WithRecorder sets who is told of translations. The default is nobody.
func WithRecorder(r Recorder) ServerOption { return func(s *Server) { s.recorder = r } }

// NewServer returns a server that sends Envoys to the source for endpoints, as it is when a
// hook is called. The source may depend on whether the bootstrap of the Gateway's Envoys has
// the authority tailscale.
func NewServer(s Snapshots, src func(bootstrapped bool) xds.Source, o ...ServerOption) *Server {
	out := &Server{
		snapshots: s,
		source:    src,
		log:       logging.NewNopLogger(),
		recorder:  RecorderFn(func(Translation) {}),
	}
	for _, fn := range o {
		fn(out)
	}
	return out
}

// PostTranslateModify puts our kinds in. What it returns is all that Envoy gets, so
// everything else is returned as it came.
func (s *Server) PostTranslateModify(ctx context.Context, req *pb.PostTranslateModifyRequest) (*pb.PostTranslateModifyResponse, error) {
	start := time.Now()
	snapshot := s.snapshots.Snapshot()
	in := Resources{Clusters: req.GetClusters(), Listeners: req.GetListeners(), Routes: req.GetRoutes(), Secrets: req.GetSecrets()}
	asked := answers(snapshot, req.GetPostTranslateContext().GetExtensionResources())
	for _, a := range asked {
		in.Gateways = append(in.Gateways, a.Gateway)
	}
	gateway := gatewayOf(in)
	out, summary := Translate(snapshot, s.source(bootstrapped(snapshot, gateway)), in)

	t := Translation{
		Gateway:  gateway,
		Start:    start,
		Duration: time.Since(start),
		Revision: snapshot.Revision,
		Answers:  asked,
		Summary:  summary,
	}
	s.recorder.RecordTranslation(t)
	describe(trace.SpanFromContext(ctx), t)
	s.log.Debug("Translated", "hook", "PostTranslateModify", "gateway", t.Gateway, "duration", t.Duration,
		"revision", t.Revision, "rules", t.Rules, "shared", t.Shared, "own", t.Own, "dropped", t.Dropped, "left", t.Left)
	return &pb.PostTranslateModifyResponse{
		Clusters:  out.Clusters,
		Secrets:   out.Secrets,
		Listeners: out.Listeners,
		Routes:    out.Routes,
	}, nil
}

// bootstrapped reports whether the bootstrap of a Gateway's Envoys has the authority
// tailscale. Gateways that are merged have one.
func bootstrapped(s *ir.Snapshot, gateway string) bool {
	namespace, name, _ := strings.Cut(gateway, "/")
	return s.HasAuthority(types.NamespacedName{Namespace: namespace, Name: name})
}

// Gateway that a hook's request is for, as namespace/name. Empty if it does not tell.
func Gateway(req any) string {
	r, ok := req.(*pb.PostTranslateModifyRequest)
	if !ok {
		return ""
	}
	return gatewayOf(Resources{Listeners: r.GetListeners(), Routes: r.GetRoutes()})
}

// describe a translation on the span of its call, if somebody wants one.
func describe(span trace.Span, t Translation) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String("gateway", t.Gateway),
		attribute.Int64("revision", int64(t.Revision)),
		attribute.Int64("translate_us", t.Duration.Microseconds()),
		attribute.Int("rules", t.Rules),
		attribute.Int("rules.split", t.Split),
		attribute.Int("clusters.shared", t.Shared),
		attribute.Int("clusters.own", t.Own),
		attribute.Int("clusters.dropped", t.Dropped),
	)
	for _, reason := range slices.Sorted(maps.Keys(t.Left)) {
		span.SetAttributes(attribute.Int("left."+string(reason), t.Left[reason]))
	}
}
