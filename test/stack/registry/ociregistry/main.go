// Command ociregistry serves an empty OCI registry over plain HTTP on a
// loopback address: go-containerregistry's, with or without the referrers API
// of OCI 1.1. It keeps everything in memory. The address may be one that a
// reservation holds (package port of the stack).
//
//	ociregistry -address 127.0.0.1:5000 [-referrers=false]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/sys/unix"
)

func main() {
	address := flag.String("address", "127.0.0.1:0", "listen on `host:port`")
	referrers := flag.Bool("referrers", true, "serve the referrers API")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := serve(ctx, *address, *referrers)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ociregistry:", err)
		os.Exit(1)
	}
}

// serve serves until the context ends.
func serve(ctx context.Context, address string, referrers bool) error {
	listen := net.ListenConfig{Control: reusePort}
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	logger := log.New(os.Stderr, "", log.LstdFlags|log.Lmicroseconds)
	logger.Printf("listening on %s, referrers API %t", listener.Addr(), referrers)
	server := &http.Server{
		Handler:           registry.New(registry.WithReferrersSupport(referrers), registry.Logger(logger)),
		ReadHeaderTimeout: 10 * time.Second,
	}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// reusePort lets the listener share the port with its reservation.
func reusePort(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, set)
}
