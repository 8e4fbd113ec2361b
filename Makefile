# make test   what has to be green before a merge: the one command of the README
# make test-all   the same with every scenario, on two lines of source-controller
# make test-live   only the gate's binary against a real API server
# make e2e, make e2e-all   only the scenarios on a real Flux and Sigstore
# make stack-up, make stack-down   that Flux and Sigstore, to look around in
# make record   stores what the scenarios show as test data
# make test-differential   the gate's answers about signatures beside those of cosign
# make container-smoke   builds the image and runs it as the runner does
# make lint   formatting, vet, staticcheck, actionlint
# make build  the binary, as the image has it

GO ?= go
TOOLS := $(abspath .cache/tools)
VERSION ?= dev
# Tests that need more than the product's own modules.
MODULES := test/stack test/live test/e2e

.PHONY: all
all: lint test

.PHONY: test test-all
test:
	@test/run

test-all:
	@test/run all

# The programs that the tests need, built on the first run into the user's cache.
NICE ?= 0
.PHONY: programs
programs:
	@$(GO) -C test/stack run ./cmd/stack build -nice $(NICE) core

# Go's cache of results sees neither those programs nor what they listen on.
.PHONY: test-stack
test-stack: programs
	$(GO) -C test/stack test -race -count=1 ./...

# The gate's binary against that API server. Go's cache of results does not see
# what the binary is built from.
.PHONY: test-live
test-live: programs
	$(GO) -C test/live test -race -count=1 ./...

# The real cosign, built on the first run into the user's cache. The test skips
# without it; here that is a failure.
.PHONY: test-differential
test-differential:
	@mkdir -p $(TOOLS)
	@COSIGN=$$($(GO) -C test/stack run ./cmd/stack build cosign) $(GO) test -count=1 -v -run '^TestDifferential$$' ./gate/signature >$(TOOLS)/differential.log 2>&1; \
	grep -E '^ *(--- FAIL|FAIL|ok|panic:)|differential_test.go' $(TOOLS)/differential.log; \
	grep -q '^--- PASS: TestDifferential ' $(TOOLS)/differential.log || { tail -n 40 $(TOOLS)/differential.log; echo "the gate was not compared with cosign, or differs from it"; exit 1; }

# It needs root and buildah, which it installs by apt-get; test/container/run
# says what happens where they cannot be had.
.PHONY: container-smoke
container-smoke:
	test/container/run

# Scenarios on a real Flux and Sigstore: the core suite, and all of them on both
# lines of source-controller. Each run is told apart from a cached result.
E2E = $(GO) -C test/e2e test -count=1 -timeout 30m
.PHONY: e2e e2e-all record
e2e: programs
	$(E2E) -suite core ./...

e2e-all: programs
	@$(GO) -C test/stack run ./cmd/stack build all >/dev/null
	$(E2E) -suite all -line 1.9 ./...
	$(E2E) -suite all -line 1.7 ./...

# Stores what the gate sees in each scenario as test data of gate/action, the
# example of the README, and the tables of docs/flux-versions.md.
record: programs
	@$(GO) -C test/stack run ./cmd/stack build all >/dev/null
	$(E2E) -v -suite all -line 1.9 -record ./...
	$(E2E) -v -suite all -line 1.7 -record ./...
	$(MAKE) update

# A real Flux and Sigstore to look around in, until stack-down. Everything is
# below STACK_DIR, and stays there.
STACK_DIR ?= $(abspath .cache/stack)
.PHONY: stack-up stack-down
stack-up:
	@$(GO) -C test/stack run ./cmd/stack up -detach -dir $(STACK_DIR)

stack-down:
	@$(GO) -C test/stack run ./cmd/stack down -dir $(STACK_DIR)

.PHONY: lint
lint: tools
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(TOOLS)/staticcheck ./...
	@for module in $(MODULES); do \
		echo "lint $$module"; \
		(cd $$module && $(GO) vet ./... && $(GO) mod tidy -diff && $(TOOLS)/staticcheck ./...) || exit 1; \
	done
	$(TOOLS)/actionlint $$(git ls-files '.github/workflows/*.y*ml' 'examples/workflows/*.y*ml')

.PHONY: tools
tools:
	@mkdir -p $(TOOLS)
	cd tools && $(GO) build -o $(TOOLS)/ honnef.co/go/tools/cmd/staticcheck github.com/rhysd/actionlint/cmd/actionlint

.PHONY: build
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o flux-verify-gate .

# Golden files and everything generated from the table of inputs.
.PHONY: update
update:
	$(GO) test ./gate ./gate/action ./gate/cluster ./gate/report ./gate/signature ./gate/signer -update
