// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package provenance states how artifacts were built, as an in-toto statement with SLSA
// provenance.
package provenance

import (
	"bytes"
	"encoding/json"
	"slices"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// MediaType of statements.
	MediaType = "application/vnd.in-toto+json"
	// PredicateType of SLSA provenance, https://slsa.dev/spec/v1.0/provenance.
	PredicateType = "https://slsa.dev/provenance/v1"
)

// A Build is what a statement says of a build.
type Build struct {
	// Source is the URL of the source code, and Commit its revision.
	Source, Commit string
	// Version that was built, and for which architectures.
	Version string
	Arch    []string
	// Go is the version of the toolchain.
	Go string
	// Builder is the URI of the program or service that built.
	Builder string
	// Invocation is the URI of the builder's run, or empty.
	Invocation string
}

// A Subject is an artifact: its name, and its SHA-256 in hexadecimal digits.
type Subject struct{ Name, SHA256 string }

// Statement returns the statement on subjects of one build.
func Statement(b Build, subjects ...Subject) ([]byte, error) {
	predicate, err := Predicate(b)
	if err != nil {
		return nil, err
	}
	s := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: PredicateType, Predicate: &structpb.Struct{}}
	if err := protojson.Unmarshal(predicate, s.Predicate); err != nil {
		return nil, errors.Wrap(err, "cannot convert provenance")
	}
	for _, sub := range subjects {
		s.Subject = append(s.Subject, &intoto.ResourceDescriptor{Name: sub.Name, Digest: map[string]string{"sha256": sub.SHA256}})
	}
	if err := s.Validate(); err != nil {
		return nil, errors.Wrap(err, "the statement is invalid")
	}
	return encode(s)
}

// Predicate returns the provenance without subjects, from which cosign makes a signed statement.
func Predicate(b Build) ([]byte, error) {
	arch := make([]any, len(b.Arch))
	for i, a := range b.Arch {
		arch[i] = a
	}
	parameters, err := structpb.NewStruct(map[string]any{"version": b.Version, "arch": arch})
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode parameters")
	}
	p := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{
			// The build type names the command that repeats the build.
			BuildType:          b.Source + "/tree/main/package/builder#release",
			ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{{
				Uri:    "git+" + b.Source,
				Digest: map[string]string{"gitCommit": b.Commit},
			}},
		},
		RunDetails: &slsa.RunDetails{
			Builder:  &slsa.Builder{Id: b.Builder, Version: map[string]string{"go": b.Go}},
			Metadata: &slsa.BuildMetadata{InvocationId: b.Invocation},
		},
	}
	if err := p.Validate(); err != nil {
		return nil, errors.Wrap(err, "the provenance is invalid")
	}
	return encode(p)
}

// Check returns an error if a statement is not about a subject with this digest, or was not
// built from this commit.
func Check(statement []byte, sha256, commit string) error {
	s := &intoto.Statement{}
	if err := protojson.Unmarshal(statement, s); err != nil {
		return errors.Wrap(err, "cannot decode statement")
	}
	if err := s.Validate(); err != nil {
		return errors.Wrap(err, "the statement is invalid")
	}
	if s.GetPredicateType() != PredicateType {
		return errors.Errorf("the predicate's type is %q, want %q", s.GetPredicateType(), PredicateType)
	}
	if !slices.ContainsFunc(s.GetSubject(), func(d *intoto.ResourceDescriptor) bool { return d.GetDigest()["sha256"] == sha256 }) {
		return errors.Errorf("the statement has no subject sha256:%s", sha256)
	}
	b, err := s.GetPredicate().MarshalJSON()
	if err != nil {
		return errors.Wrap(err, "cannot encode predicate")
	}
	p := &slsa.Provenance{}
	if err := protojson.Unmarshal(b, p); err != nil {
		return errors.Wrap(err, "cannot decode provenance")
	}
	if err := p.Validate(); err != nil {
		return errors.Wrap(err, "the provenance is invalid")
	}
	for _, d := range p.GetBuildDefinition().GetResolvedDependencies() {
		if d.GetDigest()["gitCommit"] == commit {
			return nil
		}
	}
	return errors.Errorf("the provenance does not name commit %s", commit)
}

// encode returns a message as JSON with one form: protojson varies spaces on purpose.
func encode(m proto.Message) ([]byte, error) {
	b, err := protojson.Marshal(m)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode provenance")
	}
	buf := &bytes.Buffer{}
	if err := json.Indent(buf, b, "", "  "); err != nil {
		return nil, errors.Wrap(err, "cannot indent provenance")
	}
	return append(buf.Bytes(), '\n'), nil
}
