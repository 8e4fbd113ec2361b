package gate_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flux-verify-gate/gate"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestControllerTexts shows what a person reads where the gate and the
// controller differ, or will.
func TestControllerTexts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	shown := 0
	for _, v := range readVariants(t) {
		if v.file != "controller" {
			continue
		}
		var texts []string
		for _, code := range []gate.Code{gate.ControllerDisagrees, gate.WillRefuse} {
			for _, f := range found(v.judge(t), code) {
				if f.Outcome == gate.Pass {
					continue
				}
				texts = append(texts, fmt.Sprintf("%s, %s: %s\n  expected: %s\n  found:    %s\n  do:       %s\n", f.Code, f.Outcome, f.Title, f.Expected, f.Found, f.Remedy))
				if len(f.Title) > 200 || len(f.Remedy) > 330 || len(f.Found) > 900 {
					t.Errorf("%s: %s is too long to be read (%d, %d and %d bytes)", v.Name, f.Code, len(f.Title), len(f.Found), len(f.Remedy))
				}
			}
		}
		if len(texts) > 0 {
			shown++
			fmt.Fprintf(&b, "== %s\n%s\n", v.Name, strings.Join(texts, ""))
		}
	}
	if shown < 12 {
		t.Errorf("expected at least 12 variants with a text, found %d", shown)
	}
	golden := filepath.Join("testdata", "controller.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != b.String() {
		t.Errorf("got\n%s\nwant\n%s\ngo test ./gate -run %s -update writes it", b.String(), want, t.Name())
	}
}
