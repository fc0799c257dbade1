//! The Rust SDK's client: takes the steps of a script one by one, and prints what the SDK gave for each.
//!
//!     client SCRIPT -- AGENT [ARGUMENT ...]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentRequest, AuthenticateRequest, CancelNotification, CloseSessionRequest, CompleteElicitationNotification,
    CreateTerminalRequest, CreateTerminalResponse, DeleteSessionRequest, ForkSessionRequest, InitializeRequest,
    ListSessionsRequest, LoadSessionRequest, LogoutRequest, NewSessionRequest, PromptRequest, ReadTextFileRequest,
    ReadTextFileResponse, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    ResumeSessionRequest, SelectedPermissionOutcome, SessionNotification, SetSessionConfigOptionRequest,
    SetSessionModeRequest, TerminalExitStatus, TerminalOutputResponse, WriteTextFileRequest,
};
use agent_client_protocol::{AcpAgent, AcpAgentConfig, Agent, Client, Error, JsonRpcRequest, Result, UntypedMessage};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(30);
const INVALID_PARAMS: i32 = -32602;
const NOT_FOUND: i32 = -32002;

fn refused(code: i32, message: String) -> Error {
    Error::new(code, message)
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::new(-32603, error.to_string())
}

/// A running command and what it has said.
struct Terminal {
    child: tokio::sync::Mutex<Option<Child>>,
    said: Mutex<(Vec<u8>, bool)>,
    limit: Option<usize>,
    ended: watch::Sender<Option<TerminalExitStatus>>,
    pid: u32,
}

impl Terminal {
    async fn collect(&self, mut stream: impl tokio::io::AsyncRead + Unpin) {
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let mut said = self.said.lock().unwrap();
            said.0.extend_from_slice(&buffer[..count]);
            if let Some(limit) = self.limit.filter(|limit| said.0.len() > *limit) {
                let extra = said.0.len() - limit;
                said.0.drain(..extra);
                said.1 = true;
            }
        }
    }

    async fn finish(&self) {
        let mut child = self.child.lock().await.take().expect("finished once");
        let (output, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        tokio::join!(self.collect(output), self.collect(errors));
        let status = child.wait().await.expect("it was started");
        self.ended.send_replace(Some(match status.code() {
            Some(code) => TerminalExitStatus::new().exit_code(code as u32),
            None => TerminalExitStatus::new().signal("killed".to_owned()),
        }));
    }

    fn kill(&self) {
        if self.ended.borrow().is_none() {
            let _ = std::process::Command::new("kill").args(["-9", &self.pid.to_string()]).status();
        }
    }

    async fn exit(&self) -> TerminalExitStatus {
        let mut ended = self.ended.subscribe();
        ended.wait_for(Option::is_some).await.expect("we hold the sender").clone().unwrap()
    }
}

#[derive(Default)]
struct Notes {
    updates: Vec<Value>,
    asked: Vec<Value>,
    told: Vec<Value>,
    ever_seen: HashSet<String>,
    answers: Map<String, Value>,
}

/// Lends a folder's files and real terminals, answers questions as the script says, and notes everything.
struct Lender {
    folder: PathBuf,
    notes: Mutex<Notes>,
    changed: watch::Sender<()>,
    terminals: Mutex<HashMap<String, Arc<Terminal>>>,
}

impl Lender {
    fn heard(&self, notification: &SessionNotification) -> Result<()> {
        let update = serde_json::to_value(&notification.update).map_err(broken)?;
        let mut notes = self.notes.lock().unwrap();
        notes.ever_seen.insert(update["sessionUpdate"].as_str().unwrap_or_default().to_owned());
        notes.updates.push(update);
        drop(notes);
        self.changed.send_replace(());
        Ok(())
    }

    async fn until(&self, what: &str, condition: impl Fn(&Notes) -> bool) -> Result<()> {
        let mut changed = self.changed.subscribe();
        let waiting = changed.wait_for(|()| condition(&self.notes.lock().unwrap()));
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(_) => Ok(()),
            Err(_) => Err(broken(format!("waited too long for {what}"))),
        }
    }

    async fn answer(self: Arc<Self>, request: AgentRequest) -> Result<Value> {
        let (method, params) = named(&request)?;
        let answer = self.clone().lend(request).await;
        let note = match &answer {
            Ok(result) => json!({"method": method, "params": params, "result": result}),
            Err(error) => json!({"method": method, "params": params, "error": error}),
        };
        self.notes.lock().unwrap().asked.push(note);
        answer
    }

    async fn lend(self: Arc<Self>, request: AgentRequest) -> Result<Value> {
        match request {
            AgentRequest::ReadTextFileRequest(request) => plain(self.read(request)?),
            AgentRequest::WriteTextFileRequest(request) => self.write(request),
            AgentRequest::CreateTerminalRequest(request) => plain(self.start(request)?),
            AgentRequest::TerminalOutputRequest(request) => plain(self.output(&request.terminal_id.to_string())?),
            AgentRequest::WaitForTerminalExitRequest(request) => {
                plain(self.terminal(&request.terminal_id.to_string())?.exit().await)
            }
            AgentRequest::KillTerminalRequest(request) => {
                self.terminal(&request.terminal_id.to_string())?.kill();
                Ok(json!({}))
            }
            AgentRequest::ReleaseTerminalRequest(request) => {
                let id = request.terminal_id.to_string();
                let terminal = self.terminal(&id)?;
                terminal.kill();
                terminal.exit().await;
                self.terminals.lock().unwrap().remove(&id);
                Ok(json!({}))
            }
            AgentRequest::RequestPermissionRequest(request) => plain(self.choose(&request)),
            AgentRequest::CreateElicitationRequest(_) => {
                let notes = self.notes.lock().unwrap();
                Ok(notes.answers.get("elicitation").cloned().unwrap_or(json!({"action": "decline"})))
            }
            AgentRequest::ExtMethodRequest(request) if request.method.ends_with("interop.example/echo") => {
                Ok(json!({"echo": plain(&request.params)?}))
            }
            _ => Err(Error::method_not_found()),
        }
    }

    fn within(&self, path: &Path) -> Result<()> {
        let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
        if climbs || !path.starts_with(&self.folder) {
            return Err(refused(INVALID_PARAMS, format!("outside of the folder: {}", path.display())));
        }
        Ok(())
    }

    fn read(&self, request: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        self.within(&request.path)?;
        let text = std::fs::read_to_string(&request.path)
            .map_err(|_| refused(NOT_FOUND, format!("no such file: {}", request.path.display())))?;
        let first = request.line.unwrap_or(1).saturating_sub(1) as usize;
        let count = request.limit.map_or(usize::MAX, |limit| limit as usize);
        Ok(ReadTextFileResponse::new(text.split_inclusive('\n').skip(first).take(count).collect::<String>()))
    }

    fn write(&self, request: WriteTextFileRequest) -> Result<Value> {
        self.within(&request.path)?;
        std::fs::write(&request.path, request.content).map_err(broken)?;
        Ok(json!({}))
    }

    fn start(&self, request: CreateTerminalRequest) -> Result<CreateTerminalResponse> {
        let child = Command::new(&request.command)
            .args(&request.args)
            .envs(request.env.iter().map(|variable| (&variable.name, &variable.value)))
            .current_dir(request.cwd.as_ref().unwrap_or(&self.folder))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(broken)?;
        let terminal = Arc::new(Terminal {
            pid: child.id().unwrap_or_default(),
            child: tokio::sync::Mutex::new(Some(child)),
            said: Mutex::default(),
            limit: request.output_byte_limit.map(|limit| limit as usize),
            ended: watch::Sender::new(None),
        });
        let running = terminal.clone();
        tokio::spawn(async move { running.finish().await });
        let mut terminals = self.terminals.lock().unwrap();
        let id = format!("terminal_{}", terminals.len());
        terminals.insert(id.clone(), terminal);
        Ok(CreateTerminalResponse::new(id))
    }

    fn terminal(&self, id: &str) -> Result<Arc<Terminal>> {
        let found = self.terminals.lock().unwrap().get(id).cloned();
        found.ok_or_else(|| refused(NOT_FOUND, format!("no such terminal: {id}")))
    }

    fn output(&self, id: &str) -> Result<TerminalOutputResponse> {
        let terminal = self.terminal(id)?;
        let said = terminal.said.lock().unwrap();
        let response = TerminalOutputResponse::new(String::from_utf8_lossy(&said.0).into_owned(), said.1);
        Ok(response.exit_status(terminal.ended.borrow().clone()))
    }

    fn choose(&self, request: &RequestPermissionRequest) -> RequestPermissionResponse {
        let notes = self.notes.lock().unwrap();
        let wanted = notes.answers.get("permission").cloned().unwrap_or(json!("allow_once"));
        let chosen = request.options.iter().find(|option| json!(option.kind) == wanted);
        RequestPermissionResponse::new(chosen.map_or(RequestPermissionOutcome::Cancelled, |option| {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }))
    }
}

fn plain(value: impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(broken)
}

fn named(request: &AgentRequest) -> Result<(String, Value)> {
    let method = match request {
        AgentRequest::ExtMethodRequest(it) => format!("_{}", it.method.trim_start_matches('_')),
        other => other.method().to_owned(),
    };
    Ok((method, plain(request)?))
}

/// The steps of one script, taken one by one.
struct Run {
    agent: ConnectionTo<Agent>,
    lender: Arc<Lender>,
    known: Map<String, Value>,
    aside: BTreeMap<String, JoinHandle<Result<Value>>>,
}

async fn typed<R>(agent: ConnectionTo<Agent>, params: Value) -> Result<Value>
where
    R: JsonRpcRequest + DeserializeOwned,
    R::Response: Serialize,
{
    let request: R = serde_json::from_value(params).map_err(broken)?;
    plain(agent.send_request(request).block_task().await?)
}

async fn ask(agent: ConnectionTo<Agent>, method: String, params: Value) -> Result<Value> {
    match method.as_str() {
        "initialize" => typed::<InitializeRequest>(agent, params).await,
        "authenticate" => typed::<AuthenticateRequest>(agent, params).await,
        "logout" => typed::<LogoutRequest>(agent, params).await,
        "session/new" => typed::<NewSessionRequest>(agent, params).await,
        "session/load" => typed::<LoadSessionRequest>(agent, params).await,
        "session/list" => typed::<ListSessionsRequest>(agent, params).await,
        "session/resume" => typed::<ResumeSessionRequest>(agent, params).await,
        "session/fork" => typed::<ForkSessionRequest>(agent, params).await,
        "session/close" => typed::<CloseSessionRequest>(agent, params).await,
        "session/delete" => typed::<DeleteSessionRequest>(agent, params).await,
        "session/prompt" => typed::<PromptRequest>(agent, params).await,
        "session/set_mode" => typed::<SetSessionModeRequest>(agent, params).await,
        "session/set_config_option" => typed::<SetSessionConfigOptionRequest>(agent, params).await,
        _ => agent.send_request(UntypedMessage::new(&method, params)?).block_task().await,
    }
}

impl Run {
    /// What a script says with `<name>` stands for what was kept under that name.
    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let mut text = text.clone();
                for (name, kept) in &self.known {
                    if let Some(kept) = kept.as_str() {
                        text = text.replace(&format!("<{name}>"), kept);
                    }
                }
                Value::String(text)
            }
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(key, item)| (key.clone(), self.filled(item))).collect(),
            other => other.clone(),
        }
    }

    fn tell(&self, method: &str, params: Value) -> Result<()> {
        if method == "session/cancel" {
            let notification: CancelNotification = serde_json::from_value(params).map_err(broken)?;
            return self.agent.send_notification(notification);
        }
        self.agent.send_notification(UntypedMessage::new(method, params)?)
    }

    async fn take(&mut self, step: &Value) -> Result<Option<Value>> {
        let params = self.filled(step.get("params").unwrap_or(&json!({})));
        if let Some(method) = step["tell"].as_str() {
            self.tell(method, params)?;
        } else if let Some(kind) = step["await"].as_str() {
            self.lender.until(kind, |notes| notes.ever_seen.contains(kind)).await?;
        } else if let Some(count) = step["await_updates"].as_u64() {
            self.lender.until("updates", |notes| notes.updates.len() >= count as usize).await?;
        } else if let Some(name) = step["finish"].as_str() {
            let asked = self.aside.remove(name).expect("it was put aside");
            return asked.await.map_err(broken)?.map(Some);
        } else {
            return self.call(step, params).await;
        }
        Ok(None)
    }

    async fn call(&mut self, step: &Value, params: Value) -> Result<Option<Value>> {
        let method = step["call"].as_str().expect("a step of a known kind").to_owned();
        let asked = tokio::spawn(ask(self.agent.clone(), method, params.clone()));
        if let Some(count) = step["cancel_after"].as_u64() {
            self.lender.until("updates", |notes| notes.updates.len() >= count as usize).await?;
            self.tell("session/cancel", json!({"sessionId": params["sessionId"]}))?;
        }
        if let Some(name) = step["aside"].as_str() {
            self.aside.insert(name.to_owned(), asked);
            return Ok(None);
        }
        asked.await.map_err(broken)?.map(Some)
    }

    async fn step(&mut self, index: usize, step: &Value) -> Value {
        if let Some(answers) = step["answers"].as_object() {
            self.lender.notes.lock().unwrap().answers.extend(answers.clone());
        }
        let mut line = json!({"step": index});
        match self.take(step).await {
            Ok(None) => {}
            Ok(Some(result)) => {
                for (name, field) in step["keep"].as_object().into_iter().flatten() {
                    self.known.insert(name.clone(), result[field.as_str().unwrap_or_default()].clone());
                }
                line["result"] = result;
            }
            Err(error) => line["error"] = json!(error),
        }
        let mut notes = self.lender.notes.lock().unwrap();
        line["updates"] = json!(std::mem::take(&mut notes.updates));
        line["asked"] = json!(std::mem::take(&mut notes.asked));
        line["told"] = json!(std::mem::take(&mut notes.told));
        line["known"] = json!(self.known);
        line
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, script, _, command, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: client SCRIPT -- AGENT [ARGUMENT ...]");
        std::process::exit(2);
    };
    let script: Value = serde_json::from_str(&std::fs::read_to_string(script).map_err(broken)?).map_err(broken)?;
    let folder = script["folder"].as_str().expect("a script names its folder").to_owned();
    let lender = Arc::new(Lender {
        folder: PathBuf::from(&folder),
        notes: Mutex::default(),
        changed: watch::Sender::new(()),
        terminals: Mutex::default(),
    });
    let (heard, completed, lending, told) = (lender.clone(), lender.clone(), lender.clone(), lender.clone());
    let mut known = script["known"].as_object().cloned().unwrap_or_default();
    known.insert("folder".to_owned(), json!(folder));
    Client
        .v1()
        .name("interop-client")
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| heard.heard(&notification),
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_notification(
            async move |notification: CompleteElicitationNotification, _connection| {
                let note = json!({"method": "elicitation/complete", "params": notification});
                completed.notes.lock().unwrap().told.push(note);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_notification(
            async move |notification: UntypedMessage, _connection| {
                told.notes.lock().unwrap().told.push(json!(notification));
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: AgentRequest, responder, connection: ConnectionTo<Agent>| {
                let lending = lending.clone();
                // A handler holds up the connection until it returns, so whatever waits runs beside it.
                connection.spawn(async move { responder.respond_with_result(lending.answer(request).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(
            AcpAgent::new(AcpAgentConfig::new(command).args(rest.iter().cloned())),
            async move |agent: ConnectionTo<Agent>| {
                let mut run = Run { agent, lender, known, aside: BTreeMap::new() };
                for (index, step) in script["steps"].as_array().into_iter().flatten().enumerate() {
                    println!("{}", run.step(index, step).await);
                }
                Ok(())
            },
        )
        .await
}
