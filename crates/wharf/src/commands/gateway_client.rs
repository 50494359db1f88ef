//! REST client for a running gateway.

use crate::{
    api::read_token,
    content::printable,
    environment::{Environment, Token},
    exit::Exit,
};
use reqwest::{Client, StatusCode, Url, header};
use serde_json::Value;
use std::time::Duration;
use wharf_config::parse_http_url;

/// Connect timeout. `REQUEST_TIMEOUT` is the request timeout, which allows for a server that the gateway has to start.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(200);

/// Default address of the gateway if the state folder does not name a running one.
const DEFAULT_GATEWAY_URL: &str = "http://127.0.0.1:7373";

/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// A gateway's address, the token for it and the HTTP client.
pub(super) struct GatewayClient {
    server: Url,
    token: Option<String>,
    client: Client,
}

/// An error message and the exit code.
#[derive(Debug)]
pub(super) struct GatewayClientError {
    pub(super) message: String,
    pub(super) exit: Exit,
}

/// The error of a request without a response, and whether the server may have received the request.
#[derive(Debug)]
pub(super) struct GatewaySendError {
    pub(super) error: GatewayClientError,
    pub(super) may_have_been_sent: bool,
}

/// Returns the URL of the gateway: the given one, else that of the running gateway, else the default.
pub(super) fn gateway_url(given: Option<&str>, environment: &Environment) -> String {
    let running = || environment.running_gateway().map(|it| it.url);
    given.map(str::to_owned).or_else(running).unwrap_or_else(|| DEFAULT_GATEWAY_URL.to_owned())
}

impl GatewayClient {
    /// Creates a client for the server at this address. The token file of our own state directory is only sent to
    /// servers on this machine.
    pub(super) fn new(server: &str, token: Option<Token>) -> Result<GatewayClient, GatewayClientError> {
        GatewayClient::with_timeout(server, token, Some(REQUEST_TIMEOUT))
    }

    /// Creates a client for the gateway on this machine, without a request timeout: a tool call may take long.
    pub(super) fn for_local_gateway(url: &str, token: Option<Token>) -> Option<GatewayClient> {
        let is_local = Url::parse(url).is_ok_and(|it| is_local(&it));
        GatewayClient::with_timeout(url, token, None).ok().filter(|_| is_local)
    }

    fn with_timeout(
        server: &str,
        token: Option<Token>,
        timeout: Option<Duration>,
    ) -> Result<GatewayClient, GatewayClientError> {
        let wrong = || GatewayClientError::usage("`--server` must be a URL like http://127.0.0.1:7373");
        let server = parse_http_url(server).ok_or_else(wrong)?;
        let local = is_local(&server);
        let token = match token {
            Some(Token::Set(token)) => Some(token),
            Some(Token::File(path)) if local && path.exists() => {
                Some(read_token(&path).map_err(|why| GatewayClientError::usage(&why))?)
            }
            _ => None,
        };
        if token.is_some() && !local && server.scheme() != "https" {
            let why = "the token would cross the network unencrypted\nhelp: use https";
            return Err(GatewayClientError::usage(why));
        }
        let client =
            Client::builder().connect_timeout(CONNECT_TIMEOUT).redirect(reqwest::redirect::Policy::none());
        let client = match timeout {
            Some(timeout) => client.timeout(timeout),
            None => client,
        };
        let client = if local { client.no_proxy() } else { client };
        let client = client
            .build()
            .map_err(|error| GatewayClientError::new(&error.to_string(), Exit::InternalError))?;
        Ok(GatewayClient { server, token, client })
    }

    /// Returns the URL of a path of the gateway.
    pub(super) fn url_of(&self, path: &str) -> Option<Url> {
        self.server.join(path).ok()
    }

    /// Fetches every item of a list, page by page.
    pub(super) async fn fetch_all(&self, path: &str) -> Result<Vec<Value>, GatewayClientError> {
        let (mut all, mut next) = (Vec::new(), String::new());
        loop {
            let mut page = self.request("GET", &format!("{path}{next}"), None).await?;
            let cursor = page["next_cursor"].as_str().map(|it| format!("?cursor={it}"));
            if let Some(items) = page["items"].as_array_mut() {
                all.append(items);
            }
            match cursor {
                Some(cursor) if cursor != next => next = cursor,
                _ => return Ok(all),
            }
        }
    }

    /// Sends a request and returns the body of a successful response.
    pub(super) async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Result<Value, GatewayClientError> {
        let (status, text) = self.send(method, path, "*/*", body).await.map_err(|it| it.error)?;
        let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
        if status.is_success() { Ok(answer) } else { Err(response_error(status, &answer)) }
    }

    /// Sends a request and returns any response.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        accept: &str,
        body: Option<String>,
    ) -> Result<(StatusCode, Vec<u8>), GatewaySendError> {
        let unusable =
            |_| GatewaySendError::unsent(GatewayClientError::usage("the URL in `--server` is invalid"));
        let address = self.server.join(path).map_err(unusable)?;
        let method = method.parse().unwrap_or(reqwest::Method::GET);
        let mut request = self.client.request(method, address).header(header::ACCEPT, accept);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let mut response = request.send().await.map_err(|error| self.send_error(&error))?;
        let status = response.status();
        let mut text = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.send_error(&error))? {
            if text.len() + piece.len() > MAX_RESPONSE_BYTES {
                let error = GatewayClientError::new("the response is too large", Exit::Protocol);
                return Err(GatewaySendError { error, may_have_been_sent: true });
            }
            text.extend_from_slice(&piece);
        }
        Ok((status, text))
    }

    fn send_error(&self, error: &reqwest::Error) -> GatewaySendError {
        GatewaySendError { error: self.connection_error(error), may_have_been_sent: !error.is_connect() }
    }

    fn connection_error(&self, error: &reqwest::Error) -> GatewayClientError {
        if error.is_timeout() && !error.is_connect() {
            return GatewayClientError::new("the request timed out", Exit::Timeout);
        }
        let host = self.server.authority();
        let message = format!(
            "no gateway answers at {host}\nhelp: start one with `wharf serve`, or give its URL with `--server`"
        );
        GatewayClientError::new(&message, Exit::Unavailable)
    }
}

impl GatewaySendError {
    fn unsent(error: GatewayClientError) -> GatewaySendError {
        GatewaySendError { error, may_have_been_sent: false }
    }
}

fn is_local(server: &Url) -> bool {
    match server.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Converts a problem response into an error message and an exit code.
pub(super) fn response_error(status: StatusCode, problem: &Value) -> GatewayClientError {
    let exit = match status.as_u16() {
        404 => Exit::NotFound,
        408 | 504 => Exit::Timeout,
        429 | 503 => Exit::TemporaryFailure,
        502 => Exit::Unavailable,
        400..=499 => Exit::Usage,
        _ => Exit::Protocol,
    };
    let detail =
        problem["detail"].as_str().map_or_else(|| format!("the server answered {status}"), printable);
    let mut message = format!("error: {detail}\n");
    for one in
        problem["problems"].as_array().into_iter().flatten().filter(|it| it["message"] != problem["detail"])
    {
        message += &format!("error: {}\n", printable(one["message"].as_str().unwrap_or_default()));
    }
    if let Some(hint) = problem["hint"].as_str() {
        message += &format!("help: {}\n", printable(hint));
    }
    GatewayClientError { message, exit }
}

impl GatewayClientError {
    fn new(message: &str, exit: Exit) -> GatewayClientError {
        GatewayClientError { message: format!("error: {message}\n"), exit }
    }

    pub(super) fn usage(message: &str) -> GatewayClientError {
        GatewayClientError::new(message, Exit::Usage)
    }
}
