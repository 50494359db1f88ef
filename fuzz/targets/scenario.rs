//! Reads arbitrary bytes as a scenario. Either there is a scenario, or an error with a message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_config::load_scenario;

fuzz_target!(|input: &[u8]| {
    let (scenario, diagnostics) = load_scenario(input, "a.test.yaml");
    assert_eq!(scenario.is_none(), diagnostics.has_errors());
    drop(diagnostics.render(false));
});
