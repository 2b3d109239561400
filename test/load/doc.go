// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package load is the load generator of tests and benchmarks. It sends requests repeatedly, in this
// process or in the lab, and reports how they ended:
//
//   - A request is one of HTTP, a call of gRPC, or a TCP connection that the server must close.
//   - A request is lost if its whole response, with status 200 and the expected content, does not
//     arrive within the timeout. The cause does not matter: a refused or a reset connection, no
//     answer, an error from a proxy, or the end of the connection within the response.
//   - A lost request is cut if it was in flight during one of the Events after which nobody could
//     answer it, such as the end of the proxy of its connection.
//   - Response times, with the longest one and the longest gap between two responses, show how slow
//     requests were. They have no lost requests, which have no response.
package load
