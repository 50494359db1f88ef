//! Structured answers.

use super::{Rig, Said, Setup, answered, check};
use serde_json::json;

fn setup() -> Setup {
    let format = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    Setup { format: Some(format), ..Setup::default() }
}

#[test]
fn a_valid_structured_answer_finishes_the_run() {
    let mut rig = Rig::new(setup());
    let script = [Said::Calls(vec![("read", "{}")]), Said::Calls(vec![("wharf__answer", r#"{"n":7}"#)])];
    let transcript = rig.run(&script, |name, _| answered(name));
    assert!(transcript.ends_with("c2: accepted\nend: finished"), "{transcript}");
    let report = rig.state.report();
    assert_eq!(report.structured, Some(json!({ "n": 7 })));
    assert_eq!(
        (report.final_output.as_str(), &report.tools_called[..]),
        (r#"{"n":7}"#, &["read".to_owned()][..])
    );
}

#[test]
fn an_invalid_structured_answer_is_corrected_twice() {
    let wrong = Said::Calls(vec![("wharf__answer", r#"{"n":"x"}"#)]);
    let transcript = Rig::new(setup()).run(std::slice::from_ref(&wrong), |_, _| answered(""));
    assert_eq!(
        transcript.matches("not accepted: answer.n is a string, but an integer is expected.").count(),
        3,
        "{transcript}"
    );
    assert!(transcript.ends_with("end: failed output_invalid"), "{transcript}");
    let script = [wrong.clone(), wrong, Said::Calls(vec![("wharf__answer", r#"{"n":1}"#)])];
    let transcript = Rig::new(setup()).run(&script, |_, _| answered(""));
    assert!(transcript.ends_with("end: finished"), "{transcript}");
}

#[test]
fn a_text_instead_of_a_structured_answer_is_asked_for_once_more() {
    check(
        setup(),
        &[Said::Text("seven")],
        |_, _| answered(""),
        "model: seven
         user: Return the final answer by calling the tool `wharf__answer`.
         model: seven
         end: failed output_invalid",
    );
}
