// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/multicluster"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Intervals between two looks at the records in the tailnet, which are in the list of services that all
// objects of a tailnet share. A list that takes long, because the tailnet is large, is read less often.
const (
	interval        = 10 * time.Second
	intervalPending = 5 * time.Second
	intervalMax     = time.Minute
	lookPatience    = 2 * time.Second
	share           = 20
)

// A set is a cluster set to which this cluster belongs, with what its clusters export.
type set struct {
	multicluster.Membership

	// exports are the exporting clusters by namespace and name of the Service.
	exports map[string]map[string][]multicluster.Exporter
}

// records read what the clusters of all sets export.
type records struct {
	kube      client.Reader
	connector *clients.Connector
	log       logging.Logger

	// changed receives the namespaces whose exports have changed.
	changed chan event.TypedGenericEvent[*metav1.PartialObjectMetadata]

	mu sync.Mutex

	// sets are the sets by the name of their ClusterProviderConfig. A set whose records are not known is nil.
	sets map[string]*set

	// listed reports whether the configs are known.
	listed bool

	// pending are the namespaces whose ServiceExports wait for the record of this cluster.
	pending map[string]bool
}

// Start looks at the records until the context ends.
func (r *records) Start(ctx context.Context) error {
	for {
		begin := time.Now()
		r.look(ctx)
		wait := interval
		r.mu.Lock()
		if len(r.pending) > 0 {
			wait = intervalPending
		}
		r.mu.Unlock()
		wait = max(wait, min(share*time.Since(begin), intervalMax))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// look reads the records of all sets, and requests the namespaces whose exports have changed. The exports of a
// set that cannot be read stay what they were.
func (r *records) look(ctx context.Context) {
	configs := &v1alpha1.ClusterProviderConfigList{}
	if err := r.kube.List(ctx, configs); err != nil {
		r.log.Info("Cannot list ClusterProviderConfigs", "error", err)
		return
	}
	current := map[string]bool{}
	for i := range configs.Items {
		c := &configs.Items[i]
		if c.Spec.ClusterSet == "" {
			continue
		}
		current[c.GetName()] = true
		r.expect(c.GetName())
		s, err := r.read(ctx, c.GetName(), r.last(c.GetName()))
		if err != nil {
			r.log.Info("Cannot read what clusters export", "ClusterProviderConfig", c.GetName(), "error", err)
			continue
		}
		r.replace(ctx, c.GetName(), s)
	}
	r.mu.Lock()
	absent := slices.DeleteFunc(slices.Collect(maps.Keys(r.sets)), func(name string) bool { return current[name] })
	r.mu.Unlock()
	for _, name := range absent {
		r.remove(ctx, name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed = true
}

// expect adds a set whose records are not known, unless it is there.
func (r *records) expect(config string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.sets[config]; !ok {
		r.sets[config] = nil
	}
}

// last returns what is known of a set, or nil.
func (r *records) last(config string) *set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sets[config]
}

// read returns what the clusters of a set export. The last result may be nil.
func (r *records) read(ctx context.Context, config string, last *set) (*set, error) {
	c, err := r.connector.Read(ctx, config)
	if err != nil {
		return nil, err
	}
	domain, err := c.Client.Tailnet().Domain(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "cannot learn the tailnet's domain")
	}
	v := registry.View{}
	if v.Services, v.ServicesAt, err = c.Client.Services().ServicesAt(ctx, tailscale.AtMost(intervalPending)); err != nil {
		return nil, errors.Wrap(err, "cannot list services")
	}
	s := &set{Membership: multicluster.Membership{Cluster: c.ClusterID, Set: c.ClusterSet, Tailnet: config, Domain: domain}}
	s.exports = exportsOf(v.Services, s.Membership)
	if last != nil && last.Cluster == s.Cluster && last.Set == s.Set {
		keepUnreadable(s.exports, last.exports, v.Services, s.Membership)
	}
	return s, nil
}

// exportsOf returns the exporting clusters of a set by namespace and name of the Service. A record counts only
// for the Service whose name in the tailnet it has: any client that can write services can write any record.
func exportsOf(services []tailscale.Service, m multicluster.Membership) map[string]map[string][]multicluster.Exporter {
	out := map[string]map[string][]multicluster.Exporter{}
	for i := range services {
		rec, ok, err := registry.RecordOf(&services[i])
		if err != nil || !ok || rec.Export == nil || rec.ClusterSet != m.Set {
			continue
		}
		namespace, object, _ := strings.Cut(rec.Operator, "/")
		export, ok := multicluster.Clean(*rec.Export)
		name := export.Name
		if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || rec.Service != multicluster.ServiceName(m.Set, namespace, name) || object != multicluster.ObjectName(name) {
			continue
		}
		if out[namespace] == nil {
			out[namespace] = map[string][]multicluster.Exporter{}
		}
		out[namespace][name] = append(out[namespace][name], multicluster.Exporter{Cluster: rec.Cluster, ExportedService: export})
	}
	return out
}

// keepUnreadable adds the exporters of the last look whose record is still there and cannot be read, such as one
// without its annotations: its cluster writes it again at its next poll.
func keepUnreadable(exports, last map[string]map[string][]multicluster.Exporter, services []tailscale.Service, m multicluster.Membership) {
	unreadable := map[string]bool{}
	for i := range services {
		if _, ok, err := registry.RecordOf(&services[i]); err != nil || !ok {
			unreadable[services[i].Name] = true
		}
	}
	for namespace, names := range last {
		for name, exporters := range names {
			for _, e := range exporters {
				if !unreadable[registry.RecordName(multicluster.ServiceName(m.Set, namespace, name), e.Cluster)] {
					continue
				}
				if exports[namespace] == nil {
					exports[namespace] = map[string][]multicluster.Exporter{}
				}
				exports[namespace][name] = append(exports[namespace][name], e)
			}
		}
	}
}

// replace replaces a set, and requests the namespaces that change.
func (r *records) replace(ctx context.Context, config string, s *set) {
	r.mu.Lock()
	old := r.sets[config]
	r.sets[config] = s
	r.mu.Unlock()
	r.request(ctx, differing(old, s))
}

// remove removes a set, and requests its namespaces.
func (r *records) remove(ctx context.Context, config string) {
	r.mu.Lock()
	old := r.sets[config]
	delete(r.sets, config)
	r.mu.Unlock()
	r.request(ctx, differing(old, nil))
}

// request requests namespaces.
func (r *records) request(ctx context.Context, namespaces []string) {
	for _, namespace := range namespaces {
		o := &metav1.PartialObjectMetadata{}
		o.SetName(namespace)
		select {
		case r.changed <- event.TypedGenericEvent[*metav1.PartialObjectMetadata]{Object: o}:
		case <-ctx.Done():
			return
		}
	}
}

// differing returns the namespaces whose exports differ between two sets. Either may be nil.
func differing(a, b *set) []string {
	all := map[string]bool{}
	digest := func(s *set, namespace string) string {
		if s == nil {
			return ""
		}
		text, err := json.Marshal([]any{s.Membership, s.exports[namespace]})
		if err != nil {
			return ""
		}
		return string(text)
	}
	for _, s := range []*set{a, b} {
		if s == nil {
			continue
		}
		for namespace := range s.exports {
			all[namespace] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(n string) bool { return digest(a, n) == digest(b, n) })
}

// get returns the sets by the name of their ClusterProviderConfig. It is false if they are not known.
func (r *records) get() (map[string]*set, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.sets), r.listed
}

// nextLook returns how long to wait for what is not known: while the configs are not, for the look that has begun.
func (r *records) nextLook() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.listed {
		return lookPatience
	}
	return interval
}

// exported reports whether a cluster of any set exports a Service of a namespace.
func (r *records) exported(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sets {
		if s != nil && len(s.exports[namespace]) > 0 {
			return true
		}
	}
	return false
}

// wait records whether a namespace waits for the record of this cluster.
func (r *records) wait(namespace string, pending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pending {
		r.pending[namespace] = true
		return
	}
	delete(r.pending, namespace)
}
