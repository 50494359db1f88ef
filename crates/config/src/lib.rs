//! Turns the text of an agent file into a [`Plan`]: parses it, substitutes variables and lowers every entry. Collects
//! all diagnostics instead of stopping at the first.
//!
//! ```
//! use wharf_config::{Env, load};
//!
//! let text = "tools:\n  - name: todo\n    description: Things to do\n    type: mcp\n    server: builtin:todo\n";
//! let (plan, diagnostics) = load(text, &Env::bare());
//! assert!(diagnostics.items().is_empty());
//! assert_eq!(plan.expect("a plan").sources.len(), 1);
//! ```

mod agent_settings;
mod breaker_policy;
mod child_env;
mod diagnostic;
mod download;
mod echo;
mod egress;
mod encoding;
mod env;
mod env_file;
mod fault_rules;
mod file_position;
mod files;
mod find_program;
mod glob;
mod grants;
mod invisible;
mod json;
mod json_tree;
mod keywords;
mod launch;
mod lock;
mod lock_reader;
mod lower;
mod manifest;
mod mask;
mod masked_source;
mod masked_string;
mod messages;
mod model;
mod node;
mod oauth;
mod overrides;
mod place;
mod plan;
mod raw;
mod read;
mod record_settings;
mod registration;
mod render;
mod result_settings;
mod scalar;
mod scenario;
mod schema;
mod server_config;
mod settings;
mod suggest;
mod toml;
mod transport;
mod url;
mod variable_layers;
mod variables;
mod yaml;

use node::Node;

pub use agent_settings::{
    AgentPolicy, AgentSettings, ApprovalRules, ClientTools, ContextSettings, Decision, ModelPrice,
    OperatorRules, RunLimits, SamplingPolicy,
};
pub use breaker_policy::BreakerPolicy;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use download::Download;
pub use egress::Egress;
pub use env::{Env, LockUse, Origin};
pub use env_file::parse_env_file;
pub use fault_rules::{FaultEffect, FaultRule, FaultRules, FaultTarget, FaultTrigger};
pub use file_position::FilePosition;
pub use files::{FileError, Files, Folder, NoFiles, read_regular};
pub use find_program::find_program;
pub use glob::Glob;
pub use grants::{Grants, MissingGrant};
pub use invisible::is_invisible;
pub use launch::pin::{CONSTRAINTS_FILE, with_version};
pub use lock::{
    DependencyCheck, LOCK_FILE, LockBasis, LockFile, LockMode, LockSettings, LockedDependencies,
    LockedIdentity, LockedItem, LockedPackage, LockedServer, MAX_LOCK_BYTES, PackageKind, RegisteredLock,
    sha256,
};
pub use lock_reader::LockError;
pub use lower::json_schema::check_answer_schema;
pub use manifest::{Suggestion, suggest as suggest_entry};
pub use masked_string::MaskedString;
pub use model::{Model, ModelApi, ModelEndpoint, Provider, ReasoningEffort};
pub use oauth::{
    ClientCredential, GrantType, IdpSettings, OAuthGrant, OAuthSettings, SigningAlgorithm, TokenOrigin,
};
pub use overrides::{ArgumentChange, ArgumentOverride, Overrides, ToolOverride};
pub use place::{Lines, Place};
pub use plan::*;
pub use record_settings::{RecordSettings, TextPattern};
pub use registration::{Registration, RestoredSource, register, restore};
pub use result_settings::{PassRule, ResultQuotas, ResultReader, ResultSettings};
pub use scenario::{CallOrder, Expectations, ExpectedCall, Scenario, ScenarioCall, ScenarioTask, TextCheck};
pub use schema::schema;
pub use server_config::ServerConfig;
pub use settings::{
    DatabaseLocation, JournalSettings, Limit, LocatedValue, NamedToken, Role, ServerSettings, Settings,
    TelemetrySettings, TokenLocation, load_settings, settings_with_grant,
};
pub use suggest::closest;
pub use url::parse_http_url;

/// Maximum size of an agent file, in bytes. Longer input is rejected before it is parsed.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Placeholder for the port in the arguments and variables of a server that is started to listen on a port.
pub const PORT_PLACEHOLDER: &str = "{port}";

/// Loads an agent file. The input may also be JSON, which is valid YAML.
///
/// Returns either a plan, possibly with warnings, or no plan and at least one error.
pub fn load(text: impl AsRef<[u8]>, env: &Env) -> (Option<Plan>, Diagnostics) {
    let mut diagnostics = match decode(text.as_ref(), &env.file) {
        Ok(text) => Diagnostics::new(&env.file, text),
        Err(diagnostics) => return (None, diagnostics),
    };
    let source = diagnostics.source().to_owned();
    let plan = yaml::parse(&source, &mut diagnostics)
        .and_then(|root| lower::agent(root, &source, env, &mut diagnostics));
    diagnostics.finish();
    (plan.filter(|_| !diagnostics.has_errors()), diagnostics)
}

/// Loads a scenario. Returns either a scenario, possibly with warnings, or at least one error.
pub fn load_scenario(text: impl AsRef<[u8]>, file: &str) -> (Option<Scenario>, Diagnostics) {
    load_plain(text.as_ref(), file, lower::scenario::scenario)
}

/// Loads the faults to inject. Returns either the rules or at least one error.
pub fn load_faults(text: impl AsRef<[u8]>, file: &str) -> (Option<FaultRules>, Diagnostics) {
    load_plain(text.as_ref(), file, lower::fault_rules::fault_file)
}

/// Loads a file that has no variables, so it holds no secrets.
fn load_plain<T>(
    text: &[u8],
    file: &str,
    lower: impl FnOnce(Node, &mut Diagnostics) -> Option<T>,
) -> (Option<T>, Diagnostics) {
    let mut diagnostics = match decode(text, file) {
        Ok(text) => Diagnostics::new(file, text),
        Err(diagnostics) => return (None, diagnostics),
    };
    diagnostics.secrets_known = true;
    let source = diagnostics.source().to_owned();
    let root = yaml::parse(&source, &mut diagnostics);
    let loaded = root.and_then(|root| lower(root, &mut diagnostics));
    diagnostics.finish();
    (loaded.filter(|_| !diagnostics.has_errors()), diagnostics)
}

/// Decodes `bytes` as UTF-8 and strips a byte order mark.
fn decode<'a>(bytes: &'a [u8], file: &str) -> Result<&'a str, Diagnostics> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Diagnostics::too_large(file));
    }
    let text =
        str::from_utf8(bytes).map_err(|error| Diagnostics::not_utf8(file, bytes, error.valid_up_to()))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}
