//! Validates arbitrary arguments against an arbitrary tool schema. The first line of the input is the schema, the
//! second the arguments. Validation stays within its budget, and a rejection has a short message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_mcp::Raw;
use wharf_runtime::argument_schema::{Check, STEP_BUDGET, Schema};

fuzz_target!(|input: &[u8]| {
    let mut lines = input.splitn(2, |byte| *byte == b'\n');
    let mut raw = || Raw::parse(lines.next()?.to_vec()).ok();
    let (Some(schema), Some(arguments)) = (raw(), raw()) else { return };
    let Ok(schema) = Schema::compile(&schema).inspect_err(|why| assert!(why.len() < 1000, "{why}")) else {
        return;
    };

    let (check, steps) = schema.check_counted(&arguments);

    assert!(steps <= 2 * STEP_BUDGET, "{steps} steps");
    if let Check::Invalid(wrong) = check {
        assert!((1..=10).contains(&wrong.len()), "{wrong:?}");
        for it in wrong {
            assert!(it.path.starts_with("arguments") && !it.message.is_empty(), "{it:?}");
            assert!(it.path.len() + it.message.len() < 8000, "{it:?}");
        }
    }
});
