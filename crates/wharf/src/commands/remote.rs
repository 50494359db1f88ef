//! REST client for a running gateway.

use crate::{commands::Token, content::printable, exit::Exit, front::read_token};
use reqwest::{Client, StatusCode, Url, header};
use serde_json::Value;
use std::time::Duration;
use wharf_config::parse_web_address;

/// Connect timeout. `ANSWER` is the request timeout, which allows for a server that the gateway has to start.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(200);

/// Maximum size of a response, in bytes.
const LONGEST: usize = 64 << 20;

/// A gateway's address, the token for it and the HTTP client.
pub(super) struct Remote {
    server: Url,
    token: Option<String>,
    client: Client,
}

/// An error message and the exit code.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) what: String,
    pub(super) exit: Exit,
}

/// The error of a request without a response, and whether the server may have received the request.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) trouble: Trouble,
    pub(super) may_be_sent: bool,
}

impl Remote {
    /// Creates a client for the server at this address. The token file of our own state directory is only sent to
    /// servers on this machine.
    pub(super) fn new(server: &str, token: Option<Token>) -> Result<Remote, Trouble> {
        Remote::with_timeout(server, token, Some(ANSWER))
    }

    /// Creates a client for the gateway on this machine, without a request timeout: a tool call may take long.
    pub(super) fn of_gateway(url: &str, token: Option<Token>) -> Option<Remote> {
        let is_local = Url::parse(url).is_ok_and(|it| is_local(&it));
        Remote::with_timeout(url, token, None).ok().filter(|_| is_local)
    }

    fn with_timeout(
        server: &str,
        token: Option<Token>,
        timeout: Option<Duration>,
    ) -> Result<Remote, Trouble> {
        let wrong = || Trouble::usage("`--server` has to be an address like http://127.0.0.1:7373");
        let server = parse_web_address(server).ok_or_else(wrong)?;
        let local = is_local(&server);
        let token = match token {
            Some(Token::Set(token)) => Some(token),
            Some(Token::File(path)) if local && path.exists() => {
                Some(read_token(&path).map_err(|why| Trouble::usage(&why))?)
            }
            _ => None,
        };
        if token.is_some() && !local && server.scheme() != "https" {
            let why = "the token would cross the network in the clear\nhelp: use https";
            return Err(Trouble::usage(why));
        }
        let client = Client::builder().connect_timeout(CONNECT).redirect(reqwest::redirect::Policy::none());
        let client = match timeout {
            Some(timeout) => client.timeout(timeout),
            None => client,
        };
        let client = if local { client.no_proxy() } else { client };
        let client = client.build().map_err(|error| Trouble::new(&error.to_string(), Exit::OurBug))?;
        Ok(Remote { server, token, client })
    }

    /// Fetches every item of a list, page by page.
    pub(super) async fn all(&self, path: &str) -> Result<Vec<Value>, Trouble> {
        let (mut all, mut next) = (Vec::new(), String::new());
        loop {
            let mut page = self.ask("GET", &format!("{path}{next}"), None).await?;
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
    pub(super) async fn ask(&self, method: &str, path: &str, body: Option<String>) -> Result<Value, Trouble> {
        let (status, text) = self.send(method, path, "*/*", body).await.map_err(|it| it.trouble)?;
        let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
        if status.is_success() { Ok(answer) } else { Err(refused(status, &answer)) }
    }

    /// Sends a request and returns any response.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        accept: &str,
        body: Option<String>,
    ) -> Result<(StatusCode, Vec<u8>), Unanswered> {
        let unusable = |_| Unanswered::unsent(Trouble::usage("`--server` cannot be used"));
        let address = self.server.join(path).map_err(unusable)?;
        let method = method.parse().unwrap_or(reqwest::Method::GET);
        let mut request = self.client.request(method, address).header(header::ACCEPT, accept);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let mut response = request.send().await.map_err(|error| self.unanswered(&error))?;
        let status = response.status();
        let mut text = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.unanswered(&error))? {
            if text.len() + piece.len() > LONGEST {
                let trouble = Trouble::new("the answer is too long", Exit::Protocol);
                return Err(Unanswered { trouble, may_be_sent: true });
            }
            text.extend_from_slice(&piece);
        }
        Ok((status, text))
    }

    fn unanswered(&self, error: &reqwest::Error) -> Unanswered {
        Unanswered { trouble: self.unreachable(error), may_be_sent: !error.is_connect() }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Trouble {
        if error.is_timeout() && !error.is_connect() {
            return Trouble::new("there was no answer in time", Exit::Timeout);
        }
        let host = self.server.authority();
        let what = format!(
            "no gateway answers at {host}\nhelp: start one with `wharf serve`, or name it with --server"
        );
        Trouble::new(&what, Exit::Unavailable)
    }
}

impl Unanswered {
    fn unsent(trouble: Trouble) -> Unanswered {
        Unanswered { trouble, may_be_sent: false }
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
pub(super) fn refused(status: StatusCode, problem: &Value) -> Trouble {
    let exit = match status.as_u16() {
        404 => Exit::NotFound,
        408 | 504 => Exit::Timeout,
        429 | 503 => Exit::Resting,
        502 => Exit::Unavailable,
        400..=499 => Exit::Usage,
        _ => Exit::Protocol,
    };
    let detail =
        problem["detail"].as_str().map_or_else(|| format!("the server answered {status}"), printable);
    let mut what = format!("error: {detail}\n");
    for one in
        problem["problems"].as_array().into_iter().flatten().filter(|it| it["message"] != problem["detail"])
    {
        what += &format!("error: {}\n", printable(one["message"].as_str().unwrap_or_default()));
    }
    if let Some(hint) = problem["hint"].as_str() {
        what += &format!("help: {}\n", printable(hint));
    }
    Trouble { what, exit }
}

impl Trouble {
    fn new(what: &str, exit: Exit) -> Trouble {
        Trouble { what: format!("error: {what}\n"), exit }
    }

    pub(super) fn usage(what: &str) -> Trouble {
        Trouble::new(what, Exit::Usage)
    }
}
