package port

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReserve(t *testing.T) {
	t.Parallel()
	r, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", r.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial a reserved port: got %v, want connection refused", err)
	}
	if l, err := net.Listen("tcp", r.Address()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listen without sharing: got %v, %v, want address in use", l, err)
	}

	sharing := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) {
			set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, set)
	}}
	// Twice: the reservation lasts over a restart of its program.
	for range 2 {
		l, err := sharing.Listen(context.Background(), "tcp", r.Address())
		if err != nil {
			t.Fatalf("listen with sharing: %v", err)
		}
		c, err := net.Dial("tcp", r.Address())
		if err != nil {
			t.Fatalf("dial the program: %v", err)
		}
		c.Close()
		l.Close()
	}
	if err := r.Release(); err != nil {
		t.Fatal(err)
	}
	var none *Reservation
	if err := none.Release(); err != nil {
		t.Errorf("release nothing: %v", err)
	}
}
