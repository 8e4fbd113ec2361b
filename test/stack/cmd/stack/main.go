// Command stack builds the programs of the test stack, says where they are, and
// runs all of it.
//
//	go -C test/stack run ./cmd/stack build [-nice N] NAME... | core | all
//	go -C test/stack run ./cmd/stack list
//	go -C test/stack run ./cmd/stack up -dir DIRECTORY [-line VERSION] [-detach]
//	go -C test/stack run ./cmd/stack down -dir DIRECTORY
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"flux-verify-gate/test/stack"
	"flux-verify-gate/test/stack/build"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}

const usage = `usage: stack build [-nice N] NAME... | core | all
       stack list
       stack up -dir DIRECTORY [-line VERSION] [-detach]
       stack down -dir DIRECTORY`

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	b, err := build.New(func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) })
	if err != nil {
		return err
	}
	switch {
	case len(args) > 1 && args[0] == "up":
		return up(ctx, b, args[1:], stdout, stderr)
	case len(args) > 1 && args[0] == "down":
		return down(ctx, args[1:], stdout, stderr)
	case len(args) == 1 && args[0] == "list":
		return list(ctx, b, stdout)
	case len(args) > 1 && args[0] == "build":
		return buildAll(ctx, b, args[1:], stdout, stderr)
	}
	return errors.New(usage)
}

// buildAll builds the named components one after the other and prints their
// paths, one a line. The name core stands for what the tests in CI need.
func buildAll(ctx context.Context, b *build.Builder, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&b.Nice, "nice", 0, "add `N` to the niceness of the builds")
	if err := flags.Parse(args); err != nil {
		return err
	}
	names := flags.Args()
	switch {
	case len(names) == 1 && names[0] == "core":
		// The core scenarios run distribution too, and the test of up kubectl.
		names = append(stack.Lines()[0].Components(), "distribution", "kubectl")
	case len(names) == 1 && names[0] == "all":
		names = nil
		for _, c := range build.Components() {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return errors.New(usage)
	}
	for _, name := range names {
		path, err := b.Binary(ctx, name)
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, path)
	}
	return nil
}

// list prints one line for each component: its name, whether the cache holds
// it, and what its build took.
func list(ctx context.Context, b *build.Builder, stdout io.Writer) error {
	for _, c := range build.Components() {
		path, ok, err := b.Cached(ctx, c.Name)
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintf(stdout, "%-22s not built\n", c.Name)
			continue
		}
		r, err := build.ReadRecord(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%-22s %6.1f MB %6.0f s %6.0f CPU s  %s\n", c.Name, float64(r.Bytes)/1e6, r.Seconds, r.CPUSeconds, path)
	}
	return nil
}
