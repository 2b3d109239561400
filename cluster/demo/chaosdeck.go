// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A fault is something that happens many times.
type fault struct {
	name string

	// ways are those that the fault can hit. A fault that hits all ways at once has one card for all.
	ways   []way
	common bool

	// actor is who lets it happen. The faults of an actor happen one after the other, and those of different
	// actors at the same time. parallel is the number of actors for a fault that takes long.
	actor    string
	parallel int

	// happen lets the fault happen, and returns once everything has recovered from it.
	happen func(c *chaos, ctx context.Context, h hand, s *strike) error
}

// A card is a fault that is to happen, to a way.
type card struct {
	fault

	way way
}

// A hand is what a fault chooses with.
type hand struct {
	*rand.Rand

	way way
}

// A strike is a fault that has happened.
type strike struct {
	Fault string `json:"fault"`

	// Ways are those that have what was hit.
	Ways []way `json:"ways"`

	// Direct reports that it hit what carries requests.
	Direct bool `json:"direct,omitempty"`

	// Target is what was hit, and Cluster where. No cluster means all.
	Target  string `json:"target"`
	Cluster string `json:"cluster,omitempty"`

	// Began is when the fault began, Ended when it ended, and Recovered when everything was as it had been.
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	Recovered time.Time `json:"recovered"`

	// Blind is until when the others cannot know of the fault, by way: until then, requests may get lost.
	Blind map[way]time.Time `json:"blind,omitempty"`

	// Problem is why there was no recovery.
	Problem string `json:"problem,omitempty"`
}

// blind has a way lose requests for a time after the strike began.
func (s *strike) blind(w way, d time.Duration) {
	if s.Blind == nil {
		s.Blind = map[way]time.Time{}
	}
	s.Blind[w] = s.Began.Add(d)
}

// A deck has the cards of each actor.
type deck map[string][]card

// newDeck returns a deck that has each fault as often as it must hit each way. names select faults.
func newDeck(faults []fault, names []string, hits int) (deck, error) {
	var all []string
	for _, f := range faults {
		all = append(all, f.name)
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, errors.Errorf("there is no fault %q, only %s", name, strings.Join(all, ", "))
		}
	}
	out := deck{}
	for _, f := range faults {
		if len(names) > 0 && !slices.Contains(names, f.name) {
			continue
		}
		for _, w := range f.ways {
			if f.common && w != f.ways[0] {
				continue
			}
			actor := f.actor
			if !f.common {
				actor += " of " + string(w)
			}
			for i := range hits {
				name := actor
				if f.parallel > 1 {
					name = fmt.Sprintf("%s, %d", actor, i%f.parallel)
				}
				out[name] = append(out[name], card{fault: f, way: w})
			}
		}
	}
	return out, nil
}

// random returns the random numbers of an actor. Those of an actor do not depend on how fast the others are.
func random(seed uint64, actor string) *rand.Rand {
	var stream uint64
	for _, b := range []byte(actor) {
		stream = stream*31 + uint64(b)
	}
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // No secret.
}

// playDeck has each actor play its cards in a random order, evenly over the time, and no two actors at the same
// moment. A slow actor goes on afterwards, until the limit.
func (c *chaos) playDeck(ctx context.Context, p *progress) error {
	began := time.Now()
	actors, ctx := errgroup.WithContext(ctx)
	for j, name := range slices.Sorted(maps.Keys(c.deck)) {
		cards, phase := c.deck[name], float64(j)/float64(len(c.deck))
		actors.Go(func() error {
			r := random(c.settings.Seed, name)
			r.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
			for i, k := range cards {
				at := began.Add(time.Duration(float64(c.settings.Duration) * (float64(i) + phase) / float64(len(cards))))
				if err := elapse(ctx, time.Until(at)); err != nil {
					return err
				}
				if err := c.calm.wait(ctx, began.Add(c.settings.Limit)); err != nil {
					return err
				}
				if time.Since(began) > c.settings.Limit {
					return nil
				}
				if err := c.strikeWith(ctx, p, k, r); err != nil {
					return errors.Wrapf(err, "%s, fault %d of %d", k.name, i+1, len(cards))
				}
			}
			return elapse(ctx, time.Until(began.Add(c.settings.Duration)))
		})
	}
	return actors.Wait()
}

// strikeWith plays a card. A way that does not recover is a result, and no reason to stop.
func (c *chaos) strikeWith(ctx context.Context, p *progress, k card, r *rand.Rand) error {
	s := &strike{Fault: k.name, Ways: []way{k.way}, Began: time.Now()}
	if k.common {
		s.Ways = k.ways
	}
	err := k.happen(c, ctx, hand{Rand: r, way: k.way}, s)
	if ctx.Err() != nil {
		return errors.Wrap(ctx.Err(), "interrupted")
	}
	s.Recovered = time.Now()
	if s.Ended.IsZero() {
		s.Ended = s.Began
	}
	outcome := "recovered after " + since(s.Began).String()
	if err != nil {
		s.Problem = err.Error()
		outcome = "PROBLEM: " + s.Problem
	}
	p.printf("      %6s  %s: %s: %s: %s\n", since(p.began), joinWays(s.Ways), s.Fault, s.Target, outcome)
	average, err := loadAverage()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busiest = max(c.busiest, average)
	c.strikes = append(c.strikes, *s)
	return err
}

// joinWays returns the names of ways.
func joinWays(ws []way) string {
	var out []string
	for _, w := range ws {
		out = append(out, string(w))
	}
	return strings.Join(out, ", ")
}

// silent returns a progress that prints nothing, for what happens at the same time as other things.
func silent() *progress { return &progress{out: io.Discard, began: time.Now()} }
