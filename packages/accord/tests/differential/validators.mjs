// Reads one JSON request a line, {"module", "type", "values"}, and answers each with one line: what the TypeScript SDK's
// validator of that type makes of every value, or of every JSON text where there are "texts" instead of values. A
// request without a type asks which types the modules have.
//
//     node validators.mjs FOLDER      FOLDER is where the package is installed

import { once } from "node:events";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const FILES = {
  "v1 stable": ["v1/schema/zod.gen.js"],
  "v1 unstable": ["nes/schema/zod.gen.js", "v1/unstable/schema/zod.gen.js", "nes/acp.js"],
  "v2 stable": ["v2/schema/zod.gen.js"],
  "v2 unstable": ["v2/unstable/schema/zod.gen.js"],
};

const dist = join(process.argv[2], "node_modules", "@agentclientprotocol", "sdk", "dist");
const modules = {};
for (const [name, paths] of Object.entries(FILES)) {
  modules[name] = {};
  for (const path of paths) {
    const exported = Object.entries(await import(pathToFileURL(join(dist, path)).href));
    Object.assign(modules[name], Object.fromEntries(exported.filter(([name]) => /^z[A-Z]/.test(name))));
  }
}

// A union reports what every variant had against the value: the one with the least to say was meant.
function deepest(issues) {
  let found = issues[0];
  for (const issue of issues) if (issue.path.length > found.path.length) found = issue;
  if (found.code !== "invalid_union" || !found.errors?.length) return found;
  const inner = found.errors
    .filter((list) => list.length > 0)
    .sort((one, other) => one.length - other.length || deepest(other).path.length - deepest(one).path.length);
  if (inner.length === 0) return found;
  const cause = deepest(inner[0]);
  return { path: [...found.path, ...cause.path], message: cause.message };
}

function judge(schema, value) {
  const result = schema.safeParse(value);
  if (result.success) return { ok: true, value: result.data };
  const { path, message } = deepest(result.error.issues);
  return { ok: false, path, message };
}

// A text may be nested deeper than the other side can read, so what was read of it goes back as text, too.
function judgeText(schema, text) {
  try {
    const judged = judge(schema, JSON.parse(text));
    return judged.ok ? { ok: true, text: JSON.stringify(judged.value) } : judged;
  } catch (error) {
    return { ok: false, path: [], message: String(error) };
  }
}

function answerTo({ module, type, values, texts }) {
  if (type === undefined) {
    return Object.fromEntries(Object.entries(modules).map(([name, schemas]) => [name, Object.keys(schemas)]));
  }
  const schema = modules[module][type];
  return texts ? texts.map((text) => judgeText(schema, text)) : values.map((value) => judge(schema, value));
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = answerTo(JSON.parse(line));
  if (!process.stdout.write(`${JSON.stringify(answer)}\n`)) await once(process.stdout, "drain");
}
