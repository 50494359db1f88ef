//! Strikes secrets out of text that we did not write: what servers print, and the errors they answer with.

use crate::{
    Text,
    config::{Endpoint, EnvOrigin, Plan, Source},
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};

/// Values shorter than this would be struck out of half of all words.
const SHORTEST: usize = 6;

/// Knows the secrets of a plan.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret that contains another goes whole.
    secrets: Vec<String>,
}

impl Redactor {
    /// Everything in the plan that came from a variable, an env file or a header.
    pub fn of(plan: &Plan) -> Redactor {
        let model = plan.model.iter().filter_map(|it| it.api_key.as_ref());
        let mut secrets: Vec<String> = model
            .chain(plan.sources.iter().flat_map(secrets))
            .map(|it| it.expose().trim())
            .filter(|it| it.len() >= SHORTEST)
            .flat_map(guises)
            .collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Redactor { secrets }
    }

    /// The text without the secrets.
    pub fn redact(&self, text: &str) -> String {
        self.struck(text).unwrap_or_else(|| text.to_owned())
    }

    /// The text without the secrets, if there are any in it.
    pub fn struck(&self, text: &str) -> Option<String> {
        self.secrets.iter().fold(None, |struck, secret| {
            let text = struck.as_deref().unwrap_or(text);
            if text.contains(secret.as_str()) { Some(text.replace(secret.as_str(), "***")) } else { struck }
        })
    }
}

/// A secret, and how it looks inside JSON, inside JSON inside JSON, in an address, in base64 and in hexadecimal.
fn guises(secret: &str) -> Vec<String> {
    let escaped = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let once = escaped(secret);
    let twice = escaped(&once);
    let address: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let spaces = address.replace('+', "%20");
    let base64 = BASE64_STANDARD_NO_PAD.encode(secret);
    let base64_url = BASE64_URL_SAFE_NO_PAD.encode(secret);
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![secret.to_owned(), once, twice, address, spaces, base64, base64_url, hex]
}

fn secrets(source: &Source) -> Vec<&Text> {
    match &source.endpoint {
        Endpoint::Builtin(_) => Vec::new(),
        Endpoint::Stdio(launch) => {
            let args = launch.args.iter().map(|it| &it.value);
            let env = launch.env.0.values().filter(|it| {
                matches!(it.origin, EnvOrigin::Entry | EnvOrigin::EnvFile(_) | EnvOrigin::Inherited)
            });
            args.chain(env.map(|it| &it.value)).filter(|it| it.is_secret()).collect()
        }
        Endpoint::Sse(remote) | Endpoint::Http { remote, .. } => {
            remote.headers.iter().map(|(_, value)| value).collect()
        }
        Endpoint::WebSocket(_, url) => [url].into_iter().filter(|it| it.is_secret()).collect(),
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Env, load};

    #[test]
    fn strikes_out_what_came_from_outside() {
        let text = "tools:\n  - {name: a, description: b, type: mcp, server: x, command: npx, env: {K: '${T}', PLAIN: visible}}\n  \
                    - {name: c, description: d, type: mcp, server: x, transport: http, url: https://h/, headers: {A: 'Bearer literal'}}\n";
        let mut env = Env::bare();
        env.variables.insert("T".into(), "hunter2hunter2".into());
        let (plan, diagnostics) = load(text, &env);
        let redactor = Redactor::of(&plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false))));
        assert_eq!(redactor.redact("key hunter2hunter2, visible"), "key ***, visible");
        assert_eq!(redactor.redact("sent Bearer literal!"), "sent ***!");
        assert_eq!(redactor.redact("?a=Bearer%20literal&b=Bearer+literal"), "?a=***&b=***");
        assert_eq!(redactor.redact("aHVudGVyMmh1bnRlcjI="), "***=");
    }
}
