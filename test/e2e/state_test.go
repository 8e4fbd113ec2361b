package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"flux-verify-gate/test/stack/cluster"
)

// stateLines are what the gate's rules are about in a source's state, without what
// differs from run to run: the generations, each condition's status, reason and
// generation, and whether there is an artifact.
func stateLines(o *sourcev1.OCIRepository) []string {
	lines := []string{
		fmt.Sprintf("generation %d, observed %d", o.Generation, o.Status.ObservedGeneration),
		fmt.Sprintf("artifact %t", o.Status.Artifact != nil),
	}
	for _, c := range o.Status.Conditions {
		lines = append(lines, conditionLine(c))
	}
	slices.Sort(lines)
	return lines
}

func conditionLine(c metav1.Condition) string {
	return fmt.Sprintf("%s %s %s of %d", c.Type, c.Status, c.Reason, c.ObservedGeneration)
}

var recordedCases = filepath.Join("..", "..", "gate", "testdata", "cases")

// becomes waits until the source is as one that was recorded: the file's name
// in gate/testdata/cases/live, without its ending.
func (s *stage) becomes(recorded string) {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(recordedCases, "live", recorded+".json"))
	s.check(err)
	var o sourcev1.OCIRepository
	s.check(json.Unmarshal(content, &o))
	want := stateLines(&o)
	s.sees(recorded, want, func(got []string) bool { return slices.Equal(got, want) })
}

// becomesLike waits until the source's state has these lines. A line of one word
// is a type of condition that must be absent.
func (s *stage) becomesLike(lines ...string) {
	s.t.Helper()
	s.sees("these lines", lines, func(got []string) bool {
		return !slices.ContainsFunc(lines, func(line string) bool {
			if strings.Contains(line, " ") {
				return !slices.Contains(got, line)
			}
			return slices.ContainsFunc(got, func(l string) bool { return strings.HasPrefix(l, line+" ") })
		})
	})
}

// TestRecordedCases holds that every recorded case is lived through by a
// scenario.
func TestRecordedCases(t *testing.T) {
	t.Parallel()
	recordings, err := filepath.Glob(filepath.Join(recordedCases, "live", "*.json"))
	if err != nil || len(recordings) == 0 {
		t.Fatalf("found %d recordings: %v", len(recordings), err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(content)
	}
	for _, recording := range recordings {
		if name := strings.TrimSuffix(filepath.Base(recording), ".json"); !strings.Contains(code.String(), fmt.Sprintf("becomes(%q)", name)) {
			t.Errorf("no scenario waits for a source to become %q", name)
		}
	}
}

// sees waits for a state of the source, now or later. It follows every change:
// what fails again and again is in each of its states for a moment only.
func (s *stage) sees(what string, want []string, is func(state []string) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	history, err := s.stack.Cluster.Record(ctx, sources, s.namespace, sourceName)
	s.check(err)
	var last []string
	_, err = history.Wait(ctx, func(v cluster.Version) bool {
		var o sourcev1.OCIRepository
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(v.Object.Object, &o); err != nil {
			return false
		}
		last = stateLines(&o)
		return is(last)
	})
	if err != nil {
		s.t.Fatalf("the source did not become as %s (%v): want\n  %s\nlast\n  %s", what, err, strings.Join(want, "\n  "), strings.Join(last, "\n  "))
	}
}
