// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// ReasonInvalidTLS is a reason of Accepted: the TLS settings of a spec do not fit its ports.
const ReasonInvalidTLS xpv2.ConditionReason = "InvalidTLS"

// TypeCertificateReady reports whether the hosts of a VIPService have a certificate for TLS
// termination. It is set once one of them had none.
const TypeCertificateReady xpv2.ConditionType = "CertificateReady"

// Reasons of CertificateReady. All but the last are also reasons of Advertised, which agents
// report for services that they do not advertise.
const (
	// ReasonHTTPSDisabled means that the tailnet provides no certificates.
	ReasonHTTPSDisabled xpv2.ConditionReason = "HTTPSDisabled"

	// ReasonCertificateNotIssued means that Tailscale did not provide the certificate. The
	// message has the certificate authority's error.
	ReasonCertificateNotIssued xpv2.ConditionReason = "CertificateNotIssued"

	// ReasonCertificateLimited means that a limit of the certificate authority refuses the
	// certificate. The message has the time until which it does, if it is known.
	ReasonCertificateLimited xpv2.ConditionReason = "CertificateLimited"

	// ReasonCertificateNoSpace means that the state Secret with the certificates of a group of
	// proxies is too full for another one.
	ReasonCertificateNoSpace xpv2.ConditionReason = "CertificateNoSpace"

	// ReasonCertificateNotUsable means that the Secret with the certificate does not exist, or
	// does not hold one.
	ReasonCertificateNotUsable xpv2.ConditionReason = "CertificateNotUsable"

	// ReasonCertificateReady means that the certificate can be used.
	ReasonCertificateReady xpv2.ConditionReason = "CertificateReady"
)
