//! Where the gateway is and who may come in: the `[server]` and `[tokens]` of wharf.toml.
//!
//! A token itself never stands in the file: it is in a variable or in a file of its own, which the program reads. Nor does
//! the password of a database.

use crate::config::{
    diagnostic::Diagnostics,
    node::Value,
    place::{Lines, Place},
    raw::{Field, RawServer, RawToken},
    read::Reader,
};
use std::path::{Path, PathBuf};
use url::Url;

/// What the gateway takes from the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// Where it listens, if the operator says: a host and a port.
    pub listen: Option<Written<String>>,
    /// Where its database is, if the operator says.
    pub database: Option<Written<DatabasePlace>>,
    /// Whether everybody may come in who can reach it.
    pub no_auth: bool,
    /// Names under which the gateway is known beside those of loopback.
    pub hosts: Vec<String>,
    /// Pages that may use it beside its own.
    pub origins: Vec<String>,
    /// How many calls may be out before REST takes no more, if there is a limit.
    pub max_calls: Option<usize>,
    /// How many streams of MCP may stand open at a time, if the operator says.
    pub max_streams: Option<usize>,
    /// Who may come in beside the operator.
    pub tokens: Vec<NamedToken>,
}

/// Something of the file, and where it stands there, for who finds out later that it is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T> {
    /// What it is.
    pub value: T,
    /// `file:line:column`.
    pub at: String,
}

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabasePlace {
    /// At this address, in which there is no secret.
    Address(String),
    /// At the address that this variable holds.
    Variable(String),
}

/// Somebody who may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedToken {
    /// Who it is.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// Where their token is.
    pub kept: TokenPlace,
}

/// Where a token is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenPlace {
    /// In this variable.
    Variable(String),
    /// In this file.
    File(PathBuf),
}

/// What somebody may do; each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look.
    Viewer,
    /// Call tools, fill in prompts, speak MCP.
    Caller,
    /// Restart servers, reset breakers, switch tools on and off.
    Operator,
    /// Everything.
    Admin,
}

/// The highest limit there can be.
const MOST: u64 = u32::MAX as u64;

/// The operator's own token, and nobody's.
const RESERVED: [&str; 2] = ["operator", "anybody"];

impl Role {
    const NAMES: &[&str] = &["viewer", "caller", "operator", "admin"];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        Role::NAMES[self as usize]
    }

    fn named(name: &str) -> Option<Role> {
        let all = [Role::Viewer, Role::Caller, Role::Operator, Role::Admin];
        all.into_iter().find(|it| it.as_str() == name)
    }
}

/// `None` means that a complaint was recorded.
pub(super) fn server(
    server: Option<Field>,
    tokens: Option<Field>,
    diagnostics: &mut Diagnostics,
) -> Option<ServerSettings> {
    let mut settings = ServerSettings::default();
    if let Some(field) = server {
        let RawServer { hosts, origins, max_calls, max_streams, listen, database, no_auth } =
            RawServer::read(field.node, diagnostics)?;
        settings.listen = self::listen(listen, diagnostics);
        settings.database = self::database(database, diagnostics);
        settings.hosts = super::words("hosts", hosts, diagnostics);
        settings.origins = super::words("origins", origins, diagnostics);
        let mut reader = Reader { class: "ConfigError", diagnostics };
        let mut most = |name, field| reader.count(name, field, MOST).and_then(|it| it.try_into().ok());
        settings.max_calls = most("max_calls", max_calls);
        settings.max_streams = most("max_streams", max_streams);
        settings.no_auth = reader.flag("no_auth", no_auth).unwrap_or(false);
    }
    settings.tokens = tokens.map_or(Some(Vec::new()), |it| self::tokens(it, diagnostics))?;
    Some(settings)
}

fn listen(field: Option<Field>, diagnostics: &mut Diagnostics) -> Option<Written<String>> {
    let text = Reader { class: "ConfigError", diagnostics }.text("listen", field)?;
    let address = text.value.expose();
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    if port.is_none_or(|it| it.parse::<u16>().is_err()) {
        diagnostics.no_address(text.at, text.value.shown());
        return None;
    }
    Some(Written { value: address.to_owned(), at: where_it_stands(text.at, diagnostics) })
}

fn database(field: Option<Field>, diagnostics: &mut Diagnostics) -> Option<Written<DatabasePlace>> {
    let text = Reader { class: "ConfigError", diagnostics }.text("database", field)?;
    // Whatever is wrong with it, there may be a password in it.
    diagnostics.hide(text.at);
    let address = text.value.expose();
    let is_postgres = ["postgres://", "postgresql://"].iter().any(|it| address.starts_with(it));
    let value = match (variable(address), address.strip_prefix("sqlite:")) {
        (Some(variable), _) => DatabasePlace::Variable(variable),
        (None, Some(path)) if Path::new(path).is_absolute() => DatabasePlace::Address(address.to_owned()),
        (None, Some(_)) => {
            diagnostics.database_not_absolute(text.at);
            return None;
        }
        (None, None) if !is_postgres => {
            diagnostics.no_database(text.at);
            return None;
        }
        (None, None) if has_password(address) => {
            diagnostics.password_in_the_open(text.at);
            return None;
        }
        (None, None) => DatabasePlace::Address(address.to_owned()),
    };
    Some(Written { value, at: where_it_stands(text.at, diagnostics) })
}

/// Whether an address tells a password, in front of its host or behind it. One that cannot be read might.
fn has_password(address: &str) -> bool {
    Url::parse(address).map_or(true, |url| {
        url.password().is_some() || url.query_pairs().any(|(name, _)| name.eq_ignore_ascii_case("password"))
    })
}

fn where_it_stands(at: Place, diagnostics: &Diagnostics) -> String {
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
    // Every one is read, so that all complaints are heard at once.
    named.collect::<Vec<_>>().into_iter().collect()
}

fn token(name: String, field: Field, diagnostics: &mut Diagnostics) -> Option<NamedToken> {
    let at = field.key_at;
    if RESERVED.contains(&name.as_str()) {
        diagnostics.token_name_reserved(at, &name);
    }
    let RawToken { role, value, file } = RawToken::read(field.node, diagnostics)?;
    if role.is_none() {
        diagnostics.token_without_role(at, &name, Role::NAMES);
    }
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let role = reader.word("role", role, Role::NAMES, Role::named);
    let kept = match (reader.text("value", value), reader.text("file", file)) {
        (Some(value), None) => {
            diagnostics.hide(value.at);
            let variable = variable(value.value.expose());
            if variable.is_none() {
                diagnostics.token_in_the_open(value.at, &name);
            }
            variable.map(TokenPlace::Variable)
        }
        (None, Some(file)) => {
            let path = Path::new(file.value.expose());
            if !path.is_absolute() {
                diagnostics.token_file_not_absolute(file.at, file.value.shown());
            }
            Some(TokenPlace::File(path.to_owned()))
        }
        _ => {
            diagnostics.token_is_kept_once(at, &name);
            None
        }
    };
    Some(NamedToken { name, role: role?, kept: kept? })
}

/// The name in `${NAME}`, if that is all there is.
fn variable(text: &str) -> Option<String> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    (begins && name.chars().all(fits)).then(|| name.to_owned())
}
