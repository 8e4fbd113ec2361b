package port

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports of Free lie below those that Linux gives to outgoing connections
// (32768 and up), so that no client takes one while its program restarts.
const (
	firstFree = 12000
	lastFree  = 32000
)

var given sync.Map // ports that Free has returned in this process

// Free returns a port of 127.0.0.1 that nobody listens on, for programs that
// cannot share a Reservation's. It is not held: another process may take it.
// No port is returned twice.
func Free() (int, error) {
	for range 200 {
		port := firstFree + rand.IntN(lastFree-firstFree)
		if _, again := given.LoadOrStore(port, true); again {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("cannot let a loopback port go: %w", err)
		}
		return port, nil
	}
	return 0, errors.New("no free loopback port was found in 200 tries")
}

// FreeAddress is Free as 127.0.0.1:port.
func FreeAddress() (string, error) {
	port, err := Free()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}
