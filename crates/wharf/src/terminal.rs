//! Answers the elicitation requests of servers by asking the user at the terminal.

use crate::{content::printable, progress};
use serde_json::{Map, Value, json};
use std::{
    future::Future,
    io::{self, BufRead, IsTerminal, Write},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::task;
use url::Url;
use wharf_agent::{InputAnswer, InputAnswerer, InputFuture, InputKind, InputQuestion};
use wharf_mcp::{Raw, RpcError};
use wharf_runtime::upstream::{Answerable, Consent, ServerRequest};

/// Prompts for one line and trims it. `None` at the end of input.
pub(crate) type PromptLine = Arc<dyn Fn(&str) -> io::Result<Option<String>> + Send + Sync>;

/// The user at the terminal.
pub(crate) struct Terminal {
    /// Serialises the questions of all servers.
    turn: Arc<Mutex<()>>,
    prompt: PromptLine,
}

/// The user's reply to an elicitation.
enum Reply {
    Accept(Map<String, Value>),
    Decline,
    Cancel,
}

impl Terminal {
    /// Opens the terminal, if stdin and stderr are both one.
    pub(crate) fn open() -> Option<Terminal> {
        is_available().then(|| Terminal::with_prompt(Arc::new(prompt_line)))
    }

    /// Asks with this prompt instead of reading lines from stdin.
    pub(crate) fn with_prompt(prompt: PromptLine) -> Terminal {
        Terminal { turn: Arc::default(), prompt }
    }
}

/// Checks whether a user can read a question and type an answer.
pub(crate) fn is_available() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a yes-or-no question. Everything but a yes counts as no, including the end of input.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    Ok(prompt_line(question)?.is_some_and(|it| is_yes(&it)))
}

impl Consent for Terminal {
    fn answers(&self) -> Answerable {
        Answerable { forms: true, links: true, ..Answerable::default() }
    }

    fn answer(&self, asked: ServerRequest) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>> {
        if asked.method != "elicitation/create" {
            // Refuse other requests such as sampling: it costs money and may leak secrets, and the user has not
            // agreed to it.
            return Box::pin(async move { Err(RpcError::method_not_found(&asked.method)) });
        }
        let asking = self.ask_person(move |prompt| ask(&asked, prompt));
        Box::pin(async move {
            let not_answered = || RpcError::new(RpcError::INTERNAL, "the question was not answered");
            Ok(asking.await.ok_or_else(not_answered)?.into_raw())
        })
    }
}

impl InputAnswerer for Terminal {
    fn answer(&self, question: InputQuestion) -> InputFuture<'_> {
        let asking = self.ask_person(move |prompt| ask_question(&question, prompt));
        Box::pin(async move {
            match asking.await {
                Some(Reply::Accept(content)) => InputAnswer::Accept(content.into()),
                Some(Reply::Decline) => InputAnswer::Decline,
                Some(Reply::Cancel) | None => InputAnswer::Cancel,
            }
        })
    }
}

impl Terminal {
    /// Asks on a thread that may block. The end of input cancels the question; `None` if the thread failed.
    fn ask_person(
        &self,
        ask: impl FnOnce(&PromptLine) -> io::Result<Reply> + Send + 'static,
    ) -> impl Future<Output = Option<Reply>> + Send + 'static {
        let (turn, prompt) = (self.turn.clone(), self.prompt.clone());
        async move {
            let asking = task::spawn_blocking(move || {
                let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
                ask(&prompt)
            });
            Some(asking.await.ok()?.unwrap_or(Reply::Cancel))
        }
    }
}

/// Asks the question of a server during a call of the agent.
fn ask_question(question: &InputQuestion, prompt_line: &PromptLine) -> io::Result<Reply> {
    let InputQuestion { source, message, kind, .. } = question;
    let params = match kind {
        InputKind::Form(form) => json!({ "message": message, "requestedSchema": form }),
        InputKind::Link { url, .. } => json!({ "message": message, "url": url }),
        InputKind::Sampling(prompt) => return ask_about_prompt(source, prompt, prompt_line),
    };
    let method = "elicitation/create".to_owned();
    ask(&ServerRequest { source: source.clone(), method, params: params.into() }, prompt_line)
}

/// Shows what a server wants to ask the model.
fn ask_about_prompt(source: &str, prompt: &Value, prompt_line: &PromptLine) -> io::Result<Reply> {
    progress::clear_lines();
    write_stderr(&format!("\n`{}` wants to ask the model:\n", printable(source)))?;
    let system = prompt["systemPrompt"].as_str().map(|it| ("system", it.to_owned()));
    let messages = prompt["messages"].as_array().into_iter().flatten().map(|it| {
        let text = it["content"]["text"].as_str().map_or_else(|| it["content"].to_string(), str::to_owned);
        (it["role"].as_str().unwrap_or_default(), text)
    });
    for (role, text) in system.into_iter().chain(messages) {
        write_stderr(&format!("  {}: {}\n", printable(role), printable(&text)))?;
    }
    Ok(match prompt_line("Allow? [y/N] ")? {
        Some(answer) if is_yes(&answer) => Reply::Accept(Map::new()),
        Some(_) => Reply::Decline,
        None => Reply::Cancel,
    })
}

impl Reply {
    fn into_raw(self) -> Raw {
        match self {
            Reply::Accept(content) => json!({ "action": "accept", "content": content }),
            Reply::Decline => json!({ "action": "decline" }),
            Reply::Cancel => json!({ "action": "cancel" }),
        }
        .into()
    }
}

/// Asks the fields of a form one by one. The end of input cancels the request.
fn ask(asked: &ServerRequest, prompt_line: &PromptLine) -> io::Result<Reply> {
    progress::clear_lines();
    let params: Value = asked.params.decode_or_default();
    let message = printable(params["message"].as_str().unwrap_or("(no message)"));
    write_stderr(&format!("\n`{}` asks: {message}\n", printable(&asked.source)))?;
    if let Some(url) = params["url"].as_str() {
        write_stderr(&describe_link(url))?;
    }
    let Some(answer) = prompt_line("Answer? [y/N] ")? else { return Ok(Reply::Cancel) };
    if !is_yes(&answer) {
        return Ok(Reply::Decline);
    }
    let schema = &params["requestedSchema"];
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut content = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        match ask_field(name, field, required.contains(&name.as_str()), prompt_line)? {
            Some(Some(value)) => _ = content.insert(name.clone(), value),
            Some(None) => {}
            None => return Ok(Reply::Cancel),
        }
    }
    Ok(Reply::Accept(content))
}

/// Describes a link. Its host is named apart, because a URL can begin with the name of another one.
fn describe_link(url: &str) -> String {
    let host = Url::parse(url).ok().and_then(|it| it.host_str().map(str::to_owned));
    let host = host.map_or_else(String::new, |it| format!(" at {it}"));
    format!(
        "It asks you to open a URL{}; check it carefully first:\n  {}\n",
        printable(&host),
        printable(url)
    )
}

/// Asks for one field. The outer `None` means the end of input, the inner one a field left empty.
fn ask_field(
    name: &str,
    field: &Value,
    required: bool,
    prompt_line: &PromptLine,
) -> io::Result<Option<Option<Value>>> {
    let title = printable(field["title"].as_str().unwrap_or(name));
    if let Some(description) = field["description"].as_str() {
        write_stderr(&format!("  {}\n", printable(description)))?;
    }
    let choices = choices(field);
    let default = &field["default"];
    let mut prompt = format!("  {title}");
    if !choices.is_empty() {
        prompt.push_str(&format!(" ({})", choices.join(", ")));
    }
    if !default.is_null() {
        prompt.push_str(&format!(" [{}]", printable(&format_value(default))));
    }
    prompt.push_str(": ");
    loop {
        let Some(typed) = prompt_line(&prompt)? else { return Ok(None) };
        match (typed.as_str(), read(&typed, field, &choices)) {
            ("", _) if !default.is_null() => return Ok(Some(Some(default.clone()))),
            ("", _) if !required => return Ok(Some(None)),
            ("", _) => write_stderr("  this field is required\n")?,
            (_, Ok(value)) => return Ok(Some(Some(value))),
            (_, Err(why)) => write_stderr(&format!("  {why}\n"))?,
        }
    }
}

fn choices(field: &Value) -> Vec<String> {
    let of = |list: &Value| list.as_array().into_iter().flatten().map(format_value).collect::<Vec<_>>();
    let titled = |list: &Value| {
        list.as_array().into_iter().flatten().map(|it| format_value(&it["const"])).collect::<Vec<_>>()
    };
    let found = [
        of(&field["enum"]),
        titled(&field["oneOf"]),
        of(&field["items"]["enum"]),
        titled(&field["items"]["anyOf"]),
    ];
    found.into_iter().find(|it| !it.is_empty()).unwrap_or_default().iter().map(|it| printable(it)).collect()
}

fn read(typed: &str, field: &Value, choices: &[String]) -> Result<Value, String> {
    let known = |word: &str| match choices.is_empty() || choices.iter().any(|it| it == word) {
        true => Ok(json!(word)),
        false => Err(format!("'{word}' is not one of: {}", choices.join(", "))),
    };
    match field["type"].as_str().unwrap_or("string") {
        "boolean" => match typed.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(json!(true)),
            "n" | "no" | "false" => Ok(json!(false)),
            _ => Err("enter y or n".to_owned()),
        },
        "integer" => typed.parse::<i64>().map(|it| json!(it)).map_err(|_| "enter a whole number".to_owned()),
        "number" => typed
            .parse::<f64>()
            .ok()
            .filter(|it| it.is_finite())
            .map(|it| json!(it))
            .ok_or("enter a number".to_owned()),
        "array" => typed.split(',').map(|it| known(it.trim())).collect(),
        _ => known(typed),
    }
}

/// Formats a value as the user would type it.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(format_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

pub(crate) fn write_stderr(text: &str) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(text.as_bytes())?;
    stderr.flush()
}

fn is_yes(answer: &str) -> bool {
    answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes")
}

/// Prompts for one line and trims it. `None` at the end of input.
pub(crate) fn prompt_line(prompt: &str) -> io::Result<Option<String>> {
    write_stderr(prompt)?;
    let mut typed = String::new();
    let count = io::stdin().lock().read_line(&mut typed)?;
    Ok((count > 0).then(|| typed.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_shown_with_its_host() {
        let shown = describe_link("https://good.example@evil.example:8443/sign-in");
        assert!(shown.contains(" at evil.example;"), "{shown}");
        assert!(shown.contains("https://good.example@evil.example:8443/sign-in"), "{shown}");
        assert!(describe_link("no link").contains("open a URL; check"), "a link without a host");
    }

    #[test]
    fn typed_text_is_converted_to_the_type_of_the_field() {
        for (typed, field, expected) in [
            ("Ann", json!({ "type": "string" }), Some(json!("Ann"))),
            ("y", json!({ "type": "boolean" }), Some(json!(true))),
            ("No", json!({ "type": "boolean" }), Some(json!(false))),
            ("maybe", json!({ "type": "boolean" }), None),
            ("3", json!({ "type": "integer" }), Some(json!(3))),
            ("3.5", json!({ "type": "integer" }), None),
            ("3.5", json!({ "type": "number" }), Some(json!(3.5))),
            ("NaN", json!({ "type": "number" }), None),
            ("red", json!({ "type": "string", "enum": ["red", "blue"] }), Some(json!("red"))),
            ("green", json!({ "type": "string", "enum": ["red", "blue"] }), None),
            (
                "b",
                json!({ "type": "string", "oneOf": [{ "const": "a" }, { "const": "b" }] }),
                Some(json!("b")),
            ),
            (
                "a, c",
                json!({ "type": "array", "items": { "enum": ["a", "b", "c"] } }),
                Some(json!(["a", "c"])),
            ),
            ("a, d", json!({ "type": "array", "items": { "anyOf": [{ "const": "a" }] } }), None),
        ] {
            assert_eq!(read(typed, &field, &choices(&field)).ok(), expected, "{typed} for {field}");
        }
        assert_eq!(format_value(&json!(["Guitar", "Bass"])), "Guitar, Bass");
    }
}
