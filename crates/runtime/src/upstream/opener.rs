//! Creates the opener for each kind of endpoint. No other module matches on an endpoint to open it.

use super::{Ground, container, credentials, program, workplace::Workplace};
use crate::Text;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::{ffi::OsString, sync::Arc};
use wharf_config::{Endpoint, Launch, Remote, Source};
use wharf_mcp::{Failure, Opener, Reach, http as streamable, sse, stdio, ws};

/// Returns the opener of the source's server, and its working directory if it runs as a process.
pub(super) fn open(
    source: &Source,
    ground: &Ground,
    witness: Option<Arc<dyn stdio::Witness>>,
) -> Result<(Box<dyn Opener>, Option<Workplace>), Failure> {
    match &source.endpoint {
        Endpoint::Builtin(builtin) => {
            let missing = || Failure::connect(format!("`{}` is not part of this program", builtin.as_str()));
            let builtins = ground.builtins.as_ref().ok_or_else(missing)?;
            Ok((builtins.opener(*builtin), None))
        }
        Endpoint::Stdio(launch) => {
            let workplace = Workplace::new(ground)?;
            let mut command = command(launch, &workplace)?;
            command.supervisor.clone_from(&ground.supervisor);
            command.witness = witness;
            let opener: Box<dyn Opener> = match &launch.serves {
                Some(path) => {
                    Box::new(sse::Served { command, path: path.clone(), client: ground.http.clone() })
                }
                None => container::opener(launch, command),
            };
            Ok((opener, Some(workplace)))
        }
        Endpoint::Sse(remote) => {
            let mut endpoint = sse::Endpoint::new(remote.url.clone(), client(source, remote, ground)?);
            endpoint.headers = headers(remote)?;
            endpoint.authorizer = credentials::authorizer(source, remote, ground);
            endpoint.read_timeout = remote.sse_read_timeout.unwrap_or(endpoint.read_timeout);
            Ok((Box::new(endpoint), None))
        }
        Endpoint::WebSocket(url, _) => Ok((
            Box::new(ws::Endpoint { reach: egress_policy(source), ..ws::Endpoint::new(url.clone()) }),
            None,
        )),
        Endpoint::Http { remote, terminate_on_close } => {
            let mut endpoint = streamable::Endpoint::new(remote.url.clone(), client(source, remote, ground)?);
            endpoint.headers = headers(remote)?;
            endpoint.authorizer = credentials::authorizer(source, remote, ground);
            endpoint.terminate_on_close = *terminate_on_close;
            endpoint.read_timeout = remote.sse_read_timeout;
            Ok((Box::new(endpoint), None))
        }
    }
}

/// Builds the command of a launch: program, arguments and environment.
pub(super) fn command(launch: &Launch, workplace: &Workplace) -> Result<stdio::Command, Failure> {
    let os = |text: &Text| OsString::from(text.expose());
    let mut command = stdio::Command::new(program::find(launch)?, workplace.path());
    command.args = launch.args.iter().map(|it| os(&it.value)).collect();
    command.env = launch.env.0.iter().map(|(name, it)| (name.into(), os(&it.value))).collect();
    let charset = stdio::Charset::named(launch.encoding.name());
    command.charset = charset.unwrap_or(stdio::Charset::UTF_8);
    Ok(command)
}

/// Returns the shared HTTP client, or a separate one if the entry has its own connect timeout or address policy.
fn client(source: &Source, remote: &Remote, ground: &Ground) -> Result<streamable::Client, Failure> {
    let shared = &ground.http;
    let timeout = remote.timeout.unwrap_or(shared.connect_timeout());
    match egress_policy(source) {
        reach if reach == shared.reach() && timeout == shared.connect_timeout() => Ok(shared.clone()),
        Some(reach) => streamable::Client::within(reach, timeout),
        None => streamable::Client::new(timeout),
    }
}

/// Returns the addresses that connections to this source may use, or `None` if any address is allowed.
pub(super) fn egress_policy(source: &Source) -> Option<Reach> {
    source.egress.map(|it| Reach::new(it.loopback, it.private))
}

fn headers(remote: &Remote) -> Result<HeaderMap, Failure> {
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
