//! The Rust SDK's client, written as its documentation writes one: `Client.v1()` with handlers and `connect_with`
//! over an `AcpAgent`.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, FileSystemCapabilities, InitializeRequest,
    NewSessionRequest, PermissionOptionKind, PromptRequest, ReadTextFileRequest, ReadTextFileResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionId, SessionNotification, TextContent,
};
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::{AcpAgent, AcpAgentConfig, Agent, Client, Error, Result};
use serde_json::{Value, json};

const CANCEL_AFTER: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(20);
const PATTERN: &str = "the quick brown fox jumps over the lazy dog ";

fn text(length: usize) -> String {
    let mut words = PATTERN.repeat(length / PATTERN.len() + 1);
    words.truncate(length);
    words
}

struct Command<'a> {
    prompt: &'a str,
    verb: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Command<'a> {
    fn parse(prompt: &'a str) -> Self {
        let mut words = prompt.split_whitespace();
        Self { prompt, verb: words.next().unwrap_or_default(), words: words.collect() }
    }

    fn number<T: std::str::FromStr + Default>(&self) -> T {
        self.words.first().and_then(|word| word.parse().ok()).unwrap_or_default()
    }

    fn expected_updates(&self) -> usize {
        match self.verb {
            "stream" => self.number(),
            "tools" => 2 * self.number::<usize>(),
            "read" | "conc" | "wait" | "fail" | "throw" | "sessions" => 0,
            _ => 1,
        }
    }

    fn as_promised(&self, stop_reason: Option<&str>, updates: usize, refused: Option<&Error>) -> bool {
        match self.verb {
            "fail" => refused.is_some_and(|error| {
                i32::from(error.code) == self.number::<i32>() && error.message == self.words[1..].join(" ")
            }),
            "throw" => refused.is_some(),
            verb => {
                let reason = if verb == "wait" { "cancelled" } else { "end_turn" };
                stop_reason == Some(reason) && updates == self.expected_updates()
            }
        }
    }
}

/// Resident memory of a process in KiB; null where the system does not tell.
fn resident(pid: &str) -> Value {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else {
        return Value::Null;
    };
    let field = |name| {
        let row = status.lines().find_map(|line| line.strip_prefix(name));
        row.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
    };
    json!({"now": field("VmRSS:"), "peak": field("VmHWM:")})
}

/// The agent's process: `AcpAgent` spawns it and keeps its id to itself, so ask the system whose parent we are.
fn child() -> Option<String> {
    let us = std::process::id().to_string();
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        (fields.split_whitespace().nth(1)? == us).then(|| entry.file_name().to_string_lossy().into_owned())
    })
}

fn weigh(agent: &str) -> Value {
    json!({"agent": resident(agent), "client": resident("self")})
}

struct Bench {
    agent: ConnectionTo<Agent>,
    seen: Arc<AtomicUsize>,
}

impl Bench {
    async fn open(&self) -> Result<SessionId> {
        let directory = std::env::current_dir().map_err(Error::into_internal_error)?;
        Ok(self.agent.send_request(NewSessionRequest::new(directory)).block_task().await?.session_id)
    }

    async fn one_prompt(&self, session: &SessionId, prompt: &str) -> Result<Value> {
        let command = Command::parse(prompt);
        // `echo BYTES` stands for a text too long for a command line; the agent sends it back.
        let sent = if command.verb == "echo" { text(command.number()) } else { prompt.to_owned() };
        let expected = command.expected_updates();
        self.seen.store(0, Ordering::Relaxed);
        let begun = Instant::now();
        let blocks = vec![ContentBlock::Text(TextContent::new(sent))];
        let answer = self.agent.send_request(PromptRequest::new(session.clone(), blocks));
        if command.verb == "wait" {
            tokio::time::sleep(CANCEL_AFTER).await;
            self.agent.send_notification(CancelNotification::new(session.clone()))?;
        }
        let answer = answer.block_task().await;
        while answer.is_ok() && self.seen.load(Ordering::Relaxed) < expected && begun.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_micros(50)).await;
        }
        let elapsed = begun.elapsed().as_secs_f64();
        let updates = self.seen.load(Ordering::Relaxed);
        let counted = if matches!(command.verb, "read" | "conc") { command.number() } else { updates };
        let (response, refused) = match answer {
            Ok(response) => (serde_json::to_value(response).map_err(Error::into_internal_error)?, None),
            Err(error) => (Value::Null, Some(error)),
        };
        let bench = &response["_meta"]["bench"];
        Ok(json!({
            "prompt": command.prompt,
            "ms": elapsed * 1e3,
            "updates": updates,
            "perSec": counted as f64 / elapsed,
            // Only the side that asks can time a round trip, so these are the agent's.
            "p50us": bench["p50us"],
            "p99us": bench["p99us"],
            "stopReason": response["stopReason"],
            "bench": bench,
            "error": refused.as_ref().map(|error| json!({"code": i32::from(error.code), "message": error.message})),
            "ok": command.as_promised(response["stopReason"].as_str(), updates, refused.as_ref()),
        }))
    }

    async fn many_sessions(&self, prompt: &str) -> Result<Value> {
        let count: usize = Command::parse(prompt).number();
        let agent = child().unwrap_or_default();
        let before = weigh(&agent);
        let begun = Instant::now();
        let mut opened = HashSet::new();
        for _ in 0..count {
            opened.insert(self.open().await?);
        }
        let elapsed = begun.elapsed().as_secs_f64();
        Ok(json!({
            "prompt": prompt,
            "ms": elapsed * 1e3,
            "updates": 0,
            "perSec": count as f64 / elapsed,
            "p50us": null,
            "p99us": null,
            "stopReason": null,
            "bench": null,
            "error": null,
            "memory": {"before": before, "after": weigh(&agent)},
            "ok": opened.len() == count,
        }))
    }
}

fn show(line: &Value, as_json: bool) {
    if as_json {
        println!("{line}");
        return;
    }
    let ended = line["error"]["message"].as_str().or(line["stopReason"].as_str()).unwrap_or_default();
    let (ms, rate) = (line["ms"].as_f64().unwrap_or_default(), line["perSec"].as_f64().unwrap_or_default());
    println!("{}: {ms:.1} ms, {rate:.0}/s, {ended}, ok: {}", line["prompt"].as_str().unwrap_or_default(), line["ok"]);
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let split = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let prompts: Vec<String> = arguments[..split].iter().filter(|word| *word != "--json").cloned().collect();
    let as_json = arguments[..split].iter().any(|word| word == "--json");
    let Some((command, rest)) = arguments.get(split + 1..).and_then(<[String]>::split_first) else {
        eprintln!("usage: client [--json] PROMPT [PROMPT ...] -- AGENT [ARGUMENT ...]");
        std::process::exit(2);
    };
    let config = AcpAgentConfig::new(command).args(rest.iter().cloned());
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = seen.clone();
    let sound = Arc::new(AtomicBool::new(true));
    let all_sound = sound.clone();
    let file_text = format!("{}\n", text(63)).repeat(16);
    let begun = Instant::now();
    Client
        .v1()
        .name("bench-client")
        .on_receive_notification(
            async move |_: SessionNotification, _connection| {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |_: ReadTextFileRequest, responder, _connection| {
                responder.respond(ReadTextFileResponse::new(file_text.clone()))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _connection| {
                let allow = request.options.iter().find(|option| option.kind == PermissionOptionKind::AllowOnce);
                let outcome = allow.map_or(RequestPermissionOutcome::Cancelled, |option| {
                    RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
                });
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(AcpAgent::new(config), async move |agent: ConnectionTo<Agent>| {
            let files = FileSystemCapabilities::new().read_text_file(true);
            agent
                .send_request(
                    InitializeRequest::new(ProtocolVersion::V1)
                        .client_capabilities(ClientCapabilities::new().fs(files)),
                )
                .block_task()
                .await?;
            let start_ms = begun.elapsed().as_secs_f64() * 1e3;
            let bench = Bench { agent, seen };
            let session = bench.open().await?;
            for prompt in &prompts {
                let mut line = if prompt.starts_with("sessions ") {
                    bench.many_sessions(prompt).await?
                } else {
                    bench.one_prompt(&session, prompt).await?
                };
                line["startMs"] = json!(start_ms);
                show(&line, as_json);
                all_sound.fetch_and(line["ok"] == true, Ordering::Relaxed);
            }
            Ok(())
        })
        .await?;
    if !sound.load(Ordering::Relaxed) {
        std::process::exit(1);
    }
    Ok(())
}
