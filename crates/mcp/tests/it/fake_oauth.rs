//! MCP server that requires a token, and its authorization server, at one address. It logs every request in a few
//! words.

use crate::fake_dpop::{ProofCheck, SentProof};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::net::TcpListener;
use url::Url;

#[derive(Clone)]
pub(crate) struct FakeOAuth {
    base: String,
    state: Arc<Mutex<State>>,
}

/// Behaviour of the fake, which tests change.
pub(crate) struct State {
    /// Accepted access tokens.
    pub(crate) good: HashSet<String>,
    /// Accepted refresh tokens.
    pub(crate) refreshable: HashSet<String>,
    /// Lifetime of newly issued tokens, in seconds.
    pub(crate) lifetime: u64,
    /// Scope to demand once, with an `insufficient_scope` error.
    pub(crate) wants: Option<&'static str>,
    /// Checks of the token endpoint and of the MCP server, if they require DPoP.
    pub(crate) dpop: Option<(ProofCheck, ProofCheck)>,
    /// OAuth error that the token endpoint answers with.
    pub(crate) token_error: Option<&'static str>,
    log: Vec<String>,
    issued: usize,
}

impl FakeOAuth {
    #[expect(clippy::disallowed_methods, reason = "the fake ends with the test's runtime")]
    pub(crate) async fn start() -> FakeOAuth {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (good, refreshable) = (HashSet::new(), HashSet::new());
        let state = State {
            good,
            refreshable,
            lifetime: 3600,
            wants: None,
            dpop: None,
            token_error: None,
            log: Vec::new(),
            issued: 0,
        };
        let fake = FakeOAuth { base, state: Arc::new(Mutex::new(state)) };
        let server = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request| server.clone().respond(request));
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
                });
            }
        });
        fake
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        format!("{}{path}", self.base).parse().unwrap()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns and clears the log of requests.
    pub(crate) fn log(&self) -> String {
        std::mem::take(&mut self.state().log).join(", ")
    }

    async fn respond(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let authorization = text("authorization").unwrap_or_default();
        let scheme = if self.state().dpop.is_some() { "DPoP " } else { "Bearer " };
        let token = authorization.strip_prefix(scheme).unwrap_or("nothing");
        let proof = text("dpop");
        let method = parts.method.as_str();
        let query = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        Ok(match parts.uri.path() {
            path @ ("/mcp" | "/sse") => {
                let sent = SentProof { proof, method, url: self.url(path), token: Some(token) };
                self.check_proof(&sent, || self.serve(token, &body))
            }
            "/.well-known/oauth-protected-resource/mcp" => self.respond_json(&json!({
                "resource": format!("{}/mcp", self.base), "authorization_servers": [self.base],
            })),
            "/.well-known/oauth-authorization-server" => self.respond_json(&json!({
                "issuer": self.base,
                "authorization_endpoint": format!("{}/authorize", self.base),
                "token_endpoint": format!("{}/token", self.base),
                "registration_endpoint": format!("{}/register", self.base),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            })),
            "/register" => {
                self.log_request("register");
                self.respond_json(&json!({ "client_id": "c", "client_secret": "s", "redirect_uris": [] }))
            }
            "/authorize" => self.authorize(&query.into_owned().collect()),
            "/token" => {
                let sent = SentProof { proof, method, url: self.url("/token"), token: None };
                let form = url::form_urlencoded::parse(&body).into_owned().collect();
                self.check_proof(&sent, || self.token(&form, authorization))
            }
            "/idp/token" => self.exchange(&url::form_urlencoded::parse(&body).into_owned().collect()),
            _ => status(StatusCode::NOT_FOUND),
        })
    }

    /// Answers a request after checking its proof, if the fake requires DPoP. Adds the nonce for the next one.
    fn check_proof(
        &self,
        sent: &SentProof<'_>,
        answer: impl FnOnce() -> Response<Full<Bytes>>,
    ) -> Response<Full<Bytes>> {
        let is_checked = sent.token != Some("nothing");
        let checked = self.state().dpop.as_mut().filter(|_| is_checked).map(|(tokens, server)| {
            let check = if sent.token.is_none() { tokens } else { server };
            (check.check(sent), check.nonce())
        });
        let (mut response, nonce) = match checked {
            None => (answer(), None),
            Some((Ok(()), nonce)) => (answer(), nonce),
            Some((Err(error), nonce)) => {
                self.log_request(error);
                let refused = match sent.token {
                    None => self.token_error(error, ""),
                    Some(_) => refusal(StatusCode::UNAUTHORIZED, &format!(r#"DPoP error="{error}""#)),
                };
                (refused, nonce)
            }
        };
        nonce
            .into_iter()
            .for_each(|it| drop(response.headers_mut().insert("dpop-nonce", it.parse().unwrap())));
        response
    }

    fn serve(&self, token: &str, body: &[u8]) -> Response<Full<Bytes>> {
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or("stream");
        self.log_request(&format!("{method} with {token}"));
        let scheme = if self.state().dpop.is_some() { "DPoP" } else { "Bearer" };
        let metadata = format!(
            r#"{scheme} resource_metadata="{}""#,
            self.url("/.well-known/oauth-protected-resource/mcp")
        );
        if !self.state().good.contains(token) {
            return refusal(StatusCode::UNAUTHORIZED, &metadata);
        }
        if let Some(scope) = self.state().wants.take() {
            let challenge = format!(r#"{metadata}, error="insufficient_scope", scope="{scope}""#);
            return refusal(StatusCode::FORBIDDEN, &challenge);
        }
        let result = match method {
            "server/discover" => json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} }),
            "stream" => {
                let events = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
                return events.body("event: endpoint\ndata: /sse\n\n".into()).unwrap();
            }
            _ => json!({}),
        };
        self.respond_json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
    }

    fn authorize(&self, query: &HashMap<String, String>) -> Response<Full<Bytes>> {
        let scope = query.get("scope").map(|scope| format!(" for {scope}")).unwrap_or_default();
        self.log_request(&format!("authorize{scope}"));
        let back = format!("{}?code=1&state={}", query["redirect_uri"], query["state"]);
        Response::builder().status(302).header(header::LOCATION, back).body(Full::default()).unwrap()
    }

    /// Answers the token exchange of an identity provider: the assertion names everything that was asked for.
    fn exchange(&self, form: &HashMap<String, String>) -> Response<Full<Bytes>> {
        let subject_token = &form["subject_token"];
        self.log_request(&format!("exchange {subject_token} as {}", form["client_id"]));
        assert_eq!(form["audience"], self.base);
        assert_eq!(form["resource"], self.url("/mcp").as_str());
        assert_eq!(form["requested_token_type"], "urn:ietf:params:oauth:token-type:id-jag");
        self.respond_json(&json!({
            "access_token": format!("jag-of-{subject_token}"), "token_type": "N_A",
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        }))
    }

    fn token(&self, form: &HashMap<String, String>, authorization: &str) -> Response<Full<Bytes>> {
        let text = |key: &str| form.get(key).map_or("", String::as_str);
        let client = if authorization.starts_with("Basic ") { "basic" } else { text("client_id") };
        let with = match (form.get("refresh_token"), form.get("assertion")) {
            (Some(token), _) => format!(" {token}"),
            (_, Some(assertion)) => format!(" {assertion} as {client} {}", text("scope")),
            _ => String::new(),
        };
        self.log_request(format!("{}{with}", text("grant_type").rsplit(':').next().unwrap()).trim());
        let invalid = form.get("refresh_token").filter(|token| !self.state().refreshable.contains(*token));
        let error = self.state().token_error.or(invalid.map(|_| "invalid_grant"));
        if let Some(error) = error {
            return self.token_error(error, &format!("no {}", text("assertion")));
        }
        let mut state = self.state();
        state.issued += 1;
        let (token, refresh) = (format!("t{}", state.issued), format!("r{}", state.issued));
        let (lifetime, token_type) = (state.lifetime, if state.dpop.is_some() { "DPoP" } else { "Bearer" });
        state.good.insert(token.clone());
        state.refreshable.insert(refresh.clone());
        drop(state);
        self.respond_json(&json!({
            "access_token": token, "token_type": token_type, "expires_in": lifetime, "refresh_token": refresh,
        }))
    }

    fn token_error(&self, error: &str, explanation: &str) -> Response<Full<Bytes>> {
        let body = json!({ "error": error, "error_description": explanation });
        let mut response = self.respond_json(&body);
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response
    }

    fn log_request(&self, what: &str) {
        self.state().log.push(what.to_owned());
    }

    fn respond_json(&self, body: &Value) -> Response<Full<Bytes>> {
        let json = Response::builder().header(header::CONTENT_TYPE, "application/json");
        json.body(body.to_string().into()).unwrap()
    }
}

fn refusal(code: StatusCode, challenge: &str) -> Response<Full<Bytes>> {
    let refusal = Response::builder().status(code).header(header::WWW_AUTHENTICATE, challenge);
    refusal.body(Full::default()).unwrap()
}

fn status(code: StatusCode) -> Response<Full<Bytes>> {
    Response::builder().status(code).body(Full::default()).unwrap()
}
