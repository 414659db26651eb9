// The live panel of a conversation. All that it shows comes from models and tools: it is only ever set as text.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const panel = document.querySelector("[data-live]");
  if (!panel) return;
  const state = panel.querySelector(".tb-live-state");
  const waiting = panel.querySelector(".tb-live-waiting");
  const turns = panel.querySelector(".tb-live-turns");
  const shown = new Map(); // turn -> its element, status and sequence
  const first = BigInt(panel.dataset.after); // what ended until then stands on the page already
  let after = panel.dataset.after;
  let socket = null;
  let pause = 500;
  let skew = 0;

  function make(tag, classes, text) {
    const element = document.createElement(tag);
    element.className = classes;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function say(text, colour) {
    state.textContent = text;
    state.className = `tb-live-state tb-badge tb-${colour}`;
  }

  function words(since) {
    const seconds = Math.max(0, Math.round((Date.now() + skew - since) / 1000));
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    const hours = Math.floor(seconds / 3600);
    return hours < 48 ? `${hours} h ${Math.floor((seconds % 3600) / 60)} min` : `${Math.floor(hours / 24)} days`;
  }

  function tick() {
    for (const element of panel.querySelectorAll("[data-since]")) element.textContent = words(Number(element.dataset.since));
  }

  function block(item) {
    if (item.kind === "thinking") {
      const fold = make("details", "tb-thinking tb-flush");
      fold.open = true;
      fold.append(make("summary", "", "Thinking"), make("pre", "tb-value", item.text));
      return fold;
    }
    if (item.kind === "tool_use" || item.kind === "mcp_tool_use") {
      const call = make("div", "tb-call");
      call.append(make("strong", "tb-wrap", item.name), make("pre", "tb-value", item.text));
      return call;
    }
    if (item.kind !== "text" && !item.text) return make("p", "tb-size", item.kind);
    return make("pre", "tb-value", (item.cut ? `… ${item.cut} characters before …\n` : "") + item.text);
  }

  const colours = { running: "info", complete: "success", error: "danger", aborted: "warning" };

  function turn(item) {
    const known = shown.get(item.id);
    if (!known && item.status !== "running" && BigInt(item.id) <= first) return;
    // A turn that has ended stays so; of a running one the newest counts.
    if (known && (known.status !== "running" || (item.status === "running" && item.sequence < known.sequence))) return;
    const element = make("article", "tb-turn tb-live-turn");
    element.dataset.turn = item.id;
    const head = make("header", "tb-turn-head");
    const time = make("span", "tb-meta", item.status === "running" ? words(item.started) : "");
    if (item.status === "running") time.dataset.since = item.started;
    const link = make("a", "tb-link tb-end", "Every hop");
    link.href = item.url;
    head.append(make("span", `tb-badge tb-${colours[item.status] ?? "info"}`, item.status), make("span", "tb-short", item.model), time);
    if ("hops" in panel.dataset) head.append(link);
    element.append(head);
    if (item.error) element.append(make("div", "tb-flag tb-danger tb-wrap", item.error));
    element.append(...item.blocks.map(block));
    if (known) known.element.replaceWith(element); else turns.prepend(element);
    shown.set(item.id, { element, status: item.status, sequence: item.sequence });
    for (const value of element.querySelectorAll("pre")) value.scrollTop = value.scrollHeight;
  }

  // How far a tool is that the bridge runs: a bar where it says of how much, and its own words.
  function progress(name, at) {
    const parts = [];
    if (at.total) {
      const bar = make("progress", "tb-progress");
      bar.max = at.total;
      bar.value = Math.min(at.progress, at.total);
      bar.setAttribute("aria-label", `Progress of ${name}`);
      parts.push(bar, " ");
    }
    parts.push(make("span", "tb-size tb-wrap", `${at.progress}${at.total ? ` of ${at.total}` : ""} ${at.message}`.trim()));
    return parts;
  }

  function show(update) {
    skew = update.now - Date.now();
    update.turns.forEach(turn);
    const told = new Map((update.progress ?? []).map((item) => [item.id, item]));
    waiting.replaceChildren(...update.waiting.map((call) => {
      const item = make("li", "");
      const since = make("span", "tb-meta", words(call.since));
      since.dataset.since = call.since;
      item.append(make("strong", "tb-wrap", call.name), " ", make("span", "tb-badge tb-warning", call.status), " ", since);
      const at = told.get(call.id);
      if (at) item.append(" ", ...progress(call.name, at));
      return item;
    }));
    const running = [...shown.values()].some((item) => item.status === "running");
    say(running ? "running" : "waiting for the next turn", running ? "info" : "success");
    // What has ended need not be told again after a reconnection.
    for (const [id, item] of shown) if (item.status !== "running" && BigInt(id) > BigInt(after)) after = id;
  }

  function connect() {
    if (socket || document.hidden) return;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(`${scheme}//${location.host}${panel.dataset.live}?after=${after}`);
    const mine = socket;
    mine.addEventListener("open", () => { pause = 500; say("connected", "success"); });
    mine.addEventListener("message", (event) => show(JSON.parse(event.data)));
    mine.addEventListener("close", (event) => {
      if (socket === mine) socket = null;
      if (event.code === 4404 || event.code === 4403) { say("over", "warning"); return; }
      say("not connected", "warning");
      setTimeout(connect, pause);
      pause = Math.min(pause * 2, 15000);
    });
  }

  // A page that nobody sees watches nothing.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) connect();
    else if (socket && socket.readyState === WebSocket.OPEN) socket.close();
  });
  setInterval(tick, 1000);
  connect();
});
