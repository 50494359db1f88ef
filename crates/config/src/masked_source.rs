//! The text of an agent file in a form that may be shown to an administrator in a browser.

use crate::{Diagnostics, Place, mask::Mask};

/// Keys whose values are hidden, whatever they are called.
const HIDDEN_KEYS: [&str; 3] = ["env", "headers", "model"];

/// Keys below `model` that say which model it is, and hold no secret.
const SHOWN_KEYS: [&str; 3] = ["provider", "name", "api"];

impl Diagnostics {
    /// Returns the source with stars in place of everything that may be secret: the places that the loader knows, values
    /// after keys that sound secret, and all literal values below `env`, `headers` and `model`. `${NAME}` stays, because
    /// it only names a secret.
    pub fn masked_source(&self) -> String {
        let source = self.source();
        let mut hidden = self.hidden().to_vec();
        hidden.extend(hidden_values(source));
        let mask = Mask::new(source, &hidden, true);
        mask.quote(source, Place::new(0, source.len())).text
    }
}

/// Returns the values below the hidden keys. It works on lines, so that it also works on a file that does not parse. A
/// value in brackets or quotes goes on until they are closed, whatever its indentation; if they never are, until the end.
fn hidden_values(source: &str) -> Vec<Place> {
    let mut hidden = Vec::new();
    let mut below: Option<usize> = None;
    let mut value = OpenValue::default();
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let (text, at) = (line.trim_end(), start);
        start += line.len();
        let column = text.len() - text.trim_start().len();
        if text.trim_start().is_empty() {
            continue;
        }
        // A line that begins with a bracket is a value, so it belongs to the key before.
        let begins_with_bracket = text[column..].starts_with(['{', '[']);
        match below {
            Some(key) if column > key || value.is_open() || begins_with_bracket => {
                hidden.extend(value_place(text, at, value.is_open()));
                value.read(text);
                continue;
            }
            _ => below = None,
        }
        if let Some((key, begin)) = find_hidden_key(text) {
            below = Some(key);
            value = OpenValue::default();
            value.read(&text[begin..]);
            if !text[begin..].trim().is_empty() {
                hidden.push(Place::new(at + begin, at + text.len()));
            }
        }
    }
    hidden
}

/// Returns the value of a line below a hidden key: the text after its first colon, or all of it. A line that continues a
/// value may have several keys, so none of them shows its value.
fn value_place(text: &str, at: usize, continues: bool) -> Option<Place> {
    let start = text.len() - text.trim_start().len();
    let key = text.trim_start().trim_start_matches("- ").split(':').next().unwrap_or_default();
    let is_shown = SHOWN_KEYS.contains(&key.trim_matches(['"', '\'']));
    if is_shown && !continues && text.contains(':') && !text.contains(['{', '[']) {
        return None;
    }
    let value =
        text.find(": ").map_or_else(|| if text.ends_with(':') { text.len() } else { start }, |it| it + 1);
    (value < text.len()).then(|| Place::new(at + value, at + text.len()))
}

/// Finds the first hidden key on a line: its column, and where its value begins.
fn find_hidden_key(text: &str) -> Option<(usize, usize)> {
    let is_boundary = |it: Option<char>| it.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-');
    let found = HIDDEN_KEYS.iter().filter_map(|key| {
        text.match_indices(key).find_map(|(column, _)| {
            let rest = text[column + key.len()..].trim_start_matches(['"', '\'']);
            let is_key = rest.starts_with(':') && is_boundary(text[..column].chars().next_back());
            is_key.then(|| (column, text.len() - rest.len() + 1))
        })
    });
    found.min()
}

/// Brackets and quotes of a value that are open at the end of a line.
#[derive(Debug, Default)]
struct OpenValue {
    brackets: usize,
    quote: Option<char>,
}

impl OpenValue {
    fn is_open(&self) -> bool {
        self.brackets > 0 || self.quote.is_some()
    }

    /// Reads one line, or the rest of one.
    fn read(&mut self, text: &str) {
        let mut last = None;
        let mut after_space = true;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            if let Some(quote) = self.quote {
                let is_escape = quote == '"' && character == '\\';
                let is_doubled = quote == '\'' && character == quote && characters.peek() == Some(&quote);
                if is_escape || is_doubled {
                    characters.next();
                } else if character == quote {
                    self.quote = None;
                }
            } else {
                let begins_value = last.is_none_or(|it| "{[,:".contains(it));
                match character {
                    '#' if after_space => return,
                    '"' | '\'' if begins_value => self.quote = Some(character),
                    '{' | '[' if begins_value || self.brackets > 0 => self.brackets += 1,
                    '}' | ']' => self.brackets = self.brackets.saturating_sub(1),
                    _ => {}
                }
            }
            after_space = character == ' ';
            // The dash of a list item is not part of its value.
            let is_dash = last.is_none() && character == '-';
            if !(after_space || is_dash) {
                last = Some(character);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Env, load};

    #[test]
    fn values_below_hidden_keys_are_masked_and_variables_stay() {
        let text = "\
name: agent
model:
  provider: openai
  name: gpt
  key: sk-literal
tools:
  - name: a
    command: npx
    env:
      PLAIN: hunter2
      NAMED: ${SECRET}
      \"QUOTED\": 'abc: def'
    args: [one, two]
  - {name: b, url: 'https://x.example/mcp?key=abc', headers: {X-Key: zzz}}
";
        let expected = "\
name: agent
model:
  provider: openai
  name: gpt
  key: **********
tools:
  - name: a
    command: npx
    env:
      PLAIN: *******
      NAMED: ${SECRET}
      \"QUOTED\": ***** ****
    args: [one, two]
  - {name: b, url: 'https://x.example/mcp?********, headers: ******* *****
";
        let (_, diagnostics) = load(text, &Env::bare());
        assert_eq!(diagnostics.masked_source(), expected);
    }

    #[test]
    fn values_in_brackets_and_quotes_are_masked_whatever_their_indentation() {
        for text in [
            "env: {A: one,\nB: hunter2,\n\"C\":\"hunter2\"}\nname: kept\n",
            "env:\n{A: hunter2,\nB: hunter2}\nname: kept\n",
            "env: {A: \"}\",\nB: hunter2}\nname: kept\n",
            "env: {A: '}''',\nB: hunter2}\nname: kept\n",
            "env: {A: x, # }\nB: hunter2}\nname: kept\n",
            "headers: {A: [x,\ny],\nB: hunter2}\nname: kept\n",
            "headers:\n  A: \"one\nhunter2\"\nname: kept\n",
            "model: {provider: a,\nname: b, key: hunter2}\nname: kept\n",
            "model:\n  - {x: \"a\\\"}\",\nname: hunter2}\nname: kept\n",
            "env:\n  A: a{b\n  B: hunter2\nname: kept\n",
        ] {
            let (_, diagnostics) = load(text, &Env::bare());
            let shown = diagnostics.masked_source();
            assert!(!shown.contains("hunter2") && shown.ends_with("\nname: kept\n"), "{text} became {shown}");
        }
    }

    #[test]
    fn a_broken_file_is_masked_too() {
        let (plan, diagnostics) = load("tools:\n  - env:\n      A: hunter2\n    x: [\n", &Env::bare());
        assert!(plan.is_none() && !diagnostics.masked_source().contains("hunter2"));
    }
}
