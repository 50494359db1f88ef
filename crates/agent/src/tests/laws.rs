//! Laws that hold for all inputs.

use super::{
    read_chunks,
    script::{Step, render},
    summary,
};
use crate::{dialect::Dialect, model::AnswerLimits};
use proptest::prelude::*;
use scripted_model::Finish;

fn dialects() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL.to_vec())
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        "[a-zü🦀\n\"\\\\]{0,6}".prop_map(Step::Text),
        "[a-z]{1,4}".prop_map(Step::Think),
        ("[a-c]{0,1}", "[fg]", prop::sample::select(vec!["{}", r#"{"a":"}{"}"#, r#"{"b":[{}, "\""]}"#]))
            .prop_map(|(id, name, arguments)| Step::Call { id, name, arguments: arguments.into() }),
        Just(Step::Usage),
    ];
    prop::collection::vec(step, 0..12)
}

proptest! {
    #[test]
    fn chunking_does_not_change_the_answer(
        dialect in dialects(), steps in steps(), sizes in prop::collection::vec(1_usize..40, 1..8), cut in 0_usize..4000,
    ) {
        let mut steps = steps;
        steps.push(Step::End(Finish::Stop));
        let body = render(dialect, &steps).into_bytes();
        let body = &body[..cut.min(body.len())];
        let limits = AnswerLimits::default();
        let whole = read_chunks(dialect, &limits, body, &[body.len()]);
        prop_assert_eq!(read_chunks(dialect, &limits, body, &sizes), whole);
    }

    #[test]
    fn no_call_is_lost_merged_or_doubled(dialect in dialects(), steps in steps()) {
        let mut steps = steps;
        let expected: Vec<(String, String)> = steps.iter().filter_map(|step| match step {
            Step::Call { name, arguments, .. } => Some((name.clone(), arguments.clone())),
            _ => None,
        }).collect();
        prop_assume!(!expected.is_empty());
        steps.push(Step::End(Finish::ToolCalls));
        let body = render(dialect, &steps);
        let result = read_chunks(dialect, &AnswerLimits::default(), body.as_bytes(), &[body.len()]);
        let answer = result.answer.expect("an answer");
        let calls: Vec<(String, String)> =
            answer.calls().map(|call| (call.name.clone(), call.arguments.clone())).collect();
        prop_assert_eq!(calls, expected);
        let ids: std::collections::HashSet<&str> = answer.calls().map(|call| call.id.as_str()).collect();
        prop_assert_eq!(ids.len(), answer.calls().count());
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        dialect in dialects(), bytes in prop::collection::vec(any::<u8>(), 0..300), sizes in prop::collection::vec(1_usize..40, 1..4),
    ) {
        let limits = AnswerLimits { event_bytes: 64, stream_bytes: 200, ..AnswerLimits::default() };
        let whole = read_chunks(dialect, &limits, &bytes, &[bytes.len()]);
        prop_assert_eq!(read_chunks(dialect, &limits, &bytes, &sizes), whole);
    }

    #[test]
    fn changed_streams_never_panic(dialect in dialects(), steps in steps(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut steps = steps;
        steps.push(Step::End(Finish::Stop));
        let mut body = render(dialect, &steps).into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        let limits = AnswerLimits::default();
        let whole = read_chunks(dialect, &limits, &body, &[body.len()]);
        prop_assert_eq!(summary(&read_chunks(dialect, &limits, &body, &[3])), summary(&whole));
    }
}
