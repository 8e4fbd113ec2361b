package localsigstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"flux-verify-gate/test/stack/githubtoken"
	"flux-verify-gate/test/stack/port"
	"flux-verify-gate/test/stack/process"
)

// Service is one service of a Sigstore. Its value is the name of its program
// in package build and of its log.
type Service string

// The services.
const (
	Fulcio Service = "fulcio"           // issues certificates
	CTLog  Service = "tesseract"        // logs certificates
	Rekor  Service = "rekor-server"     // logs signatures
	TSA    Service = "timestamp-server" // says what time it is
)

// Services returns all services in the order in which they are started.
func Services() []Service { return []Service{CTLog, TSA, Rekor, Fulcio} }

const (
	readyPoll    = 20 * time.Millisecond
	startTimeout = time.Minute
	// stopGrace is how long a service may finish what it does. The slowest,
	// Rekor, takes well below a second.
	stopGrace = 10 * time.Second
	// ctPrefix is the path of the CT log.
	ctPrefix = "stack"
	// checkpointInterval is how often the logs sign a new head. A signature
	// waits for one of each; this is the shortest that they accept.
	checkpointInterval = "100ms"
)

// service is a service's program and its port.
type service struct {
	program string
	port    *port.Reservation
	inner   *port.Reservation // Rekor's second port, else nil
	process *process.Process  // nil when it is stopped
}

// URL returns the base URL of a service, http://127.0.0.1:port, with the path
// of the log for CTLog and that of the API for TSA. It stays the same when the
// service is restarted. It is empty for a service that there is not.
func (s *Sigstore) URL(name Service) string {
	v, ok := s.services[name]
	if !ok {
		return ""
	}
	url := "http://" + v.port.Address()
	switch name {
	case CTLog:
		return url + "/" + ctPrefix
	case TSA:
		return url + "/api/v1/timestamp"
	default:
		return url
	}
}

// PID returns the process id of a service, and false if it is not running.
func (s *Sigstore) PID(name Service) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.services[name]; ok && v.process != nil {
		return v.process.PID(), true
	}
	return 0, false
}

// StopService ends a service and returns when it is gone: until StartService,
// connections to it are refused. A service that is stopped already is no error.
func (s *Sigstore) StopService(name Service) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopService(name)
}

// StartService starts a stopped service, with the same keys, log and port, and
// returns when it is ready. It is an error if it is running.
func (s *Sigstore) StartService(ctx context.Context, name Service) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.startService(name); err != nil {
		return err
	}
	if err := s.waitReady(ctx, name); err != nil {
		return errors.Join(err, s.stopService(name))
	}
	return nil
}

func (s *Sigstore) startService(name Service) error {
	v, ok := s.services[name]
	switch {
	case !ok:
		return fmt.Errorf("no service of Sigstore is called %q: choose one of %q", name, Services())
	case s.stopped:
		return errors.New("this Sigstore is stopped: start another one")
	case v.process != nil:
		return fmt.Errorf("%s is running already: stop it first", name)
	}
	args, env := s.command(name)
	started, err := process.Start(process.Config{
		Name: string(name), Path: v.program, Args: args, Env: env,
		Dir: s.options.Dir, Log: s.Log(name), Grace: stopGrace,
	})
	if err != nil {
		return err
	}
	v.process = started
	return nil
}

func (s *Sigstore) stopService(name Service) error {
	v, ok := s.services[name]
	if !ok || v.process == nil {
		return nil
	}
	err := v.process.Stop()
	v.process = nil
	return err
}

// command returns the arguments and the environment of a service.
func (s *Sigstore) command(name Service) (args, env []string) {
	v := s.services[name]
	number := strconv.Itoa(v.port.Port())
	switch name {
	case CTLog:
		return []string{
			"-private_key=" + s.path("pki", ctKey),
			// Not the URL's host: TesseraCT takes no origin with a port.
			"-origin=ct.stack.test/" + ctPrefix,
			"-path_prefix=" + ctPrefix,
			"-storage_dir=" + s.path("ct"),
			"-roots_pem_file=" + s.path("pki", fulcioRoot),
			"-http_endpoint=" + v.port.Address(),
			"-checkpoint_interval=" + checkpointInterval,
			"-batch_max_age=10ms",
		}, nil
	case TSA:
		return []string{
			"-port=" + number,
			"-key=" + s.path("pki", tsaKey),
			"-chain=" + s.path("pki", tsaChain),
		}, nil
	case Rekor:
		return []string{
			"serve",
			"--storage-dir=" + s.path("rekor"),
			"--signer-filepath=" + s.path("pki", rekorKey),
			// The log's origin: verifiers take it from the host of its URL.
			"--hostname=127.0.0.1",
			"--http-address=127.0.0.1", "--http-port=" + number,
			"--grpc-address=127.0.0.1", "--grpc-port=" + strconv.Itoa(v.inner.Port()),
			"--http-metrics-port=0",
			"--checkpoint-interval=" + checkpointInterval,
			"--batch-max-age=10ms",
		}, nil
	default: // Fulcio
		return []string{
				"serve", "--config-path=" + s.path("fulcio.yaml"),
				"--ca=fileca",
				"--fileca-cert=" + s.path("pki", fulcioChain),
				"--fileca-key=" + s.path("pki", fulcioKey),
				"--fileca-key-passwd=none", // required, and not used: the key is not encrypted
				"--fileca-watch=false",
				"--ct-log-url=" + s.URL(CTLog),
				"--ct-log-public-key-path=" + s.path("pki", ctPub),
				"--host=127.0.0.1", "--port=" + number,
				"--grpc-host=127.0.0.1", "--grpc-port=0",
				"--metrics-port=0",
				"--legacy-unix-domain-socket=" + legacySocket(number),
			}, []string{
				"SSL_CERT_FILE=" + s.endpoint.CAFile(),
				"HTTPS_PROXY=" + s.endpoint.ProxyURL(),
				"NO_PROXY=", "no_proxy=",
			}
	}
}

// legacySocket returns the address of the socket that Fulcio talks to itself
// through. It must be short, and differ between two Fulcios: by the port.
func legacySocket(port string) string {
	if runtime.GOOS == "linux" {
		return "@flux-verify-gate-fulcio-" + port // abstract: leaves no file
	}
	return filepath.Join(os.TempDir(), "fulcio-"+port+".sock")
}

// fulcioConfig says whose tokens Fulcio accepts.
func fulcioConfig() []byte {
	return fmt.Appendf(nil, `oidc-issuers:
  %[1]s:
    issuer-url: %[1]s
    client-id: %[3]s
    type: github-workflow
  %[2]s:
    issuer-url: %[2]s
    client-id: %[3]s
    type: email
meta-issuers:
  %[1]s/*:
    client-id: %[3]s
    type: github-workflow
`, githubtoken.Issuer, githubtoken.EmailIssuer, githubtoken.DefaultAudience)
}

// readyURL is answered with 200 when the service is ready.
func (s *Sigstore) readyURL(name Service) string {
	base := "http://" + s.services[name].port.Address()
	switch name {
	case CTLog:
		return base + "/" + ctPrefix + "/ct/v1/get-roots"
	case TSA:
		return base + "/ping"
	default:
		return base + "/healthz"
	}
}

// waitReady returns when a started service is ready, or has ended, or the time
// is over.
func (s *Sigstore) waitReady(ctx context.Context, name Service) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	running := s.services[name].process
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := get(ctx, client, s.readyURL(name))
		if err == nil {
			return nil
		}
		select {
		case <-running.Done():
			return running.Failure()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last answer: %w; log: %s)", name, ctx.Err(), err, s.Log(name))
		case <-tick.C:
		}
	}
}

// get returns an error unless url answers with 200.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}
