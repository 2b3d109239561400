// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const (
	// checks are the health checks of the service: a dead endpoint fails two of them within detection.
	checks    = `"healthCheck":{"enabled":true,"path":"/","interval":"1s","timeout":"1s","healthyThreshold":2,"unhealthyThreshold":2}`
	detection = 4 * time.Second

	// delay is the delay of failback.
	delay = 10 * time.Second

	// spare is the second backend of the first cluster.
	spare = "spare"

	crossplaneNamespace = "crossplane-system"
)

// A result is what a load found while something happened.
type result struct {
	name string

	// answered are the clusters that answered in the end.
	answered string

	report load.Report

	// outage is how long after the event requests began that got lost, and goal what it may be. A goal of
	// zero means that none may get lost.
	outage, goal time.Duration
}

// holds reports whether the goal is reached.
func (r result) holds() bool {
	if r.goal == 0 {
		return r.report.Lost == 0
	}
	return r.outage <= r.goal
}

// report prints what happened. It returns an error if a goal was missed.
func (t *trial) report(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	missed := 0
	// An error of the writer comes with Flush.
	_, _ = fmt.Fprintln(w, "EVENT\tANSWERS\tREQUESTS\tLOST\tLOST FOR\tGOAL\t")
	for _, r := range t.results {
		goal, verdict := "none lost", "holds"
		if r.goal > 0 {
			goal = "lost for " + r.goal.String()
		}
		if !r.holds() {
			verdict = "MISSED"
			missed++
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", r.name, r.answered, r.report.Requests, r.report.Lost, r.outage.Round(100*time.Millisecond), goal, verdict)
	}
	if err := w.Flush(); err != nil {
		return errors.Wrap(err, "cannot print the results")
	}
	if missed > 0 {
		return errors.Errorf("%d of %d goals were missed", missed, len(t.results))
	}
	return nil
}

// outage returns how long after an event requests began that got lost.
func outage(r load.Report, event time.Time) time.Duration {
	var out time.Duration
	for _, f := range r.Failures {
		out = max(out, f.Began.Sub(event))
	}
	return out
}

// underLoad adds the result of a load while fn runs. fn returns the clusters that answer in the end, and
// the time of the event that may cost requests.
func (t *trial) underLoad(name string, goal time.Duration, fn func(ctx context.Context, p *progress) (answered []string, event time.Time, err error)) step {
	return step{name: name, action: func(ctx context.Context, p *progress) error {
		l, err := load.StartProcess(ctx, t.first().lab.labBin, "--from=cluster", "--workers=64", "--rate=50", "--timeout=2s", t.url)
		if err != nil {
			return err
		}
		answered, event, failed := fn(ctx, p)
		if err := errors.Join(failed, l.Stop()); err != nil {
			return err
		}
		r, err := l.Wait()
		if err != nil {
			return err
		}
		if r.Answered() == 0 {
			return errors.Errorf("no request was answered: %s", r)
		}
		out := result{name: name, answered: strings.Join(answered, ", "), report: r, outage: outage(r, event), goal: goal}
		t.results = append(t.results, out)
		p.printf("      cluster %s answers; %d of %d requests lost\n", out.answered, r.Lost, r.Requests)
		if !out.holds() {
			p.printf("      the goal is missed: %s\n", r)
		}
		return nil
	}}
}

// outageSteps returns the steps of what happens to the clusters, in which each leaves them as it found them
// unless the next one says otherwise.
func (t *trial) outageSteps() []step {
	return []step{
		t.underLoad("the pods of cluster one go", 0, func(ctx context.Context, p *progress) ([]string, time.Time, error) {
			return t.after(ctx, p, func() error { return t.scale(ctx, firstCluster, firstCluster, 0) }, secondCluster, thirdCluster)
		}),
		t.underLoad("the pods of cluster two go, too", detection+time.Second, func(ctx context.Context, p *progress) ([]string, time.Time, error) {
			return t.after(ctx, p, func() error { return t.scale(ctx, secondCluster, secondCluster, 0) }, thirdCluster)
		}),
		t.underLoad("all pods return", 0, func(ctx context.Context, p *progress) ([]string, time.Time, error) {
			return t.after(ctx, p, func() error {
				return errors.Join(t.scale(ctx, secondCluster, secondCluster, 2), t.scale(ctx, firstCluster, firstCluster, 2))
			}, firstCluster)
		}),
		t.underLoad("affinity becomes Global", 0, func(ctx context.Context, p *progress) ([]string, time.Time, error) {
			return t.after(ctx, p, func() error { return t.balance(ctx, `"affinity":"Global"`) }, firstCluster, secondCluster, thirdCluster)
		}),
		t.underLoad("affinity becomes Local", 0, func(ctx context.Context, p *progress) ([]string, time.Time, error) {
			return t.after(ctx, p, func() error { return t.balance(ctx, `"affinity":"Local"`) }, firstCluster)
		}),
		t.underLoad("the pods of cluster one go and return, with a failback delay of "+delay.String(), 0, t.failback),
		t.underLoad("a second backend gets a quarter of the requests", 0, t.weights),
		t.underLoad("the primary backend goes and returns, with a failback delay of "+delay.String(), 0, t.primary),
		t.underLoad("all controllers stop while cluster one has no pods", 0, t.stopControllers),
		t.underLoad("cluster two is cut off without its controllers knowing", detection+time.Second, t.cut),
		t.underLoad("cluster two is back", 0, t.reconnect),
		{name: "start all controllers", action: t.startControllers},
		t.underLoad("the pods of cluster one return", 0, func(ctx context.Context, p *progress) ([]string, time.Time, error) {
			return t.after(ctx, p, func() error { return t.scale(ctx, firstCluster, firstCluster, 2) }, firstCluster)
		}),
	}
}

// after does something, which is the event, and waits until clusters answer.
func (t *trial) after(ctx context.Context, p *progress, fn func() error, clusters ...string) ([]string, time.Time, error) {
	if err := fn(); err != nil {
		return nil, time.Time{}, err
	}
	event := time.Now()
	took, err := t.answeredFrom(ctx, p, clusters...)
	if err == nil {
		p.printf("      answers of %s after %s\n", strings.Join(clusters, ", "), took.Round(100*time.Millisecond))
	}
	return clusters, event, err
}

// failback has cluster one lose its pods and get new ones.
func (t *trial) failback(ctx context.Context, p *progress) ([]string, time.Time, error) {
	began := time.Now()
	if err := t.balance(ctx, fmt.Sprintf(`"failoverPolicy":{"failbackDelay":%q}`, delay)); err != nil {
		return nil, began, err
	}
	if _, _, err := t.after(ctx, p, func() error { return t.scale(ctx, firstCluster, firstCluster, 0) }, secondCluster, thirdCluster); err != nil {
		return nil, began, err
	}
	out, event, err := t.delayed(ctx, p, firstCluster, firstCluster)
	if err != nil {
		return nil, began, err
	}
	return out, event, t.balance(ctx, `"affinity":"Local"`)
}

// delayed brings the pods of a Deployment of cluster one back, and checks that they answer only after the
// failback delay.
func (t *trial) delayed(ctx context.Context, p *progress, deployment, prefix string) ([]string, time.Time, error) {
	event := time.Now()
	if err := t.scale(ctx, firstCluster, deployment, 2); err != nil {
		return nil, event, err
	}
	ready := time.Now()
	if _, err := t.answeredFrom(ctx, p, prefix); err != nil {
		return nil, event, err
	}
	took := time.Since(ready)
	p.printf("      they answer %s after they are ready\n", took.Round(100*time.Millisecond))
	// Pods are healthy a moment after the first one is ready.
	if took < delay-2*time.Second {
		return nil, event, errors.Errorf("the pods answered %s after they were ready, before the failback delay of %s", took, delay)
	}
	return []string{prefix}, event, nil
}

// weights adds a second backend in cluster one, with a quarter of the weight of all.
func (t *trial) weights(ctx context.Context, p *progress) ([]string, time.Time, error) {
	d, began := t.first(), time.Now()
	if err := d.webServer(ctx, spare, spare); err != nil {
		return nil, began, err
	}
	if err := d.rolledOut(ctx, spare); err != nil {
		return nil, began, err
	}
	if err := d.patch(ctx, services, quickstart, sharedName, fmt.Sprintf(`{"spec":{"backends":[{"name":"web","port":80},{"name":%q,"port":80}]}}`, spare)); err != nil {
		return nil, began, err
	}
	out, event, err := t.after(ctx, p, func() error {
		return t.balance(ctx, fmt.Sprintf(`"strategy":"weighted","weights":{"web":3,%q:1}`, spare))
	}, firstCluster, spare)
	if err != nil {
		return nil, event, err
	}
	const requests = 100
	counts, err := t.answers(ctx, requests)
	if err != nil {
		return nil, event, err
	}
	p.printf("      %d of %d answers are of the second backend\n", counts[spare], requests)
	if n := counts[spare]; n < requests/8 || n > requests*3/8 {
		return nil, event, errors.Errorf("want about a quarter of %d answers of the second backend, got %d", requests, n)
	}
	return out, event, nil
}

// primary has the primary backend lose its pods and get new ones.
func (t *trial) primary(ctx context.Context, p *progress) ([]string, time.Time, error) {
	d, began := t.first(), time.Now()
	if err := t.balance(ctx, fmt.Sprintf(`"strategy":"failover","failover":{"primary":"web","secondary":[%q],"failbackDelay":%q}`, spare, delay)); err != nil {
		return nil, began, err
	}
	if _, err := t.answeredFrom(ctx, p, firstCluster); err != nil {
		return nil, began, err
	}
	if _, _, err := t.after(ctx, p, func() error { return t.scale(ctx, firstCluster, firstCluster, 0) }, spare); err != nil {
		return nil, began, err
	}
	out, event, err := t.delayed(ctx, p, firstCluster, firstCluster)
	if err != nil {
		return nil, event, err
	}
	if err := t.balance(ctx, `"affinity":"Local"`); err != nil {
		return nil, event, err
	}
	return out, event, d.patch(ctx, services, quickstart, sharedName, `{"spec":{"backends":[{"name":"web","port":80}]}}`)
}

// A controller is a Deployment of Crossplane, Tailscale Gateway or Envoy Gateway.
type controller struct{ namespace, name, replicas string }

// controllers returns the controllers of a cluster.
func (d *demo) controllers(ctx context.Context) ([]controller, error) {
	var out []controller
	for _, namespace := range []string{crossplaneNamespace, envoyGatewayNamespace} {
		found, err := d.lab.kubectl(ctx, nil, "get", deployments, "--namespace="+namespace, `-o=jsonpath={range .items[*]}{.metadata.name} {.spec.replicas}{"\n"}{end}`)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(found) {
			name, replicas, _ := strings.Cut(strings.TrimSpace(line), " ")
			// The others of this namespace are Envoy proxies.
			if namespace == crossplaneNamespace || name == "envoy-gateway" || name == extensionChart {
				out = append(out, controller{namespace: namespace, name: name, replicas: replicas})
			}
		}
	}
	return out, nil
}

// scaleController sets the replicas of a controller.
func (d *demo) scaleController(ctx context.Context, c controller, replicas string) error {
	_, err := d.lab.kubectl(ctx, nil, "scale", "deployment", c.name, "--namespace="+c.namespace, "--replicas="+replicas)
	return err
}

// stopControllers ends the pods of cluster one, and then the controllers of all clusters.
func (t *trial) stopControllers(ctx context.Context, p *progress) ([]string, time.Time, error) {
	out, event, err := t.after(ctx, p, func() error { return t.scale(ctx, firstCluster, firstCluster, 0) }, secondCluster, thirdCluster)
	if err != nil {
		return nil, event, err
	}
	for _, name := range clusterNames {
		d := t.members[name]
		if t.stopped[name], err = d.controllers(ctx); err != nil {
			return nil, event, err
		}
		for _, c := range t.stopped[name] {
			if err := d.scaleController(ctx, c, "0"); err != nil {
				return nil, event, err
			}
		}
	}
	err = p.until(ctx, 2*time.Minute, func(ctx context.Context) (string, error) {
		for _, c := range clusterNames {
			pods, err := t.members[c].lab.kubectl(ctx, nil, "get", "pods", "--namespace="+crossplaneNamespace, "-o=name")
			if err != nil {
				return "", err
			}
			if pods != "" {
				return "controllers of cluster " + c + " still run", nil
			}
		}
		return "", nil
	})
	return out, event, err
}

// cut drops all packets between cluster two and the others. Its pods run on, and no controller gets a message.
func (t *trial) cut(ctx context.Context, p *progress) ([]string, time.Time, error) {
	event := time.Now()
	if _, err := t.lab(ctx, "--cluster="+secondCluster, "cluster-fault"); err != nil {
		return nil, event, err
	}
	took, err := t.answeredFrom(ctx, p, thirdCluster)
	if err != nil {
		return nil, event, err
	}
	p.printf("      cluster %s answers alone after %s\n", thirdCluster, took.Round(100*time.Millisecond))
	return []string{thirdCluster}, event, nil
}

// reconnect ends the cut.
func (t *trial) reconnect(ctx context.Context, p *progress) ([]string, time.Time, error) {
	return t.after(ctx, p, func() error {
		_, err := t.lab(ctx, "--cluster="+secondCluster, "cluster-fault", "--clear")
		return err
	}, secondCluster, thirdCluster)
}

// startControllers starts the controllers of all clusters, a cluster after the other. This is no part of what is measured:
// dozens of processes that start at once leave no processor to the proxies of a small machine.
func (t *trial) startControllers(ctx context.Context, _ *progress) error {
	for _, name := range clusterNames {
		for _, c := range t.stopped[name] {
			if err := t.members[name].scaleController(ctx, c, c.replicas); err != nil {
				return err
			}
		}
		// Envoy Gateway is ready once the extension is.
		for _, c := range t.stopped[name] {
			if _, err := t.members[name].lab.kubectl(ctx, nil, "rollout", "status", "deployment/"+c.name, "--namespace="+c.namespace, "--timeout=3m"); err != nil {
				return err
			}
		}
	}
	return nil
}

// lab runs a command of the lab.
func (t *trial) lab(ctx context.Context, args ...string) (string, error) {
	return output(ctx, nil, nil, t.first().lab.labBin, args...)
}

// scale sets the replicas of a Deployment of a cluster, and waits for them, or until all of its pods are gone.
func (t *trial) scale(ctx context.Context, cluster, deployment string, replicas int) error {
	d := t.members[cluster]
	if _, err := d.lab.kubectl(ctx, nil, "scale", "deployment", deployment, "--namespace="+quickstart, "--replicas="+strconv.Itoa(replicas)); err != nil {
		return err
	}
	if replicas > 0 {
		return d.rolledOut(ctx, deployment)
	}
	_, err := d.lab.kubectl(ctx, nil, "wait", "--for=delete", "pod", "--selector=app=web", "--namespace="+quickstart, "--timeout=1m")
	return err
}

// rolledOut waits for the pods of a Deployment.
func (d *demo) rolledOut(ctx context.Context, deployment string) error {
	_, err := d.lab.kubectl(ctx, nil, "rollout", "status", "deployment/"+deployment, "--namespace="+quickstart, "--timeout=2m")
	return err
}

// balance sets the load balancing of the service in cluster one.
func (t *trial) balance(ctx context.Context, settings string) error {
	d := t.first()
	// A merge keeps the settings that the patch omits, and some exclude each other.
	_, err := d.lab.kubectl(ctx, nil, "patch", services, sharedName, "--namespace="+quickstart, "--type=json",
		fmt.Sprintf(`--patch=[{"op":"add","path":"/spec/loadBalancing","value":{%s,%s}}]`, checks, settings))
	return err
}

// answers returns how many of some requests each cluster answers: the first part of the names of pods.
func (t *trial) answers(ctx context.Context, requests int) (map[string]int, error) {
	out := map[string]int{}
	for range requests {
		text, err := t.lab(ctx, "curl", "--timeout=5s", t.url)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(strings.TrimSpace(text), "-")
		out[name]++
	}
	return out, nil
}

// answeredFrom waits until requests in a row are answered by clusters alone, and by each of them.
func (t *trial) answeredFrom(ctx context.Context, p *progress, clusters ...string) (time.Duration, error) {
	const inARow = 8
	began := time.Now()
	err := p.until(ctx, 3*time.Minute, func(ctx context.Context) (string, error) {
		counts, err := t.answers(ctx, inARow*len(clusters))
		if err != nil {
			return "", err
		}
		for c := range counts {
			if !slices.Contains(clusters, c) {
				return fmt.Sprintf("%s answers, too", c), nil
			}
		}
		for _, c := range clusters {
			if counts[c] == 0 {
				return fmt.Sprintf("%s does not answer", c), nil
			}
		}
		return "", nil
	})
	return time.Since(began), err
}
