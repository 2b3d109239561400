// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import (
	"regexp"
	"strings"
	"time"

	"tailscale.com/client/local"
)

// problemLimited is the type of an ACME server's refusal by a limit (RFC 8555, 6.7).
const problemLimited = "urn:ietf:params:acme:error:rateLimited"

// retryAfter matches the time in Let's Encrypt's refusals (letsencrypt/boulder,
// ratelimits/transaction.go).
var retryAfter = regexp.MustCompile(`retry after (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC`)

// maxUntil bounds the time of a refusal, which is another party's input. The longest window of
// Let's Encrypt's limits is a week.
const maxUntil = 7 * 24 * time.Hour

// refusal reports whether a limit of the certificate authority is the cause of err, and until when
// it refuses. The time is zero if it is not known. Tailscaled tells a limit by its status 429 and
// the time by Retry-After (tailscale.com feature/acme, errors.go); tailscaled before that answers
// 500 with the text of the certificate authority.
func refusal(err error, now time.Time) (until time.Time, limited bool) {
	d, limited := local.RateLimitRetryAfter(err)
	if !limited && !strings.Contains(err.Error(), problemLimited) {
		return time.Time{}, false
	}
	until = now.Add(d)
	if d <= 0 {
		until = time.Time{}
		if m := retryAfter.FindStringSubmatch(err.Error()); m != nil {
			// A text that matches and is no time leaves the time unknown.
			until, _ = time.Parse(time.DateTime, m[1])
		}
	}
	if until.Before(now) {
		return time.Time{}, true
	}
	if most := now.Add(maxUntil); until.After(most) {
		until = most
	}
	// A whole second, not before the time.
	return until.Add(time.Second - time.Nanosecond).Truncate(time.Second).UTC(), true
}
