//! The Rust SDK's agent for the interop suite. What every agent of the suite does is said in `agents/README.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use agent_client_protocol::v1::schema::{
    CancelNotification, ClientRequest, CompleteElicitationNotification, CreateElicitationRequest,
    CreateTerminalRequest, ForkSessionResponse, InitializeResponse, KillTerminalRequest, ListSessionsResponse,
    LoadSessionResponse, NewSessionResponse, PromptRequest, PromptResponse, ReadTextFileRequest,
    ReleaseTerminalRequest, RequestPermissionRequest, ResumeSessionResponse, SessionId, SessionNotification,
    SessionUpdate, SetSessionConfigOptionResponse, TerminalOutputRequest, WaitForTerminalExitRequest,
    WriteTextFileRequest,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, JsonRpcRequest, Result, Stdio, UntypedMessage};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

const NOT_FOUND: i32 = -32002;
const INVALID_PARAMS: i32 = -32602;
const AUTH_REQUIRED: i32 = -32000;
const PAGE: usize = 2;
const MODES: [&str; 2] = ["ask", "code"];
const MODELS: [&str; 2] = ["small", "large"];

fn refused(code: i32, message: String) -> Error {
    Error::new(code, message)
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::new(-32603, error.to_string())
}

/// JSON through the SDK's own type, and back.
fn typed<T: DeserializeOwned + Serialize>(value: Value) -> Result<Value> {
    plain(serde_json::from_value::<T>(value).map_err(broken)?)
}

fn plain(value: impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(broken)
}

fn title(name: &str) -> String {
    name[..1].to_uppercase() + &name[1..]
}

#[derive(Clone)]
struct Session {
    id: SessionId,
    cwd: String,
    mode: String,
    model: String,
    history: Vec<SessionUpdate>,
    cancelled: watch::Sender<bool>,
}

impl Session {
    fn options(&self) -> Value {
        let values: Vec<Value> = MODELS.iter().map(|name| json!({"value": name, "name": title(name)})).collect();
        json!([{"id": "model", "name": "Model", "type": "select", "currentValue": self.model, "options": values}])
    }

    /// The answer to whatever opens a session.
    fn settings(&self) -> Value {
        let modes: Vec<Value> = MODES.iter().map(|name| json!({"id": name, "name": title(name)})).collect();
        let modes = json!({"currentModeId": self.mode, "availableModes": modes});
        json!({"sessionId": self.id, "modes": modes, "configOptions": self.options()})
    }
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<usize, Session>,
    created: usize,
    told: Vec<Value>,
    logged_in: bool,
}

impl State {
    fn find(&mut self, id: &SessionId) -> Result<&mut Session> {
        let found = self.sessions.values_mut().find(|session| session.id == *id);
        found.ok_or_else(|| refused(NOT_FOUND, format!("no such session: {id}")))
    }

    fn create(&mut self, cwd: &Path) -> &mut Session {
        let number = self.created;
        self.created += 1;
        self.sessions.entry(number).or_insert(Session {
            id: SessionId::new(format!("session_{number}")),
            cwd: cwd.to_string_lossy().into_owned(),
            mode: MODES[0].to_owned(),
            model: MODELS[0].to_owned(),
            history: Vec::new(),
            cancelled: watch::Sender::new(false),
        })
    }
}

#[derive(Clone, Default)]
struct InteropAgent(Arc<Mutex<State>>);

impl InteropAgent {
    async fn answer(&self, request: ClientRequest, client: &ConnectionTo<Client>) -> Result<Value> {
        if let ClientRequest::PromptRequest(request) = request {
            return self.prompt(request, client).await;
        }
        let mut state = self.0.lock().unwrap();
        match request {
            ClientRequest::InitializeRequest(_) => typed::<InitializeResponse>(json!({
                "protocolVersion": 1,
                "agentInfo": {"name": "interop-agent", "version": "1.0.0"},
                "agentCapabilities": {
                    "loadSession": true,
                    "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
                    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {}},
                    "auth": {"logout": {}},
                },
                "authMethods": [{"id": "token", "name": "Token"}],
            })),
            ClientRequest::AuthenticateRequest(request) => {
                if request.method_id.to_string() != "token" {
                    return Err(refused(INVALID_PARAMS, format!("no such method: {}", request.method_id)));
                }
                state.logged_in = true;
                Ok(json!({}))
            }
            ClientRequest::LogoutRequest(_) => {
                state.logged_in = false;
                Ok(json!({}))
            }
            ClientRequest::NewSessionRequest(request) => {
                if request.cwd.ends_with("private") && !state.logged_in {
                    return Err(refused(AUTH_REQUIRED, "Authentication required".to_owned()));
                }
                typed::<NewSessionResponse>(state.create(&request.cwd).settings())
            }
            ClientRequest::ListSessionsRequest(request) => {
                let wanted = request.cwd.map(|cwd| cwd.to_string_lossy().into_owned());
                let there: Vec<Value> = state
                    .sessions
                    .values()
                    .filter(|session| wanted.as_ref().is_none_or(|cwd| *cwd == session.cwd))
                    .map(|session| json!({"sessionId": session.id, "cwd": session.cwd}))
                    .collect();
                let begin: usize = request.cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
                let end = there.len().min(begin + PAGE);
                let more = (end < there.len()).then(|| end.to_string());
                typed::<ListSessionsResponse>(json!({"sessions": there[begin.min(end)..end], "nextCursor": more}))
            }
            ClientRequest::LoadSessionRequest(request) => {
                let session = state.find(&request.session_id)?;
                for update in session.history.iter().cloned() {
                    client.send_notification(SessionNotification::new(session.id.clone(), update))?;
                }
                typed::<LoadSessionResponse>(session.settings())
            }
            ClientRequest::ResumeSessionRequest(request) => {
                typed::<ResumeSessionResponse>(state.find(&request.session_id)?.settings())
            }
            ClientRequest::ForkSessionRequest(request) => {
                let history = state.find(&request.session_id)?.history.clone();
                let forked = state.create(&request.cwd);
                forked.history = history;
                typed::<ForkSessionResponse>(forked.settings())
            }
            ClientRequest::CloseSessionRequest(request) => {
                state.find(&request.session_id)?.cancelled.send_replace(true);
                Ok(json!({}))
            }
            ClientRequest::DeleteSessionRequest(request) => {
                state.sessions.retain(|_, session| session.id != request.session_id);
                Ok(json!({}))
            }
            ClientRequest::SetSessionModeRequest(request) => {
                let session = state.find(&request.session_id)?;
                let wanted = request.mode_id.to_string();
                if !MODES.contains(&wanted.as_str()) {
                    return Err(refused(INVALID_PARAMS, format!("no such mode: {wanted}")));
                }
                session.mode = wanted;
                let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": session.mode});
                let update: SessionUpdate = serde_json::from_value(update).map_err(broken)?;
                client.send_notification(SessionNotification::new(session.id.clone(), update))?;
                Ok(json!({}))
            }
            ClientRequest::SetSessionConfigOptionRequest(request) => {
                let session = state.find(&request.session_id)?;
                let wanted = plain(&request)?;
                let value = wanted["value"].as_str().unwrap_or_default().to_owned();
                if wanted["configId"] != "model" || !MODELS.contains(&value.as_str()) {
                    return Err(refused(INVALID_PARAMS, format!("no such option or value: {wanted}")));
                }
                session.model = value;
                typed::<SetSessionConfigOptionResponse>(json!({"configOptions": session.options()}))
            }
            ClientRequest::ExtMethodRequest(request) if request.method.ends_with("interop.example/echo") => {
                Ok(json!({"echo": plain(&request.params)?}))
            }
            _ => Err(Error::method_not_found()),
        }
    }

    async fn prompt(&self, request: PromptRequest, client: &ConnectionTo<Client>) -> Result<Value> {
        let cancelled = {
            let mut state = self.0.lock().unwrap();
            let session = state.find(&request.session_id)?;
            session.cancelled.send_replace(false);
            session.cancelled.subscribe()
        };
        let (agent, session) = (self.clone(), request.session_id.clone());
        let mut turn = Turn { agent, session, client: client.clone(), cancelled, known: Map::new() };
        let blocks = plain(&request.prompt)?;
        let blocks = blocks.as_array().expect("a prompt is a list");
        if let Some(script) = blocks.first().and_then(|it| it["text"].as_str()).filter(|it| it.starts_with('[')) {
            let actions: Vec<Value> = serde_json::from_str(script).map_err(broken)?;
            return typed::<PromptResponse>(json!({"stopReason": turn.act(&actions).await?}));
        }
        let kinds: Vec<&str> = blocks.iter().filter_map(|block| block["type"].as_str()).collect();
        let letters: usize = blocks.iter().filter_map(|block| block["text"].as_str()).map(str::len).sum();
        turn.say(&format!("blocks: {}, {letters} letters", kinds.join(" ")))?;
        typed::<PromptResponse>(json!({"stopReason": "end_turn"}))
    }
}

/// The actions of one prompt.
struct Turn {
    agent: InteropAgent,
    session: SessionId,
    client: ConnectionTo<Client>,
    cancelled: watch::Receiver<bool>,
    known: Map<String, Value>,
}

async fn send<R>(client: &ConnectionTo<Client>, params: Value) -> Result<Value>
where
    R: JsonRpcRequest + DeserializeOwned,
    R::Response: Serialize,
{
    let request: R = serde_json::from_value(params).map_err(broken)?;
    plain(client.send_request(request).block_task().await?)
}

impl Turn {
    async fn act(&mut self, actions: &[Value]) -> Result<String> {
        for action in actions {
            if action["update"].is_object() {
                self.update(action)?;
            } else if let Some(method) = action["ask"].as_str() {
                self.ask(method, action).await?;
            } else if let Some(method) = action["tell"].as_str() {
                self.tell(method, self.filled(&action["params"])?)?;
            } else if action["said"] == true {
                let told = json!(self.agent.0.lock().unwrap().told).to_string();
                self.say(&told)?;
            } else if action["wait"] == true {
                self.cancelled.wait_for(|cancelled| *cancelled).await.map_err(broken)?;
                return Ok("cancelled".to_owned());
            } else if let Some(reason) = action["stop"].as_str() {
                return Ok(reason.to_owned());
            } else if action["fail"].is_object() {
                return Err(serde_json::from_value(action["fail"].clone()).map_err(broken)?);
            }
        }
        Ok("end_turn".to_owned())
    }

    fn update(&self, action: &Value) -> Result<()> {
        let template = action["update"].to_string();
        let pad = "x".repeat(action["pad"].as_u64().unwrap_or(0) as usize);
        for number in 0..action["times"].as_u64().unwrap_or(1) {
            let text = template.replace("{n}", &number.to_string()).replace("{pad}", &pad);
            self.send(serde_json::from_str(&text).map_err(broken)?)?;
        }
        Ok(())
    }

    fn send(&self, update: SessionUpdate) -> Result<()> {
        self.agent.0.lock().unwrap().find(&self.session)?.history.push(update.clone());
        self.client.send_notification(SessionNotification::new(self.session.clone(), update))
    }

    fn say(&self, words: &str) -> Result<()> {
        let content = json!({"type": "text", "text": words});
        let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        self.send(serde_json::from_value(chunk).map_err(broken)?)
    }

    fn tell(&self, method: &str, params: Value) -> Result<()> {
        if method == "elicitation/complete" {
            let told: CompleteElicitationNotification = serde_json::from_value(params).map_err(broken)?;
            return self.client.send_notification(told);
        }
        self.client.send_notification(UntypedMessage::new(method, params)?)
    }

    async fn ask(&mut self, method: &str, action: &Value) -> Result<()> {
        let mut params = self.filled(action.get("params").unwrap_or(&json!({})))?;
        params["sessionId"] = json!(self.session);
        let answer = match self.typed(method, params).await {
            Ok(result) => {
                for (name, field) in action["keep"].as_object().into_iter().flatten() {
                    self.known.insert(name.clone(), result[field.as_str().unwrap_or_default()].clone());
                }
                json!({"result": result})
            }
            Err(error) => json!({"error": error}),
        };
        self.say(&format!("{answer}\n"))
    }

    async fn typed(&self, method: &str, params: Value) -> Result<Value> {
        let client = &self.client;
        match method {
            "fs/read_text_file" => send::<ReadTextFileRequest>(client, params).await,
            "fs/write_text_file" => send::<WriteTextFileRequest>(client, params).await,
            "terminal/create" => send::<CreateTerminalRequest>(client, params).await,
            "terminal/output" => send::<TerminalOutputRequest>(client, params).await,
            "terminal/wait_for_exit" => send::<WaitForTerminalExitRequest>(client, params).await,
            "terminal/kill" => send::<KillTerminalRequest>(client, params).await,
            "terminal/release" => send::<ReleaseTerminalRequest>(client, params).await,
            "session/request_permission" => send::<RequestPermissionRequest>(client, params).await,
            "elicitation/create" => send::<CreateElicitationRequest>(client, params).await,
            _ => client.send_request(UntypedMessage::new(method, params)?).block_task().await,
        }
    }

    fn filled(&self, params: &Value) -> Result<Value> {
        let mut text = params.to_string();
        for (name, kept) in &self.known {
            text = text.replace(&format!("<{name}>"), kept.as_str().unwrap_or_default());
        }
        serde_json::from_str(&text).map_err(broken)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let agent = InteropAgent::default();
    let (cancelling, hearing) = (agent.clone(), agent.clone());
    Agent
        .v1()
        .name("interop-agent")
        .on_receive_notification(
            async move |notification: CancelNotification, _connection| {
                cancelling.0.lock().unwrap().find(&notification.session_id)?.cancelled.send_replace(true);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_notification(
            async move |notification: UntypedMessage, _connection| {
                if notification.method == "_interop.example/told" {
                    hearing.0.lock().unwrap().told.push(notification.params);
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: ClientRequest, responder: Responder<Value>, client: ConnectionTo<Client>| {
                let (agent, beside) = (agent.clone(), client.clone());
                // A handler holds up the connection until it returns, so a turn runs beside it.
                client.spawn(async move {
                    let answer = agent.answer(request, &beside).await;
                    responder.respond_with_result(answer)
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_to(Stdio::new())
        .await
}
