//! Lists the secrets of a plan: every value from a variable, an env file or a header. The redactor, recordings and the
//! lock use the same list, so that none of them shows what another one hides.

use super::MIN_SECRET_BYTES;
use crate::MaskedString;
use url::{Position, Url};
use wharf_config::{Endpoint, EnvOrigin, EnvVar, Model, Plan, RemoteEndpoint, ServerConfig, Source};

/// Schemes of a header before a credential.
const SCHEMES: [&str; 6] = ["Bearer", "Basic", "Token", "ApiKey", "Digest", "DPoP"];

/// A secret of a plan.
pub(crate) struct PlanSecret<'a> {
    text: &'a MaskedString,
    /// Place in the plan, such as `files.header.Authorization`, or the name of its variable.
    place: String,
    /// Host and port, if the text is an address. They are shown in errors, so they are no secret.
    host: Option<&'a str>,
}

impl<'a> PlanSecret<'a> {
    fn new(text: &'a MaskedString, place: String) -> PlanSecret<'a> {
        PlanSecret { text, place, host: None }
    }

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
        let is_host = |part: &str| self.host.is_some_and(|it| it.contains(part));
        parts.retain(|(_, part)| part.len() >= MIN_SECRET_BYTES && !is_host(part));
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
        Endpoint::WebSocket(url, shown) => address_secret(name, url, shown).into_iter().collect(),
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
    let headers = headers.map(|(header, text)| PlanSecret::new(text, format!("{name}.header.{header}")));
    let auth = remote.auth.iter().flat_map(|it| it.grant.secrets());
    let auth = auth.map(|text| PlanSecret::new(text, format!("{name}.auth")));
    headers.chain(auth).chain(address_secret(name, &remote.url, &remote.shown_url)).collect()
}

/// Returns the address of a server, unless its variables are only host and port.
fn address_secret<'a>(name: &str, url: &'a Url, shown: &'a MaskedString) -> Option<PlanSecret<'a>> {
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let mut variables = shown.variables().iter();
    let is_host = variables.len() > 0 && variables.all(|(_, value)| host.contains(value.trim()));
    let secret = secret(shown, format!("{name}.url")).filter(|_| !is_host)?;
    Some(PlanSecret { host: Some(host), ..secret })
}

fn model_secrets(model: &Model) -> Vec<PlanSecret<'_>> {
    let key = model.api_key.iter().map(|text| PlanSecret::new(text, "model.api_key".to_owned()));
    let headers = model.headers.iter();
    let headers = headers.map(|(header, text)| PlanSecret::new(text, format!("model.header.{header}")));
    key.chain(headers).chain(model.extra.iter().flat_map(|it| config_secrets(it, "model.extra"))).collect()
}

fn config_secrets<'a>(config: &'a ServerConfig, place: &str) -> Vec<PlanSecret<'a>> {
    config.secrets().iter().map(|text| PlanSecret::new(text, place.to_owned())).collect()
}

fn secret(text: &MaskedString, place: String) -> Option<PlanSecret<'_>> {
    text.is_secret().then(|| PlanSecret::new(text, place))
}

/// Returns the name of the first variable in the shown form of a secret.
fn shown_variable(secret: &MaskedString) -> Option<&str> {
    let (_, rest) = secret.shown().split_once("${").filter(|_| secret.is_secret())?;
    let name = rest.strip_prefix("env:").unwrap_or(rest);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    Some(&name[..end]).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::Redactor;
    use wharf_config::{Env, load};

    /// Errors name the host, and a result may contain a word such as `localhost`.
    #[test]
    fn host_and_port_of_an_address_are_no_secrets() {
        let mut env = Env::bare();
        for (name, value) in [("HOST", "server.test"), ("PORT", "30000"), ("KEY", "hunter2hunter2")] {
            env.variables.insert(name.to_owned(), value.to_owned());
        }
        let shown = |transport: &str, url: &str, text: &str| {
            let file = format!(
                "tools: [{{name: a, description: b, type: mcp, server: x, transport: {transport}, url: '{url}'}}]"
            );
            let (plan, diagnostics) = load(&file, &env);
            let plan = plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false)));
            Redactor::of(&plan).redact(text)
        };
        for (transport, scheme) in [("http", "https"), ("sse", "https"), ("websocket", "wss")] {
            let text = "server.test:30000 and hunter2hunter2";
            let host_only = shown(transport, &format!("{scheme}://${{HOST}}:${{PORT}}/mcp"), text);
            assert_eq!(host_only, text, "{transport}");
            let with_key = shown(transport, &format!("{scheme}://${{HOST}}:${{PORT}}/${{KEY}}"), text);
            assert!(with_key.starts_with("server.test:30000 and "), "{transport}: {with_key}");
            assert!(!with_key.contains("hunter2"), "{transport}: {with_key}");
        }
    }
}
