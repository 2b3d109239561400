// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"crypto/sha256"
	"net/url"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Pool holds the clients of provider configs. Configs with the same credential share its rate
// limit and token; configs that also have the same tailnet share lists. A config that changed gets
// a new client. The Pool is a prometheus.Collector of the remaining rates and of the lists' ages.
type Pool struct {
	options Options

	mu      sync.Mutex
	configs map[string]hash // By the name of the config.
	clients map[hash]*Client
	logins  map[hash]*login
}

// A hash identifies a config, so that the pool stores no second copy of secrets.
type hash [sha256.Size]byte

// NewPool returns an empty pool.
func NewPool(o Options) *Pool {
	if o.Transport == nil {
		o.Transport = newWire(o.Authorities)
	}
	return &Pool{options: o, configs: map[string]hash{}, clients: map[hash]*Client{}, logins: map[hash]*login{}}
}

// Client returns the client of the provider config with the name. Names must be unique: KIND/NAME
// or KIND/NAMESPACE/NAME.
func (p *Pool) Client(name string, cfg Config) (*Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := hashOf(append(cfg.login(), cfg.Tailnet, cfg.Credential)...)
	if c, ok := p.clients[h]; ok {
		p.use(name, h)
		return c, nil
	}
	base, err := cfg.base()
	if err != nil {
		return nil, err
	}
	lh := hashOf(cfg.login()...)
	l, ok := p.logins[lh]
	if !ok {
		if l, err = newLogin(base, cfg, p.options); err != nil {
			return nil, err
		}
		p.logins[lh] = l
	}
	c := clientWith(base, cfg, p.options, l)
	p.clients[h] = c
	p.use(name, h)
	return c, nil
}

// Forget drops a deleted provider config.
func (p *Pool) Forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.configs, name)
	p.sweep()
}

// use records the client of a config, and drops clients that no config uses.
func (p *Pool) use(name string, h hash) {
	if p.configs[name] == h {
		return
	}
	p.configs[name] = h
	p.sweep()
}

func (p *Pool) sweep() {
	used := map[hash]bool{}
	for _, h := range p.configs {
		used[h] = true
	}
	logins := map[*login]bool{}
	for h, c := range p.clients {
		if !used[h] {
			delete(p.clients, h)
			continue
		}
		logins[c.login] = true
	}
	for h, l := range p.logins {
		if !logins[l] {
			delete(p.logins, h)
		}
	}
}

// login returns the values that distinguish credentials.
func (c Config) login() []string {
	return []string{strings.TrimSuffix(c.URL, "/"), c.ClientID, c.ClientSecret, c.IdentityName, c.APIKey}
}

// base returns the parsed URL of the API.
func (c Config) base() (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(c.URL, "/"))
	if err != nil {
		return nil, errors.New("the API URL is not valid")
	}
	return u, nil
}

func hashOf(values ...string) hash { return sha256.Sum256([]byte(strings.Join(values, "\x00"))) }

var (
	budgetDesc = prometheus.NewDesc("tailscale_gateway_api_budget_requests",
		"Requests to Tailscale's API that a provider config's credential may send at once now. Below zero some wait.", []string{"config"}, nil)
	listAgeDesc = prometheus.NewDesc("tailscale_gateway_api_list_age_seconds",
		"Age of a shared list, by provider config and list.", []string{"config", "list"}, nil)
)

// Describe implements prometheus.Collector.
func (p *Pool) Describe(ch chan<- *prometheus.Desc) {
	ch <- budgetDesc
	ch <- listAgeDesc
}

// Collect implements prometheus.Collector. The number of series is the number of provider configs,
// which administrators create.
func (p *Pool) Collect(ch chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, h := range p.configs {
		c := p.clients[h]
		ch <- prometheus.MustNewConstMetric(budgetDesc, prometheus.GaugeValue, c.login.limited.limiter.Tokens(), name)
		if age, ok := c.services.age(); ok {
			ch <- prometheus.MustNewConstMetric(listAgeDesc, prometheus.GaugeValue, age.Seconds(), name, listServices)
		}
		if age, ok := c.devices.age(); ok {
			ch <- prometheus.MustNewConstMetric(listAgeDesc, prometheus.GaugeValue, age.Seconds(), name, listDevices)
		}
	}
}
