//! Tests that the configuration and the dialler agree on which addresses are allowed.

use proptest::prelude::*;
use std::net::IpAddr;
use wharf_config::Egress;
use wharf_mcp::EgressPolicy;

/// Addresses around which the rules change, in addition to random ones.
fn address() -> impl Strategy<Value = IpAddr> {
    let v4 = prop_oneof![
        any::<[u8; 4]>(),
        (any::<u8>(), any::<u8>()).prop_map(|(a, b)| [169, 254, a, b]),
        (any::<u8>(), any::<u8>()).prop_map(|(a, b)| [100, a, b, 200]),
        (any::<u8>(), any::<u8>()).prop_map(|(a, b)| [10, a, b, 1]),
        (0u8..=255, any::<u8>()).prop_map(|(a, b)| [a, 0, 0, b]),
        Just([100, 100, 100, 200]),
        Just([168, 63, 129, 16]),
    ];
    let v6 = prop_oneof![
        any::<[u16; 8]>(),
        any::<u16>().prop_map(|last| [0, 0, 0, 0, 0, 0, 0, last]),
        any::<u16>().prop_map(|last| [0xfe80, 0, 0, 0, 0, 0, 0, last]),
        any::<u16>().prop_map(|last| [0xfd00, 0xec2, 0, 0, 0, 0, 0, last]),
        (any::<u16>(), any::<u16>()).prop_map(|(a, b)| [0x64, 0xff9b, 0, 0, 0, 0, a, b]),
        (any::<u16>(), any::<u16>()).prop_map(|(a, b)| [0x2002, a, b, 0, 0, 0, 0, 1]),
        (any::<u16>(), any::<u16>()).prop_map(|(a, b)| [0, 0, 0, 0, 0, 0xffff, a, b]),
        Just([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]),
    ];
    prop_oneof![v4.prop_map(IpAddr::from), v6.prop_map(IpAddr::from)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn configuration_and_dialler_allow_the_same_addresses(
        address in address(), loopback in any::<bool>(), private in any::<bool>(),
    ) {
        let egress = Egress { loopback, private };
        prop_assert_eq!(egress.allows(address), EgressPolicy::new(loopback, private).allows_address(address), "{}", address);
    }
}

#[test]
fn the_port_placeholder_of_the_configuration_is_the_one_that_is_filled_in() {
    assert_eq!(wharf_config::PORT_PLACEHOLDER, wharf_mcp::local_server::PORT);
}
