//! Guesses whether a part of an argument or URL is a secret, by its name or by its form.
//!
//! The guess errs on the safe side. A harmless value that is taken for a secret goes into an env file, where it works
//! as before. A secret that is taken for harmless would end up in a file that people share.

/// Prefixes of the keys of well-known services.
const KEY_PREFIXES: &str = "\
    AIza AKIA ASIA ATATT ATCTT EAAC SG. apify_api_ dapi dckr_pat_ doo_v1_ dop_v1_ eyJ fc- figd_ ghi_ \
    gho_ ghp_ ghr_ ghs_ ghu_ github_pat_ glpat- gsk_ hf_ lin_api_ lin_oauth_ npm_ ntn_ phx_ pk_live_ \
    pplx- pul- pypi- r8_ rk_live_ sbp_ secret_ shpat_ sk- sk_live_ sk_test_ sntrys_ sntryu_ tvly- \
    vercel_ whsec_ xai- xapp- xoxa- xoxb- xoxe- xoxp- xoxs- ya29.";

/// Last words of names that describe a secret but do not hold one, such as `TOKEN_FILE`.
const HARMLESS_LAST_WORDS: &str = "\
    count dir directory enabled endpoint file folder header host id limit method mode name path region scope scopes size ttl type uri url version";

/// Checks whether the name of a variable, header or flag suggests a secret.
pub(super) fn has_secret_name(name: &str) -> bool {
    let words = words(name);
    let describes = words.last().is_some_and(|it| HARMLESS_LAST_WORDS.split(' ').any(|word| word == it));
    words.iter().any(|it| it == "webhook") || !describes && words.iter().any(|it| is_secret_word(it))
}

/// Checks whether the default of a variable is a secret.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    has_secret_name(name) && !is_harmless(value) || contains_secret(value)
}

/// Checks for switches and names of methods, which are never secret, whatever the variable is called.
pub(super) fn is_harmless(value: &str) -> bool {
    const WORDS: &[&str] = &[
        "", "0", "1", "auto", "basic", "bearer", "disabled", "enabled", "false", "no", "none", "null",
        "oauth", "oauth2", "off", "on", "true", "yes",
    ];
    WORDS.contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Checks whether a text contains a secret, regardless of its name.
pub(super) fn contains_secret(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || "\"'`=,;&?|(){}<>".contains(c));
    text.contains("-----BEGIN ")
        || text.contains("hooks.slack.com/services/")
        || text.contains("/api/webhooks/")
        || has_password(text)
        || has_scheme(text)
        || has_named_secret(text)
        || !is_path(text) && words.any(|it| is_token(it) || it.split(':').any(has_known_prefix))
}

/// Checks whether a word is a key: by its prefix, or because it looks random.
pub(super) fn is_token(word: &str) -> bool {
    has_known_prefix(word) || looks_random(word)
}

/// Maximum length of a word that looks random. Longer ones are data.
const MAX_RANDOM_BYTES: usize = 128;

/// Checks whether a word of a server's answer is probably a key. Hashes are common in answers, and are not.
pub(crate) fn looks_like_key(word: &str) -> bool {
    let digits = word.rsplit(['-', ':']).next().unwrap_or_default();
    let is_hash = digits.len() >= 32 && digits.bytes().all(|it| it.is_ascii_hexdigit());
    word.split(':').any(has_known_prefix) || word.len() <= MAX_RANDOM_BYTES && looks_random(word) && !is_hash
}

/// Checks for a key of a well-known service. Packages may be called `sk-something` too, but are short and have no
/// digits.
fn has_known_prefix(word: &str) -> bool {
    let is_key = |rest: &str| {
        let mixed = rest.bytes().any(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
        let fits = rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.+/".contains(&b));
        fits && (rest.len() >= 12 && mixed || rest.len() >= 20)
    };
    KEY_PREFIXES.split(' ').any(|it| word.strip_prefix(it).is_some_and(is_key))
}

/// Checks for a UUID: `8-4-4-4-12` hexadecimal digits.
pub(super) fn is_uuid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// Checks for an absolute path, or a relative one with an explicit start such as `./`.
pub(super) fn is_path(text: &str) -> bool {
    let drive = matches!(text.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    let starts = ["/", "./", "../", "~/", ".\\", "..\\", "~\\", "\\\\"];
    drive || starts.iter().any(|it| text.starts_with(it))
}

/// Splits `API_KEY`, `api-key` or `apiKey` into lower-case words.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && was_small {
            words.push(String::new());
        }
        was_small = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|it| !it.is_empty());
    words
}

fn is_secret_word(word: &str) -> bool {
    const WORDS: &str = "auth authorization bearer cookie cookies cred credential credentials creds dsn \
                         jwt pass pat private pwd salt";
    const ENDINGS: &str = "key keys passphrase passwd password secret secrets token";
    let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
    WORDS.split(' ').any(|it| it == word) || ENDINGS.split(' ').any(|it| word.ends_with(it))
}

/// Checks for a long mix of letters and digits that switch often: a key, not a word, a version or a date.
fn looks_random(word: &str) -> bool {
    let fits = word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if word.len() < 20 || !fits || is_uuid(word) {
        return false;
    }
    let class = |b: u8| (b.is_ascii_digit(), b.is_ascii_uppercase());
    let pairs = || word.as_bytes().windows(2).filter(|it| it.iter().all(u8::is_ascii_alphanumeric));
    let switches = pairs().filter(|it| class(it[0]) != class(it[1])).count();
    let to_digits = pairs().filter(|it| it[0].is_ascii_digit() != it[1].is_ascii_digit()).count();
    switches >= word.len() / 4 && to_digits >= 2
}

/// Checks for `scheme://user:password@host`.
fn has_password(text: &str) -> bool {
    text.match_indices("://").any(|(at, _)| {
        let authority = text[at + 3..].split(['/', '?', '#', ' ', '"']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// Checks for `Bearer …` and `Basic …`.
fn has_scheme(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["bearer ", "basic "].iter().any(|scheme| {
        lower.match_indices(scheme).any(|(at, _)| {
            let rest = &lower[at + scheme.len()..];
            rest.chars().take_while(|c| !c.is_whitespace()).count() >= 8
        })
    })
}

/// Checks for `Server=x;Password=y`, `?key=x`, `"key": "x"` or `--token x`.
fn has_named_secret(text: &str) -> bool {
    let is_value = |it: &str| !is_harmless(it.trim_matches(['"', '\''])) && !it.starts_with("//");
    let words = || text.split(|c: char| c.is_whitespace() || ";&?,{}".contains(c));
    words().zip(words().skip(1).chain([""])).any(|(word, next)| {
        let (name, value) = word.split_once(['=', ':']).unwrap_or((word, ""));
        let introduces = value.is_empty() && (word.ends_with(':') || word.starts_with('-'));
        has_secret_name(name) && (is_value(value) || introduces && is_value(next) && !next.starts_with('-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_recognised() {
        let names = "API_KEY apiKey X-API-Key GITHUB_PERSONAL_ACCESS_TOKEN DB_PWD Authorization \
            AWS_SECRET_ACCESS_KEY password --api-key SLACK_WEBHOOK_URL SENTRY_DSN TOKEN2 GITLAB_PAT \
            Cookie OPENAI_APIKEY client_secret";
        for name in names.split(' ') {
            assert!(has_secret_name(name), "{name}");
        }
        let names = "MAX_TOKENS LOG_LEVEL AUTHOR TOKEN_URL AUTH_TYPE KEY_FILE PATH DATABASE_URL PASSENGERS \
            SECRET_NAME --port --directory";
        for name in names.split(' ').chain([""]) {
            assert!(!has_secret_name(name), "{name}");
        }
    }

    #[test]
    fn secret_values_are_recognised() {
        for text in [
            "ghp_0123456789abcdefABCDEF0123456789abcd",
            "sk-ant-api03-abcdefghijkl",
            "postgresql://app:hunter2@db.example.com:5432/app",
            "Bearer abcdefghijkl",
            "Server=db;User=sa;Password=hunter2;",
            r#"{"Authorization": "Bearer ntn_abcdefgh", "Notion-Version": "2022-06-28"}"#,
            r#"{"key": "ntn_abcdefghijklmn01"}"#,
            "https://hooks.slack.com/services/T000/B000/XXXX",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig",
            "d41d8cd98f00b204e9800998ecf8427e",
            "Zx81Kq0PmW2nR7tYb4Vc",
            "${command:sk-abcdefghijk0123}",
            "-----BEGIN PRIVATE KEY-----\nabc",
            "https://x.example.com/mcp?api_key=hunter2",
            "source ~/.profile && npx x --token hunter2",
            "/usr/bin/node x.js --token=hunter2",
            r#"{"X-API-Key": "hunter2"}"#,
            r#"{"X-API-Key":"hunter2"}"#,
            "Region: eu\nX-API-Key: hunter2",
        ] {
            assert!(contains_secret(text), "{text}");
        }
        for text in [
            "",
            "-y",
            "info",
            "@modelcontextprotocol/server-postgres@0.6.2",
            "ghcr.io/github/github-mcp-server@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "mcp-server-fetch==2025.4.7",
            "https://mcp.example.com/v1/mcp?region=eu",
            "postgresql://localhost/app",
            "postgresql://app@db.example.com/app",
            "/srv/data/0123456789abcdef0123456789abcdef",
            "C:\\Users\\alice\\0123456789abcdef0123456789abcdef",
            "123e4567-e89b-12d3-a456-426614174000",
            "my-project-name-in-2024-for-production",
            "GITHUB_PERSONAL_ACCESS_TOKEN",
            "us-east-1",
            "--max-tokens=4096",
            "--token",
            "--token --verbose",
            "sk-awesome-server:latest",
            "Authorization: Bearer ",
            "a token to use",
            "https://token.example.com/key",
            "2024-01-01T00:00:00Z",
        ] {
            assert!(!contains_secret(text), "{text}");
        }
    }
}
