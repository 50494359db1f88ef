//! Records a session of `wharf chat` at a terminal as docs/chat.svg. `UPDATE=1` rewrites the picture; look at it.

use crate::terminal::{TerminalOutput, TerminalProgram};
use scripted_model::{Reply, ScriptedModel, Wire};
use std::{env, fs};
use tempfile::TempDir;

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/chat.svg");

/// Size of a character and of the margin, in pixels.
const CHAR_WIDTH: f64 = 8.43;
const LINE_HEIGHT: usize = 20;
const MARGIN: usize = 20;
/// Number of columns of the picture.
const COLUMNS: usize = 92;

#[test]
fn a_recorded_chat_is_the_picture_of_the_documentation() {
    let create = |id: &str, title: &str| {
        let arguments = format!(r#"{{"title":"{title}","priority":1}}"#);
        (id.to_owned(), arguments)
    };
    let (eggs, cake) = (create("c1", "Buy eggs"), create("c2", "Bake a cake"));
    let model = ScriptedModel::start(vec![
        Reply::calls(
            Wire::Chat,
            &[(&eggs.0, "todo__create_todo", &eggs.1), (&cake.0, "todo__create_todo", &cake.1)],
        ),
        Reply::text(
            Wire::Chat,
            "I added two to-dos:\n\n- **Buy eggs**, because you need them first\n- **Bake a cake**\n",
        ),
        Reply::calls(Wire::Chat, &[("c3", "todo__delete_todo", r#"{"id":1}"#)]),
        Reply::text(Wire::Chat, "All right, *Buy eggs* stays on your list.\n"),
    ]);
    let folder = TempDir::new().expect("a folder");
    let file = format!(
        "model: {{provider: openai, name: gpt-5-mini, endpoint: '{}', api_key: k}}\napproval: {{ask: ['todo:delete_*']}}\n\
         tools:\n  - {{name: todo, description: Things to do, type: mcp, server: builtin:todo}}\n",
        model.url()
    );
    fs::write(folder.path().join("agent.yaml"), file).expect("an agent file");
    let home = folder.path().join("home").to_string_lossy().into_owned();
    let variables = [("HOME".to_owned(), home), ("NO_COLOR".to_owned(), "1".to_owned())];
    let words = [env!("CARGO_BIN_EXE_wharf"), "chat"];
    let mut chat = TerminalProgram::start(folder.path(), &variables, &words);
    chat.wait_for("Ctrl-D leaves.\n>");
    chat.type_in("I want to bake a cake for Ann\r");
    chat.wait_for("**Bake a cake**\n>");
    chat.type_in("I have eggs. Delete that one\r");
    chat.wait_for("[d]etails");
    chat.type_in("n\r");
    chat.wait_for("stays on your list.\n>");
    chat.type_in("/usage\r");
    chat.wait_for("reasoning)\n>");
    chat.type_in("\u{4}");
    let TerminalOutput { text, code } = chat.end();
    assert_eq!(code, Some(0), "{text}");
    compare(&draw(&format!("$ wharf chat\n{}", normalise(text.trim_end()))));
}

#[expect(clippy::disallowed_methods, reason = "the UPDATE variable decides whether to write")]
fn compare(picture: &str) {
    if env::var_os("UPDATE").is_some() {
        fs::write(PICTURE, picture).expect("the picture can be written");
    }
    let written = fs::read_to_string(PICTURE).unwrap_or_default();
    assert!(written == picture, "docs/chat.svg is not what was seen; UPDATE=1 writes it:\n{picture}");
}

/// Replaces the durations of calls, and removes what follows the last prompt.
fn normalise(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("← ") {
        Some(duration) if duration.ends_with(" ms") || duration.ends_with(" s") => "← 2 ms".to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n").trim_end_matches(['\n', '>']).to_owned()
}

/// Draws lines as they look in a terminal.
fn draw(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let width = (COLUMNS as f64 * CHAR_WIDTH) as usize + 2 * MARGIN;
    let height = lines.len() * LINE_HEIGHT + 2 * MARGIN + LINE_HEIGHT;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"A session of wharf chat\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#10151c\"/>\n\
         <g fill=\"#3a4654\"><circle cx=\"20\" cy=\"18\" r=\"5\"/><circle cx=\"38\" cy=\"18\" r=\"5\"/>\
         <circle cx=\"56\" cy=\"18\" r=\"5\"/></g>\n\
         <g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"14\" xml:space=\"preserve\">\n"
    );
    for (at, line) in lines.iter().enumerate() {
        let y = MARGIN + (at + 2) * LINE_HEIGHT - 4;
        let colour = match line.chars().next() {
            Some('$' | '>') => "#f5f7fa\" font-weight=\"bold",
            Some('→' | '←') => "#5ec2d6",
            _ if line.starts_with("allow ") => "#f2c14e",
            _ => "#c7d0db",
        };
        let text = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        picture.push_str(&format!("<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{colour}\">{text}</text>\n"));
    }
    picture + "</g>\n</svg>\n"
}
