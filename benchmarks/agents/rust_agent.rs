//! The Rust SDK's agent, written as its documentation writes one: `Agent.v1()` with handlers, served over `Stdio`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, Content, ContentBlock, ContentChunk, Diff, InitializeRequest,
    InitializeResponse, NewSessionRequest, NewSessionResponse, PermissionOption, PermissionOptionKind, PromptRequest,
    PromptResponse, ReadTextFileRequest, RequestPermissionOutcome, RequestPermissionRequest, SessionId,
    SessionNotification, SessionUpdate, StopReason, TextContent, ToolCall, ToolCallContent, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::{Agent, Client, Error, Result, Stdio};
use serde_json::{Value, json};
use tokio::sync::Notify;

const FILE: &str = "/bench/file.txt";
const PATTERN: &str = "the quick brown fox jumps over the lazy dog ";

fn text(length: usize) -> String {
    let mut words = PATTERN.repeat(length / PATTERN.len() + 1);
    words.truncate(length);
    words
}

struct Figures {
    begun: Instant,
    n: usize,
    times: Vec<Duration>,
}

impl Figures {
    fn new() -> Self {
        Self { begun: Instant::now(), n: 0, times: Vec::new() }
    }

    /// Latencies are there for requests only: timing each send would cost more than sending.
    fn bench(mut self) -> Value {
        let elapsed = self.begun.elapsed().as_secs_f64();
        self.times.sort();
        let rank = |share: f64| {
            let place = (share * self.times.len() as f64) as usize;
            self.times.get(place).or(self.times.last()).map(|time| time.as_secs_f64() * 1e6)
        };
        json!({
            "ms": elapsed * 1e3,
            "n": self.n,
            "perSec": self.n as f64 / elapsed,
            "p50us": rank(0.5),
            "p99us": rank(0.99),
        })
    }
}

struct Command {
    verb: String,
    words: Vec<String>,
}

impl Command {
    /// A long text is never split: it can only be one to echo.
    fn parse(sent: &str) -> Self {
        let mut words = sent.split_whitespace().take(if sent.len() > 1000 { 0 } else { usize::MAX }).map(str::to_owned);
        Self { verb: words.next().unwrap_or_default(), words: words.collect() }
    }

    fn number<T: std::str::FromStr>(&self, place: usize, otherwise: T) -> T {
        self.words.get(place).and_then(|word| word.parse().ok()).unwrap_or(otherwise)
    }
}

/// Sessions that are open, each with the signal that its `wait` listens to.
type Sessions = Arc<Mutex<HashMap<SessionId, Arc<Notify>>>>;

struct Turn {
    client: ConnectionTo<Client>,
    session: SessionId,
    stopped: Arc<Notify>,
    figures: Figures,
}

impl Turn {
    async fn run(mut self, request: PromptRequest) -> Result<PromptResponse> {
        let sent = match request.prompt.into_iter().next() {
            Some(ContentBlock::Text(block)) => block.text,
            _ => return Err(Error::invalid_params()),
        };
        let command = Command::parse(&sent);
        let mut stop_reason = StopReason::EndTurn;
        match command.verb.as_str() {
            "stream" => {
                // Sending queues the message and returns, so there is nothing to await and `nowait` changes nothing.
                let words = text(command.number(1, 40));
                for _ in 0..command.number(0, 0usize) {
                    self.say(words.clone())?;
                }
            }
            "tools" => self.tools(command.number(0, 0))?,
            "read" => self.read(command.number(0, 0), 1).await?,
            "conc" => self.read(command.number(0, 0), command.number(1, 1)).await?,
            "big" => self.say(text(command.number(0, 0)))?,
            "wait" => {
                self.stopped.notified().await;
                stop_reason = StopReason::Cancelled;
            }
            "permission" => self.permission().await?,
            "fail" => {
                let message = command.words[1..].join(" ");
                return Err(Error::new(command.number(0, 0), message).data(json!({"command": "fail"})));
            }
            "throw" => return Err(Error::into_internal_error(std::io::Error::other(command.words.join(" ")))),
            _ => self.say(format!("echo:{sent}"))?,
        }
        let meta = json!({"bench": self.figures.bench()}).as_object().cloned();
        Ok(PromptResponse::new(stop_reason).meta(meta))
    }

    fn update(&mut self, update: SessionUpdate) -> Result<()> {
        self.figures.n += 1;
        self.client.send_notification(SessionNotification::new(self.session.clone(), update))
    }

    fn say(&mut self, words: String) -> Result<()> {
        let block = ContentBlock::Text(TextContent::new(words));
        self.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(block)))
    }

    fn tools(&mut self, count: usize) -> Result<()> {
        let old_text = text(1024);
        let new_text = old_text.to_uppercase();
        for number in 0..count {
            let id = format!("call_{number}");
            let diff = Diff::new(FILE, new_text.clone()).old_text(old_text.clone());
            self.update(SessionUpdate::ToolCall(
                ToolCall::new(id.clone(), "Edit a file")
                    .kind(ToolKind::Edit)
                    .status(ToolCallStatus::InProgress)
                    .content(vec![ToolCallContent::Diff(diff)]),
            ))?;
            let done = Content::new(ContentBlock::Text(TextContent::new(text(40))));
            self.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
                id,
                ToolCallUpdateFields::new()
                    .status(ToolCallStatus::Completed)
                    .content(vec![ToolCallContent::Content(done)]),
            )))?;
        }
        Ok(())
    }

    async fn read(&mut self, count: usize, in_flight: usize) -> Result<()> {
        let started = Arc::new(AtomicUsize::new(0));
        let readers: Vec<_> = (0..in_flight)
            .map(|_| {
                let (client, session, started) = (self.client.clone(), self.session.clone(), started.clone());
                tokio::spawn(async move {
                    let mut times = Vec::new();
                    while started.fetch_add(1, Ordering::Relaxed) < count {
                        let begun = Instant::now();
                        client.send_request(ReadTextFileRequest::new(session.clone(), FILE)).block_task().await?;
                        times.push(begun.elapsed());
                    }
                    Ok::<_, Error>(times)
                })
            })
            .collect();
        for reader in readers {
            self.figures.times.extend(reader.await.map_err(Error::into_internal_error)??);
        }
        self.figures.n = self.figures.times.len();
        Ok(())
    }

    async fn permission(&mut self) -> Result<()> {
        let request = RequestPermissionRequest::new(
            self.session.clone(),
            ToolCallUpdate::new("call_0", ToolCallUpdateFields::new().title("Edit a file".to_owned())),
            vec![
                PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
                PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
            ],
        );
        let answer = self.client.send_request(request).block_task().await?;
        self.say(match answer.outcome {
            RequestPermissionOutcome::Selected(selected) => format!("selected {}", selected.option_id),
            _ => "cancelled".to_owned(),
        })
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let sessions = Sessions::default();
    let (opened, prompted, cancelled) = (sessions.clone(), sessions.clone(), sessions);
    let ids = AtomicU64::new(0);
    Agent
        .v1()
        .name("bench-agent")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _connection| {
                responder.respond(
                    InitializeResponse::new(request.protocol_version).agent_capabilities(AgentCapabilities::new()),
                )
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder, _connection| {
                let session = SessionId::from(format!("session_{}", ids.fetch_add(1, Ordering::Relaxed)));
                opened.lock().unwrap().insert(session.clone(), Arc::default());
                responder.respond(NewSessionResponse::new(session))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection: ConnectionTo<Client>| {
                let Some(stopped) = prompted.lock().unwrap().get(&request.session_id).cloned() else {
                    return responder.respond_with_error(Error::invalid_params());
                };
                let session = request.session_id.clone();
                let turn = Turn { client: connection.clone(), session, stopped, figures: Figures::new() };
                // A handler holds up the connection until it returns, so a turn runs beside it.
                connection.spawn(async move { responder.respond_with_result(turn.run(request).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: CancelNotification, _connection| {
                if let Some(stopped) = cancelled.lock().unwrap().get(&notification.session_id) {
                    stopped.notify_one();
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(Stdio::new())
        .await
}
