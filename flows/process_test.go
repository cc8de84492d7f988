package flows_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/flows/app"
)

// TestMain is the application where it is started as one, and the tests otherwise.
func TestMain(m *testing.M) {
	if config, ok := os.LookupEnv(app.Variable); ok {
		os.Exit(app.Main(config))
	}
	os.Exit(m.Run())
}

// process is a running application.
type process struct {
	cmd    *exec.Cmd
	addr   string
	stderr bytes.Buffer // complete once ended is closed
	ended  chan struct{}
	client *http.Client
}

// start starts the application, which ends with the test. The test fails if the
// application ends in any other way than by being told to, as it does where it
// has a data race.
func start(t *testing.T, c app.Config) *process {
	t.Helper()
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), app.Variable+"="+string(config))
	p.cmd.Stderr = &p.stderr
	if _, err := p.cmd.StdinPipe(); err != nil { // ends when this process does
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(t) })
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, out)
		_ = p.cmd.Wait() // ProcessState has it
		close(p.ended)
	}()
	if err != nil {
		t.Fatalf("the application says nothing: %v", err)
	}
	p.addr = strings.TrimSpace(line)
	p.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, p.addr)
		},
		MaxIdleConnsPerHost: 64,
	}}
	return p
}

// stop ends the process, by its number, and waits for it.
func (p *process) stop(t *testing.T) {
	if p.client != nil {
		p.client.CloseIdleConnections()
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself: seen below
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		t.Errorf("the application (process %d) does not end", p.cmd.Process.Pid)
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the application (process %d) ended with code %d, and says:\n%s", p.cmd.Process.Pid, code, p.stderr.String())
	}
}

// stats asks the process what it has counted.
func (p *process) stats(ctx context.Context) (app.Stats, error) {
	var s app.Stats
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr+app.StatsPath, nil)
	if err != nil {
		return s, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// site is the application under one name: two processes behind a balancer that
// ends TLS and sends each request to either of them, whoever it is from.
type site struct{ processes [2]*process }

const siteURL = "https://app.test"

// startSite starts both processes, and returns when replicas serve reads of both.
func startSite(t *testing.T, configs [2]app.Config) *site {
	t.Helper()
	s := new(site)
	var starting sync.WaitGroup
	for i := range s.processes {
		s.processes[i] = start(t, configs[i])
	}
	for _, p := range s.processes {
		starting.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for tick := time.NewTicker(20 * time.Millisecond); ; {
				switch stats, err := p.stats(ctx); {
				case err != nil:
					t.Errorf("the application does not serve: %v", err)
					return
				case stats.Ready:
					return
				}
				<-tick.C
			}
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return s
}

// stats is the sum of both processes.
func (s *site) stats(ctx context.Context) (app.Stats, error) {
	sum := app.Stats{Ready: true}
	for _, p := range s.processes {
		stats, err := p.stats(ctx)
		if err != nil {
			return sum, err
		}
		sum = sum.Add(stats)
	}
	return sum, nil
}

// servedBy is the response header in which the balancer says which process it was.
const servedBy = "X-Process"

// RoundTrip sends a request to a random process, or, where it follows a redirect, to
// the one that did not send the redirect.
func (s *site) RoundTrip(req *http.Request) (*http.Response, error) {
	i := rand.IntN(len(s.processes))
	if req.Response != nil {
		if from, err := strconv.Atoi(req.Response.Header.Get(servedBy)); err == nil {
			i = 1 - from
		}
	}
	inner := req.Clone(req.Context())
	inner.URL.Scheme = "http"
	resp, err := s.processes[i].client.Transport.RoundTrip(inner)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", i, err)
	}
	resp.Header.Set(servedBy, strconv.Itoa(i))
	return resp, nil
}
