// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// ACMEOptions are the options of the front of an ACME server.
type ACMEOptions struct {
	// Listen is the TCP address of the front. Port 0 picks a free one.
	Listen string
	// Certificate of the front.
	Certificate tls.Certificate
	// Directory is the URL of the ACME server's directory. The server must use the Host of each
	// request for its URLs, as Pebble does. Its certificate is not verified.
	Directory string
}

// acmeTimeout bounds a request to the ACME server.
const acmeTimeout = 30 * time.Second

// acmeProblem begins the types of problems (RFC 8555, 6.7).
const acmeProblem = "urn:ietf:params:acme:error:"

// An acmeFront adds Let's Encrypt's limits to an ACME server that has none. It reads the requests,
// whose signatures the server verifies, and counts what the server accepts.
type acmeFront struct {
	sim    *Server
	server *url.URL
	client *http.Client
	clock  func() time.Time

	// The simulator's lock guards all below. paths are empty until they are known.
	paths acmePaths
	book  *acmeBook
	// orders holds the orders by the path that finalizes them.
	orders map[string]acmeOrder
}

// StartACME serves the front of an ACME server over HTTPS.
func (s *Server) StartACME(o ACMEOptions) (net.Addr, error) {
	u, err := url.Parse(o.Directory)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the URL of the ACME server's directory")
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(s.ctx, "tcp", o.Listen)
	if err != nil {
		return nil, errors.Wrap(err, "cannot listen for ACME")
	}
	f := &acmeFront{
		sim: s, server: u, clock: time.Now, book: newACMEBook(), orders: map[string]acmeOrder{},
		client: &http.Client{Timeout: acmeTimeout, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // A simulator, in front of a test server.
		}},
	}
	h := &http.Server{Handler: f, ReadHeaderTimeout: acmeTimeout, TLSConfig: &tls.Config{Certificates: []tls.Certificate{o.Certificate}, MinVersion: tls.VersionTLS12}}
	s.mu.Lock()
	s.closers = append(s.closers, h.Close)
	s.mu.Unlock()
	s.wg.Go(func() {
		if err := h.ServeTLS(ln, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("ACME ended", "error", err)
		}
	})
	return ln.Addr(), nil
}

// An acmeRequest is what the front reads of a request.
type acmeRequest struct {
	// account is the URL of the account that signed the request, or "".
	account string
	// thumbprint of the key that signed the request, if it names no account.
	thumbprint string
	payload    []byte
}

func (f *acmeFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read request", http.StatusBadRequest)
		return
	}
	if err := f.readDirectory(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	count, refusal := f.check(r, parseACME(body))
	if refusal != nil {
		f.sim.log.Info("ACME server refused", "path", r.URL.Path, "detail", refusal.detail)
		refusal.write(w)
		return
	}
	answer, err := f.forward(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if count != nil && answer.status < http.StatusMultipleChoices {
		f.sim.mu.Lock()
		count(answer.body)
		f.sim.mu.Unlock()
	}
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body) // The client is gone.
}

// forward sends a request to the ACME server.
func (f *acmeFront) forward(r *http.Request, body []byte) (*reply, error) {
	u := *f.server
	u.Path, u.RawQuery = r.URL.Path, r.URL.RawQuery
	req, err := http.NewRequestWithContext(r.Context(), r.Method, u.String(), bytes.NewReader(body)) //nolint:gosec // The host is that of the options.
	if err != nil {
		return nil, errors.Wrap(err, "cannot make request")
	}
	req.Header, req.Host = r.Header.Clone(), r.Host
	res, err := f.client.Do(req) //nolint:gosec // As above.
	if err != nil {
		return nil, errors.Wrap(err, "cannot ask the ACME server")
	}
	defer res.Body.Close() // Only read.
	b, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	return &reply{header: res.Header, status: res.StatusCode, body: b}, errors.Wrap(err, "cannot read the ACME server's answer")
}

// acmePaths are the paths of an ACME server that the front watches.
type acmePaths struct{ newAccount, newOrder string }

// readDirectory reads the ACME server's directory, unless it is known.
func (f *acmeFront) readDirectory(r *http.Request) error {
	f.sim.mu.Lock()
	cached := f.paths != acmePaths{}
	f.sim.mu.Unlock()
	if cached {
		return nil
	}
	get := r.Clone(r.Context())
	get.Method, get.URL = http.MethodGet, f.server
	answer, err := f.forward(get, nil)
	if err != nil {
		return err
	}
	var dir struct {
		NewAccount string `json:"newAccount"`
		NewOrder   string `json:"newOrder"`
	}
	if err := json.Unmarshal(answer.body, &dir); err != nil {
		return errors.Wrap(err, "cannot decode the ACME server's directory")
	}
	f.sim.mu.Lock()
	defer f.sim.mu.Unlock()
	f.paths = acmePaths{newAccount: pathOf(dir.NewAccount), newOrder: pathOf(dir.NewOrder)}
	return nil
}

func pathOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return u.Path
}

// parseACME parses a JWS in the flattened serialization (RFC 8555, 6.2). The zero value is that of
// a request without one.
func parseACME(body []byte) acmeRequest {
	var jws struct{ Protected, Payload string }
	var protected struct {
		Kid string           `json:"kid"`
		JWK *jose.JSONWebKey `json:"jwk"`
	}
	if json.Unmarshal(body, &jws) != nil {
		return acmeRequest{}
	}
	head, err := base64.RawURLEncoding.DecodeString(jws.Protected)
	if err != nil || json.Unmarshal(head, &protected) != nil {
		return acmeRequest{}
	}
	req := acmeRequest{account: protected.Kid}
	if protected.JWK != nil {
		if sum, err := protected.JWK.Thumbprint(crypto.SHA256); err == nil {
			req.thumbprint = string(sum)
		}
	}
	if req.payload, err = base64.RawURLEncoding.DecodeString(jws.Payload); err != nil {
		return acmeRequest{}
	}
	return req
}

// check returns the refusal of a request, or how to count the accepted one. Both may be nil.
func (f *acmeFront) check(r *http.Request, req acmeRequest) (func([]byte), *acmeRefusal) {
	f.sim.mu.Lock()
	defer f.sim.mu.Unlock()
	l, at := f.sim.switches.ACME, f.clock()
	switch o, finalizes := f.orders[r.URL.Path]; {
	case r.Method != http.MethodPost:
		return nil, nil
	case finalizes:
		return func([]byte) {
			f.book.issued(f.clock(), o, l)
			delete(f.orders, r.URL.Path)
		}, nil
	case r.URL.Path == f.paths.newAccount:
		return f.newAccount(r, at, req, l)
	case r.URL.Path == f.paths.newOrder:
		return f.newOrder(at, req, l)
	}
	return func(b []byte) {
		if id := certificateID(b); id != "" {
			f.book.issuedTo[id] = req.account
		}
	}, nil
}

func (f *acmeFront) newAccount(r *http.Request, at time.Time, req acmeRequest, l ACMELimits) (func([]byte), *acmeRefusal) {
	var p struct {
		OnlyReturnExisting bool `json:"onlyReturnExisting"`
	}
	if json.Unmarshal(req.payload, &p) != nil || p.OnlyReturnExisting || f.book.accounts[req.thumbprint] {
		return nil, nil
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	if refusal := f.book.account(at, address, l); refusal != nil {
		return nil, refusal
	}
	return func([]byte) {
		f.book.accounts[req.thumbprint] = true
		spend(f.book.addresses, address, f.clock(), l.Accounts)
		f.sim.log.Info("ACME account registered", "address", address)
	}, nil
}

func (f *acmeFront) newOrder(at time.Time, req acmeRequest, l ACMELimits) (func([]byte), *acmeRefusal) {
	var p struct {
		Identifiers []struct{ Value string }
		Replaces    string
	}
	if json.Unmarshal(req.payload, &p) != nil {
		return nil, nil
	}
	o := acmeOrder{account: req.account, replaces: p.Replaces}
	for _, id := range p.Identifiers {
		o.names = append(o.names, strings.ToLower(id.Value))
	}
	slices.Sort(o.names)
	if refusal := f.book.order(at, o, l); refusal != nil {
		return nil, refusal
	}
	return func(b []byte) {
		var order struct{ Finalize string }
		if json.Unmarshal(b, &order) == nil && order.Finalize != "" {
			f.orders[pathOf(order.Finalize)] = o
		}
	}, nil
}

// certificateID returns the identifier of the first certificate in a chain (RFC 9773, 4.1), or "".
func certificateID(chain []byte) string {
	block, _ := pem.Decode(chain)
	if block == nil || block.Type != "CERTIFICATE" {
		return ""
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	serial := c.SerialNumber.Bytes()
	if len(serial) > 0 && serial[0]&0x80 != 0 {
		serial = append([]byte{0}, serial...)
	}
	return base64.RawURLEncoding.EncodeToString(c.AuthorityKeyId) + "." + base64.RawURLEncoding.EncodeToString(serial)
}

func (r *acmeRefusal) write(w http.ResponseWriter) {
	if r.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.retryAfter.Seconds()))))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(r.status)
	// The client may be gone.
	_ = json.NewEncoder(w).Encode(map[string]any{"type": acmeProblem + r.kind, "detail": r.detail, "status": r.status})
}
