//! Tests the search for tools: 200 questions that were written beforehand, among 5,000 tools.

use serde_json::json;
use std::collections::HashSet;
use wharf_runtime::tool_search::{SearchedTool, ToolIndex};

const QUESTIONS: &str = include_str!("tool_search/questions.tsv");
const TOOLS: usize = 5_000;

struct Row {
    name: &'static str,
    description: &'static str,
    question: &'static str,
}

fn rows() -> Vec<Row> {
    let row = |line: &'static str| {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_else(|| panic!("{line}"));
        Row { name: next(), description: next(), question: next() }
    };
    QUESTIONS.lines().map(row).collect()
}

/// Returns other tools, which do common things to other objects.
fn other_tools(count: usize) -> Vec<(String, String)> {
    const ACTIONS: [(&str, &str); 16] = [
        ("list", "List the {} of the {}, page by page."),
        ("get", "Get one {} of the {} by its id."),
        ("create", "Create a new {} in the {} with a name and settings."),
        ("update", "Change the settings of the {} in the {}."),
        ("delete", "Delete the {} from the {} for good."),
        ("search", "Search for a {} in the {} by words and date."),
        ("export", "Export the {} of the {} as a file."),
        ("import", "Import the {} into the {} from a file."),
        ("archive", "Archive the {} of the {} until it is needed again."),
        ("assign", "Assign the {} of the {} to a user."),
        ("approve", "Approve the {} of the {} with a comment."),
        ("share", "Share the {} of the {} with a group."),
        ("copy", "Copy the {} to another {}."),
        ("count", "Count the {} of the {} by state and month."),
        ("watch", "Notify the user when the {} of the {} changes."),
        ("tag", "Add a label to the {} of the {}."),
    ];
    const OBJECTS: [&str; 18] = [
        "shipment",
        "warehouse bin",
        "purchase order",
        "supplier",
        "contract",
        "policy",
        "claim",
        "patient record",
        "prescription",
        "course",
        "exam",
        "student",
        "vehicle",
        "sensor",
        "firmware",
        "antenna",
        "survey",
        "budget line",
    ];
    const SYSTEMS: [&str; 18] = [
        "logistics hub",
        "plant",
        "hospital",
        "university",
        "insurer",
        "fleet",
        "laboratory",
        "telecom network",
        "museum",
        "farm",
        "shipyard",
        "airline",
        "library",
        "city council",
        "court",
        "refinery",
        "bakery chain",
        "theatre",
    ];
    let mut tools = Vec::with_capacity(count);
    for system in SYSTEMS {
        for object in OBJECTS {
            for (action, description) in ACTIONS {
                let slug = |text: &str| text.replace(' ', "_");
                let name = format!("{}__{action}_{}", slug(system), slug(object));
                tools.push((name, description.replacen("{}", object, 1).replacen("{}", system, 1)));
            }
        }
    }
    assert!(tools.len() >= count, "{} tools are not enough", tools.len());
    tools.truncate(count);
    tools
}

/// Returns 5,000 tools: those of the questions, and others between them.
fn tools() -> Vec<SearchedTool> {
    let rows = rows();
    let others = other_tools(TOOLS - rows.len());
    let own = rows.iter().map(|it| (it.name.to_owned(), it.description.to_owned()));
    let mut tools: Vec<SearchedTool> = own
        .chain(others)
        .map(|(name, description)| SearchedTool {
            id: name.replacen("__", ":", 1),
            name,
            description,
            input_schema: json!({ "type": "object" }),
            ..SearchedTool::default()
        })
        .collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

/// Returns the names of the tools that a question finds.
fn search(index: &ToolIndex, tools: &[SearchedTool], question: &str, limit: usize) -> Vec<String> {
    index.search(question, limit).into_iter().map(|at| tools[at].name.clone()).collect()
}

#[test]
fn questions_are_different_and_do_not_name_their_tool() {
    let rows = rows();
    assert_eq!(rows.len(), 200);
    assert_eq!(rows.iter().map(|it| it.name).collect::<HashSet<_>>().len(), 200);
    assert_eq!(rows.iter().map(|it| it.question).collect::<HashSet<_>>().len(), 200);
    for Row { name, question, .. } in rows {
        let wire_name = name.split_once("__").map(|(_, it)| it.replace('_', " ")).expect("a prefix");
        assert!(!question.to_lowercase().contains(&wire_name), "{name}: {question}");
    }
}

#[test]
fn right_tool_is_among_the_first_five_for_nine_of_ten_questions() {
    let tools = tools();
    assert_eq!(tools.len(), TOOLS);
    let index = ToolIndex::new(tools.clone());
    let mut missed = Vec::new();
    for Row { name, question, .. } in rows() {
        let found = search(&index, &tools, question, 5);
        if !found.iter().any(|it| it == name) {
            missed.push(format!("{name}: {question}: {found:?}"));
        }
    }
    let found = 200 - missed.len();
    assert!(found >= 180, "{found} of 200 found; missed:\n{}", missed.join("\n"));
}

#[test]
fn the_order_does_not_depend_on_anything_else() {
    let tools = tools();
    let reversed: Vec<SearchedTool> = tools.iter().rev().cloned().collect();
    let (first, second) = (ToolIndex::new(tools.clone()), ToolIndex::new(reversed.clone()));
    let names = |question: &str| search(&first, &tools, question, 50);
    for Row { question, .. } in rows().into_iter().take(20) {
        assert_eq!(names(question), search(&second, &reversed, question, 50), "{question}");
    }
    assert_eq!(names("weather__alerts")[0], "weather__alerts");
    assert_eq!(names("git:git_log")[0], "git__git_log");
    assert_eq!(names("zzz"), Vec::<String>::new());
}
