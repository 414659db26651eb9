// The TypeScript SDK's tool runner, told by its environment what to do; prints the last text as JSON.
const { createRequire } = require("node:module");
const load = createRequire(process.env.SDK_HOME + "/");
const Anthropic = load("@anthropic-ai/sdk").default;
const { betaTool } = load("@anthropic-ai/sdk/helpers/beta/json-schema");
const readline = require("node:readline");

const tool = betaTool({
  name: "get_weather",
  description: "The weather of a city",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  run: async ({ city }) => `sunny in ${city}`,
});

async function main() {
  const client = new Anthropic({ apiKey: process.env.KEY, baseURL: process.env.URL });
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const stream = process.env.STREAM === "1";
  const runner = client.beta.messages.toolRunner({
    model: "claude-sonnet-5", max_tokens: 100, system: "Be brief.", tools: [tool], stream,
    messages: [{ role: "user", content: "Weather in Oslo and Rome?" }],
  });
  let last;
  for await (const turn of runner) {
    last = stream ? await turn.finalMessage() : turn;
    console.log("turn"); // the test may restart the server now
    await lines.next();
  }
  console.log(JSON.stringify(last.content));
  process.exit(0);
}

main().catch((error) => { console.error(error); process.exit(1); });
