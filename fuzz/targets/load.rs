//! Loads arbitrary bytes as an `agent.yaml`. The loader always returns either a plan or errors, never both, and
//! never reveals the value of a variable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_config::{self, Env};

const SECRET: &str = "s3cr3t-value";

fuzz_target!(|data: &[u8]| {
    let mut env = Env::bare();
    env.variables.insert("TOKEN".into(), SECRET.into());
    env.variables.insert("API_KEY".into(), SECRET.into());
    env.variables.insert("PORT".into(), "8080".into());
    env.variables.insert("EMPTY".into(), "".into());

    let (plan, diagnostics) = wharf_config::load(data, &env);

    assert!(
        plan.is_none() || !diagnostics.has_errors(),
        "a plan came together with errors:\n{}",
        diagnostics.render(false)
    );
    assert!(
        plan.is_some() || diagnostics.has_errors(),
        "there is neither a plan nor an error:\n{}",
        diagnostics.render(false)
    );
    let rendered = diagnostics.render(false);
    assert!(!rendered.contains(SECRET) || contains(data, SECRET), "a secret is shown:\n{rendered}");
});

/// Excludes inputs that contain the secret themselves.
fn contains(data: &[u8], text: &str) -> bool {
    data.windows(text.len()).any(|window| window == text.as_bytes())
}
