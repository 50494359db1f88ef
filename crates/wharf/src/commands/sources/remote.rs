//! A server of ours that runs somewhere, and what it answers.

use crate::{commands::Token, content::printable, exit::Exit, front::read_token};
use reqwest::{Client, StatusCode, Url, header};
use serde_json::Value;
use std::time::Duration;
use wharf_runtime::config::parse_web_address;

/// How long the server may take to be reached, and to answer: it may start another for that.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(200);

/// The longest answer that is read.
const LONGEST: usize = 64 << 20;

/// A server.
pub(super) struct Remote {
    server: Url,
    token: Option<String>,
    client: Client,
}

/// What is said when it did not work, and how the program ends.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) what: String,
    pub(super) exit: Exit,
}

impl Remote {
    /// The server at this address. The token in our own state directory is for servers on this machine.
    pub(super) fn new(server: &str, token: Option<Token>) -> Result<Remote, Trouble> {
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
        let client = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .redirect(reqwest::redirect::Policy::none());
        let client = if local { client.no_proxy() } else { client };
        let client = client.build().map_err(|error| Trouble::new(&error.to_string(), Exit::OurBug))?;
        Ok(Remote { server, token, client })
    }

    /// Every item of a list, page by page.
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

    /// What the server answers, if that is what was hoped for.
    pub(super) async fn ask(&self, method: &str, path: &str, body: Option<String>) -> Result<Value, Trouble> {
        let address = self.server.join(path).map_err(|_| Trouble::usage("`--server` cannot be used"))?;
        let method = method.parse().unwrap_or(reqwest::Method::GET);
        let mut request = self.client.request(method, address);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let mut response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let mut text = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if text.len() + piece.len() > LONGEST {
                return Err(Trouble::new("the answer is too long", Exit::Protocol));
            }
            text.extend_from_slice(&piece);
        }
        let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
        if status.is_success() { Ok(answer) } else { Err(refused(status, &answer)) }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Trouble {
        if error.is_timeout() && !error.is_connect() {
            return Trouble::new("there was no answer in time", Exit::Timeout);
        }
        let host = self.server.authority();
        let what = format!(
            "there is no server at {host}\nhelp: start one with `wharf serve`, or name it with --server"
        );
        Trouble::new(&what, Exit::Unavailable)
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

/// The problem that a server answers with, for a person.
fn refused(status: StatusCode, problem: &Value) -> Trouble {
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
