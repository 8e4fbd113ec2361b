// Command timestamp-server serves the time-stamp authority of Sigstore over
// plain HTTP on a loopback address. It is the server of the module
// timestamp-authority, set up as its own main package does, but without the
// metrics: that package serves them on the fixed port 2112, so that two
// authorities cannot run on one machine.
//
//	timestamp-server -port 5000 -key FILE -chain FILE
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/sigstore/timestamp-authority/v2/pkg/log"
	"github.com/sigstore/timestamp-authority/v2/pkg/server"
	"github.com/spf13/viper"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "timestamp-server:", err)
		os.Exit(1)
	}
}

// run serves until a signal to end.
func run() error {
	port := flag.Int("port", 0, "listen on this `port` of 127.0.0.1")
	key := flag.String("key", "", "the `file` of the private key, in PEM")
	chain := flag.String("chain", "", "the `file` of the authority's certificate and those above it, in PEM")
	flag.Parse()
	if *port == 0 || *key == "" || *chain == "" {
		return errors.New("expected -port, -key and -chain")
	}
	log.ConfigureLogger("dev")
	// The names and, where nothing else is said, the defaults of the module's
	// own command (cmd/timestamp-server/app/root.go, v2.0.6).
	viper.Set("timestamp-signer", "file")
	viper.Set("timestamp-signer-hash", "sha256")
	viper.Set("file-signer-key-path", *key)
	viper.Set("certificate-chain-path", *chain)
	viper.Set("enforce-intermediate-eku", true)
	viper.Set("max-request-body-size", uint64(1<<20))
	const timeout = 30 * time.Second
	// It panics if the key or the chain is no good.
	s := server.NewRestAPIServer("127.0.0.1", *port, []string{"http"}, false, timeout, timeout)
	s.CleanupTimeout = time.Second
	s.GracefulTimeout = 5 * time.Second
	if err := s.Serve(); err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}
