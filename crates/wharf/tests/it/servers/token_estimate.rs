//! Compares the estimate of tokens with a real tokenizer, over the tools of the reference servers.

use super::workspace::{Workspace, tool};
use crate::lock::real_servers_file;
use serde_json::{Value, json};
use wharf_runtime::tokens::estimate_definition;

/// Number of tools that the reference servers have at least.
const MIN_TOOLS: usize = 50;

/// Allowed deviation of all tools together.
const MAX_DEVIATION: f64 = 0.1;

/// Allowed deviation of one tool.
const MAX_TOOL_DEVIATION: f64 = 0.25;

#[tokio::test]
async fn estimate_is_within_a_quarter_of_what_a_tokenizer_counts() {
    let path = |name: &str| tool(name).display().to_string();
    let workspace = Workspace::with(&real_servers_file())
        .set("NPM_CONFIG_CACHE", &path("npx-reference"))
        .set("UV_CACHE_DIR", &path("uvx-reference"))
        .set("UV_PYTHON", &path("python/bin/python"));
    let listed = workspace.wharf("tools --json").await.json();
    let tools = listed["tools"].as_array().expect("tools");
    assert!(tools.len() >= MIN_TOOLS, "{} tools", tools.len());
    let tokenizer = tiktoken_rs::o200k_base().expect("the tokenizer of OpenAI's models");
    let (mut estimated, mut counted, mut worst) = (0, 0, 0.0_f64);
    for tool in tools {
        let text = |key: &str| tool[key].as_str().unwrap_or_default();
        let offered: Value = json!({
            "name": text("name"), "description": text("description"), "input_schema": tool["input_schema"],
        });
        let count = tokenizer.encode_ordinary(&offered.to_string()).len() as u64;
        let estimate = estimate_definition(text("name"), text("description"), &tool["input_schema"]);
        let off = estimate as f64 / count as f64 - 1.0;
        assert!(off.abs() <= MAX_TOOL_DEVIATION, "{}: estimated {estimate}, counted {count}", text("name"));
        (estimated, counted, worst) = (estimated + estimate, counted + count, worst.max(off.abs()));
    }
    let off = estimated as f64 / counted as f64 - 1.0;
    println!(
        "{} tools: estimated {estimated}, counted {counted} ({:+.1} %), at most {:.1} % off for one",
        tools.len(),
        off * 100.0,
        worst * 100.0
    );
    assert!((0.0..=MAX_DEVIATION).contains(&off), "estimated {estimated}, counted {counted}");
}
