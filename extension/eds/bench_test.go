// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// distinct is the number of targets, and so of streams, that an Envoy has in the worst case.
const distinct = 5000

// benchClient holds the address of a server, in a process that acts as its Envoy. A separate
// process separates the memory of the two.
const benchClient = "EDS_BENCH_CLIENT"

func TestMain(m *testing.M) {
	if address := os.Getenv(benchClient); address != "" {
		if err := actEnvoy(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// actEnvoy opens a stream for each target on one connection, reports when all are answered, and
// stays until its input ends.
func actEnvoy(address string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	for i := range distinct {
		s, err := endpointservice.NewEndpointDiscoveryServiceClient(conn).DeltaEndpoints(ctx)
		if err != nil {
			return err
		}
		if err := s.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesSubscribe: []string{benchKey(i).ClusterName()}}); err != nil {
			return err
		}
		r, err := s.Recv()
		if err != nil {
			return err
		}
		if err := s.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResponseNonce: r.GetNonce()}); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && !strings.Contains(err.Error(), "EOF") {
		return err
	}
	return conn.Close()
}

func benchKey(i int) ir.TargetKey { return key("web-" + strconv.Itoa(i)) }

func benchContents() ir.Contents {
	var c ir.Contents
	for i := range distinct {
		c.Targets = append(c.Targets, &ir.Target{Key: benchKey(i), Localities: localities("10.0.0.1", "10.0.0.2", "10.0.0.3")})
	}
	return c
}

func memory() uint64 {
	// The first collection moves pooled objects, the second frees them.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// BenchmarkStreams measures the memory of a stream in the server, in kB: extension.stream_kb.
func BenchmarkStreams(b *testing.B) {
	snapshot := ir.NewSnapshot(benchContents())
	for range b.N {
		s := NewServer(func() *ir.Snapshot { return snapshot }, Options{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		srv := grpc.NewServer()
		s.Register(srv)
		done := make(chan error, 1)
		go func() { done <- srv.Serve(l) }()

		baseline := memory()
		client := exec.CommandContext(b.Context(), os.Args[0])
		client.Env = append(os.Environ(), benchClient+"="+l.Addr().String())
		client.Stderr = os.Stderr
		stdin, err := client.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := client.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := client.Start(); err != nil {
			b.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			b.Fatalf("the client is not ready: %q, %v", line, err)
		}
		b.ReportMetric(float64(memory()-baseline)/distinct/1000, "stream_kb")

		if err := stdin.Close(); err != nil {
			b.Fatal(err)
		}
		if err := client.Wait(); err != nil {
			b.Fatal(err)
		}
		srv.Stop()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChange measures the time from a change of one target of 5000 until its stream gets it,
// without the wait for further changes.
func BenchmarkChange(b *testing.B) {
	for name, resourceName := range map[string]func(i int) string{
		"targets": func(i int) string { return benchKey(i).ClusterName() },
		"rules":   func(i int) string { return benchRoute(i).RuleName(0) },
	} {
		b.Run(name, func(b *testing.B) {
			c := benchContents()
			for i := range distinct {
				c.Routes = append(c.Routes, benchRoute(i))
			}
			var snapshot atomic.Pointer[ir.Snapshot]
			snapshot.Store(ir.NewSnapshot(c))
			s := NewServer(snapshot.Load, Options{})
			responses := make(chan struct{}, distinct)
			for i := range distinct {
				st, err := s.open("envoy", func(*discovery.DeltaDiscoveryResponse) error {
					responses <- struct{}{}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.subscribe(st, []string{resourceName(i)}, nil); err != nil {
					b.Fatal(err)
				}
				<-responses
			}
			var worst time.Duration
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				c.Targets[i%distinct] = &ir.Target{Key: benchKey(i % distinct), Localities: localities(fmt.Sprintf("10.1.%d.%d", i/250%250, i%250))}
				snapshot.Store(ir.NewSnapshot(c))
				b.StartTimer()
				start := time.Now()
				s.Changed([]string{resourceName(i % distinct)}, false)
				s.refresh()
				<-responses
				worst = max(worst, time.Since(start))
			}
			b.ReportMetric(float64(worst.Microseconds())/1000, "worst_ms")
		})
	}
}

// benchRoute returns a route with one rule and two backends.
func benchRoute(i int) *ir.Route {
	n := strconv.Itoa(i)
	a, b := ours("web-"+n, 1), ours("none", 0)
	b.Index = 1
	return &ir.Route{
		Key:   ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: named("r-" + n)},
		Rules: []ir.Rule{{Backends: []ir.BackendRef{a, b}}},
	}
}
