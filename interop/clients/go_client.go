// The Go SDK's client: takes the steps of a script one by one, and prints what the SDK gave for each.
//
//	client SCRIPT -- AGENT [ARGUMENT ...]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"
)

const (
	patience      = 30 * time.Second
	invalidParams = -32602
	notFound      = -32002
)

type step struct {
	Call         string            `json:"call"`
	Tell         string            `json:"tell"`
	Await        string            `json:"await"`
	AwaitUpdates int               `json:"await_updates"`
	Finish       string            `json:"finish"`
	Aside        string            `json:"aside"`
	CancelAfter  *int              `json:"cancel_after"`
	Params       json.RawMessage   `json:"params"`
	Keep         map[string]string `json:"keep"`
	Answers      struct {
		Permission  string          `json:"permission"`
		Elicitation json.RawMessage `json:"elicitation"`
	} `json:"answers"`
}

type note struct {
	Method string `json:"method"`
	Params any    `json:"params"`
	Result any    `json:"result,omitempty"`
	Error  any    `json:"error,omitempty"`
}

type terminal struct {
	command   *exec.Cmd
	mu        sync.Mutex
	output    []byte
	truncated bool
	limit     *int
	done      chan struct{}
	exitCode  *int
	signal    *string
}

func (t *terminal) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output = append(t.output, data...)
	if t.limit != nil && len(t.output) > *t.limit {
		t.truncated = true
		t.output = t.output[len(t.output)-*t.limit:]
	}
	return len(data), nil
}

// client lends a folder's files and real terminals, answers questions as the script says, and notes everything.
type client struct {
	folder      string
	mu          sync.Mutex
	changed     *sync.Cond
	updates     []any
	asked       []*note
	told        []any
	everSeen    map[string]bool
	permission  string
	elicitation json.RawMessage
	terminals   map[string]*terminal
}

func newClient(folder string) *client {
	c := &client{folder: folder, everSeen: map[string]bool{}, terminals: map[string]*terminal{}}
	c.changed = sync.NewCond(&c.mu)
	c.permission, c.elicitation = "allow_once", json.RawMessage(`{"action":"decline"}`)
	c.clear()
	return c
}

func (c *client) clear() {
	c.updates, c.asked, c.told = []any{}, []*note{}, []any{}
}

func (c *client) until(what string, condition func() bool) error {
	late := false
	timer := time.AfterFunc(patience, func() {
		c.mu.Lock()
		late = true
		c.mu.Unlock()
		c.changed.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !condition() {
		if late {
			return fmt.Errorf("waited too long for %s", what)
		}
		c.changed.Wait()
	}
	return nil
}

// noted remembers a question and its answer.
func noted[P, R any](c *client, method string, params P, answer func(P) (R, error)) (R, error) {
	written := &note{Method: method, Params: params}
	c.mu.Lock()
	c.asked = append(c.asked, written)
	c.mu.Unlock()
	result, err := answer(params)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		written.Error = err.Error()
	} else {
		written.Result = result
	}
	return result, err
}

func (c *client) SessionUpdate(_ context.Context, params acp.SessionNotification) error {
	encoded, err := json.Marshal(params.Update)
	if err != nil {
		return err
	}
	var update map[string]any
	if err := json.Unmarshal(encoded, &update); err != nil {
		return err
	}
	kind, _ := update["sessionUpdate"].(string)
	c.mu.Lock()
	c.updates = append(c.updates, update)
	c.everSeen[kind] = true
	c.mu.Unlock()
	c.changed.Broadcast()
	return nil
}

// Files

func refused(code int, message string) error {
	return &acp.RequestError{Code: code, Message: message}
}

func (c *client) within(path string) error {
	from, err := filepath.Rel(c.folder, path)
	if err != nil || !filepath.IsAbs(path) || from == ".." || strings.HasPrefix(from, "../") {
		return refused(invalidParams, "outside of the folder: "+path)
	}
	return nil
}

func (c *client) ReadTextFile(_ context.Context, params acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	return noted(c, "fs/read_text_file", params, c.read)
}

func (c *client) read(params acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	if err := c.within(params.Path); err != nil {
		return acp.ReadTextFileResponse{}, err
	}
	text, err := os.ReadFile(params.Path)
	if err != nil {
		return acp.ReadTextFileResponse{}, refused(notFound, "no such file: "+params.Path)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if params.Line != nil {
		lines = lines[min(max(*params.Line-1, 0), len(lines)):]
	}
	if params.Limit != nil {
		lines = lines[:min(*params.Limit, len(lines))]
	}
	return acp.ReadTextFileResponse{Content: strings.Join(lines, "")}, nil
}

func (c *client) WriteTextFile(_ context.Context, params acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	return noted(c, "fs/write_text_file", params, func(acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
		if err := c.within(params.Path); err != nil {
			return acp.WriteTextFileResponse{}, err
		}
		if err := os.MkdirAll(filepath.Dir(params.Path), 0o755); err != nil {
			return acp.WriteTextFileResponse{}, err
		}
		return acp.WriteTextFileResponse{}, os.WriteFile(params.Path, []byte(params.Content), 0o644)
	})
}

// Terminals

func (c *client) CreateTerminal(
	_ context.Context, params acp.CreateTerminalRequest,
) (acp.CreateTerminalResponse, error) {
	return noted(c, "terminal/create", params, c.start)
}

func (c *client) start(params acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	command := exec.Command(params.Command, params.Args...)
	command.Dir = c.folder
	if params.Cwd != nil {
		command.Dir = *params.Cwd
	}
	command.Env = os.Environ()
	for _, variable := range params.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	started := &terminal{command: command, limit: params.OutputByteLimit, done: make(chan struct{})}
	command.Stdout, command.Stderr = started, started
	if err := command.Start(); err != nil {
		return acp.CreateTerminalResponse{}, err
	}
	go func() {
		_ = command.Wait()
		if code := command.ProcessState.ExitCode(); code >= 0 {
			started.exitCode = &code
		} else {
			started.signal = acp.Ptr(command.ProcessState.String())
		}
		close(started.done)
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	id := fmt.Sprintf("terminal_%d", len(c.terminals))
	c.terminals[id] = started
	return acp.CreateTerminalResponse{TerminalId: id}, nil
}

func (c *client) terminal(id string) (*terminal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.terminals[id]; found != nil {
		return found, nil
	}
	return nil, refused(notFound, "no such terminal: "+id)
}

func (c *client) TerminalOutput(
	_ context.Context, params acp.TerminalOutputRequest,
) (acp.TerminalOutputResponse, error) {
	return noted(c, "terminal/output", params, func(acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
		found, err := c.terminal(params.TerminalId)
		if err != nil {
			return acp.TerminalOutputResponse{}, err
		}
		found.mu.Lock()
		defer found.mu.Unlock()
		response := acp.TerminalOutputResponse{Output: string(found.output), Truncated: found.truncated}
		select {
		case <-found.done:
			response.ExitStatus = &acp.TerminalExitStatus{ExitCode: found.exitCode, Signal: found.signal}
		default:
		}
		return response, nil
	})
}

func (c *client) WaitForTerminalExit(
	_ context.Context, params acp.WaitForTerminalExitRequest,
) (acp.WaitForTerminalExitResponse, error) {
	wait := func(acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error) {
		found, err := c.terminal(params.TerminalId)
		if err != nil {
			return acp.WaitForTerminalExitResponse{}, err
		}
		<-found.done
		return acp.WaitForTerminalExitResponse{ExitCode: found.exitCode, Signal: found.signal}, nil
	}
	return noted(c, "terminal/wait_for_exit", params, wait)
}

func (c *client) KillTerminal(_ context.Context, params acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	return noted(c, "terminal/kill", params, func(acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
		found, err := c.terminal(params.TerminalId)
		if err == nil {
			_ = found.command.Process.Kill()
		}
		return acp.KillTerminalResponse{}, err
	})
}

func (c *client) ReleaseTerminal(
	_ context.Context, params acp.ReleaseTerminalRequest,
) (acp.ReleaseTerminalResponse, error) {
	return noted(c, "terminal/release", params, func(acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
		found, err := c.terminal(params.TerminalId)
		if err != nil {
			return acp.ReleaseTerminalResponse{}, err
		}
		_ = found.command.Process.Kill()
		<-found.done
		c.mu.Lock()
		delete(c.terminals, params.TerminalId)
		c.mu.Unlock()
		return acp.ReleaseTerminalResponse{}, nil
	})
}

// Questions

func (c *client) RequestPermission(
	_ context.Context, params acp.RequestPermissionRequest,
) (acp.RequestPermissionResponse, error) {
	choose := func(acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
		for _, option := range params.Options {
			if string(option.Kind) == c.permission {
				return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(option.OptionId)}, nil
			}
		}
		return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
	}
	return noted(c, "session/request_permission", params, choose)
}

func (c *client) UnstableCreateElicitation(
	_ context.Context, params acp.UnstableCreateElicitationRequest,
) (acp.UnstableCreateElicitationResponse, error) {
	answer := func(acp.UnstableCreateElicitationRequest) (acp.UnstableCreateElicitationResponse, error) {
		var response acp.UnstableCreateElicitationResponse
		return response, json.Unmarshal(c.elicitation, &response)
	}
	return noted(c, "elicitation/create", params, answer)
}

func (c *client) UnstableCompleteElicitation(
	_ context.Context, params acp.UnstableCompleteElicitationNotification,
) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, map[string]any{"method": "elicitation/complete", "params": params})
	return nil
}

func (c *client) HandleExtensionMethod(_ context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "_interop.example/echo":
		return noted(c, method, params, func(json.RawMessage) (any, error) { return map[string]any{"echo": params}, nil })
	case "_interop.example/told":
		c.mu.Lock()
		defer c.mu.Unlock()
		c.told = append(c.told, map[string]any{"method": method, "params": params})
		return nil, nil
	}
	return nil, acp.NewMethodNotFound(method)
}

// Steps

// answer is what came back for one request.
type answer struct {
	result any
	err    error
}

type unsupported string

func (u unsupported) Error() string { return string(u) }

// run is the steps of one script, taken one by one.
type run struct {
	client *client
	agent  *acp.ClientSideConnection
	known  map[string]any
	aside  map[string]chan answer
}

// typed sends params through the SDK's own types.
func typed[P, R any](send func(context.Context, P) (R, error), params json.RawMessage) (any, error) {
	var request P
	if err := json.Unmarshal(params, &request); err != nil {
		return nil, err
	}
	return send(context.Background(), request)
}

func (r *run) ask(method string, params json.RawMessage) (any, error) {
	switch method {
	case "initialize":
		return typed(r.agent.Initialize, params)
	case "authenticate":
		return typed(r.agent.Authenticate, params)
	case "logout":
		return typed(r.agent.Logout, params)
	case "session/new":
		return typed(r.agent.NewSession, params)
	case "session/load":
		return typed(r.agent.LoadSession, params)
	case "session/list":
		return typed(r.agent.ListSessions, params)
	case "session/resume":
		return typed(r.agent.ResumeSession, params)
	case "session/fork":
		return typed(r.agent.UnstableForkSession, params)
	case "session/close":
		return typed(r.agent.CloseSession, params)
	case "session/delete":
		return typed(r.agent.UnstableDeleteSession, params)
	case "session/prompt":
		return typed(r.agent.Prompt, params)
	case "session/set_mode":
		return typed(r.agent.SetSessionMode, params)
	case "session/set_config_option":
		return typed(r.agent.SetSessionConfigOption, params)
	}
	if strings.HasPrefix(method, "_") {
		return r.agent.CallExtension(context.Background(), method, params)
	}
	return nil, unsupported("the SDK's client has no " + method)
}

func (r *run) tell(method string, params json.RawMessage) error {
	if method != "session/cancel" {
		return r.agent.NotifyExtension(context.Background(), method, params)
	}
	var notification acp.CancelNotification
	if err := json.Unmarshal(params, &notification); err != nil {
		return err
	}
	return r.agent.Cancel(context.Background(), notification)
}

var place = regexp.MustCompile(`<(\w+)>`)

// filled puts what was kept under a name in place of `<name>`.
func (r *run) filled(params json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		return json.RawMessage("{}")
	}
	return place.ReplaceAllFunc(params, func(found []byte) []byte {
		value, ok := r.known[string(found[1:len(found)-1])].(string)
		if !ok {
			return found
		}
		return []byte(value)
	})
}

func (r *run) take(s step) (any, error) {
	params := r.filled(s.Params)
	seen := func(count int) func() bool { return func() bool { return len(r.client.updates) >= count } }
	switch {
	case s.Tell != "":
		return nil, r.tell(s.Tell, params)
	case s.Await != "":
		return nil, r.client.until(s.Await, func() bool { return r.client.everSeen[s.Await] })
	case s.AwaitUpdates > 0:
		return nil, r.client.until("updates", seen(s.AwaitUpdates))
	case s.Finish != "":
		finished := <-r.aside[s.Finish]
		return finished.result, finished.err
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := r.ask(s.Call, params)
		answered <- answer{result, err}
	}()
	if s.CancelAfter != nil {
		if err := r.client.until("updates", seen(*s.CancelAfter)); err != nil {
			return nil, err
		}
		if err := r.tell("session/cancel", params); err != nil {
			return nil, err
		}
	}
	if s.Aside != "" {
		r.aside[s.Aside] = answered
		return nil, nil
	}
	got := <-answered
	return got.result, got.err
}

func (r *run) step(index int, s step) ([]byte, error) {
	r.client.mu.Lock()
	if s.Answers.Permission != "" {
		r.client.permission = s.Answers.Permission
	}
	if s.Answers.Elicitation != nil {
		r.client.elicitation = s.Answers.Elicitation
	}
	r.client.mu.Unlock()
	result, err := r.take(s)
	line := map[string]any{"step": index, "known": r.known}
	var theirs *acp.RequestError
	var missing unsupported
	switch {
	case errors.As(err, &missing):
		line["unsupported"] = missing.Error()
	case errors.As(err, &theirs):
		line["error"] = theirs
	case err != nil:
		line["error"] = map[string]any{"local": err.Error()}
	case s.Call != "" && s.Aside == "" || s.Finish != "":
		line["result"] = result
	}
	if encoded, err := json.Marshal(result); err == nil {
		var fields map[string]any
		_ = json.Unmarshal(encoded, &fields)
		for name, field := range s.Keep {
			r.known[name] = fields[field]
		}
	}
	r.client.mu.Lock()
	defer r.client.mu.Unlock()
	line["updates"], line["asked"], line["told"] = r.client.updates, r.client.asked, r.client.told
	defer r.client.clear()
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	return buffer.Bytes(), errors.Join(encoder.Encode(line), func() error { _, err := os.Stdout.Write(buffer.Bytes()); return err }())
}

func play(scriptFile string, agent []string) error {
	text, err := os.ReadFile(scriptFile)
	if err != nil {
		return err
	}
	var script struct {
		Folder string         `json:"folder"`
		Known  map[string]any `json:"known"`
		Steps  []step         `json:"steps"`
	}
	if err := json.Unmarshal(text, &script); err != nil {
		return err
	}
	command := exec.Command(agent[0], agent[1:]...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	ours := newClient(script.Folder)
	connection := acp.NewClientSideConnection(ours, stdin, stdout)
	connection.SetLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	known := map[string]any{}
	for name, value := range script.Known {
		known[name] = value
	}
	known["folder"] = script.Folder
	steps := &run{client: ours, agent: connection, known: known, aside: map[string]chan answer{}}
	for index, s := range script.Steps {
		if _, err := steps.step(index, s); err != nil {
			return err
		}
	}
	_ = stdin.Close()
	return command.Wait()
}

func main() {
	if len(os.Args) < 4 || os.Args[2] != "--" {
		fmt.Fprintln(os.Stderr, "usage: client SCRIPT -- AGENT [ARGUMENT ...]")
		os.Exit(2)
	}
	if err := play(os.Args[1], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
