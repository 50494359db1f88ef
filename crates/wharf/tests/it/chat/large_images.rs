//! Images in requests of clients that send them in the body: as large as a message may have them, and larger.

use super::{TODO, agent_file, serve};
use crate::serve::server::Server;
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::{Value, json};

const UI: &str = "/api/v1/chat/ui";
const AG_UI: &str = "/api/v1/chat/ag-ui";
const OPENAI: &str = "/v1/chat/completions";

/// Returns an image of this size in base64.
fn image(bytes: usize) -> String {
    let padding = (3 - bytes % 3) % 3;
    let digits = bytes.div_ceil(3) * 4 - padding;
    format!("{}{}", "A".repeat(digits), "=".repeat(padding))
}

/// Returns the body of a request with these images, as the protocol of the path has it.
fn body(path: &str, images: &[String]) -> Value {
    let url = |it: &String| format!("data:image/png;base64,{it}");
    let list = |text: Value, part: &dyn Fn(&String) -> Value| -> Value {
        std::iter::once(text).chain(images.iter().map(part)).collect()
    };
    let text = json!({ "type": "text", "text": "What is this?" });
    match path {
        UI => {
            let parts = list(text, &|it| json!({ "type": "file", "mediaType": "image/png", "url": url(it) }));
            json!({ "messages": [{ "id": "m1", "role": "user", "parts": parts }] })
        }
        AG_UI => {
            let part = |it: &String| json!({ "type": "image", "source": { "type": "data", "mimeType": "image/png", "value": it } });
            let content = list(text, &part);
            json!({ "threadId": "t1", "runId": "r1", "messages": [{ "role": "user", "content": content }] })
        }
        _ => {
            let content = list(text, &|it| json!({ "type": "image_url", "image_url": { "url": url(it) } }));
            json!({ "model": "wharf", "messages": [{ "role": "user", "content": content }] })
        }
    }
}

/// Sends a request. Returns its status and the whole response.
fn post(server: &Server, path: &str, body: &Value) -> (u16, String) {
    let token = format!("Authorization: Bearer {}", server.token);
    let response = server.raw("POST", path, &[&token, "Content-Type: application/json"], Some(body));
    (response.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status"), response)
}

#[test]
fn images_of_5_mib_reach_the_model_and_larger_ones_are_refused() {
    let model = ScriptedModel::start((0..3).map(|_| Reply::text(Wire::Chat, "A picture.")).collect());
    let agent_file = agent_file(&model, TODO).replace("  name: m\n", "  name: m\n  images: true\n");
    let server = serve(&agent_file);
    let (largest, larger) = (image(5 << 20), image((5 << 20) + 1));
    for path in [UI, AG_UI, OPENAI] {
        for (images, detail) in [
            (vec![larger.clone()], "an image is larger than 5 MiB"),
            (vec![image(1); 9], "a message can have 8 images, not 9"),
        ] {
            let (status, response) = post(&server, path, &body(path, &images));
            assert_eq!(status, 413, "{path}: {response}");
            assert!(response.contains(detail), "{path}: {response}");
        }
        let (status, response) = post(&server, path, &body(path, std::slice::from_ref(&largest)));
        assert_eq!(status, 200, "{path}: {response}");
        assert!(response.contains("A picture."), "{path}: {response}");
        let requests = model.requests();
        let sent = requests.last().map(|it| it.body.to_string()).expect("a request");
        assert!(sent.contains(&largest), "{path}: the model gets the image");
    }
    assert_eq!(model.requests().len(), 3);
}

#[test]
fn only_routes_that_take_images_read_more_than_4_mib() {
    let model = ScriptedModel::start(vec![]);
    let server = serve(&agent_file(&model, TODO));
    for (path, length, detail) in [
        ("/api/v1/chat", 4 << 20, "the body is longer than 4 MiB"),
        ("/api/v1/conversations", 4 << 20, "the body is longer than 4 MiB"),
        (UI, 64 << 20, "the body is longer than 64 MiB"),
        (OPENAI, 64 << 20, "the body is longer than 64 MiB"),
    ] {
        let (status, response) = post(&server, path, &json!({ "title": "x".repeat(length) }));
        assert_eq!(status, 413, "{path}: {response}");
        assert!(response.contains(detail), "{path}: {response}");
    }
}
