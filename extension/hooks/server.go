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

// Snapshots provides the server's state. An index.Store implements it.
type Snapshots interface {
	// Snapshot returns the newest snapshot. It is never nil, and the call never blocks.
	Snapshot() *ir.Snapshot
}

// A Recorder records the result of each translation. It must not block: Envoy Gateway waits for the
// hook, with all of its Gateways.
type Recorder interface {
	RecordTranslation(t Translation)
}

// A Translation describes the result of a PostTranslateModify.
type Translation struct {
	// Gateway that the translation was for, as namespace/name: the first of merged Gateways, and
	// empty if the message names none.
	Gateway string

	Start    time.Time
	Duration time.Duration

	// Revision of the snapshot.
	Revision uint64

	// Answers to the TailscaleRevisions in the request.
	Answers []Answer

	Summary
}

// A RecorderFn is a function that is a Recorder.
type RecorderFn func(t Translation)

// RecordTranslation calls the function.
func (fn RecorderFn) RecordTranslation(t Translation) { fn(t) }

// A Server answers Envoy Gateway's hooks. It never returns an error, because Envoy Gateway would
// then publish nothing for the Gateway: resources that cannot be served stay as Envoy Gateway made
// them, and are counted.
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

// WithLogger sets the logger. By default a server does not log.
func WithLogger(l logging.Logger) ServerOption { return func(s *Server) { s.log = l } }

// WithRecorder sets the recorder of translations. By default there is none.
func WithRecorder(r Recorder) ServerOption { return func(s *Server) { s.recorder = r } }

// NewServer returns a server. For each hook it calls src for the source of the clusters' endpoints,
// with whether the bootstrap of the Gateway's Envoys has the authority tailscale.
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

// PostTranslateModify adds the Tailscale backends. Envoy gets only the returned resources, so the
// hook returns all others unchanged.
func (s *Server) PostTranslateModify(ctx context.Context, req *pb.PostTranslateModifyRequest) (*pb.PostTranslateModifyResponse, error) {
	start := time.Now()
	snapshot := s.snapshots.Snapshot()
	resources := Resources{Clusters: req.GetClusters(), Listeners: req.GetListeners(), Routes: req.GetRoutes(), Secrets: req.GetSecrets()}
	revisions := answers(snapshot, req.GetPostTranslateContext().GetExtensionResources())
	for _, a := range revisions {
		resources.Gateways = append(resources.Gateways, a.Gateway)
	}
	gateway := gatewayOf(resources)
	out, summary := Translate(snapshot, s.source(bootstrapped(snapshot, gateway)), resources)

	t := Translation{
		Gateway:  gateway,
		Start:    start,
		Duration: time.Since(start),
		Revision: snapshot.Revision,
		Answers:  revisions,
		Summary:  summary,
	}
	s.recorder.RecordTranslation(t)
	describe(trace.SpanFromContext(ctx), t)
	if t.Denied > 0 {
		s.log.Info("Denied requests of routes that policies insert too many routes for; the status of the policies may say which", "gateway", t.Gateway, "routes", t.Denied)
	}
	s.log.Debug("Translated", "hook", "PostTranslateModify", "gateway", t.Gateway, "duration", t.Duration,
		"revision", t.Revision, "rules", t.Rules, "shared", t.Shared, "dedicated", t.Dedicated, "removed", t.Removed, "skipped", t.Skipped)
	return &pb.PostTranslateModifyResponse{
		Clusters:  out.Clusters,
		Secrets:   out.Secrets,
		Listeners: out.Listeners,
		Routes:    out.Routes,
	}, nil
}

// bootstrapped reports whether the bootstrap of a Gateway's Envoys has the authority tailscale.
// Merged Gateways share one bootstrap.
func bootstrapped(s *ir.Snapshot, gateway string) bool {
	namespace, name, _ := strings.Cut(gateway, "/")
	return s.HasAuthority(types.NamespacedName{Namespace: namespace, Name: name})
}

// Gateway returns the Gateway that a hook's request is for, as namespace/name. Empty if the request
// names none.
func Gateway(req any) string {
	r, ok := req.(*pb.PostTranslateModifyRequest)
	if !ok {
		return ""
	}
	return gatewayOf(Resources{Listeners: r.GetListeners(), Routes: r.GetRoutes()})
}

// describe records a translation on the span of its call, if the span is sampled.
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
		attribute.Int("clusters.failover", t.FailingOver),
		attribute.Int("clusters.shared", t.Shared),
		attribute.Int("clusters.dedicated", t.Dedicated),
		attribute.Int("clusters.removed", t.Removed),
	)
	for _, reason := range slices.Sorted(maps.Keys(t.Skipped)) {
		span.SetAttributes(attribute.Int("rules.skipped."+strings.ToLower(string(reason)), t.Skipped[reason]))
	}
}
