// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package sbom lists the Go modules of a binary as an SPDX document.
package sbom

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// MediaType of documents.
const MediaType = "application/spdx+json"

// An Artifact is what a document describes: something with one Go binary.
type Artifact struct {
	Name    string
	Version string
	// Platform is the operating system and the architecture, such as linux/amd64.
	Platform string
	// Purpose is what SPDX calls the primary purpose: PurposeContainer or PurposeArchive.
	Purpose string
	// Hex is the SHA-256 of an image's manifest or of an archive, without its algorithm.
	Hex string
	// Source is the URL of the source code.
	Source string
	// Created is the time of the commit, so that the same commit has the same document.
	Created time.Time
}

// Purposes of artifacts, of SPDX' list.
const (
	PurposeContainer = "CONTAINER"
	PurposeArchive   = "ARCHIVE"
)

// noAssertion is SPDX' value for what a document does not state.
const noAssertion = "NOASSERTION"

// New returns the document of an artifact, with the modules of its binary.
func New(a Artifact, info *buildinfo.BuildInfo) ([]byte, error) {
	root := &spdx.Package{
		PackageName:               a.Name,
		PackageSPDXIdentifier:     common.ElementID("Artifact"),
		PackageVersion:            a.Version,
		PackageDownloadLocation:   noAssertion,
		PackageLicenseConcluded:   "Apache-2.0",
		PackageLicenseDeclared:    "Apache-2.0",
		PackageCopyrightText:      noAssertion,
		PrimaryPackagePurpose:     a.Purpose,
		PackageChecksums:          []common.Checksum{{Algorithm: common.SHA256, Value: a.Hex}},
		IsFilesAnalyzedTagPresent: true,
	}
	doc := &spdx.Document{
		SPDXVersion:       spdx.Version,
		DataLicense:       spdx.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      fmt.Sprintf("%s %s %s", a.Name, a.Version, a.Platform),
		DocumentNamespace: fmt.Sprintf("%s/spdx/%s/%s/%s", a.Source, a.Name, a.Version, a.Hex),
		CreationInfo: &spdx.CreationInfo{
			Created:  a.Created.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Organization", Creator: "The Tailscale Gateway Authors"}, {CreatorType: "Tool", Creator: "tailscale-gateway-builder"}},
		},
		Packages:      []*spdx.Package{root},
		Relationships: []*spdx.Relationship{relationship("DOCUMENT", common.TypeRelationshipDescribe, "Artifact")},
	}
	main := debug.Module{Path: info.Main.Path, Version: a.Version}
	for i, m := range append([]debug.Module{main}, Modules(info)...) {
		p := module(m)
		doc.Packages = append(doc.Packages, p)
		parent, kind := "Artifact", common.TypeRelationshipContains
		if i > 0 {
			parent, kind = string(doc.Packages[1].PackageSPDXIdentifier), common.TypeRelationshipDependsOn
		}
		doc.Relationships = append(doc.Relationships, relationship(parent, kind, string(p.PackageSPDXIdentifier)))
	}
	buf := &bytes.Buffer{}
	if err := spdxjson.Write(doc, buf, spdxjson.Indent("  ")); err != nil {
		return nil, errors.Wrap(err, "cannot encode SPDX document")
	}
	return buf.Bytes(), nil
}

// Modules returns the modules that a binary contains besides its main module, sorted, with the
// standard library under the name that Go's vulnerability database has for it.
func Modules(info *buildinfo.BuildInfo) []debug.Module {
	out := []debug.Module{{Path: "stdlib", Version: info.GoVersion}}
	for _, d := range info.Deps {
		m := *d
		if d.Replace != nil {
			m = *d.Replace
		}
		out = append(out, debug.Module{Path: m.Path, Version: m.Version})
	}
	slices.SortFunc(out, func(a, b debug.Module) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	return out
}

// Check returns an error if a document is not that of an artifact with this digest, or lists other
// modules than the artifact's binary has.
func Check(document []byte, digestHex string, info *buildinfo.BuildInfo) error {
	doc := &spdx.Document{}
	if err := json.Unmarshal(document, doc); err != nil {
		return errors.Wrap(err, "cannot decode SPDX document")
	}
	if doc.SPDXVersion != spdx.Version {
		return errors.Errorf("the version of SPDX is %q, want %q", doc.SPDXVersion, spdx.Version)
	}
	listed := map[string]bool{}
	described := false
	for _, p := range doc.Packages {
		for _, r := range p.PackageExternalReferences {
			listed[r.Locator] = true
		}
		for _, c := range p.PackageChecksums {
			described = described || c.Value == digestHex
		}
	}
	if !described {
		return errors.Errorf("the SPDX document describes another artifact than sha256:%s", digestHex)
	}
	modules := Modules(info)
	for _, m := range modules {
		if !listed[purl(m)] {
			return errors.Errorf("the SPDX document does not list %s %s", m.Path, m.Version)
		}
	}
	// One more is the main module.
	if len(listed) != len(modules)+1 {
		return errors.Errorf("the SPDX document lists %d modules, the binary has %d", len(listed), len(modules)+1)
	}
	return nil
}

func module(m debug.Module) *spdx.Package {
	return &spdx.Package{
		PackageName:               m.Path,
		PackageSPDXIdentifier:     identifier("Module-" + m.Path),
		PackageVersion:            m.Version,
		PackageDownloadLocation:   noAssertion,
		PackageLicenseConcluded:   noAssertion,
		PackageLicenseDeclared:    noAssertion,
		PackageCopyrightText:      noAssertion,
		PrimaryPackagePurpose:     "LIBRARY",
		IsFilesAnalyzedTagPresent: true,
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: "purl", Locator: purl(m),
		}},
	}
}

// purl returns the package URL of a module:
// https://github.com/package-url/purl-spec/blob/main/types-doc/golang-definition.md.
func purl(m debug.Module) string { return "pkg:golang/" + m.Path + "@" + m.Version }

func relationship(a, kind, b string) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.MakeDocElementID("", a), RefB: common.MakeDocElementID("", b), Relationship: kind}
}

// other matches what an identifier of SPDX cannot contain.
var other = regexp.MustCompile(`[^A-Za-z0-9.-]`)

func identifier(s string) common.ElementID {
	return common.ElementID(other.ReplaceAllString(s, "-"))
}
