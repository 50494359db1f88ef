//! Strikes secrets out of text that we did not write: what servers print, and the errors they answer with.

use crate::{
    Text,
    config::{Endpoint, EnvOrigin, Plan, Source},
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
            .map(|it| it.expose().trim().to_owned())
            .filter(|it| it.len() >= SHORTEST)
            .collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Redactor { secrets }
    }

    /// The text without the secrets.
    pub fn redact(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), "***") } else { text }
        })
    }
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
    }
}
