//! Divides a text into what stays readable and what moves to the env file.
//!
//! Values of variables and headers always move. Arguments and URLs stay, except for their secrets.

use super::secret::{contains_secret, has_secret_name, is_harmless, is_token, is_uuid};

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Plain(&'a str),
    /// A value for the env file, and a name for it.
    Secret {
        text: &'a str,
        what: &'a str,
    },
}

/// Splits the value of a variable or header: all of it moves, but the authentication scheme (`Bearer`).
pub(super) fn split_value<'a>(name: &'a str, text: &'a str) -> Vec<Piece<'a>> {
    let (scheme, rest) = split_scheme(text);
    join_pieces([Piece::Plain(scheme)], secret_if(true, rest, name))
}

/// Splits an argument. If a flag precedes it, the flag's name helps to recognise a secret.
pub(super) fn split_argument<'a>(before: Option<&'a str>, text: &'a str) -> Vec<Piece<'a>> {
    let flag = before.filter(|it| it.starts_with('-') && !it.contains('=')).unwrap_or_default();
    if has_secret_name(flag) && !text.starts_with('-') && !is_harmless(text) {
        return secret_if(true, text, flag);
    }
    if let Some((name, after)) = text.split_once('=').filter(|(name, _)| is_word(name)) {
        let open = Piece::Plain(&text[..=name.len()]);
        if has_secret_name(name) && !is_harmless(after) {
            return join_pieces([open], secret_if(true, after, name));
        }
        return join_pieces([open], split_argument(None, after));
    }
    if let Some((name, after)) = text.split_once(':').filter(|(name, _)| is_word(name))
        && has_secret_name(name)
        && !after.starts_with("//")
    {
        let rest = after.trim_start();
        return join_pieces([Piece::Plain(&text[..text.len() - rest.len()])], split_value(name, rest));
    }
    match () {
        () if is_web(text) => split_url(text),
        () => secret_if(contains_secret(text), text, if text.contains("://") { "URL" } else { "SECRET" }),
    }
}

/// Splits a URL. Its credentials, keys in the query and keys in the path are secrets.
pub(super) fn split_url(text: &str) -> Vec<Piece<'_>> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return secret_if(contains_secret(text), text, "URL");
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let mut pieces = vec![Piece::Plain(&text[..scheme.len() + 3])];
    match authority.rfind('@') {
        Some(at) => {
            pieces.push(Piece::Secret { text: &authority[..at], what: "LOGIN" });
            pieces.push(Piece::Plain(&authority[at..]));
        }
        None => pieces.push(Piece::Plain(authority)),
    }
    let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
    for segment in path.split_inclusive('/') {
        let bare = segment.trim_end_matches('/');
        let secret = is_token(bare) || is_uuid(bare);
        pieces.extend(secret_if(secret, bare, "URL_KEY"));
        pieces.push(Piece::Plain(&segment[bare.len()..]));
    }
    for pair in query.split_inclusive(['?', '&', '#']) {
        let bare = pair.trim_end_matches(['?', '&', '#']);
        let (name, after) = bare.split_once('=').unwrap_or((bare, ""));
        let secret = has_secret_name(name) && !is_harmless(after) || is_token(after);
        pieces.push(Piece::Plain(&bare[..bare.len() - after.len()]));
        pieces.extend(secret_if(secret, after, name));
        pieces.push(Piece::Plain(&pair[bare.len()..]));
    }
    join_pieces([], pieces)
}

fn secret_if<'a>(secret: bool, text: &'a str, what: &'a str) -> Vec<Piece<'a>> {
    let piece = if secret && !text.is_empty() { Piece::Secret { text, what } } else { Piece::Plain(text) };
    vec![piece]
}

/// Concatenates both and drops empty pieces.
fn join_pieces<'a>(first: impl IntoIterator<Item = Piece<'a>>, rest: Vec<Piece<'a>>) -> Vec<Piece<'a>> {
    let has_text = |piece: &Piece<'_>| {
        let (Piece::Plain(text) | Piece::Secret { text, .. }) = piece;
        !text.is_empty()
    };
    first.into_iter().chain(rest).filter(has_text).collect()
}

/// Splits `Bearer token` into the scheme and the value.
fn split_scheme(text: &str) -> (&str, &str) {
    const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "apikey", "api-key", "key"];
    let scheme = text.split(' ').next().unwrap_or_default();
    if text.len() > scheme.len() && SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) {
        let rest = text[scheme.len()..].trim_start();
        return text.split_at(text.len() - rest.len());
    }
    ("", text)
}

/// Checks whether a text can be the name before a `=` or `:`. It may be a flag.
fn is_word(name: &str) -> bool {
    !name.trim_matches('-').is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn is_web(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|it| matches!(it.as_str(), "http" | "https" | "ws" | "wss"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the pieces, with secrets and their names in brackets.
    fn shown(pieces: &[Piece<'_>]) -> String {
        let one = |piece: &Piece<'_>| match piece {
            Piece::Plain(text) => (*text).to_owned(),
            Piece::Secret { text, what } => format!("[{what}|{text}]"),
        };
        pieces.iter().map(one).collect()
    }

    #[test]
    fn secrets_in_arguments_are_found() {
        for (before, text, expected) in [
            (None, "-y", "-y"),
            (None, "", ""),
            (Some("--api-key"), "hunter2", "[--api-key|hunter2]"),
            (Some("--api-key"), "--verbose", "--verbose"),
            (Some("--no-auth"), "true", "true"),
            (Some("--token-file"), "/srv/token", "/srv/token"),
            (Some("--port"), "8080", "8080"),
            (None, "--token=hunter2", "--token=[--token|hunter2]"),
            (None, "--url=https://u:p@h/x", "--url=https://[LOGIN|u:p]@h/x"),
            (None, "API_TOKEN=hunter2", "API_TOKEN=[API_TOKEN|hunter2]"),
            (None, "LOG=debug", "LOG=debug"),
            (
                Some("--header"),
                "Authorization: Bearer hunter2",
                "Authorization: Bearer [Authorization|hunter2]",
            ),
            (Some("--header"), "X-Api-Key:hunter2", "X-Api-Key:[X-Api-Key|hunter2]"),
            (Some("--header"), "Authorization: Bearer ", "Authorization: Bearer "),
            (None, "postgres://u:p@h/db", "[URL|postgres://u:p@h/db]"),
            (None, "postgres://localhost/db", "postgres://localhost/db"),
            (
                None,
                "ghp_0123456789abcdefABCDEF0123456789abcd",
                "[SECRET|ghp_0123456789abcdefABCDEF0123456789abcd]",
            ),
            (None, "https://h/mcp?api_key=abc&region=eu", "https://h/mcp?api_key=[api_key|abc]&region=eu"),
            (None, "@scope/name@1.2.3", "@scope/name@1.2.3"),
            (None, "ghcr.io/x/y:1", "ghcr.io/x/y:1"),
            (None, "/srv/data", "/srv/data"),
        ] {
            assert_eq!(shown(&split_argument(before, text)), expected, "{text}");
        }
    }

    #[test]
    fn secrets_in_headers_are_found() {
        for (name, text, expected) in [
            ("Authorization", "Bearer hunter2", "Bearer [Authorization|hunter2]"),
            ("Authorization", "hunter2", "[Authorization|hunter2]"),
            ("Authorization", "Bearer ", "Bearer "),
            ("X-API-Key", "hunter2", "[X-API-Key|hunter2]"),
            ("X-Region", "eu", "[X-Region|eu]"),
            ("X-Thing", "sk-abcdefghijklmn01", "[X-Thing|sk-abcdefghijklmn01]"),
            ("X-Thing", "", ""),
        ] {
            assert_eq!(shown(&split_value(name, text)), expected, "{name}: {text}");
        }
    }

    #[test]
    fn secrets_in_urls_are_found() {
        for (text, expected) in [
            ("https://h/mcp", "https://h/mcp"),
            ("https://h", "https://h"),
            ("https://h/sse?x=1#f", "https://h/sse?x=1#f"),
            ("https://h/mcp?token=abc", "https://h/mcp?token=[token|abc]"),
            ("https://user:pass@h/mcp", "https://[LOGIN|user:pass]@h/mcp"),
            ("https://h/s/Zx81Kq0PmW2nR7tYb4Vc/mcp", "https://h/s/[URL_KEY|Zx81Kq0PmW2nR7tYb4Vc]/mcp"),
            (
                "https://h/123e4567-e89b-12d3-a456-426614174000",
                "https://h/[URL_KEY|123e4567-e89b-12d3-a456-426614174000]",
            ),
            ("not a url", "not a url"),
        ] {
            assert_eq!(shown(&split_url(text)), expected, "{text}");
        }
    }
}
