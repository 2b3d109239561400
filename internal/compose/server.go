// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// A Server serves a function to Crossplane. Its fields are flags of the command
// line.
type Server struct {
	Debug bool `help:"Emit debug logs in addition to info logs." short:"d"`

	Network            string `default:"tcp"                                                                                                    help:"Network to listen on for gRPC connections."`
	Address            string `default:":9443"                                                                                                  help:"Address to listen on for gRPC connections."`
	MetricsAddress     string `default:":8080"                                                                                                  help:"Address to serve Prometheus metrics on. Empty serves none."`
	TLSCertsDir        string `env:"TLS_SERVER_CERTS_DIR"                                                                                       help:"Directory with the server's certificate (tls.key, tls.crt) and the CA of client certificates (ca.crt)."`
	Insecure           bool   `help:"Serve without TLS, for tests and development. Crossplane itself always uses TLS."`
	MaxRecvMessageSize int    `default:"4"                                                                                                      help:"Largest message to receive, in MiB."`
}

// Logger returns a logger with the level that the flags select.
func (s *Server) Logger() (logging.Logger, error) {
	log, err := function.NewLogger(s.Debug)
	return log, errors.Wrap(err, "cannot create a logger")
}

// Serve serves a function until the server fails.
func (s *Server) Serve(fn fnv1.FunctionRunnerServiceServer) error {
	return errors.Wrap(function.Serve(fn,
		function.Listen(s.Network, s.Address),
		function.MTLSCertificates(s.TLSCertsDir),
		function.Insecure(s.Insecure),
		function.MaxRecvMessageSize(s.MaxRecvMessageSize*1024*1024),
		function.WithMetricsServer(s.MetricsAddress),
	), "cannot serve the function")
}
