//! Tests how invalid items are read beside valid neighbours.

use super::*;

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).unwrap()
}

#[test]
fn an_invalid_block_does_not_lose_its_neighbours() {
    for (block, expected) in [
        (r#"{"type":"text","text":"x"}"#, Ok(())),
        (r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#, Ok(())),
        (r#"{"type":"resource_link","uri":"file:///x"}"#, Ok(())),
        (r#"{"type":"resource","resource":{"uri":"a:b","text":"x"}}"#, Ok(())),
        (r#"{"type":"hologram","data":1}"#, Err("unknown content type `hologram`")),
        (r#"{"type":"text"}"#, Err("`text` is missing")),
        (r#"{"type":"text","text":5}"#, Err("`text` is of the wrong type")),
        (r#"{"type":"image","data":"A!","mimeType":"image/png"}"#, Err("the data is not base64")),
        (r#"{"type":"audio","data":"AAAA"}"#, Err("`mimeType` is missing")),
        ("5", Err("it is not an object")),
        ("null", Err("it is not an object")),
    ] {
        let text = format!(
            r#"{{"content":[{{"type":"text","text":"before"}},{block},{{"type":"text","text":"after"}}]}}"#
        );
        let result = CallResult::read(&raw(&text));
        let [before, middle, after] = &result.content[..] else { panic!("{result:?}") };
        assert_eq!(*before, Item::Valid(Block::Text("before".into())));
        assert_eq!(*after, Item::Valid(Block::Text("after".into())));
        match (middle, expected) {
            (Item::Valid(_), Ok(())) => {}
            (Item::Invalid(kept, why), Err(expected)) => {
                assert_eq!((kept.as_str(), why.as_str()), (block, expected));
            }
            (read, expected) => panic!("{block} is {read:?}, not {expected:?}"),
        }
    }
}

#[test]
fn results_of_any_shape_are_read() {
    for (text, blocks, is_error) in [
        ("{}", 0, false),
        (r#"{"content":[],"isError":true}"#, 0, true),
        (r#"{"content":"x","isError":"yes"}"#, 1, false),
        ("7", 0, false),
    ] {
        let result = CallResult::read(&raw(text));
        assert_eq!((result.content.len(), result.is_error), (blocks, is_error), "{text}");
        assert_eq!(result.raw.as_str(), text);
    }
}

#[test]
fn one_bad_tool_does_not_lose_the_others() {
    for (tool, expected) in [
        (r#"{"name":"t","inputSchema":{"type":"object"},"x-new":1}"#, Ok(())),
        (r#"{"name":"t","inputSchema":{},"description":5}"#, Ok(())),
        (r#"{"name":"t"}"#, Err("`inputSchema` is missing")),
        (r#"{"name":"t","inputSchema":null}"#, Err("`inputSchema` is missing")),
        (r#"{"name":"t","inputSchema":[]}"#, Err("`inputSchema` is not an object")),
        (r#"{"name":"","inputSchema":{}}"#, Err("`name` is empty")),
        (r#"{"name":7,"inputSchema":{}}"#, Err("`name` is of the wrong type")),
    ] {
        let good = r#"{"name":"good","inputSchema":{}}"#;
        let listing = Listing { items: vec![raw(good), raw(tool), raw(good)], ..Listing::default() };
        let tools: Vec<Item<Tool>> = listing.read();
        assert!(matches!((&tools[0], &tools[2]), (Item::Valid(_), Item::Valid(_))));
        let read = match &tools[1] {
            Item::Valid(read) => {
                assert_eq!(read.raw.as_str(), tool, "unknown fields survive");
                Ok(())
            }
            Item::Invalid(_, why) => Err(why.as_str()),
        };
        assert_eq!(read, expected, "{tool}");
    }
}

#[test]
fn annotated_arguments_become_headers() {
    let read = |schema: &str| Tool::read(&raw(&format!(r#"{{"name":"t","inputSchema":{schema}}}"#))).unwrap();
    let tool = read(
        r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"plain":{"type":"string"}}}"#,
    );
    let arguments = raw(r#"{"region":"eu","deep":{"n":7},"plain":"x"}"#);
    let expected = [("Region".to_owned(), "eu".to_owned()), ("N".into(), "7".into())];
    assert_eq!(tool.header_params(Some(&arguments)), expected);
    assert_eq!(tool.header_params(Some(&raw(r#"{"region":null}"#))), []);

    for schema in [
        r#"{"x-mcp-header":"A"}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#,
        r#"{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}"#,
        r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
        r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
    ] {
        assert!(read(schema).header_flaw().is_some(), "{schema}");
    }
}

#[test]
fn prompts_and_resources_are_read_leniently() {
    let prompt =
        Prompt::read(&raw(r#"{"name":"p","arguments":[{"name":"a","required":true},{"name":"b"}]}"#))
            .unwrap();
    assert_eq!(prompt.arguments.iter().map(|argument| argument.required).collect::<Vec<_>>(), [true, false]);
    let filled = PromptResult::read(&raw(
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"x"}},{"role":"user","content":{"type":"odd"}}]}"#,
    ));
    assert_eq!(filled.messages.len(), 2);
    assert_eq!(Resource::read(&raw(r#"{"uri":"a:b"}"#)).unwrap().name, "a:b");
    let read = ReadResult::read(&raw(r#"{"contents":[{"uri":"a:b","blob":"!"},{"uri":"a:b","text":"x"}]}"#));
    assert!(matches!(read.contents[..], [Item::Invalid(..), Item::Valid(_)]));
}
