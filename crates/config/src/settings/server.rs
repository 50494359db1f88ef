//! Loads `[server]` and `[tokens]` of wharf.toml: the listener, the database and the clients that may connect.
//!
//! The file contains neither tokens nor the database password. It names a variable or another file that holds them,
//! and the program reads those.

use crate::{
    agent_settings::ClientTools,
    diagnostic::Diagnostics,
    node::Value,
    place::{Lines, Place},
    raw::{Field, RawServer, RawToken},
    read::Reader,
};
use std::path::{Path, PathBuf};
use url::Url;

/// Settings of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// Listen address, as `host:port`, if set.
    pub listen: Option<LocatedValue<String>>,
    /// Address of the database, if set.
    pub database: Option<LocatedValue<DatabaseLocation>>,
    /// Whether to allow unauthenticated access.
    pub no_auth: bool,
    /// Host names that the gateway accepts, in addition to the loopback names.
    pub hosts: Vec<String>,
    /// Web origins that may use the gateway, in addition to its own.
    pub origins: Vec<String>,
    /// Maximum number of concurrent calls before REST rejects new ones. `None` means no limit.
    pub max_calls: Option<usize>,
    /// Maximum number of concurrently open MCP streams, if set.
    pub max_streams: Option<usize>,
    /// Number of threads that serve calls, if set.
    pub threads: Option<usize>,
    /// Tokens of clients other than the operator.
    pub tokens: Vec<NamedToken>,
}

/// A value with its place in the file, so that later code can name the place in an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedValue<T> {
    /// The value.
    pub value: T,
    /// Place of the value, as `file:line:column`.
    pub at: String,
}

/// Location of the database address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseLocation {
    /// The address itself, without a password.
    Address(String),
    /// The environment variable that holds the address.
    Variable(String),
}

/// A client that may authenticate with a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedToken {
    /// Name of the client.
    pub name: String,
    /// Role of the client.
    pub role: Role,
    /// Location of the token.
    pub stored_at: TokenLocation,
    /// How its clients are shown tools, if not as agent.yaml says.
    pub tool_mode: Option<ClientTools>,
}

/// Location of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenLocation {
    /// The environment variable that holds the token.
    Variable(String),
    /// The file that holds the token.
    File(PathBuf),
}

/// Permissions of a client. Each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May read.
    Viewer,
    /// May call tools, get prompts and use MCP.
    Caller,
    /// May restart servers, reset circuit breakers, and enable or disable tools.
    Operator,
    /// May do everything.
    Admin,
}

/// Maximum number of threads.
const MAX_THREADS: u64 = 1_024;

/// Maximum value of a limit.
const MAX_LIMIT: u64 = u32::MAX as u64;

/// Reserved names: `operator` is the operator's own token, `anybody` is a client without authentication.
const RESERVED: [&str; 2] = ["operator", "anybody"];

impl Role {
    const NAMES: &[&str] = &["viewer", "caller", "operator", "admin"];

    /// Returns the name of the role.
    pub fn as_str(self) -> &'static str {
        Role::NAMES[self as usize]
    }

    fn parse(name: &str) -> Option<Role> {
        let all = [Role::Viewer, Role::Caller, Role::Operator, Role::Admin];
        all.into_iter().find(|it| it.as_str() == name)
    }
}

/// Reads `[server]` and `[tokens]`. `None` means that a diagnostic was recorded.
pub(super) fn server(
    server: Option<Field>,
    tokens: Option<Field>,
    diagnostics: &mut Diagnostics,
) -> Option<ServerSettings> {
    let mut settings = ServerSettings::default();
    if let Some(field) = server {
        let RawServer { hosts, origins, max_calls, max_streams, listen, database, no_auth, threads } =
            RawServer::read(field.node, diagnostics)?;
        settings.listen = self::listen(listen, diagnostics);
        settings.database = self::database(database, diagnostics);
        settings.hosts = super::strings("hosts", hosts, diagnostics);
        settings.origins = super::strings("origins", origins, diagnostics);
        let mut reader = Reader { class: "ConfigError", diagnostics };
        let mut limit = |name, field, max| reader.count(name, field, max).and_then(|it| it.try_into().ok());
        settings.max_calls = limit("max_calls", max_calls, MAX_LIMIT);
        settings.max_streams = limit("max_streams", max_streams, MAX_LIMIT);
        settings.threads = limit("threads", threads, MAX_THREADS);
        settings.no_auth = reader.flag("no_auth", no_auth).unwrap_or(false);
    }
    settings.tokens = tokens.map_or(Some(Vec::new()), |it| self::tokens(it, diagnostics))?;
    Some(settings)
}

fn listen(field: Option<Field>, diagnostics: &mut Diagnostics) -> Option<LocatedValue<String>> {
    let text = Reader { class: "ConfigError", diagnostics }.text("listen", field)?;
    let address = text.value.expose();
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    if port.is_none_or(|it| it.parse::<u16>().is_err()) {
        diagnostics.invalid_listen_address(text.at, text.value.shown());
        return None;
    }
    Some(LocatedValue { value: address.to_owned(), at: location_of(text.at, diagnostics) })
}

fn database(field: Option<Field>, diagnostics: &mut Diagnostics) -> Option<LocatedValue<DatabaseLocation>> {
    let text = Reader { class: "ConfigError", diagnostics }.text("database", field)?;
    // Hide the whole value, because even an invalid one may contain a password.
    diagnostics.hide(text.at);
    let address = text.value.expose();
    let is_postgres = ["postgres://", "postgresql://"].iter().any(|it| address.starts_with(it));
    let value = match (variable(address), address.strip_prefix("sqlite:")) {
        (Some(variable), _) => DatabaseLocation::Variable(variable),
        (None, Some(path)) if Path::new(path).is_absolute() => DatabaseLocation::Address(address.to_owned()),
        (None, Some(_)) => {
            diagnostics.database_not_absolute(text.at);
            return None;
        }
        (None, None) if !is_postgres => {
            diagnostics.invalid_database_url(text.at);
            return None;
        }
        (None, None) if has_password(address) => {
            diagnostics.plaintext_password(text.at);
            return None;
        }
        (None, None) => DatabaseLocation::Address(address.to_owned()),
    };
    Some(LocatedValue { value, at: location_of(text.at, diagnostics) })
}

/// Returns whether a URL contains a password, in its user info or its query. An unparsable URL counts as containing
/// one.
fn has_password(address: &str) -> bool {
    Url::parse(address).map_or(true, |url| {
        url.password().is_some() || url.query_pairs().any(|(name, _)| name.eq_ignore_ascii_case("password"))
    })
}

fn location_of(at: Place, diagnostics: &Diagnostics) -> String {
    let (line, column) = Lines::of(diagnostics.source()).position(at.start);
    format!("{}:{line}:{column}", diagnostics.file())
}

fn tokens(field: Field, diagnostics: &mut Diagnostics) -> Option<Vec<NamedToken>> {
    let Value::Map(pairs) = field.node.value else {
        diagnostics.not_a_mapping(field.node.at, "[tokens]");
        return None;
    };
    let named = pairs.into_iter().map(|it| {
        let field = Field { key_at: it.key_at, node: it.node };
        token(it.key, field, diagnostics)
    });
    // Collect before combining, so that errors in all tokens are reported at once.
    named.collect::<Vec<_>>().into_iter().collect()
}

fn token(name: String, field: Field, diagnostics: &mut Diagnostics) -> Option<NamedToken> {
    let at = field.key_at;
    if RESERVED.contains(&name.as_str()) {
        diagnostics.token_name_reserved(at, &name);
    }
    let RawToken { role, value, file, tool_mode } = RawToken::read(field.node, diagnostics)?;
    if role.is_none() {
        diagnostics.token_without_role(at, &name, Role::NAMES);
    }
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let role = reader.keyword("role", role, Role::NAMES, Role::parse);
    let tool_mode = reader.keyword("tool_mode", tool_mode, ClientTools::KEYWORDS, ClientTools::parse);
    let stored_at = match (reader.text("value", value), reader.text("file", file)) {
        (Some(value), None) => {
            diagnostics.hide(value.at);
            let variable = variable(value.value.expose());
            if variable.is_none() {
                diagnostics.plaintext_token(value.at, &name);
            }
            variable.map(TokenLocation::Variable)
        }
        (None, Some(file)) => {
            let path = Path::new(file.value.expose());
            if !path.is_absolute() {
                diagnostics.token_file_not_absolute(file.at, file.value.shown());
            }
            Some(TokenLocation::File(path.to_owned()))
        }
        _ => {
            diagnostics.token_needs_value_or_file(at, &name);
            None
        }
    };
    Some(NamedToken { name, role: role?, stored_at: stored_at?, tool_mode })
}

/// Returns the name in `${NAME}`, if the text consists of nothing else.
fn variable(text: &str) -> Option<String> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    (begins && name.chars().all(fits)).then(|| name.to_owned())
}
