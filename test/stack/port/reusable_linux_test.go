package port

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestReserveReusable(t *testing.T) {
	t.Parallel()
	r, err := ReserveReusable()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	// Twice: the reservation lasts over a restart of its program.
	for range 2 {
		if _, err := net.Dial("tcp", r.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial a reserved port: got %v, want connection refused", err)
		}
		l, err := net.Listen("tcp", r.Address())
		if err != nil {
			t.Fatalf("listen on a reserved port: %v", err)
		}
		if second, err := net.Listen("tcp", r.Address()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("listen beside the program: got %v, %v, want address in use", second, err)
		}
		c, err := net.Dial("tcp", r.Address())
		if err != nil {
			t.Fatalf("dial the program: %v", err)
		}
		c.Close()
		l.Close()
	}
}
