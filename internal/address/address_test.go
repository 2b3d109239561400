// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestRefused(t *testing.T) {
	cases := map[string]string{
		"127.0.0.1":              Loopback,
		"127.255.255.254":        Loopback,
		"::1":                    Loopback,
		"::ffff:127.0.0.1":       Loopback,
		"169.254.169.254":        LinkLocal,
		"::ffff:169.254.169.254": LinkLocal,
		"fe80::1":                LinkLocal,
		"fe80::1%eth0":           LinkLocal,
		"febf::1":                LinkLocal,
		"0.0.0.0":                Unspecified,
		"0.1.2.3":                Unspecified,
		"::":                     Unspecified,
		"::ffff:0.0.0.0":         "another form of 0.0.0.0, " + Unspecified,
		"224.0.0.1":              Multicast,
		"239.255.255.255":        Multicast,
		"ff02::1":                Multicast,
		"255.255.255.255":        Broadcast,
		"::ffff:255.255.255.255": "another form of 255.255.255.255, " + Broadcast,
		"::127.0.0.1":            "another form of 127.0.0.1, " + Loopback,
		"::ffff:0:127.0.0.1":     "another form of 127.0.0.1, " + Loopback,
		"64:ff9b::7f00:1":        "another form of 127.0.0.1, " + Loopback,
		"64:ff9b::169.254.0.1":   "another form of 169.254.0.1, " + LinkLocal,
		"64:ff9b:1::7f00:1":      "another form of 127.0.0.1, " + Loopback,
		"2002:7f00:1::1":         "another form of 127.0.0.1, " + Loopback,
		"2002:e000:1::1":         "another form of 224.0.0.1, " + Multicast,
		"fd00:ec2::254":          Metadata,
		"fd20:ce::254":           Metadata,
		"168.63.129.16":          Metadata,
		"64:ff9b::168.63.129.16": "another form of 168.63.129.16, " + Metadata,
		"2001:db8::1%eth0":       Zoned,
		"100.100.100.200":        Metadata,
		"192.0.0.192":            Metadata,
		// Teredo (RFC 4380) inverts the address, and ISATAP (RFC 5214) has any prefix.
		"2001:0:c000:201:0:63bf:80ff:fffe": "another form of 127.0.0.1, " + Loopback,
		"2001:0:c000:201:0:63bf:5601:5601": "another form of 169.254.169.254, " + LinkLocal,
		"2001:db8::5efe:7f00:1":            "another form of 127.0.0.1, " + Loopback,
		"2001:db8:1:2:200:5efe:a9fe:a9fe":  "another form of 169.254.169.254, " + LinkLocal,

		"10.0.0.1":                         "",
		"100.64.0.1":                       "",
		"192.0.2.1":                        "",
		"::ffff:192.0.2.1":                 "",
		"64:ff9b::c000:201":                "",
		"2002:c000:201::1":                 "",
		"2001:db8::1":                      "",
		"2001:0:c000:201:0:63bf:f5ff:fffe": "",
		"2001:db8::5efe:a00:1":             "",
		"2001:db8::5eff:7f00:1":            "",
		"fd00::1":                          "",
		"fd7a:115c:a1e0::1":                "",
		"128.0.0.1":                        "",
		"169.253.255.255":                  "",
		"255.255.255.254":                  "",
	}
	for host, want := range cases {
		if got := Refused(netip.MustParseAddr(host)); got != want {
			t.Errorf("Refused(%s): want %q, got %q", host, want, got)
		}
		if got := RefusedHost(host); got != want {
			t.Errorf("RefusedHost(%s): want %q, got %q", host, want, got)
		}
	}
	if got := Refused(netip.Addr{}); got == "" {
		t.Error("Invalid addresses must be refused")
	}
}

func TestRefusedHost(t *testing.T) {
	cases := map[string]string{
		"localhost":             Localhost,
		"LOCALHOST.":            Localhost,
		"a.localhost":           Localhost,
		"a.b.LocalHost.":        Localhost,
		"localhost.example.com": "",
		"mylocalhost":           "",
		"example.com":           "",
		"127.1":                 "",
	}
	for host, want := range cases {
		if got := RefusedHost(host); got != want {
			t.Errorf("RefusedHost(%s): want %q, got %q", host, want, got)
		}
	}
}

// TestControl checks that a name does not hide an address.
func TestControl(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // Nothing is accepted.
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		c, err := (&net.Dialer{Control: Control}).DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			t.Errorf("%s: want no connection, got one to %s", host, c.RemoteAddr())
			continue
		}
		if refused := (RefusedError{}); !errors.As(err, &refused) {
			t.Errorf("%s: want that it is refused, got %v", host, err)
		}
	}
}

func TestPublic(t *testing.T) {
	cases := map[string]bool{
		"203.0.113.7":           true,
		"2001:db8::7":           true,
		"64:ff9b::203.0.113.7":  true,
		"::ffff:203.0.113.7":    true,
		"100.63.255.255":        true,
		"100.128.0.0":           true,
		"10.1.2.3":              false,
		"172.16.0.1":            false,
		"192.168.0.7":           false,
		"::ffff:192.168.0.7":    false,
		"100.64.0.0":            false,
		"100.127.255.255":       false,
		"169.254.0.7":           false,
		"127.0.0.1":             false,
		"fe80::7":               false,
		"fd7a:115c:a1e0::7":     false,
		"64:ff9b::192.168.0.7":  false,
		"2002:c0a8:7::1":        false,
		"2002:cb00:7107::1":     true,
		"0.0.0.0":               false,
		"fe80::1%eth0":          false,
		"64:ff9b::100.100.0.10": false,
	}
	for addr, want := range cases {
		if got := Public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Public(%s) is %t, want %t", addr, got, want)
		}
	}
}

func TestAbsolute(t *testing.T) {
	cases := map[string]string{
		"web":                        "web",
		"web.shop":                   "web.shop.",
		"web.shop.":                  "web.shop.",
		"web-0.web.shop":             "web-0.web.shop.",
		"web.shop.svc":               "web.shop.svc",
		"WEB.SHOP.SVC":               "WEB.SHOP.SVC",
		"shop.svc":                   "shop.svc.",
		"web.shop.svc.cluster.local": "web.shop.svc.cluster.local.",
		"db.example.com":             "db.example.com.",
		"192.0.2.1":                  "192.0.2.1",
		"2001:db8::1":                "2001:db8::1",
		"::ffff:192.0.2.1":           "::ffff:192.0.2.1",
	}
	for host, want := range cases {
		if got := Absolute(host); got != want {
			t.Errorf("Absolute(%q): want %q, got %q", host, want, got)
		}
	}
}
