// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/netip"
	"time"

	"tailscale.com/net/stun"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// derpRegion is the one region. Ids from 900 on are for tailnets' own regions.
const derpRegion = 900

// derpName is the relay's name where its address cannot be one.
const derpName = "derp.invalid"

func derpMap(a netip.Addr, derpPort, stunPort uint16) *tailcfg.DERPMap {
	n := &tailcfg.DERPNode{
		Name: "900a", RegionID: derpRegion, HostName: a.String(),
		DERPPort: int(derpPort), STUNPort: int(stunPort),
		// The certificate is self-signed, so clients cannot verify it.
		InsecureForTests: true,
		IPv4:             "none", IPv6: "none",
	}
	if a.Is4() {
		n.IPv4 = a.String()
	} else {
		// tailscaled makes URLs of the name without brackets (tailscale.com net/netcheck), and
		// connects to the address.
		n.HostName, n.IPv6 = derpName, a.String()
	}
	return &tailcfg.DERPMap{
		OmitDefaultRegions: true,
		Regions: map[int]*tailcfg.DERPRegion{derpRegion: {
			RegionID: derpRegion, RegionCode: "sim", RegionName: "Simulator", Nodes: []*tailcfg.DERPNode{n},
		}},
	}
}

// serveSTUN answers binding requests until pc is closed.
func serveSTUN(pc net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, sender, err := pc.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		ua, ok := sender.(*net.UDPAddr)
		if !ok || !stun.Is(buf[:n]) {
			continue
		}
		tx, err := stun.ParseBindingRequest(buf[:n])
		if err != nil {
			continue
		}
		ap := ua.AddrPort()
		res := stun.Response(tx, netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()))
		// UDP may lose an answer: the node repeats its request.
		_, _ = pc.WriteTo(res, sender)
	}
}

// sniffListener gives plain HTTP and TLS on one port: nodes speak to DERP by
// TLS only, and to the coordination server by plain HTTP (Noise inside).
type sniffListener struct {
	net.Listener
	config *tls.Config
}

// Accept accepts a connection without reading from it, so that a silent client does not block
// others.
func (l *sniffListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &sniffConn{Conn: c, r: bufio.NewReaderSize(c, 4096), config: l.config}, nil
}

// sniffConn decides at its first Read. http.Server reads before it writes.
type sniffConn struct {
	net.Conn
	r       *bufio.Reader
	config  *tls.Config
	tls     *tls.Conn
	sniffed bool
}

func (c *sniffConn) Read(p []byte) (int, error) {
	if !c.sniffed {
		b, err := c.r.Peek(1)
		if err != nil {
			return 0, err
		}
		// 0x16 is the record type of a TLS handshake.
		if b[0] == 0x16 {
			c.tls = tls.Server(&rawConn{Conn: c.Conn, r: c.r}, c.config)
		}
		c.sniffed = true
	}
	if c.tls != nil {
		return c.tls.Read(p)
	}
	return c.r.Read(p)
}

func (c *sniffConn) Write(p []byte) (int, error) {
	if c.tls != nil {
		return c.tls.Write(p)
	}
	return c.Conn.Write(p)
}

// rawConn reads the sniffed bytes before the rest.
type rawConn struct {
	net.Conn
	r *bufio.Reader
}

func (c *rawConn) Read(p []byte) (int, error) { return c.r.Read(p) }

func selfSigned() (tls.Certificate, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, errors.Wrap(err, "cannot generate a key")
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "tailnetsim"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(10, 0, 0),
		DNSNames:     []string{"tailnetsim"},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &k.PublicKey, k)
	if err != nil {
		return tls.Certificate{}, errors.Wrap(err, "cannot create a certificate")
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k}, nil
}
