package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/test/stack"
	"flux-verify-gate/test/stack/cosigncli"
)

var (
	suite    = flag.String("suite", "core", "which scenarios to run: core or all")
	line     = flag.String("line", stack.Lines()[0].Name, "the minor version of source-controller to run them on")
	prebuilt = flag.String("gate", "", "test this binary instead of building one")
	keep     = flag.String("dir", "", "keep the stack's files in this directory")
)

// abreast is how many scenarios run at once unless somebody asks for something
// else: they wait more than they work.
const abreast = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		if err := flag.Set("test.parallel", abreast); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if err := theWorld.stop(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// world is what all scenarios share: one stack, the gate's binary, two keys.
type world struct {
	once  sync.Once
	err   error
	dir   string
	stack *stack.Stack
	gate  string
	// ours signs what is deployed, theirs does not.
	ours, theirs cosigncli.Key
}

var theWorld world

// get starts the world on the first call. A world that cannot be started fails
// every test that asks for it.
func (w *world) get(t *testing.T) *world {
	t.Helper()
	w.once.Do(func() { w.err = w.start() })
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w
}

func (w *world) start() error {
	// Not a test's context: the world outlives the test that asked first.
	ctx := context.Background()
	chosen, err := stack.LineCalled(*line)
	if err != nil {
		return err
	}
	if w.dir = *keep; w.dir == "" {
		if w.dir, err = os.MkdirTemp("", "flux-verify-gate-e2e-"); err != nil {
			return err
		}
	}
	if w.gate = *prebuilt; w.gate == "" {
		w.gate = filepath.Join(w.dir, "flux-verify-gate")
		if err := actiontest.Build(ctx, w.gate, true); err != nil {
			return err
		}
	}
	w.stack, err = stack.Start(ctx, stack.Options{Dir: w.dir, Line: chosen, Logf: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	}})
	if err != nil {
		return err
	}
	for name, key := range map[string]*cosigncli.Key{"ours": &w.ours, "theirs": &w.theirs} {
		if *key, err = w.stack.Sigstore.GenerateKey(ctx, w.stack.Path("keys"), name); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) stop(failed bool) error {
	var err error
	if w.stack != nil {
		err = w.stack.Stop()
	}
	switch {
	case w.dir == "" || w.dir == *keep:
		return err
	case failed || err != nil:
		fmt.Fprintf(os.Stderr, "the stack's files and logs are kept in %s\n", w.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(w.dir))
}
