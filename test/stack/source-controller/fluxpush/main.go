// Command fluxpush pushes a directory to a registry over plain HTTP as an OCI
// artifact, as `flux push artifact` does and by the same library, and prints
// the artifact's repository@digest.
//
//	fluxpush -source URL -revision REVISION HOST/REPOSITORY:TAG DIRECTORY
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fluxcd/pkg/oci"
	"github.com/google/go-containerregistry/pkg/crane"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fluxpush:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	source := flag.String("source", "https://github.com/acme/platform", "the artifact's source `URL`")
	revision := flag.String("revision", "", "the artifact's `revision`, such as main@sha1:<40 hex digits>")
	flag.Parse()
	if flag.NArg() != 2 {
		return errors.New("expected HOST/REPOSITORY:TAG and DIRECTORY")
	}
	client := oci.NewClient(append(oci.DefaultOptions(), crane.Insecure, crane.WithContext(ctx)))
	url, err := client.Push(ctx, flag.Arg(0), flag.Arg(1), oci.WithPushMetadata(oci.Metadata{Source: *source, Revision: *revision}))
	if err != nil {
		return fmt.Errorf("cannot push %s: %w", flag.Arg(1), err)
	}
	fmt.Println(url)
	return nil
}
