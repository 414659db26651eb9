// The TypeScript SDK's MCP helpers: tools of an MCP server as the client's own. Prints the last content as JSON.
const { createRequire } = require("node:module");
const load = createRequire(process.env.SDK_HOME + "/");
const Anthropic = load("@anthropic-ai/sdk").default;
const { mcpTools } = load("@anthropic-ai/sdk/helpers/beta/mcp");

// As much of an MCP client as the helpers ask for, over Streamable HTTP.
class Client {
  #session = "";
  #number = 0;

  async request(method, params) {
    const message = { jsonrpc: "2.0", id: ++this.#number, method, params };
    const answer = await this.#post(message);
    const text = await answer.text();
    const data = text.split("\n").filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6)));
    return (data.length ? data.find((one) => one.id === message.id) : JSON.parse(text)).result;
  }

  async connect() {
    await this.request("initialize", {
      protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" },
    });
    await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  callTool(params) {
    return this.request("tools/call", params);
  }

  async #post(message) {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    if (this.#session) headers["mcp-session-id"] = this.#session;
    const answer = await fetch(process.env.MCP, { method: "POST", headers, body: JSON.stringify(message) });
    this.#session = answer.headers.get("mcp-session-id") ?? this.#session;
    return answer;
  }
}

async function main() {
  const mcp = new Client();
  await mcp.connect();
  const { tools } = await mcp.request("tools/list", {});
  const client = new Anthropic({ apiKey: process.env.KEY, baseURL: process.env.URL });
  const last = await client.beta.messages.toolRunner({
    model: "claude-sonnet-5", max_tokens: 100, tools: mcpTools(tools, mcp),
    messages: [{ role: "user", content: "Add, fail, and the weather?" }],
  }).runUntilDone();
  console.log(JSON.stringify(last.content));
}

main().catch((error) => { console.error(error); process.exit(1); });
