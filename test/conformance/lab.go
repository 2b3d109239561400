// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

const (
	extension             = "tailscale-gateway-extension"
	envoyGatewayNamespace = "envoy-gateway-system"
	image                 = products.Organization + "/" + products.Extension
)

// A lab is the running lab, with the settings of this run.
type lab struct {
	// bin is the lab's command line.
	bin string
	// suite is upstream's test program.
	suite string
	// version of the extension.
	version string
	// out is the folder for the output of the runs.
	out string
}

// labUp starts the lab with all that both runs need.
func labUp(ctx context.Context, version, out string) (*lab, error) {
	l := &lab{bin: filepath.Join(out, "bin", "lab"), version: version, out: out}
	if err := stream(ctx, "go", "build", "-o", l.bin, "./cluster/lab"); err != nil {
		return nil, err
	}
	// The builder of packages runs in another folder.
	packages, err := filepath.Abs(filepath.Join(out, "xpkg"))
	if err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{l.bin, "up", "--install"},
		{l.bin, "gateway-api"},
		{"go", "-C", "package/builder", "run", ".", "build", "--only=extension", "--out=" + packages, "--version=" + version},
		{l.bin, "load-image", image + ":" + version, filepath.Join(packages, "extension-"+runtime.GOARCH+".tar")},
	} {
		if err := stream(ctx, args[0], args[1:]...); err != nil {
			return nil, err
		}
	}
	suite, err := output(ctx, nil, l.bin, "bin", "conformance.test")
	l.suite = strings.TrimSpace(suite)
	return l, err
}

// without configures Envoy Gateway as its chart does.
func (l *lab) without(ctx context.Context) error {
	if err := l.envoyGateway(ctx); err != nil {
		return err
	}
	_, err := l.run(ctx, nil, "helm", "uninstall", extension, "--namespace="+envoyGatewayNamespace, "--ignore-not-found", "--wait")
	return err
}

// with configures Envoy Gateway with the extension and its kinds. No object of these kinds exists,
// so Crossplane is not needed.
func (l *lab) with(ctx context.Context) error {
	crds, err := apiserver.Composites()
	if err != nil {
		return err
	}
	for _, crd := range crds {
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		b, err := yaml.Marshal(crd)
		if err != nil {
			return errors.Wrapf(err, "cannot encode CRD %q", crd.GetName())
		}
		if _, err := l.run(ctx, b, "kubectl", "apply", "--server-side", "-f", "-"); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"kubectl", "apply", "--server-side", "-f", "package/provider/crds"},
		{"kubectl", "wait", "crds", "--all", "--for=condition=Established", "--timeout=2m"},
		{"helm", "upgrade", "--install", extension, "package/charts/" + extension, "--namespace=" + envoyGatewayNamespace, "--set=image.tag=" + l.version},
	} {
		if _, err := l.run(ctx, nil, args...); err != nil {
			return err
		}
	}
	return l.envoyGateway(ctx, "--values=package/envoy-gateway/values.yaml")
}

func (l *lab) envoyGateway(ctx context.Context, args ...string) error {
	if err := stream(ctx, l.bin, append([]string{"envoy-gateway"}, args...)...); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"kubectl", "apply", "--server-side", "-f", "test/conformance/gatewayclass.yaml"},
		{"kubectl", "wait", "gatewayclass/" + gatewayClass, "--for=condition=Accepted", "--timeout=2m"},
	} {
		if _, err := l.run(ctx, nil, args...); err != nil {
			return err
		}
	}
	return nil
}

// test runs the suite in the network of the cluster's node, and waits until its namespaces are
// gone. Failed tests are no error.
func (l *lab) test(ctx context.Context, name, selection string) (ends, error) {
	log, err := os.Create(filepath.Join(l.out, "conformance-"+name+".log"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot create the tests' log")
	}
	defer log.Close() // A reader sees where the log ends.
	running, err := l.run(ctx, nil, "kubectl", "get", "deployment/envoy-gateway", "--namespace="+envoyGatewayNamespace, "-o=jsonpath={.spec.template.spec.containers[0].image}")
	if err != nil {
		return nil, err
	}
	project, version := "envoy-gateway", running[strings.LastIndexByte(running, ':')+1:]
	if name == "with" {
		project, version = project+"-with-"+extension, version+"+"+l.version
	}
	args := append([]string{"tool", "test2json", "-t", l.bin, "exec", l.suite},
		suiteFlags(filepath.Join(l.out, "conformance-"+name+".yaml"), project, version, selection)...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = log
	events, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the tests' events")
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Wrap(err, "cannot start the tests")
	}
	results, err := parse(events, log)
	if err != nil {
		_ = cmd.Process.Kill() // It may still write to a pipe without a reader.
	}
	var exit *exec.ExitError
	if werr := cmd.Wait(); err == nil && werr != nil && !errors.As(werr, &exit) {
		err = errors.Wrap(werr, "cannot run the tests")
	}
	if err != nil {
		return nil, errors.Wrapf(err, "see %s", log.Name())
	}
	// The next run creates them again.
	_, err = l.run(ctx, nil, append([]string{"kubectl", "wait", "--for=delete", "--timeout=5m", "namespace"}, namespaces...)...)
	return results, err
}

// hooks returns the sum of the hooks that all pods of the extension have answered.
func (l *lab) hooks(ctx context.Context) (answers, error) {
	pods, err := l.run(ctx, nil, "kubectl", "get", "pods", "--namespace="+envoyGatewayNamespace,
		"--selector=app.kubernetes.io/name="+extension, "-o=jsonpath={.items[*].metadata.name}")
	if err != nil {
		return answers{}, err
	}
	sum := answers{}
	for _, pod := range strings.Fields(pods) {
		// The request of kubectl accepts JSON.
		body, err := l.run(ctx, nil, "kubectl", "get", "--raw", "/api/v1/namespaces/"+envoyGatewayNamespace+"/pods/"+pod+":8080/proxy/metrics")
		if err != nil {
			return answers{}, err
		}
		if err := sum.add([]byte(body)); err != nil {
			return answers{}, err
		}
	}
	return sum, nil
}

// run runs a program of the lab on its cluster.
func (l *lab) run(ctx context.Context, stdin []byte, args ...string) (string, error) {
	return output(ctx, stdin, l.bin, args...)
}

// output runs a program, and returns its stdout. The error holds stderr.
func output(ctx context.Context, stdin []byte, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, complaint := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, complaint
	if err := cmd.Run(); err != nil {
		return "", errors.Wrapf(err, "cannot run %s: %s", strings.Join(args, " "), strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}

// stream runs a program, and shows its output.
func stream(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return errors.Wrapf(cmd.Run(), "cannot run %s %s", name, strings.Join(args, " "))
}
