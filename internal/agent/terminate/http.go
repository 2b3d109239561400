// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"context"
	"log"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

// Headers that tell who asks. They are those of tailscaled
// (ipn/ipnlocal/serve.go, addTailscaleIdentityHeaders), so that a backend sees no
// difference.
const (
	headerLogin   = "Tailscale-User-Login"
	headerName    = "Tailscale-User-Name"
	headerPicture = "Tailscale-User-Profile-Pic"
	headerInfo    = "Tailscale-Headers-Info"

	// infoURL explains the headers.
	infoURL = "https://tailscale.com/s/serve-headers"
)

// foreignHeaders are never taken from a client.
var foreignHeaders = []string{headerLogin, headerName, headerPicture, headerInfo, "Tailscale-Funnel-Request", "Tailscale-App-Capabilities"} //nolint:gochecknoglobals // A constant list.

const (
	// requestTimeout bounds how long a client may take to say what it asks for.
	requestTimeout = 30 * time.Second

	// idleTimeout is how long a connection may be without a request.
	idleTimeout = 3 * time.Minute

	// whoIsTimeout bounds a question to tailscaled.
	whoIsTimeout = 2 * time.Second
)

// An identity are the headers that tell who has a connection. It is nil for who is
// no user.
type identity func() http.Header

type identityKey struct{}

// serveHTTP hands on requests until ctx ends. Those under way go on after that.
func (s *Server) serveHTTP(ctx context.Context, l net.Listener, t plan.Termination, sec *secret) error {
	quiet := log.New(debugWriter{log: s.opts.Log}, "", 0)
	proxy := reverseProxy(t.Backend, quiet)
	srv := &http.Server{
		Handler:           proxy,
		TLSConfig:         sec.config(),
		ReadHeaderTimeout: requestTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          quiet,
		ConnContext: func(_ context.Context, conn net.Conn) context.Context {
			who := sync.OnceValue(func() http.Header { return s.identify(ctx, conn.RemoteAddr().String()) })
			return context.WithValue(context.WithoutCancel(ctx), identityKey{}, identity(who))
		},
	}
	stop := context.AfterFunc(ctx, func() {
		// It returns once requests have ended, which nobody waits for.
		_ = srv.Shutdown(context.WithoutCancel(ctx))
	})
	defer stop()
	defer closeQuietly(l)
	return errors.Wrap(srv.ServeTLS(withHeaders(l), "", ""), "cannot serve HTTPS")
}

// identify who has an address of the tailnet.
func (s *Server) identify(ctx context.Context, addr string) http.Header {
	ctx, cancel := context.WithTimeout(ctx, whoIsTimeout)
	defer cancel()
	who, err := s.opts.WhoIs(ctx, addr)
	if err != nil {
		s.opts.Log.Debug("Cannot tell who asks", "error", err)
		return nil
	}
	if who.Node == nil || who.Node.IsTagged() || who.UserProfile == nil {
		return nil
	}
	return http.Header{
		headerLogin:   {encode(who.UserProfile.LoginName)},
		headerName:    {encode(who.UserProfile.DisplayName)},
		headerPicture: {who.UserProfile.ProfilePicURL},
		headerInfo:    {infoURL},
	}
}

// encode a header's value as tailscaled does.
func encode(v string) string {
	if !utf8.ValidString(v) {
		return ""
	}
	return mime.QEncoding.Encode("utf-8", v)
}

// reverseProxy hands on requests to a backend, by HTTP/2 without TLS those of gRPC
// and by HTTP/1.1 all others, as tailscaled does.
func reverseProxy(backend string, quiet *log.Logger) http.Handler {
	target := &url.URL{Scheme: "http", Host: backend}
	plain := transport()
	grpc := transport()
	grpc.Protocols = &http.Protocols{}
	grpc.Protocols.SetUnencryptedHTTP2(true)
	handler := func(t http.RoundTripper) http.Handler {
		return &httputil.ReverseProxy{
			Transport: t,
			ErrorLog:  quiet,
			// As it comes: what streams is not to wait for a buffer.
			FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host
				r.SetXForwarded()
				for _, h := range foreignHeaders {
					r.Out.Header.Del(h)
				}
				if who, ok := r.In.Context().Value(identityKey{}).(identity); ok {
					for h, v := range who() {
						r.Out.Header[h] = v
					}
				}
			},
		}
	}
	forPlain, forGRPC := handler(plain), handler(grpc)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			forGRPC.ServeHTTP(w, r)
			return
		}
		forPlain.ServeHTTP(w, r)
	})
}

func transport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   100,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// A debugWriter logs what net/http complains of, which is clients' doing.
type debugWriter struct{ log logging.Logger }

// Write one message.
func (w debugWriter) Write(b []byte) (int, error) {
	w.log.Debug("Cannot serve HTTPS", "error", strings.TrimSpace(string(b)))
	return len(b), nil
}
