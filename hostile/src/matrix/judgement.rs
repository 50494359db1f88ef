//! Checks the report of a trial against its row.

use super::{Class, MEMORY, Next, Row};
use crate::probe::Report;
use std::time::Duration;

/// Returns everything that is wrong with a trial; empty if it passed.
pub fn judge(row: &Row, report: &Report) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut complain = |wrong: bool, what: String| {
        if wrong {
            complaints.push(what);
        }
    };
    let (least, most) = row.bounds();
    let took = Duration::from_millis(report.ms);
    let expected = row.class.as_str();
    complain(report.class != expected, format!("{} instead of {expected}", report.class));
    complain(took < least || took > most, format!("{took:?}, not between {least:?} and {most:?}"));
    complain(report.grown_kib > MEMORY, format!("{} KiB of memory, over {MEMORY}", report.grown_kib));
    complain(report.neighbour != "OK", format!("the neighbour: {}", report.neighbour));
    complain(report.leftovers > 0, format!("{} processes are left", report.leftovers));
    let next = match row.next {
        Next::Works | Next::Settles => Class::Ok,
        Next::Same => row.class,
        Next::Rests => Class::Resting,
    };
    complain(
        report.next != next.as_str(),
        format!("then {} instead of {}: {}", report.next, next.as_str(), report.next_message),
    );
    let allowed = if report.sent == "no" { 0 } else { 1 };
    complain(report.executions > allowed, format!("done {} times, sent: {}", report.executions, report.sent));
    let failed = !matches!(row.class, Class::Ok | Class::ToolError);
    let late = row.class == Class::Timeout;
    complain(late && report.hint.is_empty(), "it does not say what to do".to_owned());
    complain(failed && !is_explained(report), format!("nobody can tell why: {}", report.message));
    complaints
}

/// Checks that a failure has a hint, or a cause of at least three words.
fn is_explained(report: &Report) -> bool {
    let cause = report.message.rsplit("): ").next().unwrap_or_default();
    let plain = cause.split_whitespace().count() >= 3;
    !report.hint.is_empty() || plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::find;

    #[test]
    fn everything_that_can_be_wrong_is_noticed() {
        let row = find("silent/stdio/legacy").expect("the row");
        let good = Report {
            class: "Time".into(),
            message: "the call failed (it): no answer in time".into(),
            hint: "wait longer".into(),
            ms: 1_010,
            neighbour: "OK".into(),
            next: "OK".into(),
            ..Report::default()
        };
        assert_eq!(judge(row, &good), [""; 0]);
        for (bad, said) in [
            (Report { class: "Proto".into(), ..good.clone() }, "Proto instead of Time"),
            (Report { hint: String::new(), ..good.clone() }, "it does not say what to do"),
            (Report { ms: 20, ..good.clone() }, "20ms, not between"),
            (Report { ms: 9_000, ..good.clone() }, "9s, not between"),
            (Report { grown_kib: 1 << 20, ..good.clone() }, "1048576 KiB of memory"),
            (Report { neighbour: "gone".into(), ..good.clone() }, "the neighbour: gone"),
            (Report { executions: 2, ..good.clone() }, "done 2 times"),
            (Report { executions: 1, sent: "no".into(), ..good.clone() }, "done 1 times, sent: no"),
            (Report { leftovers: 2, ..good.clone() }, "2 processes are left"),
            (Report { next: "Conn".into(), ..good.clone() }, "then Conn instead of OK"),
            (
                Report { hint: String::new(), message: "it failed (it): error".into(), ..good.clone() },
                "nobody can tell why",
            ),
        ] {
            let complaints = judge(row, &bad);
            assert!(complaints.iter().any(|it| it.starts_with(said)), "{said}: {complaints:?}");
        }
    }
}
