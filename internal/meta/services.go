// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// ReasonInvalidTLS is a reason of Accepted: what a spec says of TLS does not fit
// its ports.
const ReasonInvalidTLS xpv2.ConditionReason = "InvalidTLS"

// TypeCertificateReady tells of a VIPService whether its hosts have a certificate to
// end TLS with. It is there once one of them had none.
const TypeCertificateReady xpv2.ConditionType = "CertificateReady"

// Reasons of CertificateReady. The first three are also reasons of Advertised, and
// what an agent tells of a service that it does not advertise for that.
const (
	// ReasonHTTPSDisabled means that the tailnet provides no certificates.
	ReasonHTTPSDisabled xpv2.ConditionReason = "HTTPSDisabled"

	// ReasonCertificateNotIssued means that the certificate could not be had from
	// Tailscale. The message says what the certificate authority said.
	ReasonCertificateNotIssued xpv2.ConditionReason = "CertificateNotIssued"

	// ReasonCertificateNotUsable means that the Secret with the certificate is not
	// there, or does not hold one.
	ReasonCertificateNotUsable xpv2.ConditionReason = "CertificateNotUsable"

	// ReasonCertificateReady means that nothing is in the way.
	ReasonCertificateReady xpv2.ConditionReason = "CertificateReady"
)
