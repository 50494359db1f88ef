//! Tests sign-ins with the assertion of a third party: workload identity and enterprise-managed authorization.

use crate::{
    eras::options,
    fake_dpop::ProofCheck,
    fake_oauth::FakeOAuth,
    oauth::{config, connect, endpoint},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL};
use serde_json::json;
use std::{fs, sync::Arc};
use wharf_mcp::{
    Failure, Request, Session,
    oauth::{Access, Config, IdentityProvider, MemoryStore, OAuth, Secret, TokenSource},
};

/// Returns an unsigned JWT for an audience.
fn jwt(audience: &str) -> String {
    format!("e30.{}.x", BASE64URL.encode(json!({ "aud": [audience] }).to_string()))
}

fn oauth(fake: &FakeOAuth, change: impl FnOnce(&mut Config)) -> OAuth {
    let mut config = config(fake, None);
    change(&mut config);
    OAuth::new(config, Arc::new(MemoryStore::default()))
}

fn workload(token: TokenSource) -> Access {
    Access::WorkloadIdentity { id: Some("workload".into()), token }
}

fn text(token: &str) -> TokenSource {
    TokenSource::Text(Secret::new(token))
}

fn issuer(fake: &FakeOAuth) -> String {
    fake.url("").as_str().trim_end_matches('/').to_owned()
}

async fn refused(fake: &FakeOAuth, oauth: &OAuth) -> Failure {
    Session::connect(&endpoint(fake, oauth), &options()).await.unwrap_err()
}

#[tokio::test]
async fn a_workload_exchanges_the_current_token_of_its_file() {
    let fake = FakeOAuth::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let (first, second) = (jwt(&issuer(&fake)), jwt(fake.url("/token").as_str()));
    fs::write(&file, format!("{first}\n")).unwrap();
    let oauth = oauth(&fake, |config| {
        config.access = workload(TokenSource::File(file.clone()));
        config.scopes = vec!["read".into()];
    });
    let connected = connect(&fake, &oauth).await;
    let log = fake.log();
    assert_eq!(
        log,
        format!("server/discover with nothing, jwt-bearer {first} as workload read, server/discover with t1")
    );
    // The platform has replaced the file when the access token expires.
    fs::write(&file, &second).unwrap();
    fake.state().good.clear();
    connected.session.request(Request::new("x")).await.unwrap();
    assert_eq!(fake.log(), format!("x with t1, jwt-bearer {second} as workload read, x with t2"));
}

#[tokio::test]
async fn a_rejected_assertion_is_reported_without_it_and_not_sent_again() {
    let fake = FakeOAuth::start().await;
    fake.state().token_error = Some("invalid_grant");
    let token = jwt(&issuer(&fake));
    let oauth = oauth(&fake, |config| config.access = workload(text(&token)));
    let failure = refused(&fake, &oauth).await;
    assert_eq!(fake.log().matches("jwt-bearer").count(), 1);
    assert!(failure.to_string().contains("the authorization server rejected the request"), "{failure}");
    assert!(!failure.to_string().contains(&token), "{failure}");
}

#[tokio::test]
async fn a_workloads_token_is_not_sent_to_another_authorization_server() {
    let fake = FakeOAuth::start().await;
    let other = "https://as.example";
    let oauth_for = |issuer: Option<String>| {
        oauth(&fake, |config| {
            config.access = workload(text(&jwt("https://other.example")));
            config.issuer = issuer;
        })
    };
    let failure = refused(&fake, &oauth_for(None)).await;
    assert!(failure.to_string().contains("token is for `https://other.example`, but"), "{failure}");
    let failure = refused(&fake, &oauth_for(Some(other.into()))).await;
    assert!(failure.to_string().contains(&format!("but the configured issuer is `{other}`")), "{failure}");
    assert!(!fake.log().contains("jwt-bearer"));
    // The configured issuer vouches for an audience of its own choice.
    connect(&fake, &oauth_for(Some(issuer(&fake)))).await;
    assert!(fake.log().contains("jwt-bearer"));
}

#[tokio::test]
async fn a_missing_or_empty_token_file_is_named() {
    let fake = FakeOAuth::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let oauth = oauth(&fake, |config| config.access = workload(TokenSource::File(file.clone())));
    let failure = refused(&fake, &oauth).await.to_string();
    assert!(failure.contains(&format!("could not read the token in `{}`", file.display())), "{failure}");
    fs::write(&file, "\n").unwrap();
    assert!(refused(&fake, &oauth).await.to_string().contains("it is empty"));
}

#[tokio::test]
async fn an_id_token_becomes_an_assertion_and_then_a_bound_token() {
    for dpop in [false, true] {
        let fake = FakeOAuth::start().await;
        fake.state().dpop = dpop.then(|| (ProofCheck::with_nonce(), ProofCheck::with_nonce()));
        let token_endpoint = fake.url("/idp/token");
        let oauth = oauth(&fake, |config| {
            config.access = Access::Enterprise {
                id: "c".into(),
                secret: Some(Secret::new("s")),
                id_token: text("alice"),
                identity_provider: IdentityProvider { token_endpoint, id: Some("idp".into()), secret: None },
            };
        });
        connect(&fake, &oauth).await;
        let nonce = if dpop { "use_dpop_nonce, " } else { "" };
        let expected = format!(
            "server/discover with nothing, exchange alice as idp, {nonce}jwt-bearer jag-of-alice as basic, \
             {nonce}server/discover with t1"
        );
        assert_eq!(fake.log(), expected);
    }
}
