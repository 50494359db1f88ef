//! Egress policy: which addresses may be dialled.
//!
//! Host names are checked when they are resolved for the connection. A name that resolves to another address than at
//! an earlier check (DNS rebinding) gains nothing.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{
    io,
    net::{IpAddr, SocketAddr},
};
use url::{Host, Url};

/// Addresses that may be dialled: the public network, and optionally loopback and private networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EgressPolicy {
    loopback: bool,
    private: bool,
}

/// Kind of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressKind {
    Public,
    Private,
    Loopback,
    /// Link-local addresses, metadata services of clouds, and addresses of no host, such as multicast.
    Forbidden,
}

impl EgressPolicy {
    /// Returns the policy for URLs that this server names.
    ///
    /// Loopback is allowed if the server is on loopback. Private networks are allowed if the server is in one or
    /// `private` is set. A server with a host name counts as public, except `localhost` and its subdomains.
    pub fn of(server: &Url, private: bool) -> EgressPolicy {
        let address_kind = match server.host() {
            Some(Host::Domain(name)) if name == "localhost" || name.ends_with(".localhost") => {
                AddressKind::Loopback
            }
            Some(Host::Ipv4(address)) => address_kind(address.into()),
            Some(Host::Ipv6(address)) => address_kind(address.into()),
            _ => AddressKind::Public,
        };
        EgressPolicy {
            loopback: address_kind == AddressKind::Loopback,
            private: private || address_kind == AddressKind::Private,
        }
    }

    /// Returns the policy that allows the public network, and these networks if set.
    pub fn new(loopback: bool, private: bool) -> EgressPolicy {
        EgressPolicy { loopback, private }
    }

    /// Returns the policy for servers that the operator configures: everything but link-local addresses, metadata
    /// services of clouds, and addresses of no host.
    pub fn wide() -> EgressPolicy {
        EgressPolicy { loopback: true, private: true }
    }

    /// Checks a URL whose host is an IP literal. Host names always pass, because they are checked when they are
    /// resolved.
    pub fn allows(self, url: &Url) -> bool {
        self.check(url).is_ok()
    }

    /// Checks a URL like [`EgressPolicy::allows`], and returns the reason as an error.
    pub(crate) fn check(self, url: &Url) -> io::Result<()> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            _ => return Ok(()),
        };
        if self.allows_address(address) { Ok(()) } else { Err(not_allowed(&address.to_string(), address)) }
    }

    /// Checks whether this address may be dialled.
    pub fn allows_address(self, address: IpAddr) -> bool {
        match address_kind(address) {
            AddressKind::Public => true,
            AddressKind::Private => self.private,
            AddressKind::Loopback => self.loopback,
            AddressKind::Forbidden => false,
        }
    }

    /// Resolves a host and returns the addresses that may be dialled. Fails if the policy rejects all of them.
    pub(crate) async fn resolve_allowed(self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found = tokio::net::lookup_host((host, port)).await?;
        self.filter_allowed(host, found.collect())
    }

    /// Returns the allowed addresses of a host. Fails if the policy rejects all of them.
    fn filter_allowed(self, host: &str, mut found: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
        let first = found.first().copied();
        found.retain(|it| self.allows_address(it.ip()));
        match first {
            Some(first) if found.is_empty() => Err(not_allowed(host, first.ip())),
            _ => Ok(found),
        }
    }
}

impl Resolve for EgressPolicy {
    fn resolve(&self, name: Name) -> Resolving {
        let egress = *self;
        Box::pin(async move {
            let addresses = egress.resolve_allowed(name.as_str(), 0).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Builds the error for a host whose address may not be dialled.
fn not_allowed(host: &str, address: IpAddr) -> io::Error {
    let what = match address_kind(address) {
        AddressKind::Forbidden => "a link-local, metadata or non-host address",
        _ => "an address in a private network",
    };
    let shown = address.to_string();
    let resolves = if host == shown { String::new() } else { format!(" resolves to `{shown}`, which") };
    io::Error::other(format!("`{host}`{resolves} is {what}, and the egress policy forbids it"))
}

fn address_kind(address: IpAddr) -> AddressKind {
    let address = embedded_ipv4(address.to_canonical());
    let (loopback, private, forbidden) = match address {
        IpAddr::V4(it) => {
            let [first, second, ..] = it.octets();
            let shared = first == 100 && (64..128).contains(&second);
            let no_host = it.is_unspecified() || it.is_multicast() || it.is_broadcast() || first >= 240;
            let cloud = matches!(it.octets(), [100, 100, 100, 200] | [168, 63, 129, 16]);
            (
                it.is_loopback(),
                it.is_private() || shared,
                it.is_link_local() || first == 0 || no_host || cloud,
            )
        }
        IpAddr::V6(it) => {
            let no_host = it.is_unspecified() || it.is_multicast();
            let cloud = it.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254];
            (it.is_loopback(), it.is_unique_local(), it.is_unicast_link_local() || no_host || cloud)
        }
    };
    match (forbidden, loopback, private) {
        (true, ..) => AddressKind::Forbidden,
        (_, true, _) => AddressKind::Loopback,
        (_, _, true) => AddressKind::Private,
        _ => AddressKind::Public,
    }
}

/// Returns the IPv4 address embedded in a NAT64 (`64:ff9b::/96`) or 6to4 (`2002::/16`) address.
fn embedded_ipv4(address: IpAddr) -> IpAddr {
    let IpAddr::V6(it) = address else { return address };
    let v4 = |high: u16, low: u16| IpAddr::from([(high >> 8) as u8, high as u8, (low >> 8) as u8, low as u8]);
    match it.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_name_addresses_in_our_network() {
        for (server, private, asked, allowed) in [
            ("https://mcp.example/", false, "https://as.example/token", true),
            ("https://mcp.example/", false, "http://93.184.216.34/", true),
            ("https://mcp.example/", false, "http://127.0.0.1/", false),
            ("https://mcp.example/", false, "http://[::1]/", false),
            ("https://mcp.example/", false, "http://[::ffff:10.0.0.1]/", false),
            ("https://mcp.example/", false, "http://[64:ff9b::a9fe:a9fe]/", false),
            ("https://mcp.example/", false, "http://[2002:7f00:1::]/", false),
            ("https://mcp.example/", false, "http://10.0.0.1/", false),
            ("https://mcp.example/", true, "http://10.0.0.1/", true),
            ("https://mcp.example/", true, "http://169.254.169.254/", false),
            ("https://mcp.example/", true, "http://[fd00:ec2::254]/", false),
            ("http://10.0.0.7/", false, "http://10.0.0.9/", true),
            ("http://10.0.0.7/", false, "http://127.0.0.1/", false),
            ("http://localhost:1/", false, "http://127.0.0.1:2/", true),
            ("http://app.localhost:1/", false, "http://127.0.0.1:2/", true),
            ("http://127.0.0.1:1/", false, "http://[::1]:2/", true),
            ("http://127.0.0.1:1/", false, "http://0.0.0.0:2/", false),
        ] {
            let egress = EgressPolicy::of(&server.parse().unwrap(), private);
            assert_eq!(egress.allows(&asked.parse().unwrap()), allowed, "{server} {private} {asked}");
        }
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_a_private_address_is_rejected() {
        let outside = EgressPolicy::new(false, false);
        let error = outside.resolve_allowed("localhost", 80).await.unwrap_err();
        assert!(error.to_string().contains("in a private network"), "{error}");
        let here = EgressPolicy::new(true, false);
        assert!(!here.resolve_allowed("localhost", 80).await.unwrap().is_empty());
    }

    #[test]
    fn configured_servers_may_be_anywhere_but_link_local() {
        let metadata = "is a link-local, metadata or non-host address, and the egress policy forbids it";
        for (address, allowed) in [
            ("93.184.216.34", true),
            ("10.0.0.1", true),
            ("192.168.1.1", true),
            ("100.64.0.1", true),
            ("127.0.0.1", true),
            ("::1", true),
            ("fd00::1", true),
            ("2001:db8::1", true),
            ("169.254.169.254", false),
            ("169.254.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("2002:a9fe:a9fe::1", false),
            ("fe80::1", false),
            ("febf::1", false),
            ("fd00:ec2::254", false),
            ("100.100.100.200", false),
            ("168.63.129.16", false),
            ("0.0.0.0", false),
            ("::", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
        ] {
            let ip: IpAddr = address.parse().unwrap();
            let found = EgressPolicy::wide().filter_allowed("mcp.example", vec![SocketAddr::new(ip, 80)]);
            assert_eq!(found.is_ok(), allowed, "{address}");
            if let Err(error) = found {
                let expected = format!("`mcp.example` resolves to `{ip}`, which {metadata}");
                assert_eq!(error.to_string(), expected);
            }
        }
        let literal = "http://169.254.169.254/".parse().unwrap();
        let error = EgressPolicy::wide().check(&literal).unwrap_err();
        assert_eq!(error.to_string(), format!("`169.254.169.254` {metadata}"));
    }

    #[test]
    fn only_allowed_addresses_of_a_host_are_dialled() {
        let all = ["169.254.169.254:80", "10.0.0.1:80"].map(|it| it.parse().unwrap());
        assert_eq!(EgressPolicy::wide().filter_allowed("both.example", all.to_vec()).unwrap(), all[1..]);
    }
}
