//! Tests properties of the loader that must hold for every input.

use proptest::prelude::*;
use serde_json::Value;
use wharf_config::{Endpoint, Env, Plan, load};

/// A file with `${V}` in every place where any string is allowed.
const TEMPLATE: &str = r#"
name: "${V}"
description: before ${V} after
instructions: { inline: '${V}' }
tools:
  - name: one
    description: about ${V}
    type: mcp
    server: pkg
    command: npx
    args: [pkg, "${V}", "--flag=${V}"]
    env: { KEY: "${V}", OTHER: fixed }
    config: { a: "${V}", b: ["${V}", 1, { c: "x${V}" }] }
  - name: two
    description: fixed
    type: mcp
    server: label
    transport: http
    url: https://example.com/mcp
"#;

fn env_with(value: &str) -> Env {
    let mut env = Env::bare();
    env.variables.insert("V".to_owned(), value.to_owned());
    env
}

/// Returns the strings of the plan that `${V}` may reach, in a fixed order.
fn texts(plan: &Plan) -> Vec<String> {
    let one = &plan.sources[0];
    let Endpoint::Stdio(launch) = &one.endpoint else { panic!("the first source is a process") };
    let mut texts: Vec<String> = [&plan.name, &plan.description, &plan.instructions]
        .into_iter()
        .flatten()
        .chain([&one.description])
        .chain(launch.args.iter().map(|it| &it.value))
        .chain([&launch.env.0["KEY"].value, &launch.env.0["OTHER"].value])
        .map(|it| it.expose().to_owned())
        .collect();
    texts.push(one.config.as_ref().map(|it| it.expose().to_string()).unwrap_or_default());
    texts
}

/// Replaces every string in the JSON, so that only its structure remains.
fn shape(value: &Value) -> Value {
    match value {
        Value::String(_) => Value::String(String::new()),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(pairs) => pairs.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a variable holds, it fills its place and changes nothing around it.
    #[test]
    fn substitution_never_changes_structure(value in "[^\0]{0,60}") {
        // A relative path is made absolute, which is a change on purpose.
        prop_assume!(!value.starts_with('.'));
        let (plan, diagnostics) = load(TEMPLATE, &env_with(&value));
        let plan = plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false)));
        let (reference, _) = load(TEMPLATE, &env_with("§"));
        let reference = reference.expect("the template loads");

        let filled: Vec<String> = texts(&reference).iter().map(|it| it.replace('§', &value)).collect();
        let found = texts(&plan);
        prop_assert_eq!(&found[..found.len() - 1], &filled[..filled.len() - 1]);
        let config = |plan: &Plan| shape(plan.sources[0].config.as_ref().expect("a config").expose());
        prop_assert_eq!(config(&plan), config(&reference));
        prop_assert_eq!(&plan.sources[1], &reference.sources[1]);
        prop_assert_eq!(plan.sources.len(), reference.sources.len());
    }

    /// No value of a variable is ever shown, whatever is wrong around it.
    #[test]
    fn values_are_never_shown(field in "[a-z_]{1,20}", transport in "stdio|sse|http|websocket|x") {
        let secret = "canary-51d0c7";
        let text = format!(
            "tools:\n  - {{name: a, type: mcp, server: '${{V}}', transport: {transport}, url: '${{V}}', command: '${{V}}', \
             args: ['${{V}}'], headers: {{A: '${{V}}'}}, encoding: '${{V}}', timeout: '${{V}}', {field}: '${{V}}'}}\n"
        );
        let (plan, diagnostics) = load(&text, &env_with(secret));
        let printed = format!("{}{}{plan:?}", diagnostics.render(false), diagnostics.to_json());
        prop_assert!(!printed.contains(secret), "{}", printed);
    }

    #[test]
    fn loading_never_panics_on_arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let (plan, diagnostics) = load(&bytes, &env_with("x"));
        prop_assert_eq!(plan.is_some(), !diagnostics.has_errors());
        let _ = (diagnostics.render(false), diagnostics.to_json());
    }

    /// Words of the format in any order get further into the loader than bytes do.
    #[test]
    fn loading_never_panics_on_arbitrary_yaml(words in proptest::collection::vec(word(), 0..60)) {
        let (plan, diagnostics) = load(words.concat(), &env_with("x"));
        prop_assert_eq!(plan.is_some(), !diagnostics.has_errors());
        let _ = (diagnostics.render(true), diagnostics.to_json());
    }
}

fn word() -> impl Strategy<Value = String> {
    let fixed = [
        "tools:",
        "name:",
        "type: mcp",
        "server:",
        "transport:",
        "command: npx",
        "args:",
        "env:",
        "url:",
        "headers:",
        "config:",
        "envFile:",
        "model:",
        "instructions:",
        "\n",
        "\n  ",
        "\n    ",
        "\n  - ",
        " ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ",",
        ": ",
        "\"",
        "'",
        "${V}",
        "${",
        "$${V}",
        "${V:-d}",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "!x ",
        "---\n",
        "# c\n",
        "| \n",
        "> \n",
        "60",
        ".nan",
        "true",
        "null",
        "~",
        "docker",
        "uvx",
        "-y",
        "run",
        "-v",
        "./x:/y",
        "https://h/",
        "\u{feff}",
        "é",
    ];
    prop_oneof![
        8 => proptest::sample::select(fixed.to_vec()).prop_map(str::to_owned),
        1 => "[ -~]{0,8}",
    ]
}
