//! Tests the sign-in flow: the requests to the MCP server and its authorization server, step by step.

use crate::{eras::options, fake_oauth::FakeOAuth};
use std::{sync::Arc, time::Duration};
use tokio::{sync::Notify, time::Instant};
use url::Url;
use wharf_mcp::{
    Opener, Request, Session,
    http::{HttpClient, HttpEndpoint},
    oauth::{Access, Browser, Config, FileStore, Identity, MemoryStore, OAuth, TokenStore, Visit},
    session::{Connected, Era, EraHint},
    sse,
};

/// User who consents to everything, after a pause.
pub(crate) struct ConsentingUser(pub(crate) Pause);

pub(crate) enum Pause {
    None,
    Until(Arc<Notify>),
    For(Duration),
}

impl Browser for ConsentingUser {
    fn redirect_uri(&self) -> String {
        "http://localhost:1/back".into()
    }

    fn visit(&self, page: Url) -> Visit {
        let (resume, time) = match &self.0 {
            Pause::None => (None, Duration::ZERO),
            Pause::Until(resume) => (Some(resume.clone()), Duration::ZERO),
            Pause::For(time) => (None, *time),
        };
        Box::pin(async move {
            let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
            let response = client.build().unwrap().get(page).send().await.unwrap();
            if let Some(resume) = resume {
                resume.notified().await;
            }
            tokio::time::sleep(time).await;
            Ok(response.headers()["location"].to_str().unwrap().parse().unwrap())
        })
    }
}

/// Returns the settings of a client that registers itself.
pub(crate) fn config(fake: &FakeOAuth, browser: Option<ConsentingUser>) -> Config {
    let identity = Identity::Automatic { name: "test".into(), document: None };
    let browser = browser.map(|browser| Arc::new(browser) as Arc<dyn Browser>);
    let access = Access::AuthorizationCode { identity, browser };
    Config {
        server: fake.url("/mcp"),
        access,
        scopes: Vec::new(),
        dpop: false,
        issuer: None,
        private_addresses: false,
    }
}

fn oauth(fake: &FakeOAuth, browser: Option<ConsentingUser>, store: Arc<dyn TokenStore>) -> OAuth {
    OAuth::new(config(fake, browser), store)
}

pub(crate) fn endpoint(fake: &FakeOAuth, oauth: &OAuth) -> HttpEndpoint {
    let mut endpoint = HttpEndpoint::new(fake.url("/mcp"), HttpClient::new(Duration::from_secs(2)).unwrap());
    endpoint.authorizer = Some(Arc::new(oauth.clone()));
    endpoint
}

pub(crate) async fn connect(fake: &FakeOAuth, oauth: &OAuth) -> Connected {
    let options = wharf_mcp::Options { era: EraHint::Only(Era::Modern), ..options() };
    Session::connect(&endpoint(fake, oauth), &options).await.unwrap()
}

async fn signed_in() -> (FakeOAuth, Connected, Arc<dyn TokenStore>) {
    let fake = FakeOAuth::start().await;
    let store: Arc<dyn TokenStore> = Arc::new(MemoryStore::default());
    let connected = connect(&fake, &oauth(&fake, Some(ConsentingUser(Pause::None)), store.clone())).await;
    fake.log();
    (fake, connected, store)
}

#[tokio::test]
async fn a_rejected_request_signs_in_and_is_retried() {
    let fake = FakeOAuth::start().await;
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore::new(folder.path().join("tokens.json")));
    let connected = connect(&fake, &oauth(&fake, Some(ConsentingUser(Pause::None)), store.clone())).await;
    let signed_in =
        "server/discover with nothing, register, authorize, authorization_code, server/discover with t1";
    assert_eq!(fake.log(), signed_in);
    connected.session.request(Request::new("x")).await.unwrap();
    assert_eq!(fake.log(), "x with t1");
    // Another process finds the stored token and needs no user.
    connect(&fake, &oauth(&fake, None, store)).await;
    assert_eq!(fake.log(), "server/discover with t1");
}

#[tokio::test]
async fn concurrent_requests_share_one_refresh() {
    let (fake, connected, _) = signed_in().await;
    fake.state().good.clear();
    let asks = (0..5).map(|_| connected.session.request(Request::new("x")));
    let answers = futures_util::future::join_all(asks).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let log = fake.log();
    assert_eq!(log.matches("refresh_token r1").count(), 1, "{log}");
    assert_eq!(log.matches("x with t2").count(), 5, "{log}");
    assert!(!log.contains("authorize") && !log.contains("register"), "{log}");
}

#[tokio::test]
async fn an_expiring_token_is_refreshed_before_use() {
    let fake = FakeOAuth::start().await;
    fake.state().lifetime = 10;
    let connected =
        connect(&fake, &oauth(&fake, Some(ConsentingUser(Pause::None)), Arc::new(MemoryStore::default())))
            .await;
    fake.state().lifetime = 3600;
    fake.log();
    connected.session.request(Request::new("x")).await.unwrap();
    connected.session.request(Request::new("x")).await.unwrap();
    let log = fake.log();
    assert!(log.contains("refresh_token r") && !log.contains("authorize"), "{log}");
    assert_eq!(log.matches("refresh_token").count(), 1, "{log}");
}

#[tokio::test]
async fn a_rejected_refresh_token_signs_in_again_as_the_same_client() {
    let (fake, connected, _) = signed_in().await;
    fake.state().good.clear();
    fake.state().refreshable.clear();
    connected.session.request(Request::new("x")).await.unwrap();
    assert_eq!(fake.log(), "x with t1, refresh_token r1, authorize, authorization_code, x with t2");
}

#[tokio::test]
async fn new_scopes_are_requested_with_the_granted_ones() {
    let (fake, connected, _) = signed_in().await;
    for (wants, asked) in [("write", "authorize for write"), ("admin", "authorize for write admin")] {
        fake.state().wants = Some(wants);
        connected.session.request(Request::new("x")).await.unwrap();
        let log = fake.log();
        assert!(log.contains(asked) && !log.contains("refresh"), "{log}");
    }
}

#[tokio::test]
async fn a_token_saved_by_another_process_is_used() {
    let (fake, connected, store) = signed_in().await;
    let mut grant = store.load().unwrap().unwrap();
    grant.response.insert("access_token".into(), "theirs".into());
    store.save(&grant).unwrap();
    fake.state().good = ["theirs".to_owned()].into();
    connected.session.request(Request::new("x")).await.unwrap();
    assert_eq!(fake.log(), "x with t1, x with theirs");
}

#[tokio::test]
async fn without_a_browser_the_rejection_is_returned() {
    let fake = FakeOAuth::start().await;
    let oauth = oauth(&fake, None, Arc::new(MemoryStore::default()));
    let failure = Session::connect(&endpoint(&fake, &oauth), &options()).await.unwrap_err();
    assert_eq!(failure.status, Some(401));
    assert!(failure.challenge.as_deref().unwrap_or_default().starts_with("Bearer resource_metadata="));
    assert_eq!(fake.log(), "server/discover with nothing");
    assert_eq!(
        oauth.login(None).await.unwrap_err().to_string(),
        "could not sign in: this needs a user and a browser"
    );
}

#[tokio::test]
async fn a_sign_in_outlives_the_request_that_started_it() {
    let (fake, connected, store) = signed_in().await;
    drop(connected);
    store.clear().unwrap();
    let resume = Arc::new(Notify::new());
    let oauth = oauth(&fake, Some(ConsentingUser(Pause::Until(resume.clone()))), store);
    let options = wharf_mcp::Options { connect_timeout: Duration::from_millis(300), ..options() };
    let began = Instant::now();
    Session::connect(&endpoint(&fake, &oauth), &options).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(20));
    resume.notify_one();
    connect(&fake, &oauth).await;
    let log = fake.log();
    assert_eq!(log.matches("authorize,").count(), 1, "{log}");
    assert_eq!(log.matches("register").count(), 1, "{log}");
}

#[tokio::test]
async fn a_slow_sign_in_does_not_count_as_silence() {
    let fake = FakeOAuth::start().await;
    let slow = ConsentingUser(Pause::For(Duration::from_millis(2_500)));
    let oauth = oauth(&fake, Some(slow), Arc::new(MemoryStore::default()));
    let connected = Session::connect(&endpoint(&fake, &oauth), &options()).await.unwrap();
    assert_eq!(connected.session.terms().era, Era::Modern);
    assert!(!fake.log().contains("initialize"));
}

#[tokio::test]
async fn sse_streams_sign_in_too() {
    let (fake, connected, store) = signed_in().await;
    drop(connected);
    fake.state().good.clear();
    let mut endpoint =
        sse::SseEndpoint::new(fake.url("/sse"), HttpClient::new(Duration::from_secs(2)).unwrap());
    endpoint.authorizer = Some(Arc::new(oauth(&fake, Some(ConsentingUser(Pause::None)), store)));
    endpoint.open().await.unwrap();
    assert_eq!(fake.log(), "stream with t1, refresh_token r1, stream with t2");
}

#[tokio::test]
async fn a_failed_refresh_is_not_repeated_by_every_request() {
    let fake = FakeOAuth::start().await;
    fake.state().lifetime = 10;
    let user = ConsentingUser(Pause::None);
    let connected = connect(&fake, &oauth(&fake, Some(user), Arc::new(MemoryStore::default()))).await;
    fake.state().token_error = Some("temporarily_unavailable");
    fake.log();
    for _ in 0..3 {
        connected.session.request(Request::new("x")).await.unwrap();
    }
    let log = fake.log();
    assert_eq!(log.matches("refresh_token").count(), 1, "{log}");
    assert_eq!(log.matches("x with t").count(), 3, "{log}");
}
