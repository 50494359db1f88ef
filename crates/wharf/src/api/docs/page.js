// Renders /openapi.json. Text from the document and from responses is inserted as text, never as markup.
"use strict";

const byId = (id) => document.getElementById(id);
let token = "";
let spec = null;

function make(name, text, ...children) {
  const it = document.createElement(name);
  if (text) it.textContent = text;
  it.append(...children);
  return it;
}

function say(text, bad) {
  byId("note").textContent = text;
  byId("note").classList.toggle("bad", Boolean(bad));
}

function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  return fetch(path, { ...options, headers, credentials: "omit", redirect: "error" });
}

// Resolves a reference. One level is enough for parameters; schemas are shown as written.
const resolve = (it) =>
  it.$ref ? it.$ref.slice(2).split("/").reduce((at, key) => at[key], spec) : it;

function tableOf(head, rows) {
  const line = (kind, cells) => make("tr", "", ...cells.map((it) => make(kind, it)));
  return make("table", "", line("th", head), ...rows.map((it) => line("td", it)));
}

function schemaOf(content) {
  const schema = Object.values(content || {})[0]?.schema;
  return schema ? resolve(schema) : null;
}

function trial(method, path, parameters, body) {
  const form = make("form");
  const inputs = parameters.map((it) => {
    const input = make("input");
    input.value = it.in === "path" ? it.example || "" : "";
    form.append(make("label", `${it.name} `, input), make("br"));
    return [it, input];
  });
  const text = make("textarea");
  if (body) {
    text.value = JSON.stringify(body.example || {}, null, 2);
    form.append(text);
  }
  const shown = make("pre");
  form.append(make("button", "Try it"), shown);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    shown.textContent = "…";
    const query = new URLSearchParams();
    const headers = body ? { "Content-Type": "application/json" } : {};
    let at = path;
    for (const [it, input] of inputs) {
      if (it.in === "path") at = at.replace(`{${it.name}}`, encodeURIComponent(input.value));
      else if (input.value && it.in === "query") query.set(it.name, input.value);
      else if (input.value) headers[it.name] = input.value;
    }
    try {
      const answer = await ask(query.size ? `${at}?${query}` : at, {
        method: method.toUpperCase(),
        headers,
        body: body ? text.value : undefined,
      });
      const said = await answer.text();
      let pretty = said;
      try {
        pretty = JSON.stringify(JSON.parse(said), null, 2);
      } catch {
        // Not JSON: shown unchanged.
      }
      shown.textContent = `${answer.status} ${answer.statusText}\n\n${pretty}`;
    } catch (error) {
      shown.textContent = String(error);
    }
  });
  return form;
}

function operation(path, method, it) {
  const parameters = (it.parameters || []).map(resolve);
  const body = it.requestBody && schemaOf(it.requestBody.content);
  const shown = make("details");
  shown.append(make("summary", "", make("b", method.toUpperCase()), make("code", path), ` ${it.summary}`));
  shown.append(make("p", it.description));
  if (parameters.length) {
    const rows = parameters.map((one) => [one.name, one.in, one.description || JSON.stringify(one.schema)]);
    shown.append(tableOf(["parameter", "in", "what"], rows));
  }
  if (body) shown.append(make("p", "Body"), make("pre", JSON.stringify(body, null, 2)));
  const rows = Object.entries(it.responses).map(([status, one]) => {
    const kinds = Object.entries(one.content || {});
    return [status, one.description, kinds.map(([kind, of]) => `${kind}: ${of.schema.$ref?.split("/").pop()}`).join(", ")];
  });
  shown.append(tableOf(["status", "", "document"], rows));
  const streams = rows.some((row) => row[2].includes("event-stream")) || path === "/ws";
  if (!streams) shown.append(trial(method, path, parameters, body));
  return shown;
}

function show() {
  const chapters = new Map();
  for (const [path, methods] of Object.entries(spec.paths)) {
    for (const [method, it] of Object.entries(methods)) {
      const chapter = it.tags[0];
      if (!chapters.has(chapter)) chapters.set(chapter, make("section", "", make("h2", chapter)));
      chapters.get(chapter).append(operation(path, method, it));
    }
  }
  const schemas = make("section", "", make("h2", "schemas"));
  for (const [name, schema] of Object.entries(spec.components.schemas)) {
    schemas.append(make("details", "", make("summary", name), make("pre", JSON.stringify(schema, null, 2))));
  }
  byId("operations").replaceChildren(...chapters.values(), schemas);
}

async function load() {
  const answer = await ask("/openapi.json");
  if (!answer.ok) throw new Error(answer.status === 401 ? "This token is not known here." : `Status ${answer.status}`);
  spec = await answer.json();
  show();
  say(`${spec.info.title} ${spec.info.version}`);
}

byId("entrance").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  load().catch((error) => say(error.message, true));
});

// Sends no token to operations that need none.
load().catch(() => {});
