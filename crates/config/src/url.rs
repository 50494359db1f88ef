//! Checks the URLs that an agent file may name.
//!
//! The host is parsed, never compared as a prefix, and it must be in its canonical spelling. URL parsers read
//! `http://2130706433`, `http://127.1` and `http://localhost` in other alphabets as loopback, but a reviewer would
//! not notice.

use super::{
    diagnostic::Diagnostics,
    env::Env,
    mask,
    place::{Place, PlacedString},
};
use crate::{
    egress::{Egress, is_metadata},
    masked_string::MaskedString,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// Allowed schemes of a transport.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemeRule {
    /// For sse and http: https, or http to this machine.
    Http,
    /// For websocket: wss, or ws with a warning if the host is not this machine.
    WebSocket,
}

/// Checks the URL of a server. `None` means that a diagnostic was recorded.
pub(crate) fn check(
    text: &PlacedString,
    rule: SchemeRule,
    env: &Env,
    diagnostics: &mut Diagnostics,
) -> Option<Url> {
    let written = text.value.expose();
    let Some(authority) = authority(written) else {
        diagnostics.url_scheme(text.at, rule, written);
        return None;
    };
    let url = match Url::parse(written) {
        Ok(url) => url,
        Err(_) if !has_host(authority) => {
            diagnostics.url_without_host(text.at, rule, variable_in_host(&text.value));
            return None;
        }
        Err(error) => {
            diagnostics.invalid_url(text.at, &error.to_string());
            return None;
        }
    };
    if !rule.schemes().contains(&url.scheme()) {
        diagnostics.url_scheme(text.at, rule, written);
        return None;
    }
    if written.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
        diagnostics.invalid_url(text.at, "it contains white space or a backslash");
        return None;
    }
    if authority.contains('@') {
        diagnostics.url_userinfo(text.at);
        return None;
    }
    let parsed = url.host().zip(url.host_str()).filter(|(_, name)| has_host(authority) && has_host(name));
    let Some((host, name)) = parsed else {
        diagnostics.url_without_host(text.at, rule, variable_in_host(&text.value));
        return None;
    };
    let granted = env.grants.allows_insecure(name);
    let why = denied_host_reason(&host, written_host(authority), text.value.is_secret());
    if let Some(why) = why.filter(|_| !granted) {
        diagnostics.url_host_denied(text.at, &why);
        return None;
    }
    if egress(&url, env).zip(address(&host)).is_some_and(|(egress, address)| !egress.allows(address)) {
        let what = match env.origin.is_registered() {
            true => "inside a private network",
            false => "a link-local, metadata or reserved address",
        };
        diagnostics.url_network_denied(text.at, what, (!text.value.is_secret()).then_some(name));
        return None;
    }
    let secure = matches!(url.scheme(), "https" | "wss");
    match (rule, url.scheme()) {
        (SchemeRule::Http, "https" | "http") if secure || granted || is_loopback(&host) => Some(url),
        (SchemeRule::WebSocket, "wss" | "ws") => {
            if !secure && !granted && !is_loopback(&host) {
                diagnostics.unencrypted_websocket(text.at);
            }
            Some(url)
        }
        _ => {
            diagnostics.url_scheme(text.at, rule, written);
            None
        }
    }
}

impl SchemeRule {
    fn schemes(self) -> [&'static str; 2] {
        match self {
            SchemeRule::Http => ["https", "http"],
            SchemeRule::WebSocket => ["wss", "ws"],
        }
    }
}

/// Returns the addresses that connections to this URL may use, or `None` if the operator granted its host.
/// Without a grant, a registered source may not reach private networks, and no source may reach a cloud's metadata
/// service.
pub(crate) fn egress(url: &Url, env: &Env) -> Option<Egress> {
    let granted = url.host_str().is_some_and(|it| env.grants.allows_private(it));
    let egress = || match env.origin.is_registered() {
        true => Egress { loopback: url.host().is_some_and(|it| is_loopback(&it)), private: false },
        false => Egress { loopback: true, private: true },
    };
    (!granted).then(egress)
}

/// Returns the text between `://` and the path, as written.
fn authority(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let is_scheme = !scheme.is_empty()
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    is_scheme.then(|| rest.split(['/', '?', '#', '\\']).next().unwrap_or_default())
}

/// Returns whether the authority names a host without empty parts. The URL parser does not check this: it drops the
/// extra slash of `https:///mcp` and uses `mcp` as the host, so an empty variable would send a token to another
/// server.
fn has_host(authority: &str) -> bool {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = written_host(host);
    // A trailing dot is a different error with its own message.
    let host = host.strip_suffix('.').unwrap_or(host);
    host.split('.').all(|part| !part.is_empty())
}

/// Returns the first variable in the host of a URL, as written.
fn variable_in_host(url: &MaskedString) -> Option<&str> {
    let authority = authority(url.shown())?;
    let start = authority.find("${")?;
    let length = authority[start..].find('}')?;
    authority.get(start..=start + length)
}

/// Parses an http or https URL that names its host. Returns `None` for anything else.
///
/// Use this instead of `Url::parse` for a URL that a user writes and that receives credentials: `https:///v1` parses
/// with the host `v1`.
pub fn parse_http_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let named = authority(text).is_some_and(has_host) && url.host_str().is_some_and(has_host);
    (named && matches!(url.scheme(), "http" | "https")).then_some(url)
}

/// Returns whether a URL is unencrypted, its host is not this machine, and the operator did not grant it.
pub(crate) fn is_insecure(url: &Url, env: &Env) -> bool {
    let granted = url.host_str().is_some_and(|it| env.grants.allows_insecure(it));
    url.scheme() == "http" && !granted && !url.host().is_some_and(|it| is_loopback(&it))
}

fn written_host(authority: &str) -> &str {
    if authority.starts_with('[') {
        return authority.split_inclusive(']').next().unwrap_or(authority);
    }
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// Hides the user info and the query of a URL from quotations of the source.
pub(crate) fn hide_private_parts(at: Place, value: &str, diagnostics: &mut Diagnostics) {
    let source = diagnostics.source().get(at.start..at.end).unwrap_or_default();
    // An escape in the source hides the `?` from this search, but a reader can still decode it.
    let disguised = value.contains(['?', '@']) && !source.contains(['?', '@']);
    let whole = disguised.then(|| Place::new(0, source.len()));
    for part in mask::private_parts(source).chain(whole).collect::<Vec<_>>() {
        diagnostics.hide(Place::new(at.start + part.start, at.start + part.end));
    }
}

/// Returns the address of a host that is an IP literal.
fn address(host: &Host<&str>) -> Option<IpAddr> {
    match host {
        Host::Ipv4(it) => Some(IpAddr::V4(*it)),
        Host::Ipv6(it) => Some(IpAddr::V6(*it)),
        Host::Domain(_) => None,
    }
}

/// Returns whether the host is `localhost`, `*.localhost`, in 127.0.0.0/8, or `[::1]`.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.is_loopback(),
    }
}

/// Returns why a host is refused regardless of the scheme. If the URL contains a variable, the message does not
/// repeat the host.
fn denied_host_reason(host: &Host<&str>, written: &str, secret: bool) -> Option<String> {
    let spelling_of = |plain: &str| match secret {
        true => "its host is not in its canonical spelling".to_owned(),
        false => format!("its host is another spelling of `{plain}`; use that spelling"),
    };
    if written.ends_with('.') {
        return Some("its host ends with a dot".to_owned());
    }
    let ip = match host {
        Host::Domain(name) => {
            let metadata = ["metadata.google.internal", "metadata.goog", "instance-data"].contains(name);
            let disguised = is_loopback(host) && !name.eq_ignore_ascii_case(written);
            return match () {
                () if metadata => Some("its host is a cloud's metadata service".to_owned()),
                () if disguised => Some(spelling_of(name)),
                () => None,
            };
        }
        Host::Ipv4(ip) => IpAddr::V4(*ip),
        Host::Ipv6(ip) => IpAddr::V6(*ip),
    };
    let plain = match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let mapped = embedded_v4(ip);
    let seen = mapped.map_or(ip, IpAddr::V4);
    match () {
        () if is_metadata(seen) => Some("its host is a link-local or metadata address".to_owned()),
        () if seen.is_unspecified() => {
            Some("its host is the unspecified address; write `127.0.0.1`".to_owned())
        }
        () if mapped.is_some_and(|it| it.is_loopback()) => {
            Some("its host is another spelling of a loopback address; write `127.0.0.1`".to_owned())
        }
        () if !plain.eq_ignore_ascii_case(written) => Some(spelling_of(&plain)),
        () => None,
    }
}

/// Returns the IPv4 address inside an IPv4-mapped or IPv4-compatible IPv6 address.
fn embedded_v4(ip: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(ip) = ip else { return None };
    if ip == Ipv6Addr::LOCALHOST || ip == Ipv6Addr::UNSPECIFIED {
        return None;
    }
    ip.to_ipv4()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grants, Origin};

    fn verdict(url: &str, rule: SchemeRule) -> &'static str {
        check_from(url, rule, Origin::File)
    }

    fn check_from(url: &str, rule: SchemeRule, origin: Origin) -> &'static str {
        let (insecure_hosts, private_hosts) = (vec!["box.lan".to_owned()], vec!["10.0.0.8".to_owned()]);
        let grants = Grants { insecure_hosts, private_hosts, ..Grants::default() };
        let env = Env { grants, origin, ..Env::bare() };
        let mut diagnostics = Diagnostics::new("agent.yaml", url);
        let text = PlacedString::new(MaskedString::plain(url), Place::new(0, url.len()));
        let checked = check(&text, rule, &env, &mut diagnostics);
        match (checked.is_some(), diagnostics.items()) {
            (true, []) => "fine",
            (true, [_]) => "warned",
            (false, [it]) if it.code == "V-07" || it.code == "V-08" => "refused",
            other => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn urls_follow_the_scheme_and_host_rules() {
        for (url, expected) in [
            ("https://mcp.example.com/sse", "fine"),
            ("HTTPS://MCP.example.com", "fine"),
            ("http://localhost:8080/mcp", "fine"),
            ("http://LOCALHOST/", "fine"),
            ("http://app.localhost/", "fine"),
            ("http://127.0.0.1:1", "fine"),
            ("http://127.8.9.10", "fine"),
            ("http://[::1]:80/x", "fine"),
            ("https://10.0.0.7/mcp", "fine"),
            ("https://[2001:db8::1]/mcp", "fine"),
            ("http://box.lan/mcp", "fine"),
            ("https://müller.example/", "fine"),
            ("http://mcp.example.com", "refused"),
            ("http://localhost.evil.com", "refused"),
            ("http://127.0.0.1.evil.com", "refused"),
            ("http://127.0.0.1@evil.com", "refused"),
            ("https://user:pass@example.com", "refused"),
            ("http://2130706433", "refused"),
            ("http://0x7f000001", "refused"),
            ("http://0177.0.0.1", "refused"),
            ("http://127.1", "refused"),
            ("http://[::ffff:127.0.0.1]", "refused"),
            ("http://[::ffff:7f00:1]", "refused"),
            ("http://[0:0:0:0:0:0:0:1]", "refused"),
            ("http://localhost./", "refused"),
            ("https://example.com./", "refused"),
            ("http://ⓛocalhost/", "refused"),
            ("http://local%68ost/", "refused"),
            ("http://0.0.0.0/", "refused"),
            ("https://169.254.169.254/latest", "refused"),
            ("https://[::ffff:a9fe:a9fe]/", "refused"),
            ("https://[fe80::1]/", "refused"),
            ("https://[64:ff9b::a9fe:a9fe]/", "refused"),
            ("https://[64:ff9b::a00:1]/", "fine"),
            ("https://240.0.0.1/", "refused"),
            ("https://metadata.google.internal/", "refused"),
            ("ftp://example.com", "refused"),
            ("ws://localhost", "refused"),
            ("example.com/mcp", "refused"),
            ("https:example.com", "refused"),
            ("https:/\\example.com", "refused"),
            ("https://exa mple.com", "refused"),
            ("https://example.com\\@evil.com", "refused"),
            ("https://example.com/\n", "refused"),
            ("https://", "refused"),
            ("https:///mcp", "refused"),
            ("https:////mcp", "refused"),
            ("https://////example.com/x", "refused"),
            ("https://:443/mcp", "refused"),
            ("https://.example.com/mcp", "refused"),
            ("https://mcp..example.com/mcp", "refused"),
            ("https://\u{3002}example.com/mcp", "refused"),
            ("https://%2eexample.com/mcp", "refused"),
            ("https://./mcp", "refused"),
            ("https://@example.com/mcp", "refused"),
            ("https://?mcp", "refused"),
            ("https://#mcp", "refused"),
            ("https://[::1", "refused"),
            ("https://example.com:99999/", "refused"),
            ("", "refused"),
        ] {
            assert_eq!(verdict(url, SchemeRule::Http), expected, "{url}");
        }
        for (url, expected) in [
            ("wss://mcp.example.com/ws", "fine"),
            ("ws://localhost:9/ws", "fine"),
            ("ws://box.lan/ws", "fine"),
            ("ws://mcp.example.com/ws", "warned"),
            ("https://mcp.example.com/ws", "refused"),
            ("ws://127.1/", "refused"),
            ("wss:///ws", "refused"),
            ("wss://", "refused"),
        ] {
            assert_eq!(verdict(url, SchemeRule::WebSocket), expected, "{url}");
        }
    }

    #[test]
    fn registered_source_may_not_use_private_addresses() {
        for (url, expected) in [
            ("https://mcp.example.com/mcp", "fine"),
            ("https://93.184.216.34/mcp", "fine"),
            ("http://localhost:8080/mcp", "fine"),
            ("http://127.0.0.1:1", "fine"),
            ("http://box.lan/mcp", "fine"),
            ("https://10.0.0.8/mcp", "fine"),
            ("https://10.0.0.7/mcp", "refused"),
            ("https://172.16.0.1/mcp", "refused"),
            ("https://192.168.1.1/mcp", "refused"),
            ("https://100.64.0.1/mcp", "refused"),
            ("https://[fd00::1]/mcp", "refused"),
            ("https://[64:ff9b::a00:1]/mcp", "refused"),
            ("https://169.254.169.254/", "refused"),
            ("https://0.0.0.0/", "refused"),
            ("https://[::]/", "refused"),
            ("https://[::ffff:10.0.0.1]/", "refused"),
            ("https://167772161/", "refused"),
            ("https://0xa000001/", "refused"),
            ("https://012.0.0.1/", "refused"),
            ("https://user@example.com/", "refused"),
            ("https://example.com./", "refused"),
            ("https:///example.com/mcp", "refused"),
            ("file:///etc/passwd", "refused"),
            ("gopher://example.com/", "refused"),
        ] {
            assert_eq!(check_from(url, SchemeRule::Http, Origin::Rest), expected, "{url}");
        }
        assert_eq!(check_from("wss://10.0.0.7/ws", SchemeRule::WebSocket, Origin::Rest), "refused");
    }
}
