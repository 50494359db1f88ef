//! Lists the secrets of a plan: every value from a variable, an env file or a header. The redactor, recordings and the
//! lock use the same list, so that none of them shows what another one hides.

use super::MIN_SECRET_BYTES;
use crate::MaskedString;
use wharf_config::{Endpoint, EnvOrigin, EnvVar, Model, Plan, RemoteEndpoint, ServerConfig, Source};

/// Schemes of a header before a credential.
const SCHEMES: [&str; 6] = ["Bearer", "Basic", "Token", "ApiKey", "Digest", "DPoP"];

/// A secret of a plan.
pub(crate) struct PlanSecret<'a> {
    text: &'a MaskedString,
    /// Place in the plan, such as `files.header.Authorization`, or the name of its variable.
    place: String,
}

impl<'a> PlanSecret<'a> {
    /// Returns the values to hide, each with a name: the whole text, what follows the scheme of a header, and what each
    /// variable contributes to a text such as `--token=${TOKEN}`.
    pub(crate) fn parts(&self) -> Vec<(&str, &'a str)> {
        let value = self.text.expose().trim();
        let mut parts = vec![(self.name(), value)];
        if let Some((scheme, token)) = value.split_once(' ')
            && SCHEMES.iter().any(|it| it.eq_ignore_ascii_case(scheme))
        {
            parts.push((self.name(), token.trim()));
        }
        parts.extend(self.text.variables().iter().map(|(name, value)| (name.as_str(), value.trim())));
        parts.retain(|(_, part)| part.len() >= MIN_SECRET_BYTES);
        parts
    }

    /// Returns the whole value.
    pub(crate) fn value(&self) -> &'a str {
        self.text.expose()
    }

    /// Returns the name of the first variable in the text, or its place.
    pub(crate) fn name(&self) -> &str {
        let variable = self.text.variables().first().map(|(name, _)| name.as_str());
        variable.or_else(|| shown_variable(self.text)).unwrap_or(&self.place)
    }

    /// Describes the secret without its value.
    pub(crate) fn description(&self) -> &str {
        match self.text.is_secret() && self.text.shown().contains("${") {
            true => self.text.shown(),
            false => &self.place,
        }
    }
}

/// Lists every secret of the plan.
pub(crate) fn plan_secrets(plan: &Plan) -> Vec<PlanSecret<'_>> {
    let model = plan.model.iter().flat_map(model_secrets);
    plan.sources.iter().flat_map(source_secrets).chain(model).collect()
}

fn source_secrets(source: &Source) -> Vec<PlanSecret<'_>> {
    let name = source.name.shown();
    let mut secrets = match &source.endpoint {
        Endpoint::Builtin(_) => Vec::new(),
        Endpoint::Stdio(launch) => {
            let args = launch.args.iter().map(|it| (&it.value, name.to_owned()));
            let env = launch.env.0.iter().filter(|(_, it)| is_of_entry(it));
            let env = env.map(|(variable, it)| (&it.value, variable.clone()));
            args.chain(env).filter_map(|(text, place)| secret(text, place)).collect()
        }
        Endpoint::Sse(remote) | Endpoint::Http { remote, .. } => remote_secrets(name, remote),
        Endpoint::WebSocket(_, url) => secret(url, format!("{name}.url")).into_iter().collect(),
    };
    secrets.extend(source.config.iter().flat_map(|it| config_secrets(it, &format!("{name}.config"))));
    let overrides = source.overrides.values();
    secrets.extend(overrides.flat_map(|it| config_secrets(it, &format!("{name}.override"))));
    secrets
}

/// Returns whether a variable of a server is from its entry. The others are wharf's own, such as `PATH`; `MCP_CONFIG` has
/// the settings of the entry, whose secrets are listed one by one.
fn is_of_entry(variable: &EnvVar) -> bool {
    matches!(variable.origin, EnvOrigin::Entry | EnvOrigin::EnvFile(_) | EnvOrigin::Inherited)
}

/// Lists the secrets of a server that is reached over HTTP. A header is secret even if no variable is in it.
fn remote_secrets<'a>(name: &str, remote: &'a RemoteEndpoint) -> Vec<PlanSecret<'a>> {
    let headers = remote.headers.iter();
    let headers = headers.map(|(header, text)| PlanSecret { text, place: format!("{name}.header.{header}") });
    let auth = remote.auth.iter().flat_map(|it| it.grant.secrets());
    let auth = auth.map(|text| PlanSecret { text, place: format!("{name}.auth") });
    headers.chain(auth).chain(secret(&remote.shown_url, format!("{name}.url"))).collect()
}

fn model_secrets(model: &Model) -> Vec<PlanSecret<'_>> {
    let key = model.api_key.iter().map(|text| PlanSecret { text, place: "model.api_key".to_owned() });
    let headers = model.headers.iter();
    let headers = headers.map(|(header, text)| PlanSecret { text, place: format!("model.header.{header}") });
    key.chain(headers).chain(model.extra.iter().flat_map(|it| config_secrets(it, "model.extra"))).collect()
}

fn config_secrets<'a>(config: &'a ServerConfig, place: &str) -> Vec<PlanSecret<'a>> {
    config.secrets().iter().map(|text| PlanSecret { text, place: place.to_owned() }).collect()
}

fn secret(text: &MaskedString, place: String) -> Option<PlanSecret<'_>> {
    text.is_secret().then_some(PlanSecret { text, place })
}

/// Returns the name of the first variable in the shown form of a secret.
fn shown_variable(secret: &MaskedString) -> Option<&str> {
    let (_, rest) = secret.shown().split_once("${").filter(|_| secret.is_secret())?;
    let name = rest.strip_prefix("env:").unwrap_or(rest);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    Some(&name[..end]).filter(|it| !it.is_empty())
}
