// The overview: who spoke to whom, what both sides agreed on, and what there is to look at. The page opens with it.

import { el } from "./dom.js";
import { clock, plural, whole } from "./format.js";
import { flat } from "./frames.js";

const MOST = 100; // sessions that are listed

/** The node of a trace's overview; `open(number)` shows a session from its first turn on. */
export function overview({ summary, status }, open) {
  const { client, agent, header, version, sessionList = [] } = summary ?? {};
  const parties = el("div", { class: "parties" }, party("Client", client, "clientInfo", "clientCapabilities"), party("Agent", agent, "agentInfo", "agentCapabilities"));
  const asked = client?.protocolVersion;
  const agreed = agent?.protocolVersion === undefined ? "No handshake (initialize) is in this trace."
    : `They agreed on version ${version} of the protocol${asked === agent.protocolVersion ? "" : `; the client asked for ${asked}`}.`;
  const facts = [["Recorded", header?.started], ["Command", header?.command?.join(" ")], ["Folder", header?.cwd], ["Sign-in", agent?.authMethods?.map?.((it) => it?.name ?? it?.id).join(", ")]].filter(([, value]) => value);
  return el("div", { class: "overview" }, el("h2", {}, summary?.name ?? ""), parties, el("p", {}, agreed),
    facts.length > 0 && el("dl", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))])),
    el("p", {}, `${plural(status.count, "message")} in ${clock(status.end - (summary?.begin ?? 0))}, ${plural(status.turns, "turn")}, ${plural(status.errors, "error or note", "errors and notes")}, ${plural(status.findings, "finding")}.`),
    sessionList.length ? el("table", {}, el("tr", {}, ["session", "turns", "messages"].map((head) => el("th", {}, head))), sessionList.slice(0, MOST).map((it) => row(it, open))) : el("p", {}, "No session was opened."),
    status.sessions > MOST && el("p", {}, `The first ${MOST} of ${plural(status.sessions, "session")}; search for session: and the beginning of another.`));
}

const row = (session, open) => el("tr", {}, el("td", {}, el("button", { type: "button", onclick: () => open(session.number) }, session.name)), el("td", {}, whole(session.turns)), el("td", {}, whole(session.count)));

/** One side: what it calls itself, and what it can do. */
function party(title, said, info, capabilities) {
  const self = said?.[info] ?? said?.info ?? {};
  const can = [...flat(said?.[capabilities] ?? said?.capabilities ?? {}, "")].filter(([name, value]) => name && value !== "false" && value !== "null");
  return el("section", {}, el("h3", {}, title),
    el("p", {}, el("b", {}, self.title ?? self.name ?? (said?.protocolVersion === undefined ? "not known" : "gives no name")), ` ${self.version ?? ""}`),
    can.length ? el("ul", {}, can.map(([name, value]) => el("li", {}, value === "true" || value === "{}" ? name : `${name}: ${value}`))) : el("p", { class: "category-quiet" }, "declared no capabilities"));
}
