// Shows a chat while it goes on: texts, thoughts, tool calls, memories, approvals.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("chat-live");
  if (!place) return;
  const labels = JSON.parse(place.dataset.labels);
  const settled = new Set(JSON.parse(place.dataset.settled));
  const turns = new Map();
  const answered = new Set([...document.querySelectorAll("li[data-turn]")].map((item) => item.dataset.turn));

  const add = (parent, tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text) element.textContent = text;
    parent.append(element);
    return element;
  };

  // A turn's box; each step of it has a text of its own, which a higher epoch begins anew.
  const boxOf = (event) => {
    if (!turns.has(event.turn)) {
      const box = add(place, "article", "turn");
      add(box, "strong", "", event.agent);
      turns.set(event.turn, {box, texts: new Map(), calls: new Map()});
    }
    return turns.get(event.turn);
  };

  const textOf = (event, kind) => {
    const turn = boxOf(event);
    const key = `${kind} ${event.step}`;
    const known = turn.texts.get(key);
    if (known && known.epoch >= event.epoch) return known.epoch > event.epoch ? null : known.element;
    let element = known && known.element;
    if (element) element.textContent = "";
    else if (kind === "thinking_delta") {
      const folded = add(turn.box, "details");
      add(folded, "summary", "", labels.thinking);
      element = add(folded, "pre");
    } else element = add(turn.box, "pre");
    element.dir = "auto";
    turn.texts.set(key, {epoch: event.epoch, element});
    return element;
  };

  // The page has the form to decide a call; one that is loaded goes on after the event that it is for.
  const showForm = (call, position) => {
    const calls = [...document.querySelectorAll("input[name=call]")].map((input) => input.value);
    if (calls.includes(call) || settled.has(call)) return;
    const address = new URL(location.href);
    address.searchParams.set("from", position);
    location.replace(address.href);
  };

  const show = (event, position) => {
    const data = event.data;
    // A page that is loaded again has the answer, and streams how it came about.
    if (event.type === "text_delta" && answered.has(event.turn)) return;
    if (event.type.endsWith("_delta")) {
      const element = textOf(event, event.type);
      if (element) element.append(data.text);
    }
    else if (event.type === "memory") {
      add(boxOf(event).box, "p", "quiet", `${labels.memories}: ${data.memories.length}`);
    } else if (event.type === "tool_call") {
      const folded = add(boxOf(event).box, "details");
      add(folded, "summary", "", `${labels.calls} ${data.tool}`);
      add(folded, "pre", "", data.arguments);
      boxOf(event).calls.set(data.call, folded);
    } else if (event.type === "tool_result") {
      add(boxOf(event).calls.get(data.call) || boxOf(event).box, "pre", "", data.content);
    } else if (event.type === "approval") showForm(data.call, position);
    else if (event.type === "notice") add(boxOf(event).box, "p", "quiet", `${data.what} ${data.limit || ""}`);
    else if (event.type === "stop" && data.error) add(boxOf(event).box, "p", "problem", data.error);
  };

  const stream = new EventSource(place.dataset.source);
  const types = ["memory", "text_delta", "thinking_delta", "tool_call", "tool_result", "approval",
                 "handed_on", "notice", "stop"];
  for (const type of types) {
    stream.addEventListener(type, (message) => show(JSON.parse(message.data), message.lastEventId));
  }
  addEventListener("pagehide", () => stream.close());
});
