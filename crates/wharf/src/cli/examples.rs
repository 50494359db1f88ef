//! Two examples for each command, below its help.

pub(super) const ADD: &str = "Examples:
  wharf add @modelcontextprotocol/server-filesystem -- ./data
  wharf add https://mcp.example.com/mcp --name search";

pub(super) const CALL: &str = "Examples:
  wharf call create_todo title='Buy milk' priority=2 tags=home,shopping
  wharf call todo:list_todos --args '{\"status\": \"active\"}' --json
  wharf call reports:build month=5 --no-wait";

pub(super) const CHAT: &str = "Examples:
  wharf chat
  wharf chat --model ollama/qwen3 --allow 'todo:*'";

pub(super) const CHECK: &str = "Examples:
  wharf check
  wharf check --strict -f other.yaml";

pub(super) const COMPLETIONS: &str = "Examples:
  wharf completions bash > ~/.local/share/bash-completion/completions/wharf
  wharf completions zsh > \"${fpath[1]}/_wharf\"";

pub(super) const CONNECT: &str = "Examples:
  wharf connect claude --print
  wharf connect codex --http";

pub(super) const CONSOLE: &str = "Examples:
  wharf console
  wharf console --server https://wharf.example.com --no-open";

pub(super) const DOCTOR: &str = "Examples:
  wharf doctor
  wharf doctor files --json";

pub(super) const EXPLAIN: &str = "Examples:
  wharf explain
  wharf explain files --json";

pub(super) const INIT: &str = "Examples:
  wharf init --from claude
  wharf init --from codex --merge";

pub(super) const LINT: &str = "Examples:
  wharf lint
  wharf lint files --deny D-05 --deny D-06";

pub(super) const LOCK: &str = "Examples:
  wharf lock
  wharf lock --check --offline
  wharf lock --diff files:delete_path
  wharf lock --accept files:delete_path
  wharf lock --try time=2026.10.19 --cassette demo.cassette.jsonl";

pub(super) const WHY: &str = "Examples:
  wharf why todo__create_todo
  wharf why files:delete_path --json";

pub(super) const MOCK: &str = "Examples:\n  wharf mock demo.cassette.jsonl\n  wharf mock demo.cassette.jsonl --transport http --listen 127.0.0.1:7375";

pub(super) const REPLAY: &str = "Examples:
  wharf replay demo.cassette.jsonl
  wharf replay demo.cassette.jsonl --tools live";

pub(super) const TEST: &str = "Examples:
  wharf test
  wharf test tests --junit results.xml
  wharf test tests/reads.test.yaml --update";

pub(super) const LOGIN: &str = "Examples:
  wharf login wiki
  wharf login wiki --logout";

pub(super) const PROMPT: &str = "Examples:
  wharf prompt plan_my_day
  wharf prompt wiki:summarise topic=harbours";

pub(super) const PROMPTS: &str = "Examples:
  wharf prompts
  wharf prompts todo --json";

pub(super) const READ: &str = "Examples:
  wharf read todo://1
  wharf read file:///data/chart.png --save pictures";

pub(super) const RESOURCES: &str = "Examples:
  wharf resources
  wharf resources todo --json";

pub(super) const CONVERSATIONS: &str = "Examples:
  wharf conversations list
  wharf conversations show 0199e7c1-1c5a-7c9e-a5be-5d2f8e0c4a11";

pub(super) const CONVERSATIONS_DELETE: &str = "Examples:
  wharf conversations delete 0199e7c1-1c5a-7c9e-a5be-5d2f8e0c4a11
  wharf conversations delete 0199e7c1-1c5a-7c9e-a5be-5d2f8e0c4a11 --json";

pub(super) const CONVERSATIONS_LIST: &str = "Examples:
  wharf conversations list
  wharf conversations list --json";

pub(super) const CONVERSATIONS_SHOW: &str = "Examples:
  wharf conversations show 0199e7c1-1c5a-7c9e-a5be-5d2f8e0c4a11
  wharf conversations show 0199e7c1-1c5a-7c9e-a5be-5d2f8e0c4a11 --json";

pub(super) const RUN: &str = "Examples:
  wharf run 'Remind me to buy eggs'
  wharf run 'What is wrong here?' --attach build.log --attach screenshot.png
  wharf run --prompt todo:plan_my_day
  wharf run --model ollama/qwen3 --allow 'todo:*' --json < message.txt";

pub(super) const SCHEMA: &str = "Examples:
  wharf schema > agent.schema.json
  wharf schema --api > openapi.json";

pub(super) const SERVE: &str = "Examples:
  wharf serve
  wharf serve --listen 127.0.0.1:8080 --database postgres://me@db.local/wharf";

pub(super) const SOURCES: &str = "Examples:
  wharf sources list
  wharf sources add server.json --server http://127.0.0.1:7373";

pub(super) const SOURCES_ADD: &str = "Examples:
  wharf sources add server.json
  wharf sources add - < server.json";

pub(super) const SOURCES_LIST: &str = "Examples:
  wharf sources list
  wharf sources list --json";

pub(super) const SOURCES_REFRESH: &str = "Examples:
  wharf sources refresh wiki
  wharf sources refresh wiki --json";

pub(super) const SOURCES_REMOVE: &str = "Examples:
  wharf sources remove wiki
  wharf sources remove wiki --server https://wharf.example.com";

pub(super) const STDIO: &str = "Examples:
  wharf stdio
  wharf stdio -f ~/agents/agent.yaml";

pub(super) const TASKS: &str = "Examples:
  wharf tasks get reports:6f1c
  wharf tasks cancel reports:6f1c";

pub(super) const TASKS_CANCEL: &str = "Examples:
  wharf tasks cancel reports:6f1c
  wharf tasks cancel reports:6f1c --json";

pub(super) const TASKS_GET: &str = "Examples:
  wharf tasks get reports:6f1c
  wharf tasks get reports:6f1c --json";

pub(super) const TODO: &str = "Examples:
  wharf todo
  wharf todo --transport http --listen 127.0.0.1:7374";

pub(super) const TOOLS: &str = "Examples:
  wharf tools todo --long
  wharf tools create_todo";
