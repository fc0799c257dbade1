// Asks the search of a built site as its pages do: node search.js SITE QUESTION... prints the first places of each.
const fs = require("fs");
const [site, ...questions] = process.argv.slice(2);
const workers = `${site}/assets/javascripts/workers/`;
const name = fs.readdirSync(workers).find((it) => /^search\..*\.js$/.test(it));
const waiting = [];
const self = { postMessage: (message) => waiting.shift()(message) };
new Function("self", fs.readFileSync(workers + name, "utf8"))(self);
const ask = (type, data) =>
  new Promise((answer) => {
    waiting.push(answer);
    self.onmessage({ data: { type, data } });
  });
const [INDEX, QUERY] = [0, 2];

(async () => {
  const index = JSON.parse(fs.readFileSync(`${site}/search.json`, "utf8"));
  await ask(INDEX, index);
  const found = {};
  for (const input of questions) {
    const operator = { type: "operator", data: { operator: "and", operands: [] } };
    const { data } = await ask(QUERY, { input, filter: { input: operator, aggregation: { input: [] } } });
    found[input] = data.items.map(({ id }) => index.items[id].location);
  }
  console.log(JSON.stringify(found));
})();
