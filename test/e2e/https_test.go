// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"
)

// whoAsks is a service of the machines of examples/https.yaml. Its backend returns the client's
// address of the PROXY protocol.
const whoAsks = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata:
  name: whoasks
  namespace: ` + namespace + `
spec:
  selector: {matchLabels: {app: https}}
  vipService: {ports: [tcp:80, tcp:443], tags: [tag:k8s]}
  tls: {mode: Terminate, ports: [443]}
  backends:
  - {kind: External, name: whoami, host: %[1]q, port: %[2]s, proxyProtocol: %[3]s}
`

// setHTTPS turns HTTPS in the tailnet on or off, as an admin does.
func setHTTPS(t *testing.T, enabled bool) {
	t.Helper()
	if err := tailnetClient(t).TailnetSettings().Update(t.Context(), tsclient.UpdateTailnetSettingsRequest{HTTPSEnabled: &enabled}); err != nil {
		t.Fatalf("cannot change the tailnet's settings: %v", err)
	}
}

// issued counts the certificates that the ACME server has issued.
func issued(t *testing.T) int {
	t.Helper()
	return strings.Count(labCommand(t, "logs", "--lines=0", "pebble"), "Issued certificate serial")
}

// serial matches the certificate in the output of tailnet-curl -i.
var serial = regexp.MustCompile(`(?m)^Certificate-Serial: (\S+)$`)

// trusted requests a URL of the tailnet with only the ACME server's root as trusted, and returns
// the body and the certificate's serial number.
func trusted(t *testing.T, u string) (body, number string, err error) {
	t.Helper()
	return trustedBy(t, fromLab(t, "ACME_ROOT"), u)
}

// trustedBy is like trusted, with the certificates in a file as roots.
func trustedBy(t *testing.T, roots, u string, flags ...string) (body, number string, err error) {
	t.Helper()
	out, err := labOutput(t, append([]string{"tailnet-curl", "--timeout=5s", "-i", "--cacert=" + roots, u}, flags...)...)
	if err != nil {
		return "", "", fmt.Errorf("%w: %s", err, out)
	}
	m := serial.FindStringSubmatch(out)
	if m == nil {
		return "", "", fmt.Errorf("no certificate: %s", out)
	}
	_, body, _ = strings.Cut(out, "\n\n")
	return body, m[1], nil
}

// podOf returns the pod that runs a machine.
func podOf(t *testing.T, node string) string {
	t.Helper()
	pods := strings.Fields(kubectl(t, "get", "pods", "-n", namespace, "-o=jsonpath={.items[*].metadata.name}"))
	for _, d := range tailnetState(t).Devices {
		for _, p := range pods {
			if d.NodeID == node && strings.HasSuffix(unique.ReplaceAllString(d.Hostname, ""), p) {
				return p
			}
		}
	}
	t.Fatalf("no pod of %v runs machine %s", pods, node)
	return ""
}

// terminatesHTTPS serves the example of TLS with the certificate that Tailscale provides, and
// passes the client's address to backends.
func terminatesHTTPS(t *testing.T) {
	domain := strings.TrimSuffix(strings.TrimPrefix(vipURL(t, "web"), "http://web."), "/")
	setHTTPS(t, false)
	baseline := issued(t)
	kubectl(t, "apply", "-f", "examples/https.yaml")

	eventually(t, patience, "condition of HTTPS that is off", func() string {
		got := jsonpath(t, "tailscaleservices", "https", "{.status.conditions[?(@.type=='Advertised')].reason}")
		if got != "HTTPSDisabled" {
			return "Advertised is " + got
		}
		return ""
	})
	setHTTPS(t, true)

	u := "https://https." + domain + "/"
	first := ""
	took := eventually(t, patience, "answer of "+u, func() string {
		body, n, err := trusted(t, u)
		if err != nil {
			return err.Error()
		}
		if !strings.HasPrefix(body, "web-") {
			return "the response is " + body
		}
		first = n
		return ""
	})
	t.Logf("HTTPS answers %s after it was turned on, with certificate %s", took.Round(time.Second), first)

	// The other machine serves the same certificate.
	previous := primary(t, "https")
	pod := podOf(t, previous)
	kubectl(t, "delete", "pod", pod, "-n", namespace, "--wait=false")
	eventually(t, patience, "answer of the other machine", func() string {
		if current := primary(t, "https"); current == "" || current == previous {
			return "the primary machine is " + current + ", was " + previous
		}
		_, n, err := trusted(t, u)
		if err != nil {
			return err.Error()
		}
		if n != first {
			t.Fatalf("the other machine serves certificate %s, not %s", n, first)
		}
		return ""
	})
	if got := issued(t) - baseline; got != 1 {
		t.Fatalf("the ACME server issued %d certificates for one name", got)
	}
	passesClient(t)
}

// passesClient checks that backends get the address of the connecting client of the tailnet, with
// and without TLS.
func passesClient(t *testing.T) {
	domain := strings.TrimSuffix(strings.TrimPrefix(vipURL(t, "web"), "http://web."), "/")
	st := struct {
		Self struct{ TailscaleIPs []string }
	}{}
	if err := json.Unmarshal([]byte(labCommand(t, "tailscale", "status", "--json")), &st); err != nil {
		t.Fatal(err)
	}
	if len(st.Self.TailscaleIPs) == 0 {
		t.Fatal("the tailnet client has no address")
	}
	host, port, _ := strings.Cut(fromLab(t, "WHOAMI"), ":")
	for _, version := range []string{"v2", "v1"} {
		apply(t, fmt.Sprintf(whoAsks, host, port, version))
		eventually(t, patience, "client's address by version "+version, func() string {
			got, err := curl(t, "http://whoasks."+domain+"/")
			if err != nil {
				return err.Error()
			}
			secure, _, err := trusted(t, "https://whoasks."+domain+"/")
			if err != nil {
				return err.Error()
			}
			for _, a := range []string{got, secure} {
				if !strings.HasPrefix(a, st.Self.TailscaleIPs[0]+":") || !strings.HasSuffix(a, " "+version) {
					return fmt.Sprintf("got client %s, want %s, by %s", a, st.Self.TailscaleIPs[0], version)
				}
			}
			return ""
		})
	}
	kubectl(t, "delete", "tailscaleservices", "whoasks", "-n", namespace, "--timeout=3m")
	kubectl(t, "delete", "-f", "examples/https.yaml", "--timeout=3m")
	eventually(t, patience, "proxies of the example gone", func() string {
		if remaining := kubectl(t, "get", "tailscaleendpoints,machines", "-n", namespace, "-o=name"); strings.Contains(remaining, "https") {
			return remaining
		}
		return ""
	})
}
