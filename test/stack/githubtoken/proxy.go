package githubtoken

import (
	"bufio"
	"net"
	"net/http"
	"sync"
)

// handoff is a listener whose connections come from the proxy instead of from
// a port of its own.
type handoff struct {
	address net.Addr
	conns   chan net.Conn
	done    chan struct{}
	close   sync.Once
}

func newHandoff(address net.Addr) *handoff {
	return &handoff{address: address, conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept waits for the next connection.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (h *handoff) Close() error {
	h.close.Do(func() { close(h.done) })
	return nil
}

// Addr returns the proxy's address.
func (h *handoff) Addr() net.Addr { return h.address }

// pass gives conn to Accept, and closes it if nobody accepts any more.
func (h *handoff) pass(conn net.Conn) {
	select {
	case h.conns <- conn:
	case <-h.done:
		conn.Close()
	}
}

// serveConnect connects the client with the issuers' TLS server, if it asks for
// one of them. TLS then selects the issuer.
func (e *Endpoint) serveConnect(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	if _, ok := e.issuers[host]; err != nil || !ok || port != "443" {
		http.Error(w, "this proxy knows the issuers of identity tokens only", http.StatusForbidden)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, err = buffered.WriteString("HTTP/1.1 200 Connection established\r\n\r\n")
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil { // the client is gone
		conn.Close()
		return
	}
	e.tunnels.pass(tunnel{Conn: conn, reader: buffered.Reader})
}

// tunnel is a connection whose first bytes the HTTP server may have read.
type tunnel struct {
	net.Conn
	reader *bufio.Reader
}

// Read reads what was read already, then from the connection.
func (t tunnel) Read(p []byte) (int, error) { return t.reader.Read(p) }
