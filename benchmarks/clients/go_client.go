// The Go SDK's client, written as its example/client writes one: an acp.Client and NewClientSideConnection.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"
)

const (
	cancelAfter = 50 * time.Millisecond
	patience    = 20 * time.Second
	pattern     = "the quick brown fox jumps over the lazy dog "
)

func text(length int) string {
	return strings.Repeat(pattern, length/len(pattern)+1)[:length]
}

var fileText = strings.Repeat(text(63)+"\n", 16)

type benchClient struct {
	seen atomic.Int64
}

var _ acp.Client = (*benchClient)(nil)

func (c *benchClient) SessionUpdate(context.Context, acp.SessionNotification) error {
	c.seen.Add(1)
	return nil
}

func (c *benchClient) ReadTextFile(context.Context, acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	return acp.ReadTextFileResponse{Content: fileText}, nil
}

func (c *benchClient) RequestPermission(
	_ context.Context, params acp.RequestPermissionRequest,
) (acp.RequestPermissionResponse, error) {
	outcome := acp.RequestPermissionOutcome{Cancelled: &acp.RequestPermissionOutcomeCancelled{}}
	for _, option := range params.Options {
		if option.Kind == acp.PermissionOptionKindAllowOnce {
			selected := &acp.RequestPermissionOutcomeSelected{OptionId: option.OptionId}
			outcome = acp.RequestPermissionOutcome{Selected: selected}
		}
	}
	return acp.RequestPermissionResponse{Outcome: outcome}, nil
}

func (c *benchClient) WriteTextFile(context.Context, acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	return acp.WriteTextFileResponse{}, acp.NewMethodNotFound(acp.ClientMethodFsWriteTextFile)
}

func (c *benchClient) CreateTerminal(context.Context, acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	return acp.CreateTerminalResponse{}, acp.NewMethodNotFound(acp.ClientMethodTerminalCreate)
}

func (c *benchClient) KillTerminal(context.Context, acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	return acp.KillTerminalResponse{}, acp.NewMethodNotFound(acp.ClientMethodTerminalKill)
}

func (c *benchClient) TerminalOutput(context.Context, acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	return acp.TerminalOutputResponse{}, acp.NewMethodNotFound(acp.ClientMethodTerminalOutput)
}

func (c *benchClient) ReleaseTerminal(
	context.Context, acp.ReleaseTerminalRequest,
) (acp.ReleaseTerminalResponse, error) {
	return acp.ReleaseTerminalResponse{}, acp.NewMethodNotFound(acp.ClientMethodTerminalRelease)
}

func (c *benchClient) WaitForTerminalExit(
	context.Context, acp.WaitForTerminalExitRequest,
) (acp.WaitForTerminalExitResponse, error) {
	return acp.WaitForTerminalExitResponse{}, acp.NewMethodNotFound(acp.ClientMethodTerminalWaitForExit)
}

// command is a prompt's first word and the others.
type command struct {
	prompt string
	verb   string
	words  []string
}

func parse(prompt string) command {
	words := strings.Fields(prompt)
	if len(words) == 0 {
		return command{prompt: prompt}
	}
	return command{prompt: prompt, verb: words[0], words: words[1:]}
}

func (c command) number() int {
	if len(c.words) == 0 {
		return 0
	}
	value, _ := strconv.Atoi(c.words[0])
	return value
}

func (c command) expectedUpdates() int {
	switch c.verb {
	case "stream":
		return c.number()
	case "tools":
		return 2 * c.number()
	case "read", "conc", "wait", "fail", "throw", "sessions":
		return 0
	default:
		return 1
	}
}

func (c command) asPromised(stopReason acp.StopReason, updates int, refused *acp.RequestError) bool {
	switch c.verb {
	case "fail":
		return refused != nil && refused.Code == c.number() && refused.Message == strings.Join(c.words[1:], " ")
	case "throw":
		return refused != nil
	}
	reason := acp.StopReasonEndTurn
	if c.verb == "wait" {
		reason = acp.StopReasonCancelled
	}
	return refused == nil && stopReason == reason && updates == c.expectedUpdates()
}

type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type line struct {
	Prompt     string          `json:"prompt"`
	Ms         float64         `json:"ms"`
	Updates    int             `json:"updates"`
	PerSec     float64         `json:"perSec"`
	P50us      any             `json:"p50us"`
	P99us      any             `json:"p99us"`
	StopReason *acp.StopReason `json:"stopReason"`
	Bench      map[string]any  `json:"bench"`
	Error      *refusal        `json:"error"`
	Memory     any             `json:"memory,omitempty"`
	StartMs    float64         `json:"startMs"`
	Ok         bool            `json:"ok"`
}

func (l line) show(asJSON bool) {
	if asJSON {
		encoded, _ := json.Marshal(l)
		fmt.Println(string(encoded))
		return
	}
	ended := ""
	if l.Error != nil {
		ended = l.Error.Message
	} else if l.StopReason != nil {
		ended = string(*l.StopReason)
	}
	fmt.Printf("%s: %.1f ms, %.0f/s, %s, ok: %t\n", l.Prompt, l.Ms, l.PerSec, ended, l.Ok)
}

type bench struct {
	client  *benchClient
	conn    *acp.ClientSideConnection
	pid     int
	session acp.SessionId
}

func (b *bench) open(ctx context.Context) (acp.SessionId, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	created, err := b.conn.NewSession(ctx, acp.NewSessionRequest{Cwd: directory, McpServers: []acp.McpServer{}})
	return created.SessionId, err
}

func (b *bench) onePrompt(ctx context.Context, prompt string) (line, error) {
	command := parse(prompt)
	sent := prompt
	if command.verb == "echo" {
		// `echo BYTES` stands for a text too long for a command line; the agent sends it back.
		sent = text(command.number())
	}
	expected := command.expectedUpdates()
	b.client.seen.Store(0)
	begun := time.Now()
	if command.verb == "wait" {
		go func() {
			time.Sleep(cancelAfter)
			_ = b.conn.Cancel(ctx, acp.CancelNotification{SessionId: b.session})
		}()
	}
	request := acp.PromptRequest{SessionId: b.session, Prompt: []acp.ContentBlock{acp.TextBlock(sent)}}
	response, err := b.conn.Prompt(ctx, request)
	var refused *acp.RequestError
	if err != nil && !errors.As(err, &refused) {
		return line{}, err
	}
	for err == nil && int(b.client.seen.Load()) < expected && time.Since(begun) < patience {
		time.Sleep(50 * time.Microsecond)
	}
	elapsed := time.Since(begun)
	updates := int(b.client.seen.Load())
	counted := updates
	if command.verb == "read" || command.verb == "conc" {
		counted = command.number()
	}
	shown := line{
		Prompt:  prompt,
		Ms:      float64(elapsed.Nanoseconds()) / 1e6,
		Updates: updates,
		PerSec:  float64(counted) / elapsed.Seconds(),
		Ok:      command.asPromised(response.StopReason, updates, refused),
	}
	if refused != nil {
		shown.Error = &refusal{refused.Code, refused.Message}
		return shown, nil
	}
	shown.StopReason = &response.StopReason
	if figures, ok := response.Meta["bench"].(map[string]any); ok {
		// Only the side that asks can time a round trip, so these are the agent's.
		shown.Bench, shown.P50us, shown.P99us = figures, figures["p50us"], figures["p99us"]
	}
	return shown, nil
}

// resident tells a process's memory in KiB; nil where the system does not.
func resident(pid string) map[string]int {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return nil
	}
	names := map[string]string{"VmRSS:": "now", "VmHWM:": "peak"}
	found := map[string]int{}
	for _, row := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(row); len(fields) > 1 && names[fields[0]] != "" {
			found[names[fields[0]]], _ = strconv.Atoi(fields[1])
		}
	}
	return found
}

func (b *bench) weigh() map[string]any {
	return map[string]any{"agent": resident(strconv.Itoa(b.pid)), "client": resident("self")}
}

func (b *bench) manySessions(ctx context.Context, prompt string) (line, error) {
	count := parse(prompt).number()
	before := b.weigh()
	begun := time.Now()
	opened := make(map[acp.SessionId]bool, count)
	for range count {
		session, err := b.open(ctx)
		if err != nil {
			return line{}, err
		}
		opened[session] = true
	}
	elapsed := time.Since(begun)
	return line{
		Prompt: prompt,
		Ms:     float64(elapsed.Nanoseconds()) / 1e6,
		PerSec: float64(count) / elapsed.Seconds(),
		Memory: map[string]any{"before": before, "after": b.weigh()},
		Ok:     len(opened) == count,
	}, nil
}

func run(ctx context.Context, prompts []string, asJSON bool, agent []string) (bool, error) {
	begun := time.Now()
	cmd := exec.CommandContext(ctx, agent[0], agent[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	defer func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}()

	b := &bench{client: &benchClient{}, pid: cmd.Process.Pid}
	b.conn = acp.NewClientSideConnection(b.client, stdin, stdout)
	b.conn.SetLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if _, err = b.conn.Initialize(ctx, acp.InitializeRequest{
		ProtocolVersion:    acp.ProtocolVersionNumber,
		ClientCapabilities: acp.ClientCapabilities{Fs: acp.FileSystemCapabilities{ReadTextFile: true}},
	}); err != nil {
		return false, err
	}
	startMs := float64(time.Since(begun).Nanoseconds()) / 1e6
	if b.session, err = b.open(ctx); err != nil {
		return false, err
	}
	sound := true
	for _, prompt := range prompts {
		measure := b.onePrompt
		if parse(prompt).verb == "sessions" {
			measure = b.manySessions
		}
		shown, err := measure(ctx, prompt)
		if err != nil {
			return false, err
		}
		select {
		case <-b.conn.Done():
			return false, errors.New("the link was closed during: " + prompt)
		default:
		}
		shown.StartMs = startMs
		shown.show(asJSON)
		sound = sound && shown.Ok
	}
	return sound, nil
}

func main() {
	split := slices.Index(os.Args, "--")
	if split < 2 || split == len(os.Args)-1 {
		fmt.Fprintln(os.Stderr, "usage: client [--json] PROMPT [PROMPT ...] -- AGENT [ARGUMENT ...]")
		os.Exit(2)
	}
	prompts := slices.DeleteFunc(slices.Clone(os.Args[1:split]), func(flag string) bool { return flag == "--json" })
	asJSON := slices.Contains(os.Args[1:split], "--json")
	sound, err := run(context.Background(), prompts, asJSON, os.Args[split+1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !sound {
		os.Exit(1)
	}
}
