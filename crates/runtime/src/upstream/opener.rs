//! Creates the opener for each kind of endpoint. No other module matches on an endpoint to open it.

use super::{UpstreamContext, container, credentials, working_directory::WorkingDirectory};
use crate::{MaskedString, launch_program::find_program_of};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::{ffi::OsString, sync::Arc};
use wharf_config::{CONSTRAINTS_FILE, Endpoint, Launch, PortEndpoint, PortTransport, RemoteEndpoint, Source};
use wharf_mcp::{
    EgressPolicy, Failure, Opener, http as streamable,
    local_server::{LocalServer, LocalTransport},
    oauth::MemoryStore,
    sse, stdio, ws,
};

/// Returns the opener of the source's server, and its working directory if it runs as a process. Without a store for
/// tokens, a remote server gets no token.
pub(super) fn open(
    source: &Source,
    context: &UpstreamContext,
    tokens: Option<&Arc<MemoryStore>>,
    observer: Option<Arc<dyn stdio::ProcessObserver>>,
) -> Result<(Box<dyn Opener>, Option<WorkingDirectory>), Failure> {
    if let Some(recorded) = &context.recorded {
        return Ok((recorded.opener(source.name.expose())?, None));
    }
    match &source.endpoint {
        Endpoint::Builtin(builtin) => {
            let missing =
                || Failure::connect(format!("`{}` is not built into this program", builtin.as_str()));
            let builtins = context.builtins.as_ref().ok_or_else(missing)?;
            Ok((builtins.opener(*builtin), None))
        }
        Endpoint::Stdio(launch) => {
            let working_directory = WorkingDirectory::new(context)?;
            let mut command = command(launch, &working_directory)?;
            command.supervisor.clone_from(&context.supervisor);
            command.observer = observer;
            let opener: Box<dyn Opener> = match &launch.port {
                Some(PortEndpoint { transport, path }) => Box::new(LocalServer {
                    command,
                    transport: match transport {
                        PortTransport::Sse => LocalTransport::Sse,
                        PortTransport::Http => LocalTransport::Http,
                    },
                    path: path.clone(),
                    client: context.http.clone(),
                }),
                None => container::opener(launch, command),
            };
            Ok((opener, Some(working_directory)))
        }
        Endpoint::Sse(remote) => {
            let mut endpoint = sse::SseEndpoint::new(remote.url.clone(), client(source, remote, context)?);
            endpoint.headers = headers(remote)?;
            endpoint.authorizer = credentials::authorizer(source, remote, context, tokens);
            endpoint.read_timeout = remote.sse_read_timeout.unwrap_or(endpoint.read_timeout);
            Ok((Box::new(endpoint), None))
        }
        Endpoint::WebSocket(url, _) => Ok((
            Box::new(ws::WsEndpoint { egress: egress_policy(source), ..ws::WsEndpoint::new(url.clone()) }),
            None,
        )),
        Endpoint::Http { remote, terminate_on_close } => {
            let mut endpoint =
                streamable::HttpEndpoint::new(remote.url.clone(), client(source, remote, context)?);
            endpoint.headers = headers(remote)?;
            endpoint.authorizer = credentials::authorizer(source, remote, context, tokens);
            endpoint.terminate_on_close = *terminate_on_close;
            endpoint.read_timeout = remote.sse_read_timeout;
            Ok((Box::new(endpoint), None))
        }
    }
}

/// Builds the command of a launch: program, arguments and environment.
pub(super) fn command(
    launch: &Launch,
    working_directory: &WorkingDirectory,
) -> Result<stdio::Command, Failure> {
    let os = |text: &MaskedString| OsString::from(text.expose());
    let mut command = stdio::Command::new(find_program_of(launch)?, working_directory.path());
    if let Some(constraints) = &launch.constraints {
        let file = working_directory.path().join(CONSTRAINTS_FILE);
        let written = std::fs::write(file, constraints);
        written.map_err(|error| Failure::connect(format!("could not write the constraints: {error}")))?;
    }
    command.args = launch.args.iter().map(|it| os(&it.value)).collect();
    command.env = launch.env.0.iter().map(|(name, it)| (name.into(), os(&it.value))).collect();
    let charset = stdio::Charset::named(launch.encoding.name());
    command.charset = charset.unwrap_or(stdio::Charset::UTF_8);
    Ok(command)
}

/// Returns the shared HTTP client, or a separate one if the entry has its own connect timeout or address policy.
fn client(
    source: &Source,
    remote: &RemoteEndpoint,
    context: &UpstreamContext,
) -> Result<streamable::HttpClient, Failure> {
    let shared = &context.http;
    let timeout = remote.timeout.unwrap_or(shared.connect_timeout());
    match egress_policy(source) {
        egress if egress == shared.egress() && timeout == shared.connect_timeout() => Ok(shared.clone()),
        Some(egress) => streamable::HttpClient::with_egress(egress, timeout),
        None => streamable::HttpClient::new(timeout),
    }
}

/// Returns the addresses that connections to this source may use, or `None` if any address is allowed.
pub(super) fn egress_policy(source: &Source) -> Option<EgressPolicy> {
    source.egress.map(|it| EgressPolicy::new(it.loopback, it.private))
}

fn headers(remote: &RemoteEndpoint) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for (name, value) in &remote.headers {
        let unusable = || Failure::connect(format!("the header `{name}` cannot be sent"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
        let mut value = HeaderValue::from_bytes(value.expose().as_bytes()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}
