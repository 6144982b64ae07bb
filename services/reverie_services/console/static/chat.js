// Shows a chat while it goes on: texts, thoughts, tool calls, memories, approvals.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("chat-live");
  if (!place) return;
  const labels = JSON.parse(place.dataset.labels);
  const settled = new Set(JSON.parse(place.dataset.settled));
  const stop = document.getElementById("chat-stop"), end = document.getElementById("end");
  const turns = new Map(), open = new Set();
  const answers = new Map();
  for (const item of document.querySelectorAll("li[data-turn]")) answers.set(item.dataset.turn, item);
  const asked = new URL(location.href).searchParams;
  let first = asked.get("from") ? Number(asked.get("from")) : null;

  const add = (parent, tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text) element.textContent = text;
    parent.append(element);
    return element;
  };

  // A turn's box, in front of its answer where the page has that; each step of it has a text of its
  // own, which a higher epoch begins anew.
  const turnOf = (event) => {
    if (!turns.has(event.turn)) {
      const answer = answers.get(event.turn);
      const box = add(place, "article", answer ? "" : "turn");
      if (answer) answer.querySelector("pre").before(box);
      else add(box, "strong", "", event.agent);
      turns.set(event.turn, {box, texts: new Map(), calls: new Map()});
    }
    return turns.get(event.turn);
  };

  const fold = (parent, summary) => {
    const folded = add(parent, "details");
    add(folded, "summary", "", summary);
    return folded;
  };

  const textOf = (event, kind) => {
    const turn = turnOf(event);
    const key = `${kind} ${event.step}`;
    const known = turn.texts.get(key);
    if (known && known.epoch >= event.epoch) return known.epoch > event.epoch ? null : known.element;
    let element = known && known.element;
    if (element) element.textContent = "";
    else element = add(kind === "thinking_delta" ? fold(turn.box, labels.thinking) : turn.box, "pre");
    element.dir = "auto";
    turn.texts.set(key, {epoch: event.epoch, element});
    return element;
  };

  const showMemories = (event) => {
    const turn = turnOf(event), {memories, trace} = event.data;
    if (turn.memories) turn.memories.remove();
    turn.memories = fold(turn.box, `${labels.memories}: ${memories.length}`);
    const list = add(turn.memories, "ul", "plain-list");
    const link = (path, id, text) => {
      add(add(list, "li"), "a", "", text).href = `/console/${path}/${encodeURIComponent(id)}`;
    };
    for (const id of memories) link("memories", id, id.slice(-8));
    if (trace) link("recalls", trace, labels.why);
  };

  const showCall = (event) => {
    const turn = turnOf(event), {call, tool} = event.data;
    if (turn.calls.has(call)) return;
    const folded = fold(turn.box, `${labels.calls} ${tool}`);
    add(folded, "pre", "", event.data.arguments);
    turn.calls.set(call, folded);
  };

  const showResult = (event) => {
    const turn = turnOf(event), {call, content} = event.data;
    const folded = turn.calls.get(call) || turn.box;
    if (folded.result) folded.result.textContent = content;
    else folded.result = add(folded, "pre", "answer", content);
  };

  // The page has the form to decide a call. One that is loaded for it shows the turn from where this
  // one began, and is loaded for no earlier call again.
  const showForm = (call, position) => {
    const calls = [...document.querySelectorAll("input[name=call]")].map((input) => input.value);
    if (calls.includes(call) || settled.has(call) || position <= Number(asked.get("seen") || 0)) return;
    const address = new URL(location.href);
    address.searchParams.set("from", first);
    address.searchParams.set("seen", position);
    location.replace(address.href);
  };

  const note = (event, text) => add(turnOf(event).box, "p", "quiet", text);

  const show = (event) => {
    const data = event.data;
    if (event.type.endsWith("_delta")) {
      // A page that is loaded again has the answer, and streams how it came about.
      if (event.type === "text_delta" && answers.has(event.turn)) return;
      const element = textOf(event, event.type);
      if (element) element.append(data.text);
    } else if (event.type === "memory") showMemories(event);
    else if (event.type === "tool_call") showCall(event);
    else if (event.type === "tool_result") showResult(event);
    else if (event.type === "handed_on") note(event, `${labels.handed_on} ${data.to}`);
    else if (event.type === "notice") {
      const about = data.limit || data.server || data.why || "";
      note(event, `${labels[data.what] || data.what} ${about}`);
    } else if (event.type === "stop" && data.error) add(turnOf(event).box, "p", "problem", data.error);
  };

  const isAtEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
  const followEnd = () => end && end.scrollIntoView({block: "end"});

  const hear = (message) => {
    const event = JSON.parse(message.data), position = Number(message.lastEventId);
    first = first ?? position - 1;
    if (event.type === "approval") return showForm(event.data.call, position);
    const follows = isAtEnd();
    if (event.type === "result") open.delete(event.turn);
    else if (!answers.has(event.turn)) open.add(event.turn);
    if (stop) stop.hidden = !open.size;
    show(event);
    if (follows) followEnd();
  };

  const stream = new EventSource(place.dataset.source);
  const types = ["turn_started", "memory", "text_delta", "thinking_delta", "tool_call", "tool_result",
                 "approval", "handed_on", "notice", "stop", "result"];
  for (const type of types) stream.addEventListener(type, hear);
  addEventListener("pagehide", () => stream.close());
  if (end && !location.hash) followEnd();
});
