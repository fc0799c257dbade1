//! Proxies of the Rust SDK for the interop suite: `proxy pass`, `proxy arrow`, `proxy tools`, `proxy polyfill`.

use agent_client_protocol::mcp_server::McpServer;
use agent_client_protocol::{Agent, Builder, Client, Error, Proxy, Stdio, UntypedMessage};
use agent_client_protocol_polyfill::mcp_over_acp::McpOverAcpPolyfill;
use agent_client_protocol_rmcp::rmcp_3::McpServerExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, JsonSchema)]
struct Numbers {
    left: i64,
    right: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Sum {
    result: i64,
}

/// Put `>` before the text of each update.
async fn arrow() -> Result<(), Error> {
    Builder::new(Proxy)
        .name("arrow")
        .on_receive_notification_from(
            Agent,
            async |mut message: UntypedMessage, cx| {
                if let Some(text) = message.params.pointer_mut("/update/content/text")
                    && let Some(said) = text.as_str()
                {
                    *text = format!(">{said}").into();
                }
                cx.send_notification_to(Client, message)
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(Stdio::new())
        .await
}

/// Lend the agent a tool that adds two numbers.
async fn tools() -> Result<(), Error> {
    let server = McpServer::builder("rust")
        .tool_fn_mut(
            "add",
            "The sum",
            async |numbers: Numbers, _context| Ok(Sum { result: numbers.left + numbers.right }),
            agent_client_protocol::tool_fn_mut!(),
        )
        .build();
    Proxy.v1().name("tools").with_mcp_server(server).connect_to(Stdio::new()).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    use agent_client_protocol::ConnectTo;

    match std::env::args().nth(1).as_deref() {
        Some("pass") => Builder::new(Proxy).name("pass").connect_to(Stdio::new()).await?,
        Some("arrow") => arrow().await?,
        Some("tools") => tools().await?,
        Some("polyfill") => McpOverAcpPolyfill::http().connect_to(Stdio::new()).await?,
        other => anyhow::bail!("name a proxy: pass, arrow, tools or polyfill, got {other:?}"),
    }
    Ok(())
}
