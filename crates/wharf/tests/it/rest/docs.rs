//! Tests the documentation page: it loads nothing from other hosts, and the API description is OpenAPI 3.1.

use crate::serve::server::Server;

#[test]
fn docs_page_loads_nothing_from_other_hosts() {
    let server = Server::start(&[]);
    let fetch = |path: &str| server.raw("GET", path, &[], None);
    let page = fetch("/docs");
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("text/html; charset=utf-8"), "{page}");
    let named = |attribute: &str| -> Vec<String> {
        page.split(attribute).skip(1).filter_map(|it| it.split('"').next()).map(str::to_owned).collect()
    };
    for script in named("<script src=\"") {
        assert!(fetch(&script).contains("content-type: text/javascript"), "{script}");
    }
    for style in named("<link rel=\"stylesheet\" href=\"") {
        assert!(fetch(&style).contains("content-type: text/css"), "{style}");
    }
    let (_, page) = page.split_once("\r\n\r\n").expect("a page");
    assert!(!page.contains("://") && !page.contains("<script>") && !page.contains("<style"), "{page}");
    let script = fetch("/docs/page.js");
    // Data from servers is never inserted as markup.
    assert!(
        !["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            .iter()
            .any(|it| script.contains(it))
    );
    let (status, document) = server.ask("GET", "/openapi.json", None);
    assert_eq!((status, document["openapi"].as_str()), (200, Some("3.1.0")));
}
