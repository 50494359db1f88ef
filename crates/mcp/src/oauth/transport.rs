//! The HTTP requests that signing in takes.
//!
//! Where they go is named by the server and by those it names, so an address inside our own network is refused, unless
//! the server itself is reached there. The environment's proxies are not used.

use crate::Failure;
use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use std::{net::IpAddr, sync::Arc, time::Duration};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest answer that is read.
const BODY_LIMIT: usize = 1 << 20;

/// How many redirects are followed.
const REDIRECTS: usize = 5;

pub(super) struct Transport {
    following: reqwest::Client,
    stopping: reqwest::Client,
    reach: Reach,
}

/// Which addresses may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reach {
    loopback: bool,
    private: bool,
}

/// What kind of place an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Public,
    Private,
    Loopback,
    /// Neighbours on the link, among them the metadata services of clouds, and what is no host at all.
    Forbidden,
}

impl Transport {
    /// For signing in to `server`; `private` allows authorization servers in private networks.
    pub(super) fn new(server: &Url, private: bool) -> Result<Transport, Failure> {
        let reach = Reach::of(server, private);
        let follow = Policy::custom(move |attempt| {
            if attempt.previous().len() > REDIRECTS {
                attempt.error("it redirects too often")
            } else if !reach.allows(attempt.url()) {
                attempt.error("it redirects to an address inside our network")
            } else {
                attempt.follow()
            }
        });
        Ok(Transport { following: client(follow, reach)?, stopping: client(Policy::none(), reach)?, reach })
    }
}

fn client(redirect: Policy, reach: Reach) -> Result<reqwest::Client, Failure> {
    let client = reqwest::Client::builder().redirect(redirect).timeout(TIMEOUT).no_proxy();
    let client = client.dns_resolver(Arc::new(reach)).build();
    client.map_err(|error| Failure::connect(format!("could not set up HTTP: {error}")))
}

impl OAuthHttpClient for Transport {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let client = match request.redirect_policy {
                OAuthHttpRedirectPolicy::Follow => &self.following,
                _ => &self.stopping,
            };
            let request = reqwest::Request::try_from(request.request)?;
            if !self.reach.allows(request.url()) {
                return Err(forbidden(request.url().host_str().unwrap_or_default()));
            }
            let mut response = client.execute(request).await?;
            let mut answer = ::http::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                answer = answer.header(name, value);
            }
            let mut body = Vec::new();
            // Asked without credentials, a server may open a stream that never ends, and of no interest here.
            if crate::http::is_stream(&response) {
                return Ok(answer.body(body)?);
            }
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > BODY_LIMIT {
                    return Err("the answer is longer than the limit".into());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(answer.body(body)?)
        })
    }
}

impl Reach {
    fn of(server: &Url, private: bool) -> Reach {
        let place = match server.host() {
            Some(url::Host::Domain("localhost")) => Place::Loopback,
            Some(url::Host::Ipv4(address)) => place(address.into()),
            Some(url::Host::Ipv6(address)) => place(address.into()),
            _ => Place::Public,
        };
        Reach { loopback: place == Place::Loopback, private: private || place == Place::Private }
    }

    /// Only looks at addresses that are written out; names are looked at when they are resolved.
    fn allows(self, url: &Url) -> bool {
        match url.host() {
            Some(url::Host::Ipv4(address)) => self.includes(address.into()),
            Some(url::Host::Ipv6(address)) => self.includes(address.into()),
            _ => true,
        }
    }

    fn includes(self, address: IpAddr) -> bool {
        match place(address) {
            Place::Public => true,
            Place::Private => self.private,
            Place::Loopback => self.loopback,
            Place::Forbidden => false,
        }
    }
}

impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = *self;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let within: Vec<_> = found.filter(|address| reach.includes(address.ip())).collect();
            if within.is_empty() {
                return Err(forbidden(name.as_str()));
            }
            Ok(Box::new(within.into_iter()) as Addrs)
        })
    }
}

fn place(address: IpAddr) -> Place {
    let address = address.to_canonical();
    let (loopback, private, forbidden) = match address {
        IpAddr::V4(it) => {
            let [first, second, ..] = it.octets();
            let shared = first == 100 && (64..128).contains(&second);
            let no_host = it.is_unspecified() || it.is_multicast() || it.is_broadcast() || first >= 240;
            (it.is_loopback(), it.is_private() || shared, it.is_link_local() || first == 0 || no_host)
        }
        IpAddr::V6(it) => {
            let no_host = it.is_unspecified() || it.is_multicast();
            (it.is_loopback(), it.is_unique_local(), it.is_unicast_link_local() || no_host)
        }
    };
    match (forbidden, loopback, private) {
        (true, ..) => Place::Forbidden,
        (_, true, _) => Place::Loopback,
        (_, _, true) => Place::Private,
        _ => Place::Public,
    }
}

fn forbidden(host: &str) -> OAuthHttpClientError {
    format!("`{host}` is an address inside our network, and the server is not").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_send_us_into_our_own_network() {
        for (server, private, asked, allowed) in [
            ("https://mcp.example/", false, "https://as.example/token", true),
            ("https://mcp.example/", false, "http://93.184.216.34/", true),
            ("https://mcp.example/", false, "http://127.0.0.1/", false),
            ("https://mcp.example/", false, "http://[::1]/", false),
            ("https://mcp.example/", false, "http://[::ffff:10.0.0.1]/", false),
            ("https://mcp.example/", false, "http://10.0.0.1/", false),
            ("https://mcp.example/", true, "http://10.0.0.1/", true),
            ("https://mcp.example/", true, "http://169.254.169.254/", false),
            ("http://10.0.0.7/", false, "http://10.0.0.9/", true),
            ("http://10.0.0.7/", false, "http://127.0.0.1/", false),
            ("http://localhost:1/", false, "http://127.0.0.1:2/", true),
            ("http://127.0.0.1:1/", false, "http://[::1]:2/", true),
            ("http://127.0.0.1:1/", false, "http://0.0.0.0:2/", false),
        ] {
            let reach = Reach::of(&server.parse().unwrap(), private);
            assert_eq!(reach.allows(&asked.parse().unwrap()), allowed, "{server} {private} {asked}");
        }
    }
}
