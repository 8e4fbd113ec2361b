package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack"
)

// scenario is one story of a deployment, told with the real components, and what
// the gate must say of it.
type scenario struct {
	// name is a file name too: lower case, words joined by hyphens.
	name string
	// core says that the scenario is part of the core suite, which runs in CI.
	core bool
	// newer says that it needs more than source-controller 1.7 can do: bundles,
	// or a trusted root of one's own.
	newer bool
	// namespace is the one to use, where its name matters; a new one otherwise.
	namespace string
	run       func(s *stage)
}

// scenarios are all there are, by file.
func scenarios() []scenario {
	return slices.Concat(
		keyed(),
		keyless(),
		readme(),
		operated(),
		consumers(),
		promotions(),
		timed(),
		disagree(),
		good(),
		canaries(),
	)
}

// The least that the suites are to hold.
const (
	leastCore = 25
	leastAll  = 60
)

// seen collects the codes of findings that are not passes, over all runs of the
// gate.
type seen struct {
	mu    sync.Mutex
	codes map[gate.Code]int
	runs  int
}

var codesSeen = seen{codes: map[gate.Code]int{}}

func (s *seen) add(findings []gate.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	for _, f := range findings {
		if f.Outcome != gate.Pass {
			s.codes[f.Code]++
		}
	}
}

func TestScenarios(t *testing.T) {
	if *suite != "core" && *suite != "all" {
		t.Fatalf("expected -suite core or all, found %q", *suite)
	}
	planned := 0
	var ran atomic.Int32
	t.Run("scenario", func(t *testing.T) {
		for _, sc := range scenarios() {
			if *suite == "core" && !sc.core || sc.newer && *line == "1.7" {
				continue
			}
			planned++
			t.Run(sc.name, func(t *testing.T) {
				t.Parallel()
				ran.Add(1)
				sc.run(newStage(t, theWorld.get(t), sc))
			})
		}
	})
	theRecorder.tell(t)
	if whole := int(ran.Load()) == planned; whole && *suite == "all" && *line == stack.Lines()[0].Name {
		checkCoverage(t, codesSeen.codes)
	}
	var codes []string
	for code, n := range codesSeen.codes {
		codes = append(codes, fmt.Sprintf("%s %d", code, n))
	}
	slices.Sort(codes)
	t.Logf("suite %s on source-controller %s: %d scenarios, %d runs of the gate; findings: %s",
		*suite, *line, ran.Load(), codesSeen.runs, strings.Join(codes, ", "))
	t.Log(compared.String())
	// An answer that is not clear agrees with everything.
	if runs, certain := codesSeen.runs, compared.compared-compared.unsure; runs >= leastCore && certain < runs/2 {
		t.Errorf("the emulated controller was compared with the real one %d times with a clear answer in %d runs of the gate: that is no comparison", certain, runs)
	}
}

// TestNames holds what the rest relies on: names are unique and usable as file
// names, and the suites are as large as they claim to be.
func TestNames(t *testing.T) {
	t.Parallel()
	names, core := map[string]bool{}, 0
	for _, sc := range scenarios() {
		if names[sc.name] || sc.name == "" || strings.Trim(sc.name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("the name %q is used twice, or not a word of a-z, 0-9 and -", sc.name)
		}
		names[sc.name] = true
		if sc.core {
			core++
		}
	}
	if core < leastCore || len(names) < leastAll {
		t.Errorf("got %d scenarios, %d of them core; want at least %d and %d", len(names), core, leastAll, leastCore)
	}
}
