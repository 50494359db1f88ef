//! Networks that connections to a source may use. `wharf-mcp` checks every address that it dials; this is the same
//! rule for addresses that are written into a URL, so that a file is rejected before anything runs. A property test
//! of `wharf-runtime` compares the two.

use std::net::IpAddr;

/// Networks that connections to a source may use. The public network is always allowed. Link-local addresses and
/// metadata services of clouds never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Whether loopback addresses are allowed.
    pub loopback: bool,
    /// Whether private networks are allowed.
    pub private: bool,
}

impl Egress {
    /// Returns whether connections may use this address.
    pub fn allows(self, address: IpAddr) -> bool {
        let address = embedded_v4(address.to_canonical());
        let is_private = match address {
            IpAddr::V4(it) => it.is_private() || is_carrier_grade_nat(it.octets()),
            IpAddr::V6(it) => it.is_unique_local(),
        };
        match () {
            () if is_metadata(address) || is_no_host(address) => false,
            () if address.is_loopback() => self.loopback,
            () => !is_private || self.private,
        }
    }
}

/// Returns whether this is a link-local address or the metadata service of a cloud.
pub(crate) fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => {
            it.is_link_local() || matches!(it.octets(), [100, 100, 100, 200] | [168, 63, 129, 16])
        }
        IpAddr::V6(it) => {
            it.is_unicast_link_local() || it.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
        }
    }
}

/// Returns whether no host can have this address.
fn is_no_host(address: IpAddr) -> bool {
    let reserved = |it: IpAddr| matches!(it, IpAddr::V4(it) if it.octets()[0] == 0 || it.octets()[0] >= 240);
    address.is_unspecified() || address.is_multicast() || reserved(address)
}

fn is_carrier_grade_nat([first, second, ..]: [u8; 4]) -> bool {
    first == 100 && (64..128).contains(&second)
}

/// Returns the IPv4 address embedded in a NAT64 (`64:ff9b::/96`) or 6to4 (`2002::/16`) address.
fn embedded_v4(address: IpAddr) -> IpAddr {
    let IpAddr::V6(it) = address else { return address };
    let v4 = |high: u16, low: u16| IpAddr::from([(high >> 8) as u8, high as u8, (low >> 8) as u8, low as u8]);
    match it.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        _ => address,
    }
}
