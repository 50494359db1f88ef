//! Failures in the middle of a call.

use super::{Case, check_call, workspace};

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hints/odd.sh");

const ENTRY: &str = "command: /bin/sh, args: ['{odd}', well], env: {TOKEN: '${TOKEN}'}";

pub(super) const CASES: &[Case] = &[
    Case { row: "slow-request", cause: "no answer in time", entry: ENTRY },
    Case { row: "gone-at-work", cause: "the server ended (exit code 3)", entry: ENTRY },
    Case { row: "too-long", cause: "longer than the limit", entry: ENTRY },
    Case { row: "breach", cause: "neither `result` nor `error`", entry: ENTRY },
    Case { row: "refused-by-the-server", cause: "not on a Sunday", entry: ENTRY },
];

/// Command line of each case, its exit code, and whether the request was sent.
const TYPED: &[(&str, i32, &str)] = &[
    ("call silence --timeout 1 --json", 124, "unknown"),
    ("call death --json", 69, "unknown"),
    ("call flood --json", 76, "unknown"),
    ("call nothing --json", 76, "unknown"),
    ("call refusal --json", 76, "yes"),
];

#[tokio::test]
async fn failed_calls_have_hints() {
    for (case, (typed, code, sent)) in CASES.iter().zip(TYPED) {
        let only = std::slice::from_ref(case);
        let workspace =
            workspace(only, &[("odd", ODD.to_owned())], &["/bin/sh"]).set("TOKEN", "ahoy-4711-secret");
        let said = workspace.wharf(typed).await;
        said.check(*code, "");
        check_call(&said, case);
        let error = &said.json()["error"];
        assert_eq!((&error["phase"], &error["sent"]), (&"call".into(), &(*sent).into()), "{error:#}");
        workspace.assert_nothing_left();
    }
}

/// The server's last output is shown without colours and without secrets.
#[tokio::test]
async fn stderr_is_shown_without_colours_and_secrets() {
    let workspace =
        workspace(&CASES[1..2], &[("odd", ODD.to_owned())], &["/bin/sh"]).set("TOKEN", "ahoy-4711-secret");
    let said = workspace.wharf("call death --json").await;
    let error = &said.json()["error"];
    let stderr = error["stderr"].as_str().unwrap_or_default();
    assert!(stderr.starts_with("the token is ") && !stderr.contains('\u{1b}'), "{error:#}");
    assert!(!said.stdout.contains("ahoy") && !said.stderr.contains("ahoy"), "{}{}", said.stdout, said.stderr);
    assert_eq!((&error["exit_code"], &error["signal"]), (&3.into(), &serde_json::Value::Null), "{error:#}");
}
