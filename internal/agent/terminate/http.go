// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"context"
	"log"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"tailscale.com/client/tailscale/apitype"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/identity"
)

// infoURL is the page that explains the identity headers of users.
const infoURL = "https://tailscale.com/s/serve-headers"

const (
	// webSocket is the only protocol that a connection may be upgraded to.
	webSocket = "websocket"

	// methodPreface is the method that a server of HTTP/1.1 reads from the connection preface of
	// HTTP/2.
	methodPreface = "PRI"

	// requestTimeout bounds how long a client can take to send the headers of a request.
	requestTimeout = 30 * time.Second

	// idleTimeout is how long a connection can stay open without a request.
	idleTimeout = 3 * time.Minute

	// whoIsTimeout bounds a WhoIs request to tailscaled.
	whoIsTimeout = 2 * time.Second

	// whoIsFresh is how long a WhoIs answer is cached for one connection. Tags and names can change
	// during a connection.
	whoIsFresh = 5 * time.Second
)

// A caller is the client of a connection.
type caller struct {
	// ask returns the client's identity headers. No headers mean that the client is unknown.
	ask func() http.Header

	mu       sync.Mutex
	answer   http.Header
	answered time.Time
}

// headers returns the identity headers of the connection's client. The caller must not change
// them.
func (c *caller) headers() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered.IsZero() || time.Since(c.answered) >= whoIsFresh {
		c.answer, c.answered = c.ask(), time.Now()
	}
	return c.answer
}

type callerKey struct{}

// serveHTTP forwards requests until ctx is done. Requests under way continue after that.
// Without a Secret it serves without TLS.
func (s *Server) serveHTTP(ctx context.Context, l net.Listener, t plan.Termination, p *balance.Picker, sec *secret) error {
	quiet := log.New(debugWriter{log: s.opts.Log}, "", 0)
	srv := &http.Server{
		Handler:           forwarder(t, s.dialer(t), p, quiet),
		ReadHeaderTimeout: requestTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          quiet,
		ConnContext: func(_ context.Context, conn net.Conn) context.Context {
			if t.Anonymous {
				return context.WithoutCancel(ctx)
			}
			client := &caller{ask: func() http.Header { return s.identify(ctx, conn.RemoteAddr().String()) }}
			return context.WithValue(context.WithoutCancel(ctx), callerKey{}, client)
		},
	}
	stop := context.AfterFunc(ctx, func() {
		// Shutdown returns once all requests have ended. Nothing waits for it.
		_ = srv.Shutdown(context.WithoutCancel(ctx))
	})
	defer stop()
	defer closeQuietly(l)
	l = withHeaders(l, t)
	if sec != nil {
		srv.TLSConfig = sec.config()
		return errors.Wrap(srv.ServeTLS(l, "", ""), "cannot serve HTTPS")
	}
	// gRPC clients use HTTP/2 without TLS.
	srv.Protocols = &http.Protocols{}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	return errors.Wrap(srv.Serve(l), "cannot serve HTTP")
}

// identify returns the identity headers of the device that has an address of the tailnet. The
// request continues until the answer arrives, even if the listener is closed in the meantime.
func (s *Server) identify(ctx context.Context, addr string) http.Header {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), whoIsTimeout)
	defer cancel()
	whois, err := s.opts.WhoIs(ctx, addr)
	if err != nil {
		s.opts.Log.Debug("Cannot identify the client", "error", err)
		return nil
	}
	return headersOf(whois)
}

// headersOf returns the identity headers of a device: its tags, or its user if it has no tags.
func headersOf(whois *apitype.WhoIsResponse) http.Header {
	if whois == nil || whois.Node == nil {
		return nil
	}
	out := http.Header{identity.DeviceName: {encode(strings.TrimSuffix(whois.Node.Name, "."))}}
	switch {
	case whois.Node.IsTagged():
		out[identity.DeviceTags] = []string{encode(strings.Join(slices.Sorted(slices.Values(whois.Node.Tags)), ","))}
	case whois.UserProfile != nil:
		out[identity.Login] = []string{encode(whois.UserProfile.LoginName)}
		out[identity.Name] = []string{encode(whois.UserProfile.DisplayName)}
		out[identity.Picture] = []string{whois.UserProfile.ProfilePicURL}
		out[identity.Info] = []string{infoURL}
	}
	return out
}

// encode returns a header value in tailscaled's encoding.
func encode(v string) string {
	if !utf8.ValidString(v) {
		return ""
	}
	return mime.QEncoding.Encode("utf-8", v)
}

// forwarder forwards the requests of a port. Like tailscaled, it uses HTTP/2 for gRPC requests, without
// TLS unless the backend speaks it, and HTTP/1.1 for all others.
func forwarder(t plan.Termination, d *net.Dialer, p *balance.Picker, quiet *log.Logger) http.Handler {
	if t.HTTPS {
		plain, grpc := newSecureTransports(d, p, protocolHTTP1), newSecureTransports(d, p, protocolHTTP2)
		return withChoice(p, reverseProxy("https", "", balancing{transport: plain.to}, balancing{transport: grpc.to}, quiet))
	}
	plain, grpc := transport(d), transport(d)
	grpc.Protocols = &http.Protocols{}
	grpc.Protocols.SetUnencryptedHTTP2(true)
	if t.Balance == nil {
		return reverseProxy("http", t.Backend, plain, grpc, quiet)
	}
	balancer := func(t http.RoundTripper) balancing {
		return balancing{transport: func(balance.Backend) http.RoundTripper { return t }}
	}
	return withChoice(p, reverseProxy("http", "", balancer(plain), balancer(grpc), quiet))
}

// reverseProxy forwards requests to a backend, or without one, to that of the choice of each request.
func reverseProxy(scheme, backend string, plain, grpc http.RoundTripper, quiet *log.Logger) http.Handler {
	target := &url.URL{Scheme: scheme, Host: backend}
	handler := func(t http.RoundTripper) http.Handler {
		return &httputil.ReverseProxy{
			Transport: t,
			ErrorLog:  quiet,
			// Flush at once: streamed data must not wait for a full buffer.
			FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host
				r.SetXForwarded()
				restrictUpgrade(r)
				for _, fields := range []http.Header{r.Out.Header, r.Out.Trailer} {
					maps.DeleteFunc(fields, func(h string, _ []string) bool { return identity.Is(h) })
				}
				client, ok := r.In.Context().Value(callerKey{}).(*caller)
				if !ok {
					// The address is tailscaled's.
					r.Out.Header.Del("X-Forwarded-For")
					return
				}
				maps.Copy(r.Out.Header, client.headers())
			},
		}
	}
	forPlain, forGRPC := handler(plain), handler(grpc)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == methodPreface {
			http.Error(w, "HTTP/2 begins with a connection", http.StatusBadRequest)
			return
		}
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			forGRPC.ServeHTTP(w, r)
			return
		}
		forPlain.ServeHTTP(w, r)
	})
}

// restrictUpgrade allows a client to upgrade to WebSocket only: if a backend upgraded the
// connection to HTTP/2, the agent would not see the requests on it. The proxy has already
// removed the headers that Connection names, and has added those back that an upgrade needs.
func restrictUpgrade(r *httputil.ProxyRequest) {
	r.Out.Header.Del("HTTP2-Settings")
	requested := r.In.Header.Values("Upgrade")
	if r.In.Method == http.MethodGet && len(requested) == 1 && strings.EqualFold(requested[0], webSocket) && r.Out.Header.Get("Upgrade") != "" {
		r.Out.Header.Set("Upgrade", webSocket)
		return
	}
	r.Out.Header.Del("Connection")
	r.Out.Header.Del("Upgrade")
}

func transport(d *net.Dialer) *http.Transport {
	return &http.Transport{
		DialContext:           d.DialContext,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   100,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// A debugWriter logs the errors that net/http reports. Clients cause these errors.
type debugWriter struct{ log logging.Logger }

// Write logs one message.
func (w debugWriter) Write(b []byte) (int, error) {
	w.log.Debug("Cannot serve a request", "error", strings.TrimSpace(string(b)))
	return len(b), nil
}
