package live

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/clustertest"
	"flux-verify-gate/test/stack/crd"
)

var (
	// steady is the cluster that most tests share; they leave it running.
	steady clustertest.Shared
	// programs is where the gate's binary is built.
	programs string

	prebuilt = flag.String("gate", "", "test this binary instead of building one")
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	flag.Parse()
	// The tests wait for minutes that rules prescribe, nearly idle: they wait
	// together unless somebody asks for something else.
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		if err := flag.Set("test.parallel", "100"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	var err error
	if programs, err = os.MkdirTemp("", "flux-verify-gate-live-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(programs)
	return steady.Main(m)
}

// binary builds the gate once, with the race detector.
var binary = sync.OnceValues(func() (string, error) {
	if *prebuilt != "" {
		return *prebuilt, nil
	}
	path := filepath.Join(programs, "flux-verify-gate")
	return path, actiontest.Build(context.Background(), path, true)
})

// startGate starts that binary.
func startGate(t *testing.T, inputs map[string]string, env ...string) *actiontest.Process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return actiontest.Start(t, path, inputs, env...)
}

var install sync.Once

// steadyCluster has the OCIRepository of the newest release.
func steadyCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	c := steady.Get(t)
	install.Do(func() { define(t, c, crd.Flux29(), "") })
	return c
}

// define installs the release's OCIRepository, with one version switched on if
// only is not empty.
func define(t *testing.T, c *cluster.Cluster, release crd.Release, only string) {
	t.Helper()
	definition, err := release.OCIRepository(t.Context())
	if err == nil && only != "" {
		definition, err = crd.ServeOnly(definition, only)
	}
	if err == nil {
		_, err = c.Apply(t.Context(), "flux", strings.NewReader(string(definition)))
	}
	if err != nil {
		t.Fatal(err)
	}
}
