//! The client that the official conformance suite starts: `conformance-client URL`.
//!
//! Three environment variables contain the scenario, the protocol version of the server and further context. The
//! client detects the version itself, as usual, and only compares the result.

mod browser;
mod host;
mod sample;
mod scenario_runner;

use browser::Headless;
use host::AcceptingHost;
use scenario_runner::ScenarioRunner;
use serde::Deserialize;
use std::{env, error::Error, process::ExitCode, sync::Arc, time::Duration};
use url::Url;
use wharf_mcp::{
    Options, Session, http,
    oauth::{Access, Algorithm, Config, Identity, IdentityProvider, MemoryStore, OAuth, Secret, TokenSource},
    session::{ClientInfo, Era, MODERN},
};

/// URL that the suite expects for our client metadata document.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

const TIMEOUT: Duration = Duration::from_secs(20);

/// Further parameters of a scenario.
#[derive(Debug, Default, Deserialize)]
struct Context {
    client_id: Option<String>,
    client_secret: Option<String>,
    private_key_pem: Option<String>,
    signing_algorithm: Option<String>,
    valid_jwt: Option<String>,
    idp_client_id: Option<String>,
    idp_id_token: Option<String>,
    idp_token_endpoint: Option<Url>,
    #[serde(rename = "toolCalls", default)]
    tool_calls: Vec<scenario_runner::Call>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        #[expect(clippy::print_stderr, reason = "the suite shows the stderr of a failing client")]
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a program reads its own arguments and environment")]
async fn run() -> Result<(), Box<dyn Error>> {
    let server: Url = env::args().nth(1).ok_or("usage: conformance-client URL")?.parse()?;
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let scenario = variable("MCP_CONFORMANCE_SCENARIO");
    let version = variable("MCP_CONFORMANCE_PROTOCOL_VERSION");
    let context: Context = match variable("MCP_CONFORMANCE_CONTEXT").as_str() {
        "" => Context::default(),
        text => serde_json::from_str(text)?,
    };
    let mut endpoint = http::HttpEndpoint::new(server.clone(), http::HttpClient::new(TIMEOUT)?);
    let config = Config {
        server,
        access: access(&scenario, &context)?,
        scopes: Vec::new(),
        dpop: false,
        issuer: None,
        private_addresses: false,
    };
    endpoint.authorizer = Some(Arc::new(OAuth::new(config, Arc::new(MemoryStore::default()))));
    let mut options = Options::new(ClientInfo { name: "conformance-client".into(), version: "1.0.0".into() });
    options.host = Arc::new(AcceptingHost);
    (options.connect_timeout, options.request_timeout) = (TIMEOUT, TIMEOUT);
    let connected = Session::connect(&endpoint, &options).await?;
    let era = connected.session.terms().era;
    if (version == MODERN) != (era == Era::Modern) {
        return Err(format!("the server speaks `{version}` and was taken for {era:?}").into());
    }
    let done = ScenarioRunner { session: &connected.session, calls: context.tool_calls }
        .run_scenario(&scenario)
        .await;
    drop(connected.session);
    connected.task.join().await;
    done
}

/// Builds the credentials, in case the server requires them.
fn access(scenario: &str, context: &Context) -> Result<Access, Box<dyn Error>> {
    let secret = context.client_secret.clone().map(Secret::new);
    // Client id and secret mean a client that acts for a user, unless the scenario is about client credentials.
    let is_client_credentials = scenario.contains("client-credentials");
    if let Some(token) = &context.valid_jwt {
        let token = TokenSource::Text(Secret::new(token));
        return Ok(Access::WorkloadIdentity { id: context.client_id.clone(), token });
    }
    if let (Some(token_endpoint), Some(id_token)) = (&context.idp_token_endpoint, &context.idp_id_token) {
        let id = context.idp_client_id.clone();
        return Ok(Access::Enterprise {
            id: context.client_id.clone().ok_or("the client id is missing")?,
            secret,
            id_token: TokenSource::Text(Secret::new(id_token)),
            identity_provider: IdentityProvider { token_endpoint: token_endpoint.clone(), id, secret: None },
        });
    }
    let identity = match (&context.client_id, &context.private_key_pem) {
        (Some(id), Some(pem)) => {
            let algorithm = context.signing_algorithm.as_deref().and_then(Algorithm::named);
            let algorithm = algorithm.ok_or("the signing algorithm is unknown")?;
            return Ok(Access::Key { id: id.clone(), pem: Secret::new(pem), algorithm });
        }
        (Some(id), None) if is_client_credentials => {
            return Ok(Access::Secret { id: id.clone(), secret: secret.ok_or("the secret is missing")? });
        }
        (Some(id), None) => Identity::Registered { id: id.clone(), secret },
        (None, _) => {
            Identity::Automatic { name: "conformance-client".into(), document: Some(DOCUMENT.parse()?) }
        }
    };
    Ok(Access::AuthorizationCode { identity, browser: Some(Arc::new(Headless::new()?)) })
}
