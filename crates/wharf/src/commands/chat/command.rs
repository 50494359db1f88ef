//! The commands of a chat: lines that begin with `/`.

/// Names and descriptions of the commands, in the order of `/help`.
pub(super) const COMMANDS: [(&str, &str); 9] = [
    ("help", "list the commands"),
    ("tools", "list the tools that the model may call; /tools TEXT lists those whose name contains it"),
    ("prompts", "list the prompts of the servers"),
    ("model", "show the model; /model PROVIDER/NAME uses another one"),
    ("usage", "show the tokens of this conversation"),
    ("why", "show what happened in the last answer"),
    ("approvals", "show which calls are made without a question"),
    ("new", "begin a new conversation"),
    ("exit", "leave; so do exit, quit and Ctrl-D"),
];

/// Line of a user at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatInput {
    /// Nothing.
    Empty,
    /// A message for the model.
    Message(String),
    /// A command, and what follows its name.
    Command(&'static str, String),
    /// A prompt of a server, by `source:name`, and its arguments.
    Prompt(String, Vec<String>),
    /// A command that does not exist.
    Unknown(String),
}

impl ChatInput {
    /// Reads a line.
    pub(super) fn parse(line: &str) -> ChatInput {
        let line = line.trim();
        match line {
            "" => return ChatInput::Empty,
            "exit" | "quit" => return ChatInput::Command("exit", String::new()),
            _ => {}
        }
        let Some(command) = line.strip_prefix('/') else { return ChatInput::Message(line.to_owned()) };
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        if let Some((known, _)) = COMMANDS.iter().find(|(known, _)| *known == name) {
            return ChatInput::Command(known, rest.trim().to_owned());
        }
        match name.contains(':') {
            true => ChatInput::Prompt(name.to_owned(), split_words(rest)),
            false => ChatInput::Unknown(name.to_owned()),
        }
    }
}

/// Splits text at spaces. Quotation marks keep a word together.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote): (Option<String>, Option<char>) = (None, None);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_commands_or_prompts() {
        let prompt = |name: &str, words: &[&str]| {
            ChatInput::Prompt(name.into(), words.iter().map(|it| (*it).to_owned()).collect())
        };
        for (line, expected) in [
            ("  ", ChatInput::Empty),
            (" Hi ", ChatInput::Message("Hi".into())),
            ("quit", ChatInput::Command("exit", String::new())),
            ("exit now", ChatInput::Message("exit now".into())),
            ("/model ollama/qwen3", ChatInput::Command("model", "ollama/qwen3".into())),
            ("/nope x", ChatInput::Unknown("nope".into())),
            ("/todo:plan", prompt("todo:plan", &[])),
            ("/wiki:sum topic=\"a b\" n='2'", prompt("wiki:sum", &["topic=a b", "n=2"])),
        ] {
            assert_eq!(ChatInput::parse(line), expected, "{line}");
        }
    }
}
