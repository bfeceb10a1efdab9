# rdmadump: see README.md.

GO      ?= go
SLOW    ?= samples/rocev2-slowwrite42.pcap.zst
FUZZ    ?= 60s
HOSTILE ?= 4000

.DEFAULT_GOAL := help
.PHONY: help build demo quick test lint fuzz hostile bench compare profile golden dist audit clean

# tools of packaging/go.mod
tool = $(GO) tool -modfile=packaging/go.mod

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

build: ## build bin/rdmadump, one static binary
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/rdmadump ./cmd/rdmadump

demo: build ## build, and find out why an RPC was slow
	@echo; echo "== rdmadump overview $(SLOW)"; bin/rdmadump overview -q $(SLOW)
	@echo; echo "== the slowest, four of them: rdmadump --top 4 $(SLOW)"; bin/rdmadump -q --top 4 $(SLOW)
	@echo; echo "== what is wrong with another: rdmadump check samples/rocev2-errors.pcap | head -n 4"
	@bin/rdmadump check -q samples/rocev2-errors.pcap | head -n 4
	@echo; echo "== and why was the slowest slow? rdmadump --xid 0x4a5eb126 $(SLOW)"; bin/rdmadump -q --xid 0x4a5eb126 $(SLOW)
	@echo; echo "== all of this as one page: rdmadump report $(SLOW) -w bin/report.html"; bin/rdmadump report $(SLOW) -w bin/report.html

quick: ## run what takes seconds, while you change something: unit tests, the cases of rules, three captures
	$(GO) test -vet=off -count=1 ./dissect/internal/... ./dissect/record ./rocev2 ./internal/link ./internal/analyze ./internal/arrows
	$(GO) test -vet=off -count=1 ./dissect -run '^TestCases$$'
	$(GO) test -vet=off -count=1 ./cmd/rdmadump -run '^TestGolden$$/^(rocev2-callback41|iwarp-nfs41|rocev2-errors)'

test: ## run the tests and lint, after each change; the end of the tests lists failed and skipped ones with their output
	$(tool) gotestsum --format pkgname --raw-command -- ./scripts/test-json $(GO)
	@$(GO) test ./internal/diagnose -v | grep 'explain nothing'
	@$(MAKE) --no-print-directory lint

# The profile that releases are built by would make these compile everything twice.
quick test lint fuzz hostile: export GOFLAGS += -pgo=off

lint: ## formatting, vet, staticcheck
	@out=$$($(GO) tool gofumpt -l .); test -z "$$out" || { echo "gofumpt would change: $$out"; exit 1; }
	$(GO) vet ./...
	cd packaging && $(GO) vet ./...
	$(GO) tool staticcheck ./...

fuzz: ## run every fuzz target for FUZZ (60s each)
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZ) -fuzzminimizetime 1s $$p || exit 1; \
	  done; done

hostile: ## run what takes minutes: HOSTILE (4000) damaged copies of each sample, long captures, memory hogs, a release, tables in DuckDB, vet for other systems, data races
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) vet ./...
	CGO_ENABLED=1 $(GO) test -race ./dissect -run '^TestAhead'
	CGO_ENABLED=1 $(GO) test -race ./internal/browse -run '^Test(Screens|Keys|Growing|Keep)'
	$(GO) test ./dissect ./dissect/internal/rdma ./dissect/internal/transaction ./internal/export ./internal/export/scrub ./internal/browse ./internal/metrics -timeout 0 -all
	$(GO) test ./cmd/rdmadump -timeout 0 -all -hostile $(HOSTILE) -hogs
	cd packaging && $(GO) test -run '^TestRelease$$' .
	cd test/duckdb && $(GO) test .

bench: ## the benchmarks: packets/s, bytes/s, allocations
	$(GO) test -run '^$$' -bench . -benchmem ./...

compare: build ## time a capture against tshark: make compare CAPTURE=big.pcap
	./scripts/compare-tshark "$(CAPTURE)"

profile: ## what builds are optimized by, anew: cmd/rdmadump/default.pgo
	./scripts/profile

golden: ## regenerate the golden files, the digests, the schemas and the output printed in the pages
	$(GO) test ./render -update
	$(GO) test ./internal/browse ./internal/export/parquet -update
	$(GO) test ./dissect -run '^TestGaps$$' -update
	$(GO) test ./dissect/internal/rdma ./dissect/internal/transaction -run '^TestStories$$' -update
	$(GO) test ./cmd/rdmadump -run '^(TestGolden|TestDigests|TestDocs|TestReportGolden)$$' -update
	cd test/duckdb && $(GO) test . -run TestPage -update

dist: ## make the release in dist/: archives, packages, bills of materials, checksums
	cd packaging && $(GO) run . -root .. -o ../dist

audit: ## sums of modules, licences of all, and, where the network allows, known vulnerabilities
	$(GO) mod verify
	cd packaging && $(GO) mod verify && $(GO) run . -root .. -licences
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

clean: ## remove what was built
	rm -rf bin dist
