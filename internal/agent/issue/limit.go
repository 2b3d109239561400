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

// general matches the refusals by limits of an account, an address or a tailnet, which concern all
// names that have no certificate yet. Others concern one name, as far as is known.
var general = regexp.MustCompile(`new registrations|new orders|already issued for "`)

// refusal reports whether a limit of the certificate authority is the cause of err, and until when
// it refuses. The time is zero if it is not known. Tailscaled reports a limit by the status 429 and
// the time by Retry-After (tailscale.com feature/acme, errors.go), which counts from a time after
// begin; tailscaled before that answers 500 with the text of the certificate authority.
func refusal(err error, begin, instant time.Time) (limitEnd time.Time, limited bool) {
	d, limited := local.RateLimitRetryAfter(err)
	if !limited && !strings.Contains(err.Error(), problemLimited) {
		return time.Time{}, false
	}
	if d > 0 {
		limitEnd = begin.Add(d)
	}
	if m := retryAfter.FindStringSubmatch(err.Error()); m != nil {
		if at, err := time.Parse(time.DateTime, m[1]); err == nil {
			limitEnd = at
		}
	}
	if limitEnd.Before(instant) {
		return time.Time{}, true
	}
	if most := instant.Add(maxUntil); limitEnd.After(most) {
		limitEnd = most
	}
	// A whole second, not before the time.
	return limitEnd.Add(time.Second - time.Nanosecond).Truncate(time.Second).UTC(), true
}
