//! Tests resources that no list and no template names, and resources that two servers list.

use super::{
    test_client::{Gateway, Transport},
    test_server::{THING, TestServer},
};
use serde_json::{Value, json};
use wharf_mcp::{
    News, Request,
    serve::Eras,
    session::{Era, List},
};

const COMBINATIONS: [(Transport, Era, Eras); 4] = [
    (Transport::Http, Era::Modern, Eras::LegacyOnly),
    (Transport::Http, Era::Legacy, Eras::ModernOnly),
    (Transport::Ws, Era::Legacy, Eras::Both),
    (Transport::Sse, Era::Modern, Eras::ModernOnly),
];

const HERE: &str = "hidden://here";
const NOWHERE: &str = "hidden://nowhere";

fn completion(uri: &str) -> Request {
    let params =
        json!({ "ref": { "type": "ref/resource", "uri": uri }, "argument": { "name": "a", "value": "" } });
    Request::new("completion/complete").params(params.into())
}

#[tokio::test]
async fn unlisted_resource_is_found_at_the_server_that_knows_it() {
    for (transport, era, eras) in COMBINATIONS {
        let combination = format!("{transport:?} {era:?} {eras:?}");
        let (one, two) = tokio::join!(TestServer::start(eras), TestServer::start(eras));
        two.hide(HERE);
        for servers in [&[&one, &two][..], &[&two]] {
            let gateway = Gateway::in_front_of_all(servers);
            let mut ada = gateway.connect(transport, era, "Ada").await;
            assert_eq!(ada.ask(Request::read_resource(HERE)).await, "found", "{combination}");
            let missing = ada.ask(Request::read_resource(NOWHERE)).await;
            let code = if era == Era::Modern { "-32602" } else { "-32002" };
            assert!(missing.starts_with(code), "{combination}: {missing}");
            assert_eq!(ada.ask(completion(HERE)).await, r#"["done"]"#, "{combination}");
            let missing = ada.ask(completion(NOWHERE)).await;
            assert!(missing.starts_with("-32"), "{combination}: {missing}");
            ada.watch(&[HERE, NOWHERE]);
            assert_eq!(ada.session.is_watching(HERE).await, Ok(()), "{combination}");
            assert!(ada.session.is_watching(NOWHERE).await.is_err(), "{combination}");
            two.service.announce(News::ResourceUpdated(HERE.to_owned()));
            ada.news(|it| *it == News::ResourceUpdated(HERE.to_owned())).await;
            ada.watch(&[]);
            let mut watched = two.service.watched();
            watched.wait_for(|it| it.is_empty()).await.expect("it serves");
        }
    }
}

/// The subscription finds its server without an earlier read.
#[tokio::test]
async fn unlisted_resource_can_be_watched_at_once() {
    for (transport, era, eras) in COMBINATIONS {
        let (one, two) = tokio::join!(TestServer::start(eras), TestServer::start(eras));
        two.hide(HERE);
        let gateway = Gateway::in_front_of_all(&[&one, &two]);
        let mut ada = gateway.connect(transport, era, "Ada").await;
        ada.watch(&[HERE]);
        assert_eq!(ada.session.is_watching(HERE).await, Ok(()), "{transport:?} {era:?} {eras:?}");
        assert!(!one.service.watched().borrow().contains(HERE), "{transport:?} {era:?} {eras:?}");
        two.service.announce(News::ResourceUpdated(HERE.to_owned()));
        ada.news(|it| *it == News::ResourceUpdated(HERE.to_owned())).await;
    }
}

#[tokio::test]
async fn only_a_subscription_can_be_ended() {
    let test_server = TestServer::start(Eras::Both).await;
    let gateway = Gateway::in_front_of(&test_server);
    let ada = gateway.connect(Transport::Http, Era::Legacy, "Ada").await;
    let ask = async |method: &'static str| {
        ada.ask(Request::new(method).params(json!({ "uri": THING }).into())).await
    };
    for _ in 0..2 {
        let refused = ask("resources/unsubscribe").await;
        assert!(refused.starts_with("-32602 ") && refused.contains("not subscribed"), "{refused}");
        assert_eq!(ask("resources/subscribe").await, "{}");
        assert_eq!(ask("resources/unsubscribe").await, "{}");
    }
}

#[tokio::test]
async fn resource_of_two_servers_is_listed_once() {
    let (one, two) = tokio::join!(TestServer::start(Eras::Both), TestServer::start(Eras::LegacyOnly));
    let gateway = Gateway::in_front_of_all(&[&one, &two]);
    for era in [Era::Legacy, Era::Modern] {
        let ada = gateway.connect(Transport::Http, era, "Ada").await;
        for (list, key) in [(List::Resources, "uri"), (List::Templates, "uriTemplate")] {
            let listing = ada.session.list(list).await.expect("a list");
            let uris = listing.items.iter().map(|it| it.decode_or_default::<Value>()[key].clone());
            assert_eq!(uris.collect::<Vec<_>>().len(), 1, "{era:?} {list:?}");
        }
    }
}
