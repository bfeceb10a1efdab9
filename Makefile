# rdmadump: see README.md.

GO      ?= go
SAMPLE  ?= samples/rocev2-callback41.pcap
FUZZ    ?= 60s

.DEFAULT_GOAL := help
.PHONY: help build demo test lint hostile fuzz bench compare golden clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

build: ## build bin/rdmadump, one static binary
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/rdmadump ./cmd/rdmadump

demo: build ## build, and show the transactions, connections and findings of a sample
	@echo; echo "== rdmadump $(SAMPLE)"; bin/rdmadump $(SAMPLE)
	@echo; echo "== rdmadump connections $(SAMPLE)"; bin/rdmadump connections -q $(SAMPLE)
	@echo; echo "== rdmadump check samples/rocev2-errors.pcap"; bin/rdmadump check -q samples/rocev2-errors.pcap || test $$? -eq 1
	@echo; echo "== rdmadump -o json $(SAMPLE) | head -n 1"; bin/rdmadump -o json $(SAMPLE) | head -n 1

test: lint ## everything that must pass
	$(GO) test ./...

lint: ## formatting, vet, staticcheck
	@out=$$($(GO) tool gofumpt -l .); test -z "$$out" || { echo "gofumpt would change: $$out"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

hostile: ## 20,000 damaged copies of every sample through every view, and the memory hogs
	$(GO) test ./cmd/rdmadump -run '^(TestHostile|TestMemory)$$' -hostile 20000 -hogs -timeout 60m

fuzz: ## run every fuzz target for FUZZ (60s each)
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZ) -fuzzminimizetime 1s $$p || exit 1; \
	  done; done

bench: ## the benchmarks: packets/s, bytes/s, allocations
	$(GO) test -run '^$$' -bench . -benchmem ./...

compare: build ## time a capture against tshark: make compare CAPTURE=big.pcap
	./scripts/compare-tshark "$(CAPTURE)"

golden: ## write the golden files anew
	$(GO) test ./render -update
	$(GO) test ./cmd/rdmadump -run '^TestGolden$$' -update

clean: ## remove what was built
	rm -rf bin
