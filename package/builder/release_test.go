// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/provenance"
	"github.com/tailscale-gateway/tailscale-gateway/package/builder/internal/sbom"
)

// hello is the version that the binary of testdata prints.
const hello = "v1.2.3"

// newRegistry starts a registry, and returns its address with an organization.
func newRegistry(t *testing.T, referrers bool) string {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.WithReferrersSupport(referrers), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://") + "/tailscale-gateway"
}

// newRelease returns a release of a small image, of a function that names it, and of a configuration,
// without charts.
func newRelease(t *testing.T, addr string) *releaseCmd {
	t.Helper()
	dir := t.TempDir()
	page := filepath.Join(dir, "CHANGELOG.md")
	if err := os.WriteFile(page, []byte("## [1.2.3] - 2026-12-01\n\n- Says hello.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &releaseCmd{
		Registry: addr, Version: hello, Arch: []string{"amd64", "arm64"}, Out: filepath.Join(dir, "release"),
		Examples: "../../examples", Changelog: page, Builder: source, Dirty: true, License: "../../LICENSE", Package: "..",
		products: []products.Product{
			{Name: "hello", Kind: products.KindImage, Main: "./testdata/hello"},
			{Name: products.Function, Kind: products.KindFunction, Main: "./testdata/hello", Package: "../../package/function"},
			{Name: products.Configuration, Kind: products.KindConfiguration, Package: "../../package/configuration"},
		},
	}
}

// TestRelease releases into a registry, with and without the API for referrers, and releases the
// same again, which changes nothing.
func TestRelease(t *testing.T) {
	cases := map[string]struct {
		referrers bool
		releases  int
	}{
		"Referrers":       {referrers: true, releases: 2},
		"TagsOfReferrers": {referrers: false, releases: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			addr := newRegistry(t, tc.referrers)
			digests := make([]string, tc.releases)
			for i := range digests {
				c := newRelease(t, addr)
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				for file, want := range map[string]string{
					"release-notes.md": "- Says hello.",
					"checksums.txt":    "hello-arm64.spdx.json",
					"images.txt":       "/hello:v1.2.3@sha256:",
				} {
					b, err := os.ReadFile(filepath.Join(c.Out, file))
					if err != nil {
						t.Fatal(err)
					}
					if !strings.Contains(string(b), want) {
						t.Errorf("%s has no %q:\n%s", file, want, b)
					}
					digests[i] += string(b)
				}
			}
			// The files are read in any order.
			if diff := cmp.Diff(lines(digests[0]), lines(digests[tc.releases-1])); diff != "" {
				t.Errorf("two builds of one commit differ: -first, +second:\n%s", diff)
			}
		})
	}
}

// TestPinned checks that the binary of a package names the image of its release, by the digest of the
// index that is pushed.
func TestPinned(t *testing.T) {
	addr := newRegistry(t, true)
	c := newRelease(t, addr)
	c.products = c.products[:2]
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	ref, err := tag(addr, "hello", hello)
	if err != nil {
		t.Fatal(err)
	}
	d, err := remote.Head(ref)
	if err != nil {
		t.Fatal(err)
	}
	build := &buildCmd{Out: filepath.Join(c.Out, "xpkg")}
	got, err := exec.CommandContext(t.Context(), build.binary(c.products[1], runtime.GOARCH)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("registry.example/hello@"+d.Digest.String()+"\n", string(got)); diff != "" {
		t.Errorf("the image that the package names: -want, +got:\n%s", diff)
	}
}

// TestStamp checks what a release writes into the metadata of a chart.
func TestStamp(t *testing.T) {
	tree := strings.TrimPrefix(version.Version, "v")
	metadata := "version: " + tree + "\nappVersion: " + tree + "\nannotations:\n  gateway.tailscale.com/extension-digest: \"\"\n"
	cases := map[string]struct {
		reason  string
		digests []string
		want    string
		fails   string
	}{
		"Development": {reason: "Without digests a chart names images by tag.", want: "version: 1.2.3\nappVersion: 1.2.3\nannotations:\n  gateway.tailscale.com/extension-digest: \"\"\n"},
		"Release":     {reason: "A release names the image by its digest.", digests: []string{"agent=sha256:a", "extension=sha256:b"}, want: "version: 1.2.3\nappVersion: 1.2.3\nannotations:\n  gateway.tailscale.com/extension-digest: sha256:b\n"},
		"Missing":     {reason: "A release must not name an image that it lacks.", digests: []string{"agent=sha256:a"}, fails: "names an image that was not built"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := filepath.Join(t.TempDir(), "Chart.yaml")
			if err := os.WriteFile(f, []byte(metadata), 0o600); err != nil {
				t.Fatal(err)
			}
			err := stamp(f, hello, tc.digests)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.fails, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// lines returns how often a text has each line.
func lines(s string) map[string]int {
	out := map[string]int{}
	for _, line := range strings.Split(s, "\n") {
		out[line]++
	}
	return out
}

// TestReleaseAssets unpacks all files of a release, as a stranger downloads them into one folder: sha256sum
// accepts them, and what runs on this machine reports the version.
func TestReleaseAssets(t *testing.T) {
	c := newRelease(t, newRegistry(t, true))
	c.PluginMain = "./testdata/hello"
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var names []string
	for _, pattern := range append([]string{"checksums.txt"}, assets...) {
		found, err := filepath.Glob(filepath.Join(c.Out, pattern))
		// The charts have a test with helm.
		if err != nil || len(found) == 0 && pattern != "charts/*.tgz" {
			t.Errorf("the release has no %s: %v", pattern, err)
		}
		for _, f := range found {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o600); err != nil {
				t.Fatal(err)
			}
			names = append(names, filepath.Base(f))
		}
	}
	sums, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	// Each line has a digest, two spaces and a name: coreutils' format.
	listed := map[string]bool{"checksums.txt": true}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || checksum(b) != sum {
			t.Errorf("checksums.txt has %s for %s, error %v", sum, name, err)
		}
		listed[name] = true
	}
	for _, name := range names {
		if !listed[name] {
			t.Errorf("checksums.txt lacks %s", name)
		}
		if err := readAsset(t, filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	archive := pluginBinary + "-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
	packed, err := os.ReadFile(filepath.Join(dir, archive))
	if err != nil {
		t.Fatal(err)
	}
	files, err := unpacked(archive, packed)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, pluginBinary)
	if err := os.WriteFile(bin, files[pluginBinary], 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), bin, "--version").CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != hello {
		t.Errorf("the plugin prints %q, error %v; want %s", out, err, hello)
	}
}

// readAsset reads all of a file of a release by the format that its name has.
func readAsset(t *testing.T, file string) error {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	switch filepath.Ext(file) {
	case ".gz", ".zip":
		_, err := unpacked(file, b)
		return err
	case ".xpkg", ".tar":
		img, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			return err
		}
		return validate.Image(img)
	case ".json":
		return json.Unmarshal(b, &map[string]any{})
	case ".yaml":
		return yaml.Unmarshal(b, &map[string]any{})
	case ".txt", ".sh":
		return nil
	}
	return errors.Errorf("no test reads a file with the ending %s", filepath.Ext(file))
}

// TestReleasePublic checks that a public release is pulled without the credentials that pushed it: a registry
// may keep new packages private.
func TestReleasePublic(t *testing.T) {
	const user, password = "pusher", "notasecret"
	cases := map[string]struct {
		reason string
		// private is whether pulls need credentials, too.
		private, public bool
		want            string
	}{
		"Public":        {reason: "Everybody may pull.", private: false, public: true},
		"StillPrivate":  {reason: "A release that only the pusher may pull is not public.", private: true, public: true, want: "does not show it to everybody"},
		"PrivateMirror": {reason: "Without --public, a registry may be private.", private: true, public: false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inner := registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				reads := r.Method == http.MethodGet || r.Method == http.MethodHead
				u, p, _ := r.BasicAuth()
				// The ping says that the registry knows credentials, and answers those without any where it is public.
				if (u != user || p != password) && (tc.private || !reads) {
					w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				inner.ServeHTTP(w, r)
			}))
			t.Cleanup(s.Close)
			host := strings.TrimPrefix(s.URL, "http://")
			dir := t.TempDir()
			auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"auths":{"`+host+`":{"auth":"`+auth+`"}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("DOCKER_CONFIG", dir)
			c := newRelease(t, host+"/tailscale-gateway")
			c.Arch, c.products, c.Public = []string{runtime.GOARCH}, c.products[:1], tc.public
			err := c.Run(t.Context())
			if got := fmt.Sprint(err); tc.want != "" && !strings.Contains(got, tc.want) || tc.want == "" && err != nil {
				t.Errorf("%s\nRun(...): %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestReleaseRefused checks what a release does not push.
func TestReleaseRefused(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(t *testing.T, c *releaseCmd)
		want   string
	}{
		"Moved": {
			reason: "The tag of a release is not moved to other content.",
			change: func(t *testing.T, c *releaseCmd) {
				t.Helper()
				overwrite(t, c.Registry+"/hello:"+hello)
			},
			want: "is not moved",
		},
		"NoVersion": {
			reason: "A version is complete.",
			change: func(_ *testing.T, c *releaseCmd) { c.Version = "v1.2" },
			want:   "is not a version",
		},
		"NoNotes": {
			reason: "A release has notes.",
			change: func(_ *testing.T, c *releaseCmd) { c.Version = "v1.2.4" },
			want:   "no section",
		},
		"UnsignedIdentity": {
			reason: "Signatures are verified against an identity.",
			change: func(_ *testing.T, c *releaseCmd) { c.Sign = true },
			want:   "--identity",
		},
		"WrongBinary": {
			reason: "A binary that reports another version than the release is not released.",
			change: func(_ *testing.T, c *releaseCmd) { c.Version = "v1.2.3-rc.1" },
			want:   "the binary's version is",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newRelease(t, newRegistry(t, true))
			c.Arch, c.products = []string{runtime.GOARCH}, c.products[:1]
			tc.change(t, c)
			err := c.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func overwrite(t *testing.T, image string) {
	t.Helper()
	ref, err := tag(strings.TrimSuffix(image, "/hello:"+hello), "hello", hello)
	if err != nil {
		t.Fatal(err)
	}
	idx, err := random.Index(64, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, idx); err != nil {
		t.Fatal(err)
	}
}

// TestVerify changes what a registry has, or what a release was, each of which the verification
// notices.
func TestVerify(t *testing.T) {
	addr := newRegistry(t, true)
	c := newRelease(t, addr)
	head := commit{hash: strings.Repeat("c", 40), time: time.Unix(0, 0)}
	build := &buildCmd{Out: c.Out, Arch: c.Arch, Version: c.Version, Examples: c.Examples, products: c.products, revision: head.hash}
	if err := build.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	push := func(t *testing.T) []artifact {
		t.Helper()
		arts, err := c.push(t.Context(), build, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return arts
	}
	complete := func(t *testing.T) []artifact {
		t.Helper()
		arts := push(t)
		if _, err := c.sboms(t.Context(), build, arts, head); err != nil {
			t.Fatal(err)
		}
		if _, err := c.provenance(t.Context(), arts, head); err != nil {
			t.Fatal(err)
		}
		return arts
	}
	check := func(v *verifier, arts []artifact, want string) {
		t.Helper()
		if err := v.verify(t.Context(), arts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	good := verifier{version: hello, arch: c.Arch, commit: head.hash}

	arts := push(t)
	check(&good, arts, "has 0 referrers of type "+sbom.MediaType)
	if _, err := c.sboms(t.Context(), build, arts, head); err != nil {
		t.Fatal(err)
	}
	check(&good, arts, "has 0 referrers of type "+provenance.MediaType)
	arts = complete(t)
	if err := good.verify(t.Context(), arts); err != nil {
		t.Fatal(err)
	}

	bad := good
	bad.arch = []string{"amd64"}
	check(&bad, arts, "want [amd64]")
	bad = good
	bad.commit = strings.Repeat("b", 40)
	check(&bad, arts, "label revision")
	bad = good
	bad.digests = []string{"hello=sha256:" + strings.Repeat("a", 64)}
	check(&bad, arts, "does not name the images")
	bad = good
	bad.version = "v1.3.0"
	check(&bad, arts, "label version")
	if err := good.pack(c.products[2], must(images([]string{build.file(c.products[2], "arm64")}))[0]); err != nil {
		t.Error(err)
	}
	if err := bad.pack(c.products[2], must(images([]string{build.file(c.products[2], "arm64")}))[0]); err == nil {
		t.Error("a configuration of v1.2 fits v1.3")
	}
	overwrite(t, addr+"/hello:"+hello)
	check(&good, arts, "has digest")
}

func must(imgs []v1.Image, err error) []v1.Image {
	if err != nil {
		panic(err)
	}
	return imgs
}

// TestSignatures checks what cosign is run with.
func TestSignatures(t *testing.T) {
	ref, err := tag("ghcr.io/o", "hello", hello)
	if err != nil {
		t.Fatal(err)
	}
	hash := func(digit string) v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: strings.Repeat(digit, 64)} }
	p := products.Product{Name: "hello"}
	image := "ghcr.io/o/hello@" + hash("2").String()
	all := signatures([]artifact{
		{Product: &p, Tag: ref, Digest: hash("1"), Images: map[string]v1.Hash{"amd64": hash("2")}},
		{Tag: ref, Digest: hash("3")},
	}, map[string]string{image: "sbom.json"}, "predicate.json", "checksums.txt")

	var got []string
	for _, s := range all {
		got = append(got, strings.Join(s.command(), " "), strings.Join(s.verification("https://id"), " "))
	}
	index, chart := "ghcr.io/o/hello@"+hash("1").String(), "ghcr.io/o/hello@"+hash("3").String()
	signer := " --certificate-identity=https://id --certificate-oidc-issuer=https://token.actions.githubusercontent.com "
	want := []string{
		"sign --yes --recursive " + index, "verify" + signer + index,
		"attest --yes --type=slsaprovenance1 --predicate=predicate.json " + index, "verify-attestation --type=slsaprovenance1" + signer + index,
		"attest --yes --type=spdxjson --predicate=sbom.json " + image, "verify-attestation --type=spdxjson" + signer + image,
		"sign --yes " + chart, "verify" + signer + chart,
		"attest --yes --type=slsaprovenance1 --predicate=predicate.json " + chart, "verify-attestation --type=slsaprovenance1" + signer + chart,
		"sign-blob --yes --bundle=checksums.txt.sigstore.json checksums.txt", "verify-blob --bundle=checksums.txt.sigstore.json" + signer + "checksums.txt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestNormalize checks that an archive depends only on its files, not on when it was made.
func TestNormalize(t *testing.T) {
	archive := func(modified time.Time) []byte {
		buf := &bytes.Buffer{}
		zw := gzip.NewWriter(buf)
		zw.ModTime = modified
		tw := tar.NewWriter(zw)
		if err := tw.WriteHeader(&tar.Header{Name: "c/Chart.yaml", Typeflag: tar.TypeReg, Mode: 0o600, Size: 1, ModTime: modified}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := tw.Close(); err != nil {
			t.Fatal(err)
		}
		if err := zw.Close(); err != nil {
			t.Fatal(err)
		}
		f := filepath.Join(t.TempDir(), "c.tgz")
		if err := os.WriteFile(f, buf.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := normalize(f, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !bytes.Equal(archive(time.Unix(1000, 0)), archive(time.Unix(2000, 0))) {
		t.Error("the archive depends on its time")
	}
}
