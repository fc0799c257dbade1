"""Sixty entries as they were published, as facts: id, version, distributions, arguments. With the command of each.

A row of a package: id, version, package, arguments, variables. A row of archives: id, version, the archives' ending,
`cmd` by platform, arguments, variables. The commands are written out, not computed: they are what the entries mean.
"""

from __future__ import annotations

from typing import Any

NPX = """
aegis 0.6.7 @onestepat4time/aegis@0.6.7 mcp
agoragentic-acp 1.3.1 agoragentic-mcp@1.3.1 --acp
agy-acp 0.3.7 agy-acp-bridge@0.3.7
aider-acp 0.5.0 aider-acp@latest
anvil 0.24.4 @brokkai/anvil@0.24.4
astracode 0.3.1 astracode-agent@0.3.1 acp
atlarix 15.3.0 atlarix@15.3.0 acp
auggie 0.36.0 @augmentcode/auggie@0.36.0 --acp AUGMENT_DISABLE_AUTO_UPDATE=1
bezi 0.1.3 @bezihq/acp@0.1.3
bob 2.0.6 @ibm/bob@2.0.6 acp
chutes 0.1.0 chutes-agent@0.1.0
claude-acp 0.85.1 @agentclientprotocol/claude-agent-acp@0.85.1
cline 3.0.4 cline@3.0.4 --acp
codebuddy-code 2.156.0 @tencent-ai/codebuddy-code@2.156.0 --acp
codebuff-acp 0.1.1 codebuff-agent-acp@0.1.1
codewhale 0.8.65 codewhale@0.8.65 serve --acp
codex-acp 1.6.2 @agentclientprotocol/codex-acp@1.6.2
deepagents 0.1.0 deepagents-acp@0.1.0
dimcode 0.5.7 dimcode@0.5.7 acp
dirac 0.3.1 dirac-cli@0.3.0 --acp
factory-droid 0.218.0 droid@0.218.0 exec --output-format acp-daemon DROID_DISABLE_AUTO_UPDATE=true \
FACTORY_DROID_AUTO_UPDATE_ENABLED=false
garuda 0.16.1 @garuda-agent/garuda@0.16.1 acp
gemini 0.37.0 @google/gemini-cli@0.37.1 --acp
github-copilot 1.533.0 @github/copilot-language-server@1.533.0 --acp
github-copilot-cli 1.0.80 @github/copilot@1.0.80 --acp
glm-acp-agent 1.5.0 glm-acp-agent@1.5.0
grok-build 1.0.30 @xai-official/grok@1.0.30 agent stdio
nova 1.0.44 @compass-ai/nova@1.0.44 acp
opencode 2.0.23 @opencode/cli@2.0.23 acp
pi-acp 0.0.16 pi-acp@0.0.16
qoder 0.1.30 @qoder-ai/qodercli@0.1.30 --acp
qwen-code 0.21.14 @qwen-code/qwen-code@0.21.14 --acp --experimental-skills
"""

UVX = """
agentao 0.5.10 agentao@0.5.10 --acp
aither-adk 3.0.3 aither-adk==3.0.3 acp serve
fast-agent 0.10.1 fast-agent-acp==0.10.1 -x FAST_AGENT_MODEL=codexplan
minion-code 0.1.8 minion-code@0.1.8 acp
"""

MAC, MAC_X, LINUX, LINUX_ARM = "darwin-aarch64", "darwin-x86_64", "linux-x86_64", "linux-aarch64"
WINDOWS, WINDOWS_ARM = "windows-x86_64", "windows-aarch64"


def same(cmd: str, windows: str | None, *platforms: str) -> dict[str, str]:
    """One `cmd` for these platforms, and another for Windows."""
    found = dict.fromkeys(platforms or (MAC, MAC_X, LINUX, LINUX_ARM), cmd)
    return found | ({WINDOWS: windows} if windows else {})


COCO = "./coco-1.1.27+200623.07dcb388081e-{}/cortex"
VT = {"VT_ACP_ENABLED": "1", "VT_ACP_ZED_ENABLED": "1"}
ARCHIVES: list[tuple[str, str, str, dict[str, str], list[str], dict[str, str]]] = [
    ("acp-bridge", "0.7.0", "", same("./acp-bridge-bare", None), [], {}),
    ("agent-vesper", "0.24.1", "tar.gz",
     same("./agent-vesper-acp/agent-vesper-acp", "./agent-vesper-acp/agent-vesper-acp.exe"), [], {}),
    ("agentty", "0.3.0", "", same("./agentty-bare", "agentty-windows-x86_64.exe"), ["acp"], {}),
    ("amp-acp", "0.9.0", "tar.gz", same("./amp-acp", "amp-acp.exe"), [], {}),
    ("antigravity-acp", "1.2.1", "zip", same("./agy_acp_server.par", "./agy_acp_server.exe"), [], {}),
    ("argy-code", "1.12.10", "tar.gz", same("./argy", "argy.exe"), ["acp"], {}),
    ("chump", "0.1.2", "tar.xz", same("./chump", None), ["--acp"], {}),
    ("codeep", "1.3.15", "tar.gz", same("codeep", None), ["acp"], {}),
    ("contenox", "0.28.5", "tar.gz", same("./contenox", "./contenox.exe", MAC, LINUX_ARM, LINUX), ["acp"], {}),
    ("cortex-code", "1.1.27", "tar.gz", {
        MAC: COCO.format("darwin-arm64"), LINUX: COCO.format("linux-amd64"),
        WINDOWS: COCO.format("windows-amd64") + ".exe", WINDOWS_ARM: COCO.format("windows-arm64") + ".exe",
     }, ["acp", "serve"], {}),
    ("corust-agent", "0.3.7", "tar.gz",
     same("./corust-agent-acp", "./corust-agent-acp.exe", MAC, MAC_X, LINUX), [], {}),
    ("cursor", "2026.10.01", "tar.gz", same("./dist-package/cursor-agent", "./dist-package\\cursor-agent.cmd"),
     ["acp"], {}),
    ("devin", "3000.6.7", "tar.gz", same("./bin/devin", "./bin\\devin.exe"), ["acp"], {}),
    ("fir", "0.98.2", "", same("./fir-bare", None), ["--mode", "acp"], {}),
    ("goose", "1.50.1", "tar.bz2", same("./goose", "./goose-package\\goose.exe"), ["acp"], {}),
    ("harn", "0.10.155", "tar.gz", same("./harn", "harn.exe"), ["serve", "acp"], {}),
    ("junie", "2698.3.0", "zip", {
        MAC: "./Applications/junie.app/Contents/MacOS/junie", MAC_X: "./Applications/junie.app/Contents/MacOS/junie",
        LINUX: "./junie-app/bin/junie", LINUX_ARM: "./junie-app/bin/junie", WINDOWS: "./junie/junie.exe",
     }, ["--acp=true"], {}),
    ("kilo", "7.5.5", "tar.gz", same("./kilo", "./kilo.exe"), ["acp"], {}),
    ("kimi", "1.9.0", "tar.gz", same("./kimi", "./kimi.exe", MAC, LINUX_ARM, LINUX), ["acp"], {}),
    ("mistral-vibe", "2.24.0", "tar.gz", same("./vibe-acp", "./vibe-acp.exe"), [], {}),
    ("poolside", "1.0.16", "tar.gz", same("./pool-unix", "./pool-windows-amd64.exe"), ["acp"], {}),
    ("sigit", "1.5.12", "", same("./sigit-bare", "./sigit-win-amd64.exe"), [], {}),
    ("stakpak", "0.3.67", "tar.gz", same("./stakpak", "./stakpak.exe"), ["acp"], {}),
    ("vtcode", "0.96.14", "tar.gz", same("./vtcode", "vtcode.exe", MAC, LINUX), ["acp"], VT),
]  # fmt: skip

BESIDE = {"kilo": "@kilocode/cli@7.5.5", "argy-code": "@argy-cloud/code@1.12.10", "sigit": "@smbcloud/sigit@1.5.12"}
"""Packages of npm that agents with archives have as well."""

COMMANDS = """
acp-bridge | acp-bridge-bare | acp-bridge-bare | -
aegis | npx -y @onestepat4time/aegis@0.6.7 mcp
agent-vesper | agent-vesper-acp/agent-vesper-acp | = | agent-vesper-acp/agent-vesper-acp.exe
agentao | uvx agentao@0.5.10 --acp
agentty | agentty-bare acp | = | agentty-windows-x86_64.exe acp
agoragentic-acp | npx -y agoragentic-mcp@1.3.1 --acp
agy-acp | npx -y agy-acp-bridge@0.3.7
aider-acp | npx -y aider-acp@latest
aither-adk | uvx aither-adk==3.0.3 acp serve
amp-acp | amp-acp | = | amp-acp.exe
antigravity-acp | agy_acp_server.par | = | agy_acp_server.exe
anvil | npx -y @brokkai/anvil@0.24.4
argy-code | argy acp | = | argy.exe acp
astracode | npx -y astracode-agent@0.3.1 acp
atlarix | npx -y atlarix@15.3.0 acp
auggie | npx -y @augmentcode/auggie@0.36.0 --acp
bezi | npx -y @bezihq/acp@0.1.3
bob | npx -y @ibm/bob@2.0.6 acp
chump | chump --acp | = | -
chutes | npx -y chutes-agent@0.1.0
claude-acp | npx -y @agentclientprotocol/claude-agent-acp@0.85.1
cline | npx -y cline@3.0.4 --acp
codebuddy-code | npx -y @tencent-ai/codebuddy-code@2.156.0 --acp
codebuff-acp | npx -y codebuff-agent-acp@0.1.1
codeep | codeep acp | = | -
codewhale | npx -y codewhale@0.8.65 serve --acp
codex-acp | npx -y @agentclientprotocol/codex-acp@1.6.2
contenox | contenox acp | = | contenox.exe acp
cortex-code | coco-1.1.27+200623.07dcb388081e-linux-amd64/cortex acp serve \
| coco-1.1.27+200623.07dcb388081e-darwin-arm64/cortex acp serve \
| coco-1.1.27+200623.07dcb388081e-windows-amd64/cortex.exe acp serve
corust-agent | corust-agent-acp | = | corust-agent-acp.exe
cursor | dist-package/cursor-agent acp | = | dist-package/cursor-agent.cmd acp
deepagents | npx -y deepagents-acp@0.1.0
devin | bin/devin acp | = | bin/devin.exe acp
dimcode | npx -y dimcode@0.5.7 acp
dirac | npx -y dirac-cli@0.3.0 --acp
factory-droid | npx -y droid@0.218.0 exec --output-format acp-daemon
fast-agent | uvx fast-agent-acp==0.10.1 -x
fir | fir-bare --mode acp | = | -
garuda | npx -y @garuda-agent/garuda@0.16.1 acp
gemini | npx -y @google/gemini-cli@0.37.1 --acp
github-copilot | npx -y @github/copilot-language-server@1.533.0 --acp
github-copilot-cli | npx -y @github/copilot@1.0.80 --acp
glm-acp-agent | npx -y glm-acp-agent@1.5.0
goose | goose acp | = | goose-package/goose.exe acp
grok-build | npx -y @xai-official/grok@1.0.30 agent stdio
harn | harn serve acp | = | harn.exe serve acp
junie | junie-app/bin/junie --acp=true | Applications/junie.app/Contents/MacOS/junie --acp=true \
| junie/junie.exe --acp=true
kilo | kilo acp | = | kilo.exe acp
kimi | kimi acp | = | kimi.exe acp
minion-code | uvx minion-code@0.1.8 acp
mistral-vibe | vibe-acp | = | vibe-acp.exe
nova | npx -y @compass-ai/nova@1.0.44 acp
opencode | npx -y @opencode/cli@2.0.23 acp
pi-acp | npx -y pi-acp@0.0.16
poolside | pool-unix acp | = | pool-windows-amd64.exe acp
qoder | npx -y @qoder-ai/qodercli@0.1.30 --acp
qwen-code | npx -y @qwen-code/qwen-code@0.21.14 --acp --experimental-skills
sigit | sigit-bare | = | sigit-win-amd64.exe
stakpak | stakpak acp | = | stakpak.exe acp
vtcode | vtcode acp | = | vtcode.exe acp
"""
"""The commands on Linux (x86_64), macOS (aarch64) and Windows (x86_64); `=` is the one before, `-` is none."""


def _packages(kind: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in table.strip().splitlines():
        agent_id, version, package, *words = line.split()
        env = dict(word.split("=", 1) for word in words if word.isascii() and word.split("=")[0].isupper())
        args = [word for word in words if word.split("=")[0] not in env]
        source = {"package": package, **({"args": args} if args else {}), **({"env": env} if env else {})}
        found.append({"id": agent_id, "name": agent_id, "version": version, "distribution": {kind: source}})
    return found


def _archives() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for agent_id, version, ending, cmds, args, env in ARCHIVES:
        place, dot = f"https://downloads.example/v{version}/{agent_id}", "." if ending else ""
        targets = {
            platform: {
                "archive": f"{place}-{platform}{dot}{ending}",
                "cmd": cmd,
                **({"args": args} if args else {}),
                **({"env": env} if env else {}),
            }
            for platform, cmd in cmds.items()
        }
        npx = {"npx": {"package": BESIDE[agent_id], "args": args}} if agent_id in BESIDE else {}
        found.append({"id": agent_id, "name": agent_id, "version": version, "distribution": {"binary": targets, **npx}})
    return found


ENTRIES = _packages("npx", NPX) + _packages("uvx", UVX) + _archives()
