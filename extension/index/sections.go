// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

// A section is one kind of content of the Snapshot, with the objects that it is built from.
// A new kind of content is a file with these functions and a row in sections. Functions may
// be nil.
type section struct {
	// store stores a changed object and marks the entries that depend on it. It reports
	// whether the section reads objects of that kind.
	store func(all *objects, change *input, p *pending) (bool, error)

	// recompute updates the draft for the entries that are marked.
	recompute func(s *Store, e *edit)

	// digest returns the part of an entry in the digests of Gateways.
	digest func(s *Store, e *edit, c entry) digestPart

	// auxiliary reports that the section's entries change the digest of a Gateway, but
	// do not create one without others: they alone need no translation.
	auxiliary bool

	// serve marks the entries that depend on the set of served Gateways.
	serve func(all *objects, p *pending)
}

// sections are all sections.
var sections = [sectionCount]section{
	routeSection:       {store: putRoute, recompute: recomputeRoutes, digest: digestRoute, serve: serveRoutes},
	secretSection:      {recompute: recomputeSecrets},
	policySection:      {store: putPolicy, recompute: recomputePolicies, digest: digestPolicy, serve: servePolicies},
	targetSection:      {store: putTarget, recompute: recomputeTargets},
	settingsSection:    {store: putSettings, recompute: recomputeSettings, serve: serveSettings},
	gatewaySection:     {store: putGateway, recompute: recomputeGateways},
	identitySection:    {store: putIdentity, recompute: recomputeIdentities, digest: digestIdentity, serve: serveIdentities},
	certificateSection: {store: putCertificate, recompute: recomputeCertificates, digest: digestCertificate, auxiliary: true, serve: serveCertificates},
	bootstrapSection:   {store: putBootstrap, recompute: recomputeBootstraps, digest: digestBootstrap, auxiliary: true},
	grantSection:       {store: putGrant, recompute: recomputeGrants},
}
