//! Implements `subscriptions/listen` of 2026-07-28: one long request whose stream carries notifications.

use super::{
    ClientTerms, Incoming, MessageSender, Service, announcements::Announcement, watched::ResourceSubscription,
};
use crate::{News, Outbound, Raw, Routing, RpcError, json::splice, session::MetaKey, tasks};
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::json;
use std::mem;

/// Maximum number of resources in one subscription.
const MAX_RESOURCES: usize = 1_000;

/// Notifications that a client subscribed to.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
    resource_subscriptions: Vec<String>,
}

/// Sends notifications until the service is dropped or the request is cancelled.
pub(super) async fn run(
    service: &Service,
    request: &Incoming,
    terms: &ClientTerms,
    id: Raw,
    out: MessageSender,
) -> Result<Raw, RpcError> {
    let wanted = request.params.as_ref().and_then(|params| params.member("notifications"));
    let Some(wanted) = wanted.filter(Raw::is_object) else {
        return Err(RpcError::new(RpcError::INVALID_PARAMS, "`notifications` is missing"));
    };
    // No task is announced, but a client has to declare tasks to ask for that.
    if wanted.member("taskIds").is_some() && !tasks::is_declared(&terms.capabilities) {
        return Err(tasks::missing_capability());
    }
    let mut filter = wanted.decode_or_default::<Filter>().limit_to(&service.about().capabilities);
    let mut announcements = service.announcements();
    let _subscriptions = filter.subscribe(service).await;
    let accepted = Some(json!({ "notifications": filter.to_json() }).into());
    send_notification(&out, "notifications/subscriptions/acknowledged", accepted, &id).await;
    while let Some(announcement) = announcements.next().await {
        let Announcement::News(news) = announcement else { continue };
        if let Some((method, params)) = notification(&news).filter(|_| filter.should_receive(&news)) {
            send_notification(&out, method, params, &id).await;
        }
    }
    Ok(Raw::empty_object())
}

/// Returns method and parameters of the notification for `news`, or `None` if clients do not receive it.
pub(super) fn notification(news: &News) -> Option<(&'static str, Option<Raw>)> {
    Some(match news {
        News::ToolsChanged => ("notifications/tools/list_changed", None),
        News::PromptsChanged => ("notifications/prompts/list_changed", None),
        News::ResourcesChanged => ("notifications/resources/list_changed", None),
        News::ResourceUpdated(uri) => ("notifications/resources/updated", Some(json!({ "uri": uri }).into())),
        News::Log(line) => ("notifications/message", Some(line.clone())),
        News::LogOfCall(_) | News::Renewed | News::ElicitationComplete(_) => return None,
    })
}

async fn send_notification(out: &MessageSender, method: &'static str, params: Option<Raw>, id: &Raw) {
    let params = params.unwrap_or_else(Raw::empty_object);
    let subscription = splice::object([(MetaKey::SUBSCRIPTION, id.as_bytes())]);
    let params = Some(splice::replace(&params, "_meta", subscription.as_bytes()));
    let message = Outbound::Notification { method: method.into(), params, routing: Routing::default() };
    let _ = out.send(Box::new(message)).await;
}

impl Filter {
    /// Removes notifications that the server does not offer in its capabilities.
    fn limit_to(mut self, capabilities: &Raw) -> Filter {
        let offers = |capability: &str, feature: &str| {
            let value = capabilities.member(capability).and_then(|it| it.member(feature));
            value.is_some_and(|value| value.as_bytes() == b"true")
        };
        self.tools_list_changed &= offers("tools", "listChanged");
        self.prompts_list_changed &= offers("prompts", "listChanged");
        self.resources_list_changed &= offers("resources", "listChanged");
        if !offers("resources", "subscribe") {
            self.resource_subscriptions.clear();
        }
        self
    }

    /// Subscribes to the requested resources and removes those that the service rejects.
    async fn subscribe(&mut self, service: &Service) -> Vec<ResourceSubscription> {
        let wanted = mem::take(&mut self.resource_subscriptions);
        let subscribing = wanted.iter().take(MAX_RESOURCES).map(|uri| service.watch(uri));
        let subscriptions =
            join_all(subscribing).await.into_iter().filter_map(Result::ok).collect::<Vec<_>>();
        self.resource_subscriptions = subscriptions.iter().map(|it| it.uri().to_owned()).collect();
        subscriptions
    }

    fn should_receive(&self, news: &News) -> bool {
        match news {
            News::ToolsChanged => self.tools_list_changed,
            News::PromptsChanged => self.prompts_list_changed,
            News::ResourcesChanged => self.resources_list_changed,
            News::ResourceUpdated(uri) => self.resource_subscriptions.contains(uri),
            News::Log(_) | News::LogOfCall(_) | News::Renewed | News::ElicitationComplete(_) => false,
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let mut accepted = serde_json::Map::new();
        let mut flag = |name: &str, wanted: bool| {
            if wanted {
                accepted.insert(name.into(), true.into());
            }
        };
        flag("toolsListChanged", self.tools_list_changed);
        flag("promptsListChanged", self.prompts_list_changed);
        flag("resourcesListChanged", self.resources_list_changed);
        if !self.resource_subscriptions.is_empty() {
            accepted.insert("resourceSubscriptions".into(), json!(self.resource_subscriptions));
        }
        accepted.into()
    }
}
