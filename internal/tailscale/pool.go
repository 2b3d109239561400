// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"crypto/sha256"
	"sync"
)

// A Pool keeps one client per provider config, so that all who use a config
// share its rate, token and lists. A config that changed gets a new client.
type Pool struct {
	options Options

	mu      sync.Mutex
	clients map[string]pooled
}

type pooled struct {
	config [sha256.Size]byte // A hash, so that no secret is kept twice.
	client *Client
}

// NewPool makes an empty pool.
func NewPool(o Options) *Pool {
	return &Pool{options: o, clients: map[string]pooled{}}
}

// Client returns the client of the provider config with the UID.
func (p *Pool) Client(uid string, cfg Config) (*Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := hash(cfg)
	if c, ok := p.clients[uid]; ok && c.config == h {
		return c.client, nil
	}
	c, err := NewClient(cfg, p.options)
	if err != nil {
		return nil, err
	}
	p.clients[uid] = pooled{config: h, client: c}
	return c, nil
}

// Forget drops the client of a provider config that is gone.
func (p *Pool) Forget(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clients, uid)
}

func hash(c Config) [sha256.Size]byte {
	return sha256.Sum256([]byte(c.URL + "\x00" + c.Tailnet + "\x00" + c.ClientID + "\x00" + c.ClientSecret))
}
