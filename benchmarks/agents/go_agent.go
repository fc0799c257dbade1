// The Go SDK's agent, written as its example/agent writes one: an acp.Agent and NewAgentSideConnection.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"
)

const (
	file    = "/bench/file.txt"
	pattern = "the quick brown fox jumps over the lazy dog "
)

func text(length int) string {
	return strings.Repeat(pattern, length/len(pattern)+1)[:length]
}

var (
	oldText  = text(1024)
	newText  = strings.ToUpper(oldText)
	toolText = text(40)
)

type figures struct {
	mu    sync.Mutex
	begun time.Time
	n     int
	times []time.Duration
}

// bench has latencies for requests only: timing each send would cost more than sending.
func (f *figures) bench() map[string]any {
	elapsed := time.Since(f.begun)
	sort.Slice(f.times, func(i, j int) bool { return f.times[i] < f.times[j] })
	rank := func(share float64) any {
		if len(f.times) == 0 {
			return nil
		}
		place := min(len(f.times)-1, int(share*float64(len(f.times))))
		return float64(f.times[place].Nanoseconds()) / 1e3
	}
	return map[string]any{
		"ms":     float64(elapsed.Nanoseconds()) / 1e6,
		"n":      f.n,
		"perSec": float64(f.n) / elapsed.Seconds(),
		"p50us":  rank(0.5),
		"p99us":  rank(0.99),
	}
}

type benchAgent struct {
	conn     *acp.AgentSideConnection
	mu       sync.Mutex
	sessions map[acp.SessionId]time.Time
}

var _ acp.Agent = (*benchAgent)(nil)

func (a *benchAgent) Initialize(_ context.Context, _ acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber}, nil
}

func (a *benchAgent) NewSession(_ context.Context, _ acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	var b [12]byte
	if _, err := io.ReadFull(rand.Reader, b[:]); err != nil {
		return acp.NewSessionResponse{}, err
	}
	id := acp.SessionId("sess_" + hex.EncodeToString(b[:]))
	a.mu.Lock()
	a.sessions[id] = time.Now()
	a.mu.Unlock()
	return acp.NewSessionResponse{SessionId: id}, nil
}

// Cancel has nothing to do: the SDK cancels the context of the session's prompt.
func (a *benchAgent) Cancel(context.Context, acp.CancelNotification) error { return nil }

func (a *benchAgent) Prompt(ctx context.Context, params acp.PromptRequest) (acp.PromptResponse, error) {
	turn := &turn{agent: a, session: params.SessionId, figures: figures{begun: time.Now()}}
	stopReason, err := turn.run(ctx, params.Prompt[0].Text.Text)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	meta := map[string]any{"bench": turn.figures.bench()}
	return acp.PromptResponse{StopReason: stopReason, Meta: meta}, nil
}

type turn struct {
	agent   *benchAgent
	session acp.SessionId
	figures figures
}

func (t *turn) run(ctx context.Context, sent string) (acp.StopReason, error) {
	var words []string
	if len(sent) <= 1000 {
		words = strings.Fields(sent)
	}
	verb := ""
	if len(words) > 0 {
		verb, words = words[0], words[1:]
	}
	number := func(place, otherwise int) int {
		if place < len(words) {
			if value, err := strconv.Atoi(words[place]); err == nil {
				return value
			}
		}
		return otherwise
	}
	switch verb {
	case "stream":
		// SessionUpdate returns when the bytes are written, so `nowait` has nothing it could leave out.
		words := text(number(1, 40))
		for range number(0, 0) {
			if err := t.update(ctx, acp.UpdateAgentMessageText(words)); err != nil {
				return "", err
			}
		}
	case "tools":
		if err := t.tools(ctx, number(0, 0)); err != nil {
			return "", err
		}
	case "read":
		return acp.StopReasonEndTurn, t.read(ctx, number(0, 0), 1)
	case "conc":
		return acp.StopReasonEndTurn, t.read(ctx, number(0, 0), number(1, 1))
	case "big":
		return acp.StopReasonEndTurn, t.update(ctx, acp.UpdateAgentMessageText(text(number(0, 0))))
	case "wait":
		<-ctx.Done()
		return acp.StopReasonCancelled, nil
	case "permission":
		return acp.StopReasonEndTurn, t.permission(ctx)
	case "fail":
		data := map[string]any{"command": "fail"}
		return "", &acp.RequestError{Code: number(0, 0), Message: strings.Join(words[1:], " "), Data: data}
	case "throw":
		return "", errors.New(strings.Join(words, " "))
	default:
		return acp.StopReasonEndTurn, t.update(ctx, acp.UpdateAgentMessageText("echo:"+sent))
	}
	return acp.StopReasonEndTurn, nil
}

func (t *turn) update(ctx context.Context, update acp.SessionUpdate) error {
	t.figures.n++
	return t.agent.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: t.session, Update: update})
}

func (t *turn) tools(ctx context.Context, count int) error {
	for index := range count {
		id := acp.ToolCallId("call_" + strconv.Itoa(index))
		begun := acp.StartToolCall(id, "Edit a file",
			acp.WithStartKind(acp.ToolKindEdit),
			acp.WithStartStatus(acp.ToolCallStatusInProgress),
			acp.WithStartContent([]acp.ToolCallContent{acp.ToolDiffContent(file, newText, oldText)}))
		if err := t.update(ctx, begun); err != nil {
			return err
		}
		done := acp.UpdateToolCall(id,
			acp.WithUpdateStatus(acp.ToolCallStatusCompleted),
			acp.WithUpdateContent([]acp.ToolCallContent{acp.ToolContent(acp.TextBlock(toolText))}))
		if err := t.update(ctx, done); err != nil {
			return err
		}
	}
	return nil
}

func (t *turn) read(ctx context.Context, count, inFlight int) error {
	var left atomic.Int64
	left.Store(int64(count))
	failures := make(chan error, inFlight)
	for range inFlight {
		go func() {
			var times []time.Duration
			for left.Add(-1) >= 0 {
				begun := time.Now()
				request := acp.ReadTextFileRequest{SessionId: t.session, Path: file}
				if _, err := t.agent.conn.ReadTextFile(ctx, request); err != nil {
					failures <- err
					return
				}
				times = append(times, time.Since(begun))
			}
			t.figures.mu.Lock()
			t.figures.times = append(t.figures.times, times...)
			t.figures.n = len(t.figures.times)
			t.figures.mu.Unlock()
			failures <- nil
		}()
	}
	var failure error
	for range inFlight {
		failure = errors.Join(failure, <-failures)
	}
	return failure
}

func (t *turn) permission(ctx context.Context) error {
	answer, err := t.agent.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: t.session,
		ToolCall:  acp.ToolCallUpdate{ToolCallId: "call_0", Title: acp.Ptr("Edit a file")},
		Options: []acp.PermissionOption{
			{OptionId: "allow", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionId: "reject", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		},
	})
	if err != nil {
		return err
	}
	words := "cancelled"
	if answer.Outcome.Selected != nil {
		words = "selected " + string(answer.Outcome.Selected.OptionId)
	}
	return t.update(ctx, acp.UpdateAgentMessageText(words))
}

func (a *benchAgent) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, nil
}

func (a *benchAgent) Logout(context.Context, acp.LogoutRequest) (acp.LogoutResponse, error) {
	return acp.LogoutResponse{}, acp.NewMethodNotFound(acp.AgentMethodLogout)
}

func (a *benchAgent) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	return acp.CloseSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionClose)
}

func (a *benchAgent) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionList)
}

func (a *benchAgent) ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionResume)
}

func (a *benchAgent) SetSessionConfigOption(
	context.Context, acp.SetSessionConfigOptionRequest,
) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
}

func (a *benchAgent) SetSessionMode(context.Context, acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	return acp.SetSessionModeResponse{}, nil
}

func main() {
	agent := &benchAgent{sessions: make(map[acp.SessionId]time.Time)}
	agent.conn = acp.NewAgentSideConnection(agent, os.Stdout, os.Stdin)
	agent.conn.SetLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	<-agent.conn.Done()
}
