// Package port gives programs of the stack ports of the loopback interface that
// nobody else takes in the meantime.
//
// A port that was found free and let go can be taken, by another test or by an
// outgoing connection, before the program listens on it, and again while the
// program is restarted. So the port stays bound, without listening, for the
// whole time. The program shares it: it must set SO_REUSEPORT (etcd's
// --socket-reuse-port, kube-apiserver's --permit-port-sharing). As long as it
// does not listen, connections are refused.
//
// On Linux, ReserveReusable holds a port in the same way for a program that
// sets SO_REUSEADDR only, as every Go program does that calls net.Listen.
package port

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Reservation is one TCP port of 127.0.0.1 that is held until Release.
type Reservation struct {
	file *os.File
	port int
}

// Reserve holds a free port for a program that sets SO_REUSEPORT.
func Reserve() (*Reservation, error) { return reserve(unix.SO_REUSEPORT) }

// ReserveReusable holds a free port for a program that sets SO_REUSEADDR. Linux
// lets such a program listen on a bound port on which nobody listens, and gives
// the port to nobody who asks for any free one. A second program cannot listen
// on it beside the first. Other systems refuse the program.
func ReserveReusable() (*Reservation, error) { return reserve(unix.SO_REUSEADDR) }

// reserve binds a socket with the option, which its program sets too.
func reserve(option int) (*Reservation, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot make a socket to reserve a port: %w", err)
	}
	unix.CloseOnExec(fd)
	r := &Reservation{file: os.NewFile(uintptr(fd), "port reservation")}
	if err := r.bind(fd, option); err != nil {
		r.file.Close()
		return nil, fmt.Errorf("cannot reserve a loopback port: %w", err)
	}
	return r, nil
}

func (r *Reservation) bind(fd, option int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	v4, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return fmt.Errorf("the socket has a name of type %T, not of IPv4", name)
	}
	r.port = v4.Port
	return nil
}

// Port returns the number of the port.
func (r *Reservation) Port() int { return r.port }

// Address returns 127.0.0.1:port.
func (r *Reservation) Address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port))
}

// Release lets the port go. A nil reservation holds nothing.
func (r *Reservation) Release() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}
