// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package images builds the lab's container images from built binaries, in the
// layout of upstream's images, and pushes images to the lab's registry.
package images

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/cluster"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tools"
)

const (
	// Bundle is the file of the certificates to trust, in images and on this machine.
	Bundle     = "/etc/ssl/certs/ca-certificates.crt"
	searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	nonRoot    = "65532"
)

// An Image describes an image to build.
type Image struct {
	// Name is the name that pods use.
	Name string
	// Files are the files and folders of this machine to copy, by path in the image. Executable
	// files stay executable.
	Files map[string]string
	// Links are the targets of symbolic links, by path in the image.
	Links map[string]string
	// Config is the configuration of the image.
	Config v1.Config
}

// Table returns all images of the lab. crossplane is the folder of Crossplane's
// module, which has the CRDs of its image.
func Table(bin map[string]string, crossplane string, out Outside) []Image {
	agnhost := func(n string, cmd ...string) Image {
		return Image{
			Name:   n,
			Files:  map[string]string{"/agnhost": bin["agnhost"], Bundle: Bundle},
			Config: v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: cmd, Env: []string{searchPath}},
		}
	}
	pause := agnhost(cluster.PauseImage)
	pause.Config.Entrypoint = []string{"/agnhost", "pause"}
	return []Image{
		pause,
		agnhost("registry.k8s.io/e2e-test-images/agnhost:2.53", "pause"),
		tailscale("docker.io/tailscale/tailscale:"+version("tailscale"), bin, out),
		{
			Name: "xpkg.crossplane.io/crossplane/crossplane:" + version("crossplane"),
			Files: map[string]string{
				"/bin/crossplane":        bin["crossplane-core"],
				"/crds":                  filepath.Join(crossplane, "cluster", "crds"),
				"/webhookconfigurations": filepath.Join(crossplane, "cluster", "webhookconfigurations"),
				Bundle:                   Bundle,
			},
			Config: v1.Config{Entrypoint: []string{"/bin/crossplane"}, User: nonRoot, Env: []string{searchPath}, ExposedPorts: map[string]struct{}{"8080/tcp": {}}},
		},
	}
}

// version returns the version of a tool.
func version(tool string) string {
	t, err := tools.Find(tool)
	if err != nil {
		return "unknown" // Unreachable: the names are those of the table.
	}
	return t.Version
}

// An Outside describes the servers that proxies reach outside of their cluster.
type Outside struct {
	// Roots is the file of the certificates that tailscaled trusts.
	Roots string
	// ACMEDirectory is the URL of the ACME directory from which tailscaled gets certificates.
	ACMEDirectory string
}

// tailscale returns an image of proxies.
func tailscale(name string, bin map[string]string, out Outside) Image {
	return Image{
		Name: name,
		Files: map[string]string{
			"/usr/local/bin/containerboot": bin["containerboot"],
			"/usr/local/bin/tailscaled":    bin["tailscaled"],
			Bundle:                         out.Roots,
		},
		Links: map[string]string{"/usr/local/bin/tailscale": "tailscaled"},
		Config: v1.Config{
			Entrypoint: []string{"/usr/local/bin/containerboot"},
			// Images configure stand-ins for servers on the Internet, so that manifests need no
			// changes.
			Env: []string{searchPath, "TS_DEBUG_ACME_DIRECTORY_URL=" + out.ACMEDirectory},
		},
	}
}

// Proxy returns the image of proxies in a version of tools.Proxies.
func Proxy(bin map[string]string, version string, out Outside) Image {
	daemon, boot := tools.ProxyPrograms(version)
	return tailscale("docker.io/tailscale/tailscale:"+version, map[string]string{"tailscaled": bin[daemon], "containerboot": bin[boot]}, out)
}

// Operator returns the image of Tailscale's own operator, and that of its
// proxies: the operator runs a shell in them, which upstream's image has.
func Operator(bin map[string]string, acmeDirectory string) (operator, proxy Image) {
	v := version(tools.Operator)
	operator = Image{
		Name:   "docker.io/tailscale/k8s-operator:" + v,
		Files:  map[string]string{"/usr/local/bin/operator": bin["k8s-operator"], Bundle: Bundle},
		Config: v1.Config{Entrypoint: []string{"/usr/local/bin/operator"}, Env: []string{searchPath}},
	}
	proxy = tailscale("docker.io/tailscale/tailscale-with-shell:"+v, bin, Outside{Roots: Bundle, ACMEDirectory: acmeDirectory})
	proxy.Files["/bin/sh"] = bin["sysctler"]
	return operator, proxy
}

// EnvoyGatewayName returns the name of Envoy Gateway's image, which is also the image of
// its shutdown manager.
func EnvoyGatewayName() string {
	return "docker.io/envoyproxy/gateway:" + version(tools.EnvoyGateway)
}

// EnvoyName returns the name of Envoy's image that Envoy Gateway uses, without the digest:
// only upstream's image has that.
func EnvoyName() string {
	return "docker.io/envoyproxy/envoy:distroless-" + version(tools.Envoy)
}

// EnvoyGateway returns the images of Envoy Gateway and of its proxies. Envoy needs
// a C library, which is copied from this machine.
func EnvoyGateway(bin map[string]string) (control, proxy Image, err error) {
	control = Image{
		Name:   EnvoyGatewayName(),
		Files:  map[string]string{"/usr/local/bin/envoy-gateway": bin[tools.EnvoyGateway], Bundle: Bundle},
		Config: v1.Config{Entrypoint: []string{"/usr/local/bin/envoy-gateway"}, User: nonRoot + ":" + nonRoot, Env: []string{searchPath}},
	}
	files, err := libraries(bin[tools.Envoy])
	if err != nil {
		return Image{}, Image{}, err
	}
	files["/usr/local/bin/envoy"] = bin[tools.Envoy]
	files[Bundle] = Bundle
	proxy = Image{
		Name:   EnvoyName(),
		Files:  files,
		Config: v1.Config{Entrypoint: []string{"/usr/local/bin/envoy"}, User: nonRoot + ":" + nonRoot, Env: []string{searchPath}},
	}
	return control, proxy, nil
}

// CertManager returns the image of cert-manager's controller.
func CertManager(bin map[string]string) Image {
	return Image{
		Name:   "quay.io/jetstack/cert-manager-controller:" + version(tools.CertManager),
		Files:  map[string]string{"/usr/local/bin/cert-manager": bin[tools.CertManager], Bundle: Bundle},
		Config: v1.Config{Entrypoint: []string{"/usr/local/bin/cert-manager"}, User: nonRoot + ":" + nonRoot, Env: []string{searchPath}},
	}
}

// Conformance returns the images that the manifests of Gateway API's conformance
// tests name. All tags of echo-basic have the same program, in the version of the tests.
func Conformance(bin map[string]string) []Image {
	out := []Image{{
		// The cluster's version of CoreDNS stands in for the older one.
		Name:   "registry.k8s.io/coredns/coredns:v1.12.2",
		Files:  map[string]string{"/coredns": bin["coredns"], Bundle: Bundle},
		Config: v1.Config{Entrypoint: []string{"/coredns"}, Env: []string{searchPath}},
	}}
	for _, tag := range []string{"v1.5.1", "v1.6.0-dev.2", "v1.6.0-dev.3"} {
		out = append(out, Image{
			Name:   "registry.k8s.io/gateway-api/echo-basic:" + tag,
			Files:  map[string]string{"/echo-basic": bin["echo-basic"], Bundle: Bundle},
			Config: v1.Config{Entrypoint: []string{"/echo-basic"}, User: nonRoot + ":" + nonRoot, Env: []string{searchPath}},
		})
	}
	return out
}

// Build builds the image. The same files result in the same bytes.
func (i Image) Build() (v1.Image, error) {
	body, err := i.layer()
	if err != nil {
		return nil, errors.Wrapf(err, "cannot make image %q", i.Name)
	}
	// The layer is not compressed, to save CPU time: it never leaves this machine.
	img, err := mutate.AppendLayers(empty.Image, static.NewLayer(body, types.DockerUncompressedLayer))
	if err != nil {
		return nil, errors.Wrapf(err, "cannot add layer to image %q", i.Name)
	}
	f, err := img.ConfigFile()
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read config of image %q", i.Name)
	}
	f = f.DeepCopy()
	f.OS, f.Architecture, f.Config = "linux", architecture, i.Config
	img, err = mutate.ConfigFile(img, f)
	return img, errors.Wrapf(err, "cannot set config of image %q", i.Name)
}

func (i Image) layer() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	// Writable by anyone, for programs that run as any user.
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return nil, err
	}
	for _, dst := range sorted(i.Files) {
		if err := add(w, strings.TrimPrefix(dst, "/"), i.Files[dst]); err != nil {
			return nil, err
		}
	}
	for _, dst := range sorted(i.Links) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: strings.TrimPrefix(dst, "/"), Linkname: i.Links[dst], Mode: 0o777}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func add(w *tar.Writer, dst, src string) error {
	st, err := os.Stat(src)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return addFile(w, dst, src)
	}
	entries, err := os.ReadDir(src)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := add(w, path.Join(dst, e.Name()), filepath.Join(src, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func addFile(w *tar.Writer, dst, src string) error {
	f, err := os.Open(src)
	if err != nil {
		return err
	}
	defer f.Close() // Only read.
	st, err := f.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if st.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dst, Mode: mode, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

func sorted(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// In returns ref's repository and tag in the given registry, from which nodes pull
// instead of ref's registry.
func In(registry, ref string) (name.Reference, error) {
	r, err := name.ParseReference(ref)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot parse image name %q", ref)
	}
	sep := ":"
	if strings.HasPrefix(r.Identifier(), "sha256:") {
		sep = "@"
	}
	out, err := name.ParseReference(registry+"/"+r.Context().RepositoryStr()+sep+r.Identifier(), name.Insecure)
	return out, errors.Wrapf(err, "cannot name %q in the lab's registry", ref)
}

// Push pushes an image to a registry under the repository and tag of ref.
func Push(ctx context.Context, registry, ref string, img v1.Image) error {
	dst, err := In(registry, ref)
	if err != nil {
		return err
	}
	return errors.Wrapf(remote.Write(dst, img, remote.WithContext(ctx)), "cannot push image %q", ref)
}

// Load reads the only image of an archive in the format of `docker save`. Crossplane
// packages are such archives, too.
func Load(file string) (v1.Image, error) {
	img, err := tarball.ImageFromPath(file, nil)
	return img, errors.Wrapf(err, "cannot read image from %q", file)
}
