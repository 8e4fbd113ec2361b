// Command flux-verify-gate reads a deployed Flux OCIRepository back and says
// whether its signature policy is live, exact, and was applied to what is being
// served. See README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"flux-verify-gate/gate/action"
)

// version is set by the linker when a release is built.
var version = "dev"

func main() {
	// The runner cancels a step with SIGINT and, 7.5 s later, SIGTERM.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := action.Command{
		Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, Version: version,
	}.Run(ctx)
	stop()
	os.Exit(status)
}
