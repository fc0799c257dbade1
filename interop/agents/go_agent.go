// The Go SDK's agent for the interop suite. What every agent of the suite does is said in `agents/README.md`.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"
)

const (
	notFound      = -32002
	invalidParams = -32602
	authRequired  = -32000
	page          = 2
)

var (
	modes  = []string{"ask", "code"}
	models = []string{"small", "large"}
)

func refused(code int, format string, values ...any) error {
	return &acp.RequestError{Code: code, Message: fmt.Sprintf(format, values...)}
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// into gives JSON the SDK's own type.
func into[T any](value any) (T, error) {
	var typed T
	encoded, err := json.Marshal(value)
	if err != nil {
		return typed, err
	}
	return typed, json.Unmarshal(encoded, &typed)
}

type session struct {
	id      acp.SessionId
	cwd     string
	mode    string
	model   string
	history []acp.SessionUpdate
	cancel  context.CancelFunc
}

func (s *session) modes() *acp.SessionModeState {
	available := []acp.SessionMode{}
	for _, name := range modes {
		available = append(available, acp.SessionMode{Id: acp.SessionModeId(name), Name: title(name)})
	}
	return &acp.SessionModeState{CurrentModeId: acp.SessionModeId(s.mode), AvailableModes: available}
}

func (s *session) options() []acp.SessionConfigOption {
	values := []any{}
	for _, name := range models {
		values = append(values, map[string]any{"value": name, "name": title(name)})
	}
	options, err := into[[]acp.SessionConfigOption]([]any{map[string]any{
		"id": "model", "name": "Model", "type": "select", "currentValue": s.model, "options": values,
	}})
	if err != nil {
		panic(err)
	}
	return options
}

type interopAgent struct {
	conn     *acp.AgentSideConnection
	mu       sync.Mutex
	sessions map[acp.SessionId]*session
	order    []acp.SessionId
	told     []any
	loggedIn bool
}

func (a *interopAgent) session(id acp.SessionId) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.sessions[id]; found != nil {
		return found, nil
	}
	return nil, refused(notFound, "no such session: %s", id)
}

func (a *interopAgent) create(cwd string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := acp.SessionId(fmt.Sprintf("session_%d", len(a.order)))
	created := &session{id: id, cwd: cwd, mode: modes[0], model: models[0], cancel: func() {}}
	a.sessions[id] = created
	a.order = append(a.order, id)
	return created
}

func (a *interopAgent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return into[acp.InitializeResponse](map[string]any{
		"protocolVersion": 1,
		"agentInfo":       map[string]any{"name": "interop-agent", "version": "1.0.0"},
		"agentCapabilities": map[string]any{
			"loadSession":        true,
			"promptCapabilities": map[string]any{"image": true, "audio": true, "embeddedContext": true},
			"sessionCapabilities": map[string]any{
				"list": map[string]any{}, "resume": map[string]any{}, "close": map[string]any{},
				"delete": map[string]any{}, "fork": map[string]any{},
			},
			"auth": map[string]any{"logout": map[string]any{}},
		},
		"authMethods": []any{map[string]any{"id": "token", "name": "Token"}},
	})
}

func (a *interopAgent) Authenticate(
	_ context.Context, params acp.AuthenticateRequest,
) (acp.AuthenticateResponse, error) {
	if params.MethodId != "token" {
		return acp.AuthenticateResponse{}, refused(invalidParams, "no such method: %s", params.MethodId)
	}
	a.loggedIn = true
	return acp.AuthenticateResponse{}, nil
}

func (a *interopAgent) Logout(context.Context, acp.LogoutRequest) (acp.LogoutResponse, error) {
	a.loggedIn = false
	return acp.LogoutResponse{}, nil
}

func (a *interopAgent) NewSession(_ context.Context, params acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if filepath.Base(params.Cwd) == "private" && !a.loggedIn {
		return acp.NewSessionResponse{}, refused(authRequired, "Authentication required")
	}
	created := a.create(params.Cwd)
	return acp.NewSessionResponse{SessionId: created.id, Modes: created.modes(), ConfigOptions: created.options()}, nil
}

func (a *interopAgent) ListSessions(
	_ context.Context, params acp.ListSessionsRequest,
) (acp.ListSessionsResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	there := []acp.SessionInfo{}
	for _, id := range a.order {
		if found := a.sessions[id]; found != nil && (params.Cwd == nil || *params.Cwd == found.cwd) {
			there = append(there, acp.SessionInfo{SessionId: id, Cwd: found.cwd})
		}
	}
	begin := 0
	if params.Cursor != nil {
		begin, _ = strconv.Atoi(*params.Cursor)
	}
	end := min(begin+page, len(there))
	response := acp.ListSessionsResponse{Sessions: there[min(begin, end):end]}
	if end < len(there) {
		response.NextCursor = acp.Ptr(strconv.Itoa(end))
	}
	return response, nil
}

func (a *interopAgent) LoadSession(
	ctx context.Context, params acp.LoadSessionRequest,
) (acp.LoadSessionResponse, error) {
	found, err := a.session(params.SessionId)
	if err != nil {
		return acp.LoadSessionResponse{}, err
	}
	for _, update := range found.history {
		if err := a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: found.id, Update: update}); err != nil {
			return acp.LoadSessionResponse{}, err
		}
	}
	return acp.LoadSessionResponse{Modes: found.modes(), ConfigOptions: found.options()}, nil
}

func (a *interopAgent) ResumeSession(
	_ context.Context, params acp.ResumeSessionRequest,
) (acp.ResumeSessionResponse, error) {
	found, err := a.session(params.SessionId)
	if err != nil {
		return acp.ResumeSessionResponse{}, err
	}
	return acp.ResumeSessionResponse{Modes: found.modes(), ConfigOptions: found.options()}, nil
}

func (a *interopAgent) UnstableForkSession(
	_ context.Context, params acp.UnstableForkSessionRequest,
) (acp.UnstableForkSessionResponse, error) {
	original, err := a.session(params.SessionId)
	if err != nil {
		return acp.UnstableForkSessionResponse{}, err
	}
	forked := a.create(params.Cwd)
	forked.history = slices.Clone(original.history)
	return into[acp.UnstableForkSessionResponse](map[string]any{"sessionId": forked.id})
}

func (a *interopAgent) CloseSession(
	_ context.Context, params acp.CloseSessionRequest,
) (acp.CloseSessionResponse, error) {
	found, err := a.session(params.SessionId)
	if err == nil {
		found.cancel()
	}
	return acp.CloseSessionResponse{}, err
}

func (a *interopAgent) UnstableDeleteSession(
	_ context.Context, params acp.UnstableDeleteSessionRequest,
) (acp.UnstableDeleteSessionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions, params.SessionId)
	return acp.UnstableDeleteSessionResponse{}, nil
}

func (a *interopAgent) SetSessionMode(
	ctx context.Context, params acp.SetSessionModeRequest,
) (acp.SetSessionModeResponse, error) {
	found, err := a.session(params.SessionId)
	if err != nil {
		return acp.SetSessionModeResponse{}, err
	}
	if !slices.Contains(modes, string(params.ModeId)) {
		return acp.SetSessionModeResponse{}, refused(invalidParams, "no such mode: %s", params.ModeId)
	}
	found.mode = string(params.ModeId)
	update, err := into[acp.SessionUpdate](map[string]any{
		"sessionUpdate": "current_mode_update", "currentModeId": found.mode,
	})
	if err != nil {
		return acp.SetSessionModeResponse{}, err
	}
	told := acp.SessionNotification{SessionId: found.id, Update: update}
	return acp.SetSessionModeResponse{}, a.conn.SessionUpdate(ctx, told)
}

func (a *interopAgent) SetSessionConfigOption(
	_ context.Context, params acp.SetSessionConfigOptionRequest,
) (acp.SetSessionConfigOptionResponse, error) {
	wanted, err := into[struct{ SessionId, ConfigId, Value string }](params)
	if err != nil {
		return acp.SetSessionConfigOptionResponse{}, err
	}
	found, err := a.session(acp.SessionId(wanted.SessionId))
	if err != nil {
		return acp.SetSessionConfigOptionResponse{}, err
	}
	if wanted.ConfigId != "model" || !slices.Contains(models, wanted.Value) {
		return acp.SetSessionConfigOptionResponse{}, refused(invalidParams, "no such option or value: %v", wanted)
	}
	found.model = wanted.Value
	return acp.SetSessionConfigOptionResponse{ConfigOptions: found.options()}, nil
}

func (a *interopAgent) HandleExtensionMethod(_ context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "_interop.example/echo":
		return map[string]any{"echo": params}, nil
	case "_interop.example/told":
		a.mu.Lock()
		defer a.mu.Unlock()
		a.told = append(a.told, params)
		return nil, nil
	}
	return nil, acp.NewMethodNotFound(method)
}

func (a *interopAgent) Cancel(_ context.Context, params acp.CancelNotification) error {
	found, err := a.session(params.SessionId)
	if err == nil {
		found.cancel()
	}
	return err
}

func (a *interopAgent) Prompt(ctx context.Context, params acp.PromptRequest) (acp.PromptResponse, error) {
	found, err := a.session(params.SessionId)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found.cancel = cancel
	t := &turn{agent: a, session: found, known: map[string]any{}}
	kinds, letters, first := []string{}, 0, ""
	for index, block := range params.Prompt {
		plain, err := into[struct{ Type, Text string }](block)
		if err != nil {
			return acp.PromptResponse{}, err
		}
		kinds = append(kinds, plain.Type)
		letters += len(plain.Text)
		if index == 0 {
			first = plain.Text
		}
	}
	if !strings.HasPrefix(first, "[") {
		err := t.say(ctx, fmt.Sprintf("blocks: %s, %d letters", strings.Join(kinds, " "), letters))
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
	}
	var actions []action
	if err := json.Unmarshal([]byte(first), &actions); err != nil {
		return acp.PromptResponse{}, err
	}
	reason, err := t.act(ctx, actions)
	return acp.PromptResponse{StopReason: reason}, err
}

type action struct {
	Update map[string]any
	Times  *int
	Pad    int
	Ask    string
	Tell   string
	Params map[string]any
	Keep   map[string]string
	Said   bool
	Wait   bool
	Fail   *acp.RequestError
	Stop   acp.StopReason
}

// turn is the actions of one prompt.
type turn struct {
	agent   *interopAgent
	session *session
	known   map[string]any
}

func (t *turn) act(ctx context.Context, actions []action) (acp.StopReason, error) {
	for _, it := range actions {
		var err error
		switch {
		case it.Update != nil:
			err = t.update(ctx, it)
		case it.Ask != "":
			err = t.ask(ctx, it)
		case it.Tell != "":
			err = t.tell(ctx, it)
		case it.Said:
			said, _ := json.Marshal(t.agent.told)
			err = t.say(ctx, string(said))
		case it.Wait:
			<-ctx.Done()
			return acp.StopReasonCancelled, nil
		case it.Fail != nil:
			return "", it.Fail
		case it.Stop != "":
			return it.Stop, nil
		}
		if err != nil {
			return "", err
		}
	}
	return acp.StopReasonEndTurn, nil
}

func (t *turn) update(ctx context.Context, it action) error {
	template, err := json.Marshal(it.Update)
	if err != nil {
		return err
	}
	times := 1
	if it.Times != nil {
		times = *it.Times
	}
	for number := range times {
		text := strings.ReplaceAll(string(template), "{n}", strconv.Itoa(number))
		text = strings.ReplaceAll(text, "{pad}", strings.Repeat("x", it.Pad))
		var typed acp.SessionUpdate
		if err := json.Unmarshal([]byte(text), &typed); err != nil {
			return err
		}
		if err := t.send(ctx, typed); err != nil {
			return err
		}
	}
	return nil
}

func (t *turn) send(ctx context.Context, update acp.SessionUpdate) error {
	t.session.history = append(t.session.history, update)
	return t.agent.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: t.session.id, Update: update})
}

func (t *turn) say(ctx context.Context, words string) error {
	return t.send(ctx, acp.UpdateAgentMessageText(words))
}

func (t *turn) tell(ctx context.Context, it action) error {
	if it.Tell != "elicitation/complete" {
		return t.agent.conn.NotifyExtension(ctx, it.Tell, it.Params)
	}
	told, err := into[acp.UnstableCompleteElicitationNotification](it.Params)
	if err != nil {
		return err
	}
	return t.agent.conn.UnstableCompleteElicitation(ctx, told)
}

func (t *turn) ask(ctx context.Context, it action) error {
	params := map[string]any{"sessionId": t.session.id}
	for key, value := range it.Params {
		params[key] = value
	}
	encoded, err := json.Marshal(params)
	if err != nil {
		return err
	}
	result, err := t.typed(ctx, it.Ask, t.filled(encoded))
	answer := map[string]any{"result": result}
	var theirs *acp.RequestError
	if errors.As(err, &theirs) {
		answer = map[string]any{"error": theirs}
	} else if err != nil {
		return err
	}
	kept, _ := into[map[string]any](result)
	for name, field := range it.Keep {
		t.known[name] = kept[field]
	}
	said, err := json.Marshal(answer)
	return errors.Join(err, t.say(ctx, string(said)+"\n"))
}

var place = regexp.MustCompile(`<(\w+)>`)

func (t *turn) filled(params []byte) []byte {
	// The encoder writes < and > as escapes.
	text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(params))
	return place.ReplaceAllFunc([]byte(text), func(found []byte) []byte {
		if value, ok := t.known[string(found[1:len(found)-1])].(string); ok {
			return []byte(value)
		}
		return found
	})
}

func send[P, R any](ctx context.Context, call func(context.Context, P) (R, error), params []byte) (any, error) {
	var typed P
	if err := json.Unmarshal(params, &typed); err != nil {
		return nil, err
	}
	return call(ctx, typed)
}

func (t *turn) typed(ctx context.Context, method string, params []byte) (any, error) {
	conn := t.agent.conn
	switch method {
	case "fs/read_text_file":
		return send(ctx, conn.ReadTextFile, params)
	case "fs/write_text_file":
		return send(ctx, conn.WriteTextFile, params)
	case "terminal/create":
		return send(ctx, conn.CreateTerminal, params)
	case "terminal/output":
		return send(ctx, conn.TerminalOutput, params)
	case "terminal/wait_for_exit":
		return send(ctx, conn.WaitForTerminalExit, params)
	case "terminal/kill":
		return send(ctx, conn.KillTerminal, params)
	case "terminal/release":
		return send(ctx, conn.ReleaseTerminal, params)
	case "session/request_permission":
		return send(ctx, conn.RequestPermission, params)
	case "elicitation/create":
		return send(ctx, conn.UnstableCreateElicitation, params)
	}
	return conn.CallExtension(ctx, method, json.RawMessage(params))
}

func main() {
	agent := &interopAgent{sessions: map[acp.SessionId]*session{}}
	agent.conn = acp.NewAgentSideConnection(agent, os.Stdout, os.Stdin)
	agent.conn.SetLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	<-agent.conn.Done()
}
