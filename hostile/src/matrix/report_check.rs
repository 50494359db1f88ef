//! Checks the report of a trial against its row.

use super::{Class, MAX_MEMORY_KIB, Next, Row};
use crate::probe::Report;
use std::time::Duration;

/// Returns everything that is wrong with a trial; empty if it passed.
pub fn check_report(row: &Row, report: &Report) -> Vec<String> {
    let mut problems = Vec::new();
    let mut report_if = |wrong: bool, what: String| {
        if wrong {
            problems.push(what);
        }
    };
    let (least, most) = row.bounds();
    let took = Duration::from_millis(report.ms);
    let expected = row.class.as_str();
    report_if(report.class != expected, format!("{} instead of {expected}", report.class));
    report_if(took < least || took > most, format!("{took:?}, not between {least:?} and {most:?}"));
    report_if(
        report.grown_kib > MAX_MEMORY_KIB,
        format!("{} KiB of memory, over {MAX_MEMORY_KIB}", report.grown_kib),
    );
    report_if(report.neighbour != "OK", format!("the neighbour: {}", report.neighbour));
    report_if(report.leftovers > 0, format!("{} processes are left", report.leftovers));
    let next = match row.next {
        Next::Works | Next::Settles => Class::Ok,
        Next::Same => row.class,
        Next::BreakerOpens => Class::BreakerOpen,
    };
    report_if(
        report.next != next.as_str(),
        format!("then {} instead of {}: {}", report.next, next.as_str(), report.next_message),
    );
    let allowed = if report.sent == "no" { 0 } else { 1 };
    report_if(
        report.executions > allowed,
        format!("done {} times, sent: {}", report.executions, report.sent),
    );
    let failed = !matches!(row.class, Class::Ok | Class::ToolError);
    let late = row.class == Class::Timeout;
    report_if(late && report.hint.is_empty(), "the timeout has no hint".to_owned());
    report_if(failed && !is_explained(report), format!("the failure is unexplained: {}", report.message));
    problems
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
    fn every_deviation_is_reported() {
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
        assert_eq!(check_report(row, &good), [""; 0]);
        for (bad, expected_problem) in [
            (Report { class: "Proto".into(), ..good.clone() }, "Proto instead of Time"),
            (Report { hint: String::new(), ..good.clone() }, "the timeout has no hint"),
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
                "the failure is unexplained",
            ),
        ] {
            let problems = check_report(row, &bad);
            assert!(
                problems.iter().any(|it| it.starts_with(expected_problem)),
                "{expected_problem}: {problems:?}"
            );
        }
    }
}
