//! Parses texts with variables in the syntax of other clients.

/// The variable syntax of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    /// Claude Desktop and others: the text is passed on unchanged.
    Literal,
    /// VS Code, Cursor and similar clients: `${…}`.
    Substituting,
    /// Gemini CLI: `${…}`, and `$NAME` without braces.
    Shell,
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Literal(&'a str),
    /// `${input:id}`
    Input(&'a str),
    /// `${env:NAME}`, `${NAME}`, `${NAME:-default}`; for some clients `$NAME`.
    Variable {
        written: &'a str,
        name: &'a str,
        default: Option<&'a str>,
    },
    /// `${workspaceFolder}` and similar names, which wharf supports too.
    Predefined(&'static str),
    /// A variable that only an editor can fill in.
    EditorOnly(&'a str),
}

/// Variables that an editor fills in from its current state.
const EDITOR_VARIABLES: &str = "\
    columnNumber cwd defaultBuildTask execPath extensionInstallFolder file fileBasename \
    fileBasenameNoExtension fileDirname fileDirnameBasename fileExtname fileWorkspaceFolder \
    fileWorkspaceFolderBasename lineNumber relativeFile relativeFileDirname selectedText taskName";

/// Splits a text at its variables.
pub(super) fn parts(syntax: VariableSyntax, text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, written, tail)) = next_variable(syntax, rest) {
        if !before.is_empty() {
            parts.push(Part::Literal(before));
        }
        parts.push(variable(written));
        rest = tail;
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest));
    }
    parts
}

/// Checks whether a text contains no variables.
pub(super) fn is_literal(syntax: VariableSyntax, text: &str) -> bool {
    next_variable(syntax, text).is_none()
}

/// Returns the text before the first variable, the variable itself, and the rest.
fn next_variable(syntax: VariableSyntax, text: &str) -> Option<(&str, &str, &str)> {
    let in_braces = |start: usize| Some(start..start + text[start..].find('}')? + 1);
    let found = match syntax {
        VariableSyntax::Literal => None,
        VariableSyntax::Substituting => text.find("${").and_then(in_braces),
        VariableSyntax::Shell => text.match_indices('$').find_map(|(start, _)| {
            if text[start + 1..].starts_with('{') {
                return in_braces(start);
            }
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let rest = &text[start + 1..];
            let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
            is_name(&rest[..end]).then(|| start..start + 1 + end)
        }),
    }?;
    Some((&text[..found.start], &text[found.start..found.end], &text[found.end..]))
}

fn variable(written: &str) -> Part<'_> {
    if !written.starts_with("${") {
        return Part::Variable { written, name: &written[1..], default: None };
    }
    let inside = &written[2..written.len() - 1];
    match inside {
        "workspaceFolder" | "workspaceRoot" => return Part::Predefined("${workspaceFolder}"),
        "workspaceFolderBasename" => return Part::Predefined("${workspaceFolderBasename}"),
        "userHome" => return Part::Predefined("${userHome}"),
        "/" | "pathSeparator" => return Part::Literal(std::path::MAIN_SEPARATOR_STR),
        _ => {}
    }
    if let Some(id) = inside.strip_prefix("input:").filter(|it| !it.is_empty()) {
        return Part::Input(id);
    }
    let name = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, default) = match name.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (name, None),
    };
    let fits = is_name(name)
        && !default.is_some_and(|it| it.contains("${"))
        && (inside.starts_with("env:") || !EDITOR_VARIABLES.split(' ').any(|it| it == name));
    if fits { Part::Variable { written, name, default } } else { Part::EditorOnly(written) }
}

/// Checks whether wharf predefines a variable with this name.
pub(super) fn is_predefined(name: &str) -> bool {
    matches!(name, "workspaceFolder" | "workspaceFolderBasename" | "userHome")
}

/// Checks for a valid name of a variable in wharf.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Escapes a literal text for agent.yaml.
pub(super) fn escape(literal: &str) -> String {
    literal.replace("${", "$${")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braced_variables_are_split() {
        let named = |written, name, default| Part::Variable { written, name, default };
        for (text, expected) in [
            ("plain $X {Y}", vec![Part::Literal("plain $X {Y}")]),
            ("", vec![]),
            ("a${input:my-key}b", vec![Part::Literal("a"), Part::Input("my-key"), Part::Literal("b")]),
            ("${env:X}", vec![named("${env:X}", "X", None)]),
            ("${X:-d}${Y}", vec![named("${X:-d}", "X", Some("d")), named("${Y}", "Y", None)]),
            ("${workspaceFolder}/x", vec![Part::Predefined("${workspaceFolder}"), Part::Literal("/x")]),
            (
                "${userHome}${/}x",
                vec![Part::Predefined("${userHome}"), Part::Literal("/"), Part::Literal("x")],
            ),
            ("${file}", vec![Part::EditorOnly("${file}")]),
            ("${env:file}", vec![named("${env:file}", "file", None)]),
            ("${command:x.y}", vec![Part::EditorOnly("${command:x.y}")]),
            ("${config:a}", vec![Part::EditorOnly("${config:a}")]),
            ("${workspaceFolder:api}", vec![Part::EditorOnly("${workspaceFolder:api}")]),
            ("${}", vec![Part::EditorOnly("${}")]),
            ("${input:}", vec![Part::EditorOnly("${input:}")]),
            ("${A:-${B}}", vec![Part::EditorOnly("${A:-${B}"), Part::Literal("}")]),
            ("${open", vec![Part::Literal("${open")]),
        ] {
            assert_eq!(parts(VariableSyntax::Substituting, text), expected, "{text}");
        }
    }

    #[test]
    fn names_without_braces() {
        let named = |written, name| Part::Variable { written, name, default: None };
        for (text, expected) in [
            ("Bearer $TOKEN", vec![Part::Literal("Bearer "), named("$TOKEN", "TOKEN")]),
            ("$A/${B}$", vec![named("$A", "A"), Part::Literal("/"), named("${B}", "B"), Part::Literal("$")]),
            ("5$ $1", vec![Part::Literal("5$ $1")]),
        ] {
            assert_eq!(parts(VariableSyntax::Shell, text), expected, "{text}");
        }
    }

    #[test]
    fn literal_text_is_not_split() {
        assert_eq!(parts(VariableSyntax::Literal, "${HOME}"), [Part::Literal("${HOME}")]);
        assert!(is_literal(VariableSyntax::Literal, "${HOME}"));
        assert!(!is_literal(VariableSyntax::Substituting, "${HOME}"));
        assert_eq!(escape("a ${X} $${Y} $Z"), "a $${X} $$${Y} $Z");
    }
}
