// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package permits records which managed resources a provider config has allowed to act on its
// tailnet, and which tailnet that was. A resource that loses its permission may still clean up what
// it made. A resource that never had it may not, regardless of its annotations and status. The store
// is therefore in Secrets of the provider's namespace, where tenants cannot write, and identifies
// resources by their UID, which no user can choose.
package permits

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// prefix begins the names of the Secrets.
	prefix = "provider-tailscale-permits-"

	// secretType is the type of the Secrets.
	secretType corev1.SecretType = "gateway.tailscale.com/permits"

	// shards is the number of Secrets. A permit takes a few hundred bytes of the megabyte that a
	// Secret may have.
	shards = 32

	// tailnetSuffix follows the UID of a resource in the key of its tailnet. The tailnet is beside the
	// permit, because it outlives the permit of one config, and because earlier versions, after a
	// rollback, write permits without it and leave other keys.
	tailnetSuffix = ".tailnet"

	// attempts is how often a write is tried that conflicts with another writer's, such as the
	// previous leader's.
	attempts = 5
)

// PruneInterval is the time between two searches for permits of resources that are gone.
const PruneInterval = time.Hour

// A Permit records that a resource was allowed.
type Permit struct {
	// Kind and Namespace of the resource.
	Kind, Namespace string

	// Config is the UID of the provider config that allowed it last.
	Config types.UID

	// Claims stands for what the resource claimed of the tailnet when it was allowed. It is empty in
	// permits that are older than grants. It contains no space.
	Claims string

	// Product stands for what the resource is known to have made in the tailnet of the config, for kinds
	// that need to recognize it without its marks. It contains no space.
	Product string
}

// none is the stored form of absent claims before other fields.
const none = "-"

// String returns the stored form of the permit.
func (p Permit) String() string {
	f := []string{p.Kind, p.Namespace, string(p.Config), p.Claims, p.Product}
	switch {
	case p.Product == "" && p.Claims == "":
		f = f[:3]
	case p.Product == "":
		f = f[:4]
	case p.Claims == "":
		f[3] = none
	}
	return strings.Join(f, " ")
}

// parse returns the permit with a stored form. It returns an empty permit if the form is invalid.
func parse(s []byte) Permit {
	f := strings.Fields(string(s))
	if len(f) < 3 || len(f) > 5 {
		return Permit{}
	}
	p := Permit{Kind: f[0], Namespace: f[1], Config: types.UID(f[2])}
	if len(f) > 3 && f[3] != none {
		p.Claims = f[3]
	}
	if len(f) > 4 {
		p.Product = f[4]
	}
	return p
}

// A Store holds permits. It is safe for concurrent use.
type Store struct {
	kube      client.Client
	namespace string
	shards    [shards]shard
}

// A shard is one part of the Store.
type shard struct {
	mu sync.Mutex

	// secret is the Secret as last read or written, and nil before that.
	secret *corev1.Secret
}

// New returns the Store in a namespace. The client must read Secrets from the API server, not from
// a cache.
func New(kube client.Client, namespace string) *Store {
	return &Store{kube: kube, namespace: namespace}
}

func shardOf(uid types.UID) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // It never fails.
	return int(h.Sum32() % shards)
}

// Has reports whether a resource was once allowed by a config.
func (s *Store) Has(ctx context.Context, uid, config types.UID) (bool, error) {
	_, ok, err := s.Get(ctx, uid, config)
	return ok, err
}

// Get returns the permit that a config gave a resource, and whether there is one.
func (s *Store) Get(ctx context.Context, uid, config types.UID) (Permit, bool, error) {
	sh := &s.shards[shardOf(uid)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := s.load(ctx, shardOf(uid)); err != nil {
		return Permit{}, false, err
	}
	b, ok := sh.secret.Data[string(uid)]
	p := parse(b)
	return p, ok && p.Config == config, nil
}

// Add adds a permit, unless the Store has it. The field Product of a permit of the same config stays.
// The permit is stored when Add returns.
func (s *Store) Add(ctx context.Context, uid types.UID, p Permit) error {
	return s.edit(ctx, shardOf(uid), func(data map[string][]byte) bool {
		if old := parse(data[string(uid)]); old.Config == p.Config {
			p.Product = old.Product
		}
		if string(data[string(uid)]) == p.String() {
			return false
		}
		data[string(uid)] = []byte(p.String())
		return true
	})
}

// Remember sets what a resource made, in the permit that a config gave it. Without such a permit it
// does nothing.
func (s *Store) Remember(ctx context.Context, uid, config types.UID, product string) error {
	return s.edit(ctx, shardOf(uid), func(data map[string][]byte) bool {
		p := parse(data[string(uid)])
		if p.Config != config || p.Product == product {
			return false
		}
		p.Product = product
		data[string(uid)] = []byte(p.String())
		return true
	})
}

// Tailnet returns the tailnet in which a resource is managed, as SetTailnet or Move stored it, or "".
func (s *Store) Tailnet(ctx context.Context, uid types.UID) (string, error) {
	sh := &s.shards[shardOf(uid)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := s.load(ctx, shardOf(uid)); err != nil {
		return "", err
	}
	return string(sh.secret.Data[string(uid)+tailnetSuffix]), nil
}

// SetTailnet stores the tailnet in which a resource is managed, as a text without spaces.
func (s *Store) SetTailnet(ctx context.Context, uid types.UID, tailnet string) error {
	return s.edit(ctx, shardOf(uid), func(data map[string][]byte) bool { return setTailnet(data, uid, tailnet) })
}

// Move does the same for a resource that leaves another tailnet, with what it made there.
func (s *Store) Move(ctx context.Context, uid types.UID, tailnet string) error {
	return s.edit(ctx, shardOf(uid), func(data map[string][]byte) bool {
		changed := setTailnet(data, uid, tailnet)
		if p := parse(data[string(uid)]); p.Product != "" {
			p.Product = ""
			data[string(uid)] = []byte(p.String())
			changed = true
		}
		return changed
	})
}

func setTailnet(data map[string][]byte, uid types.UID, tailnet string) bool {
	key := string(uid) + tailnetSuffix
	if string(data[key]) == tailnet {
		return false
	}
	data[key] = []byte(tailnet)
	return true
}

// Forget removes the permit and the tailnet of a resource that is about to be gone.
func (s *Store) Forget(ctx context.Context, uid types.UID) error {
	return s.edit(ctx, shardOf(uid), without(string(uid)))
}

// Prune removes the permits of a kind whose resources are gone, such as those whose finalizer was
// removed by hand. List returns the existing resources; covers reports whether list includes a
// namespace.
func (s *Store) Prune(ctx context.Context, kind string, covers func(namespace string) bool, list func(context.Context) ([]types.UID, error)) error {
	// Permits that are added while list runs must stay.
	candidates := map[int][]string{}
	for i := range s.shards {
		uids, err := s.permits(ctx, i, func(p Permit) bool { return p.Kind == kind && covers(p.Namespace) })
		if err != nil {
			return err
		}
		candidates[i] = uids
	}
	existing, err := list(ctx)
	if err != nil {
		return errors.Wrapf(err, "cannot list kind %s", kind)
	}
	live := make(map[string]bool, len(existing))
	for _, uid := range existing {
		live[string(uid)] = true
	}
	for i, uids := range candidates {
		uids = slices.DeleteFunc(uids, func(uid string) bool { return live[uid] })
		if len(uids) == 0 {
			continue
		}
		if err := s.edit(ctx, i, without(uids...)); err != nil {
			return err
		}
	}
	return nil
}

// without returns an edit that removes permits and tailnets of resources.
func without(uids ...string) func(map[string][]byte) bool {
	return func(data map[string][]byte) bool {
		size := len(data)
		for _, uid := range uids {
			delete(data, uid)
			delete(data, uid+tailnetSuffix)
		}
		return len(data) < size
	}
}

// permits returns the resources in a shard whose permits match.
func (s *Store) permits(ctx context.Context, i int, match func(Permit) bool) ([]string, error) {
	sh := &s.shards[i]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := s.load(ctx, i); err != nil {
		return nil, err
	}
	var out []string
	for uid, b := range sh.secret.Data {
		if match(parse(b)) {
			out = append(out, uid)
		}
	}
	return out, nil
}

// load reads a shard, unless it is already loaded. The caller holds the shard's lock.
func (s *Store) load(ctx context.Context, i int) error {
	sh := &s.shards[i]
	if sh.secret != nil {
		return nil
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: s.namespace, Name: fmt.Sprintf("%s%d", prefix, i)}
	err := s.kube.Get(ctx, key, secret)
	if kerrors.IsNotFound(err) {
		sh.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: secretType}
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot get Secret %s", key)
	}
	sh.secret = secret
	return nil
}

// edit changes a shard, and writes it if that made a difference.
func (s *Store) edit(ctx context.Context, i int, change func(map[string][]byte) bool) error {
	sh := &s.shards[i]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var err error
	for range attempts {
		if err := s.load(ctx, i); err != nil {
			return err
		}
		next := sh.secret.DeepCopy()
		if next.Data == nil {
			next.Data = map[string][]byte{}
		}
		if !change(next.Data) {
			return nil
		}
		if next.GetResourceVersion() == "" {
			err = s.kube.Create(ctx, next)
		} else {
			err = s.kube.Update(ctx, next)
		}
		if err == nil {
			sh.secret = next
			return nil
		}
		// After any error, the stored content is unknown.
		sh.secret = nil
		if !kerrors.IsConflict(err) && !kerrors.IsAlreadyExists(err) && !kerrors.IsNotFound(err) {
			break
		}
	}
	return errors.Wrapf(err, "cannot write Secret %s/%s%d", s.namespace, prefix, i)
}

// Configs returns the UIDs of the provider configs that the Store in a namespace names, sorted. The
// Store outlives the provider.
func Configs(ctx context.Context, kube client.Reader, namespace string) ([]types.UID, error) {
	var out []types.UID
	for i := range shards {
		s := &corev1.Secret{}
		err := kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("%s%d", prefix, i)}, s)
		if kerrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, errors.Wrap(err, "cannot read permits")
		}
		for _, b := range s.Data {
			if p := parse(b); p.Config != "" {
				out = append(out, p.Config)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
