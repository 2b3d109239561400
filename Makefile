# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

OUT := _out
ARCH ?= $(shell go env GOARCH)

# A version for each state of the tree, so that a changed package is a new one to
# Crossplane. A release sets VERSION.
TREE := $(shell { git rev-parse HEAD; git diff HEAD; git ls-files -o --exclude-standard | xargs -r cat; } 2>/dev/null | sha256sum | cut -c1-12)
VERSION ?= v0.1.0-dev.t$(TREE)

# What our kinds are: composites in a namespace (namespaced), or claims.
FLAVOUR ?= namespaced

# Parallel builds and tests use what the machine has; tools come at the versions
# that their own go.mod pins, apart from ours.
CONTROLLER_GEN := go tool -modfile=$(CURDIR)/hack/tools/controller-gen/go.mod controller-gen
ANGRYJET := go tool -modfile=$(CURDIR)/hack/tools/angryjet/go.mod angryjet
GOLANGCI_LINT := go tool -modfile=$(CURDIR)/hack/tools/golangci-lint/go.mod golangci-lint
ACTIONLINT := go tool -modfile=$(CURDIR)/hack/tools/actionlint/go.mod actionlint
GOVULNCHECK := go tool -modfile=$(CURDIR)/hack/tools/govulncheck/go.mod govulncheck
COMMA := ,
# A machine with two cores and an empty cache compiles for minutes, also within tests, which build programs:
# the time limit of each package's tests.
TEST_TIMEOUT := -timeout=30m
# Runs go test, and names what failed at the end.
GO_TEST := go tool -modfile=$(CURDIR)/hack/tools/gotestsum/go.mod gotestsum --format=pkgname-and-test-fails --hide-summary=skipped,output --
# Shows the output of all tests as they run, and that of the failed ones again at the end.
GO_TEST_VERBOSE := $(subst pkgname-and-test-fails,standard-verbose,$(subst skipped$(COMMA)output,skipped,$(GO_TEST)))
LAB := go run ./cluster/lab
DEMO := go run ./cluster/demo
# The builder of packages is a separate module.
PACKAGE_BUILDER := go -C package/builder run .

# One set of flags for all builds: what lint, tests and packages compile is shared.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

##@ Main

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"} /^[a-zA-Z0-9_-]+:.*?##/ {printf "  \033[36m%-16s\033[0m %s\n", $$1, $$2} /^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Bring up a cluster and a tailnet on this machine, and reach a pod through a VIP and through a Gateway.
	$(DEMO) up --version=$(VERSION) --flavour=$(FLAVOUR)

.PHONY: demo-clusters
demo-clusters: ## Bring up three clusters that share a service, end them in different ways under load, and print which requests are lost; takes ten minutes.
	$(DEMO) clusters --version=$(VERSION) --flavour=$(FLAVOUR)

.PHONY: chaos
chaos: ## Bring up the same three clusters, have faults happen at random under load, and print what each costs; takes an hour. SEED=N repeats the choices.
	@mkdir -p $(OUT)
	$(DEMO) chaos --version=$(VERSION) --flavour=$(FLAVOUR) --log=$(OUT)/chaos.json $(if $(SEED),--seed=$(SEED))

.PHONY: fencing
fencing: ## Bring up the same three clusters with fencing, and cut off the one that clients use 200 times; takes an hour and a half. KILLS=10 for a look.
	@mkdir -p $(OUT)
	$(DEMO) fencing --version=$(VERSION) --flavour=$(FLAVOUR) --log=$(OUT)/fencing.json $(if $(KILLS),--kills=$(KILLS))

.PHONY: demo-down
demo-down: ## Take the demo down, without a trace beside the cache.
	$(DEMO) down

.PHONY: test
test: ## Run all that CI runs, also after a stage that fails, and show a table of stages.
	go run ./hack/stages lint check-generate check-platforms check-docs test-unit test-race test-programs test-e2e

##@ Develop

.PHONY: generate
generate: ## Generate code, CRDs, XRDs and reference pages from the Go code and the charts.
	@mkdir -p $(OUT) && rm -rf $(OUT)/crds $(OUT)/xrds $(OUT)/inputs && mkdir -p $(OUT)/crds
	rm -f package/provider/crds/*.yaml
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./apis/...
	$(CONTROLLER_GEN) crd paths=./apis/tailnet/... output:crd:dir=package/provider/crds
	$(CONTROLLER_GEN) crd paths=./apis/gateway/... output:crd:dir=$(OUT)/crds
	mkdir -p $(EXTENSION_CRDS) && rm -f $(EXTENSION_CRDS)/*.yaml && mv $(OUT)/crds/*_{tailscalerevisions,tailscaleroutepolicies}.yaml $(EXTENSION_CRDS)/
	$(CONTROLLER_GEN) crd paths=./apis/function/... output:crd:dir=$(OUT)/inputs
	$(ANGRYJET) generate-methodsets --header-file=hack/methodsets.go.txt ./apis/tailnet/...
	go run ./hack/xrdgen $(OUT)/crds $(OUT)/xrds
	rm -f package/configuration/xrds/*.yaml && mv $(OUT)/xrds/*.yaml package/configuration/xrds/
	rm -f package/function/input/*.yaml && mv $(OUT)/inputs/*.yaml package/function/input/
	go test ./package/configuration-claims ./package/function/input -update
	go run ./hack/refgen --crds=package/provider/crds --crds=$(OUT)/crds --crds=$(EXTENSION_CRDS) --charts=$(CHARTS)/tailscale-gateway --charts=$(CHARTS)/tailscale-gateway-extension --examples=examples --managed=examples/managed $(addprefix --example=,$(SHOWN)) docs/reference
	go run ./hack/metricsgen docs/reference/metrics.md

# The example that the page of each kind without one in examples/managed shows.
SHOWN := TailscaleTailnet=examples/quickstart/tailnet.yaml TailscaleServices=examples/smallest.yaml TailscaleEndpoints=examples/egress.yaml TailscaleProxyGroup=examples/proxy-group.yaml TailscaleGateway=examples/walkthrough/5-gateway.yaml TailscaleRoutePolicy=examples/route-policy.yaml

# What users install.
CHARTS := package/charts

# What the extension brings along, which is no composite.
EXTENSION_CRDS := $(CHARTS)/tailscale-gateway-extension/files/crds

GENERATED := apis/*/*/zz_generated.* package/provider/crds/* package/configuration/xrds/* package/configuration-claims/files.sha256 docs/reference/* package/function/input/*.yaml package/function/input/files.sha256 $(EXTENSION_CRDS)/*

.PHONY: new-kind
new-kind: ## Scaffold a managed kind: make new-kind NAME=UserGroup SCOPE=users, with PLURAL if it is irregular. CONTRIBUTING.md goes on from there.
	go run ./hack/newkind $${NAME:?name a kind: make new-kind NAME=UserGroup} --scope=$(SCOPE) $(if $(PLURAL),--plural=$(PLURAL))
	$(MAKE) --no-print-directory generate

# The OAuth scope that Tailscale's API wants for calls on a new kind.
SCOPE ?= all

.PHONY: check-generate
check-generate: ## Fail when generated files are not what generate makes.
	@before=$$(cat $(GENERATED) | sha256sum); \
	$(MAKE) --no-print-directory generate >/dev/null; \
	after=$$(cat $(GENERATED) | sha256sum); \
	if [ "$$before" != "$$after" ]; then echo "generated files were stale: commit what 'make generate' made" >&2; exit 1; fi

# Tailscale's OpenAPI document is not here: download it from
# https://api.tailscale.com/api/v2?outputOpenapiSchema=true.
.PHONY: api-facts
api-facts: ## Rewrite the facts of Tailscale's API that tests rely on from its OpenAPI document SPEC.
	go run ./hack/apicheck --spec=$${SPEC:?name a file: make api-facts SPEC=openapi.yaml} --write

.PHONY: lint
lint: ## Lint Go code, requirements, workflows, scripts, and the wording of texts.
	go run ./hack/wording
	go mod tidy -diff
	$(GOLANGCI_LINT) run ./...
	cd package/builder && go mod tidy -diff && $(GOLANGCI_LINT) run ./...
	$(ACTIONLINT) -shellcheck= -pyflakes=
	bash -n hack/dev-kind.sh

.PHONY: check-platforms
check-platforms: ## Check that everything compiles for macOS and for arm64, and the kubectl plugin for Windows.
	go run ./hack/platforms

# Packages of the site's build, in the versions and with the digests of requirements.txt.
DOCS_PYTHON := $(abspath $(OUT)/docs-python)
MKDOCS := NO_MKDOCS_2_WARNING=1 PYTHONPATH=$(DOCS_PYTHON) python3 -m mkdocs

$(DOCS_PYTHON)/installed: docs/site/requirements.txt
	rm -rf $(DOCS_PYTHON)
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --require-hashes --no-deps --target=$(DOCS_PYTHON) -r $<
	touch $@

.PHONY: docs
docs: $(DOCS_PYTHON)/installed ## Build the documentation's site into _out/site; a broken link or anchor fails. Needs python3 3.11 or newer.
	$(MKDOCS) build --strict

.PHONY: serve-docs
serve-docs: $(DOCS_PYTHON)/installed ## Serve the documentation's site at localhost:8000, and build it again after each change.
	$(MKDOCS) serve

.PHONY: check-docs
check-docs: docs ## Fail when the site cannot be built, or a page has a broken link or anchor.
	PYTHONPATH=$(DOCS_PYTHON) python3 docs/site/hooks_test.py
	python3 docs/site/publish_test.py

.PHONY: check-widths
check-widths: docs ## Fail when a page of the site is wider than a screen of 400 pixels. Needs chromium.
	python3 docs/site/widths.py $(OUT)/site

# Where the sites of all versions are served.
PAGES_URL ?= https://tailscale-gateway.github.io/tailscale-gateway

.PHONY: publish-docs
publish-docs: ## Build the site of SITE_REF, which is main or the tag of a release, and add it to those of all versions in PAGES.
	folder=$$(python3 docs/site/publish.py --folder $${SITE_REF:?name main or a tag: make publish-docs SITE_REF=main}); \
	SITE_URL=$(PAGES_URL)/$$folder/ $(MAKE) --no-print-directory docs
	python3 docs/site/publish.py $(OUT)/site $(PAGES) $(SITE_REF)

# The folder of the sites of all versions.
PAGES ?= $(OUT)/pages

.PHONY: check-links
check-links: docs ## Request every link of the site that leads to another site. Needs the internet.
	python3 docs/site/links.py $(OUT)/site

# A mirror of the database has the protocol of https://go.dev/security/vuln/database.
VULNDB ?= https://vuln.go.dev

.PHONY: vulncheck
vulncheck: ## Check the vulnerable functions that our code calls against Go's database; VULNDB names a mirror of it.
	$(GOVULNCHECK) -db=$(VULNDB) ./...

.PHONY: test-unit
test-unit: ## Run unit tests.
	$(GO_TEST) $(TEST_TIMEOUT) ./...
	cd package/builder && $(GO_TEST) $(TEST_TIMEOUT) ./...

# Packages of the product that hold locks: Go's race detector finds what they forget to lock.
LOCKED = $(sort $(dir $(shell grep -rlE 'sync\.(RW)?Mutex' --include=*.go --exclude=*_test.go extension functions internal)))

# The race detector needs a C compiler, which a package of Python contains.
ZIG := $(abspath $(OUT)/zig)

$(ZIG)/installed: hack/tools/zig/requirements.txt
	rm -rf $(ZIG)
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --require-hashes --no-deps --target=$(ZIG) -r $<
	touch $@

# Some tests repeat what the detector sees the first time: short leaves that out.
.PHONY: test-race
test-race: $(ZIG)/installed ## Run unit tests of the packages that hold locks with Go's race detector. RACE=./... for all packages.
	CGO_ENABLED=1 CC="$(ZIG)/ziglang/zig cc" $(GO_TEST) -race -short $(TEST_TIMEOUT) $(RACE)

RACE = $(addprefix ./,$(LOCKED))

.PHONY: test-mutants
test-mutants: ## Lay one fault after the other over functions and the proxies' objects: a unit test must notice each. Takes five minutes.
	go run ./hack/mutants

# The folders of test/ by what their tests need; those of test/e2e and test/render have targets below. RUN is a
# pattern of tests, and ARGS are arguments of them.
.PHONY: test-bench test-conformance test-docs test-gitops test-lifecycle test-load test-receivers test-references test-retry test-skew
test-bench test-conformance test-docs test-gitops test-lifecycle test-load test-receivers test-references test-retry test-skew: test-%:
	$(GO_TEST) -run='$(RUN)' ./test/$*/... $(if $(ARGS),-args $(ARGS))

.PHONY: test-apiserver test-extension test-integration test-restore test-standalone test-tailscaled
test-apiserver test-extension test-integration test-restore test-standalone test-tailscaled: test-%:
	$(LAB) build
	$(LAB) build $(PROXIES) envoy-gateway envoy
	$(CONTROLLER_ASSETS) $(GATEWAY_ASSETS) $(GO_TEST) -tags=integration -count=1 -parallel=48 $(TEST_TIMEOUT) -run='$(RUN)' ./test/$*/... $(if $(ARGS),-args $(ARGS))

# They wait more than they work: two at a time.
.PHONY: test-programs
test-programs: ## Run all that needs real programs and no cluster. make test-FOLDER runs a folder of test/ alone.
	$(LAB) build
	$(MAKE) --no-print-directory -j2 test-controllers test-envoy test-render test-release

# tailscaled in the oldest and the newest tested version: cluster/proxies.
PROXIES := tailscale-1.86 tailscale-1.104

SERVER_ASSETS = TEST_ASSET_ETCD=$$($(LAB) bin etcd) TEST_ASSET_KUBE_APISERVER=$$($(LAB) bin kube-apiserver)
CONTROLLER_ASSETS = $(SERVER_ASSETS) \
	TEST_ASSET_KUBE_CONTROLLER_MANAGER=$$($(LAB) bin kube-controller-manager) TEST_ASSET_HELM=$$($(LAB) bin helm) \
	TEST_ASSET_CONTAINERBOOT=$$($(LAB) bin containerboot) TEST_ASSET_TAILSCALED=$$($(LAB) bin tailscaled) TEST_ASSET_PEBBLE=$$($(LAB) bin pebble) \
	TEST_ASSET_TAILSCALED_1_86=$$($(LAB) bin tailscaled-1.86) TEST_ASSET_TAILSCALED_1_104=$$($(LAB) bin tailscaled-1.104) \
	TEST_ASSET_CONTAINERBOOT_1_86=$$($(LAB) bin containerboot-1.86)
GATEWAY_ASSETS = TEST_ASSET_ENVOY_GATEWAY=$$($(LAB) bin envoy-gateway) TEST_ASSET_ENVOY=$$($(LAB) bin envoy) \
	TEST_ASSET_ENVOY_GATEWAY_INPUTS=$$($(LAB) bin envoy-gateway-inputs)

# Cases wait more than they work: many may run at once.
.PHONY: test-controllers
test-controllers: ## Run controllers against a real API server and a simulated Tailscale, and the agent's watch with tailscaled of the oldest, the default and the newest version.
	$(LAB) build
	$(LAB) build $(PROXIES)
	$(CONTROLLER_ASSETS) $(GO_TEST) -tags=integration -count=1 -parallel=48 $(TEST_TIMEOUT) ./test/apiserver/ ./test/integration/ ./test/restore/ ./test/tailscaled/ ./internal/agent/issue/ ./internal/agent/network/ ./extension/ ./extension/app/ ./extension/watch/ ./extension/gateways/ ./extension/policies/ ./extension/references/ ./cluster/acceptance/ ./package/charts/ ./package/monitoring/ ./test/gitops/

.PHONY: test-envoy
test-envoy: ## Run Envoy Gateway, Envoy and our extension without a cluster.
	$(LAB) build envoy-gateway envoy etcd kubernetes
	@mkdir -p $(OUT)
	$(SERVER_ASSETS) $(GATEWAY_ASSETS) $(GO_TEST) -tags=integration -count=1 $(TEST_TIMEOUT) -artifacts -outputdir=$(OUT) ./test/standalone/ ./test/extension/ ./extension/hooks/ ./extension/xds/

.PHONY: test-inputs
test-inputs: ## Have Envoy Gateway translate all that its own tests do with our kinds instead of Services, and Envoy judge what hooks make of it; test-envoy does so with a part.
	$(LAB) build envoy-gateway envoy
	$(GATEWAY_ASSETS) $(GO_TEST) -tags=integration -count=1 -timeout=60m ./extension/hooks/ -run=TestInputs -args -inputs

# How long the hostile tenant writes.
BLAST ?= 10m

.PHONY: test-blast
test-blast: ## Have a hostile tenant write random objects beside honest ones, in front of real Envoy Gateway and Envoy: others have the same routes and endpoints, as fast. BLAST=1m for a look; test-envoy does so without comparing times and sizes.
	$(LAB) build envoy-gateway envoy etcd kubernetes
	@mkdir -p $(OUT)
	$(SERVER_ASSETS) $(GATEWAY_ASSETS) $(GO_TEST_VERBOSE) -tags=integration -count=1 -timeout=60m -artifacts -outputdir=$(OUT) ./test/extension/ -run=TestBlastRadius -args -blast=$(BLAST)

# How long each function is fuzzed.
FUZZ_TIME ?= 5m

# All functions of the tree, as FOLDER/FUNCTION.
FUZZ = $$(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -H '^func Fuzz' | sed -E 's|/[^/]*:func (Fuzz[A-Za-z0-9_]*).*|/\1|' | sort)

.PHONY: test-fuzz
test-fuzz: ## Fuzz each Fuzz function of the tree for FUZZ_TIME.
	for f in $(FUZZ); do go test ./$${f%/*} -run='^$$' -fuzz="^$${f##*/}\$$" -fuzztime=$(FUZZ_TIME); done

# Renders are processes: more than there are cores would only wait for each other.
RENDER = TEST_ASSET_CROSSPLANE=$$($(LAB) bin crossplane) TEST_ASSET_CROSSPLANE_CORE=$$($(LAB) bin crossplane-core) \
	$(GO_TEST) -tags=integration -count=1 $(TEST_TIMEOUT) ./test/render/

.PHONY: test-render
test-render: ## Render every example with Crossplane's command line, and compare with goldens.
	$(LAB) build
	$(RENDER)

.PHONY: test-release
test-release: ## Release a small image and the charts into a registry of the test, and verify what it has.
	$(LAB) build helm
	cd package/builder && TEST_ASSET_HELM=$$(cd $(CURDIR) && $(LAB) bin helm) $(GO_TEST) -tags=integration -count=1 $(TEST_TIMEOUT) -run 'Release|Charts' .

.PHONY: chart-goldens
chart-goldens: ## Rewrite what the charts render to, with package/kustomization.
	$(LAB) build helm
	TEST_ASSET_HELM=$$($(LAB) bin helm) go test -tags=integration ./extension/ -run TestChart -update
	TEST_ASSET_HELM=$$($(LAB) bin helm) go test -tags=integration ./package/charts/ -run 'TestInstall|TestVariants' -update

.PHONY: render-goldens
render-goldens: ## Rewrite the goldens of examples from what they render to.
	$(LAB) build
	$(RENDER) -update

# Parts of the benchmarks, separated by commas; go run ./test/bench --help lists all.
ONLY ?= create,rest,swarm,hops,extension,functions,first,visible,operator
comma := ,
BENCH_ENVOY = $(filter extension gateway routes,$(subst $(comma), ,$(ONLY)))

.PHONY: bench
bench: ## Measure against the goals: the provider alone and among twenty, the extension with real Envoy, the hops of egress, the calls of functions, all beside Tailscale's operator; takes an hour. ONLY=extension for a part.
	$(LAB) build
	$(if $(BENCH_ENVOY),$(LAB) build envoy-gateway envoy)
	$(SERVER_ASSETS) $(if $(BENCH_ENVOY),$(GATEWAY_ASSETS)) \
	TEST_ASSET_KUBE_CONTROLLER_MANAGER=$$($(LAB) bin kube-controller-manager) \
	TEST_ASSET_TAILSCALED=$$($(LAB) bin tailscaled) TEST_ASSET_CROSSPLANE_CORE=$$($(LAB) bin crossplane-core) \
	TSGW_LAB_DIR=$${TSGW_LAB_DIR:-/var/lib/tailscale-gateway-bench} \
	go run ./test/bench --only=$(ONLY) --out=$(OUT)/bench.json --logs=$(OUT)/bench-logs --swarm=5m --version=$(VERSION) --flavour=$(FLAVOUR)

# Parts of bench-scale, separated by commas. Only bulk needs a lab.
SCALE ?= routes,tailnet,scale,bulk

.PHONY: bench-scale
bench-scale: ## Measure what size costs: 20,000 routes, a tailnet of 20,000 devices, 1000 services with real Crossplane, 100 at once beside Tailscale's operator; takes two hours. SCALE=tailnet for a part.
	$(MAKE) --no-print-directory bench ONLY=$(SCALE)

.PHONY: soak
soak: ## Have routes, targets and endpoints change for an hour in front of real Envoy Gateway and Envoy, while replicas, Envoy, Envoy Gateway and the API server fail: nothing may grow or get lost. DURATION=3m for a look.
	$(LAB) build envoy-gateway envoy etcd kubernetes
	$(SERVER_ASSETS) $(GATEWAY_ASSETS) go run ./test/bench --only=soak --duration=$(DURATION) --out=$(OUT)/bench.json --logs=$(OUT)/bench-logs
	$(MAKE) --no-print-directory soak-drain

# How long a soak takes.
DURATION ?= 1h

.PHONY: soak-drain
soak-drain: ## Delete the ingress pods of two services in turn on a busy machine, in a separate lab, while new connections arrive: none may get lost. Part of soak; takes an hour and a half on two cores. DELETIONS=20 for a look.
	TSGW_LAB_DIR=$${TSGW_LAB_DIR:-/var/lib/tailscale-gateway-bench} go run ./test/bench --only=drain --deletions=$(DELETIONS) --version=$(VERSION) --out=$(OUT)/bench.json --logs=$(OUT)/bench-logs

# How many pods are deleted.
DELETIONS ?= 200

.PHONY: test-e2e
test-e2e: ## Run end-to-end tests in the lab, and take it down after. FLAVOUR=claims for claims.
	$(GO_TEST_VERBOSE) -tags=e2e -count=1 -timeout=75m ./test/e2e/ -args -version=$(VERSION) -flavour=$(FLAVOUR)

.PHONY: test-clusters
test-clusters: ## Join two real clusters by one tailnet, and have each answer for the other; takes ten minutes.
	$(GO_TEST_VERBOSE) -tags=e2e,clusters -count=1 -timeout=60m -run TestTwoClusters ./test/e2e -args -version=$(VERSION) -flavour=$(FLAVOUR)

.PHONY: test-install
test-install: ## Release into the registry of a fresh lab, and install from there as docs/get-started.md describes, in an empty folder. RELEASE_ARCH=amd64 for one architecture.
	$(GO_TEST_VERBOSE) -tags=e2e,release -count=1 -timeout=60m -run TestRelease ./test/e2e -args -version=$(VERSION) -arch=$(RELEASE_ARCH)

# Versions of tailscaled, as v1.96.5, separated by commas, or all. Empty for the oldest and the newest one.
PROXY_VERSIONS ?=

.PHONY: test-images
test-images: ## Run proxies with images of the oldest and the newest tested tailscaled in the lab: a service, a certificate, egress, failover. PROXY_VERSIONS=all also builds and runs those between.
	$(GO_TEST_VERBOSE) -tags=e2e,images -count=1 -timeout=2h -run TestImages ./test/e2e -args -version=$(VERSION) -proxy-versions=$(PROXY_VERSIONS)

.PHONY: test-backup
test-backup: ## Lose a real cluster, and restore its backup into another one of the same tailnet, as docs/backup.md describes; takes ten minutes. Needs jq.
	$(GO_TEST_VERBOSE) -tags=e2e,restore -count=1 -timeout=60m -run TestRestore ./test/e2e -args -version=$(VERSION)

.PHONY: test-control
test-control: ## Start all proxies again while the control server refuses, limits or fails for two minutes each: none loses its identity; takes 15 minutes.
	$(GO_TEST_VERBOSE) -tags=e2e,control -count=1 -timeout=60m -run TestControl ./test/e2e -args -version=$(VERSION)

.PHONY: test-hostile
test-hostile: ## Have a hostile tenant attack in the lab while others are under load: nothing of theirs is lost; takes ten minutes.
	$(GO_TEST_VERBOSE) -tags=e2e,hostile -count=1 -timeout=60m -run TestHostileTenant ./test/e2e -args -version=$(VERSION)

.PHONY: conformance
conformance: ## Run Gateway API's conformance tests in the lab, without us and with us, and compare. RUN=NAME for one of them.
	go run ./test/conformance --version=$(VERSION) --out=$(OUT) $(if $(RUN),--run=$(RUN))

.PHONY: test-tailnets
test-tailnets: ## Join Gateways to two tailnets and from two namespaces, with policies, certificates, identities and dedicated extensions, and have the API of a tailnet fail. OUTAGE=1h for how long.
	$(GO_TEST_VERBOSE) -tags=e2e,tailnets -count=1 -timeout=2h -run TestTwoTailnets ./test/e2e -args -version=$(VERSION) -flavour=$(FLAVOUR) -outage=$(OUTAGE)

# How long the API of a tailnet fails in the step that has it fail.
OUTAGE ?= 0s

.PHONY: test-paths
test-paths: ## Run the quickstart, egress and a failover in a lab without direct paths: relayed, 150 ms, 1% loss, an MTU of 1280; takes fifteen minutes.
	$(GO_TEST_VERBOSE) -tags=e2e,paths -count=1 -timeout=60m -run TestSlowPaths ./test/e2e -args -version=$(VERSION) -flavour=$(FLAVOUR)

.PHONY: test-families
test-families: ## Run the quickstart, a Gateway, a backend with IPv6 alone and egress in a dual-stack cluster, and in a cluster without IPv4; takes fifteen minutes.
	$(GO_TEST_VERBOSE) -tags=e2e,families -count=1 -timeout=60m -run TestFamilies ./test/e2e -args -version=$(VERSION) -flavour=$(FLAVOUR)

.PHONY: test-upgrade
test-upgrade: ## Upgrade to this version from the one that CHANGELOG.md names, under load and with all examples, and roll back; takes an hour. Needs git's history.
	$(GO_TEST_VERBOSE) -tags=e2e,tailnets,upgrade -count=1 -timeout=150m -run TestUpgrade ./test/e2e -args -version=$(VERSION) -flavour=$(FLAVOUR)

.PHONY: tidy
tidy: ## Tidy every go.mod.
	go mod tidy
	for m in package/builder/ cluster/tools/*/ hack/tools/*/; do (cd $$m && go mod tidy); done

##@ Ship

.PHONY: build
build: ## Build every binary of ours.
	go build -trimpath -o $(OUT)/bin/ ./cmd/... ./extension

.PHONY: xpkg
xpkg: ## Build all packages and images into _out/xpkg. ARCH=amd64,arm64 for both.
	$(PACKAGE_BUILDER) build --out=$(OUT)/xpkg --arch=$(ARCH) --version=$(VERSION)

.PHONY: chart
chart: ## Package all charts into _out/charts, at VERSION.
	$(LAB) build helm
	$(PACKAGE_BUILDER) chart --out=$(OUT)/charts --version=$(VERSION) --helm=$$($(LAB) bin helm)

.PHONY: push
push: xpkg ## Push what xpkg built to REGISTRY, such as ghcr.io/tailscale-gateway.
	$(PACKAGE_BUILDER) push --from=$(OUT)/xpkg --version=$(VERSION) $${REGISTRY:?name a registry: make push REGISTRY=ghcr.io/tailscale-gateway}

# A release is for both architectures. SIGN=true needs the identity of a workflow, IDENTITY. With PUBLIC=true
# anybody must be able to pull it.
RELEASE_ARCH ?= amd64,arm64
SIGN ?= false

.PHONY: release
release: ## Release VERSION to REGISTRY: packages, images and charts with SBOMs and provenance, notes from CHANGELOG.md; then verify what the registry has.
	$(LAB) build helm
	$(PACKAGE_BUILDER) release --version=$(VERSION) --arch=$(RELEASE_ARCH) --out=$(OUT)/release --helm=$$($(LAB) bin helm) \
	  $(if $(filter true,$(PUBLIC)),--public) $(if $(filter true,$(SIGN)),--sign --identity=$(IDENTITY)) $(if $(BUILDER),--builder=$(BUILDER)) $(if $(INVOCATION),--invocation=$(INVOCATION)) \
	  $${REGISTRY:?name a registry: make release VERSION=v0.1.0 REGISTRY=ghcr.io/tailscale-gateway}

.PHONY: dev-kind
dev-kind: ## Create a kind cluster with Crossplane and the packages of this tree. Needs docker, kind, kubectl and helm.
	VERSION=$(VERSION) ARCH=$(ARCH) FLAVOUR=$(FLAVOUR) hack/dev-kind.sh

.PHONY: install
install: ## Install into the cluster of KUBECONFIG by the chart. REGISTRY for other packages than the public ones, FLAVOUR=claims for claims.
	helm upgrade --install tailscale-gateway package/charts/tailscale-gateway --namespace crossplane-system \
	  --set=packages.version=$(VERSION),packages.flavour=$(FLAVOUR)$(if $(REGISTRY),$(COMMA)registry=$(REGISTRY))
	go run ./cmd/kubectl-tailscale_gateway check
