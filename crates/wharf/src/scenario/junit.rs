//! Writes the results of scenarios as JUnit XML, which CI systems read.

use super::{ScenarioResult, ScenarioVerdict};

/// Returns the XML of the results.
pub(crate) fn to_junit(results: &[ScenarioResult]) -> String {
    let count =
        |wanted: fn(&ScenarioVerdict) -> bool| results.iter().filter(|it| wanted(&it.verdict)).count();
    let failures = count(|it| matches!(it, ScenarioVerdict::Failed(_)));
    let errors = count(|it| matches!(it, ScenarioVerdict::Unusable(_)));
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", results.len());
    let cases: String = results.iter().map(test_case).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"wharf\" {counts}>\n  \
         <testsuite name=\"wharf test\" {counts}>\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

fn test_case(result: &ScenarioResult) -> String {
    let (name, file) = (escape(&result.name), escape(&result.path.display().to_string()));
    let head = format!(
        "    <testcase name=\"{name}\" classname=\"{file}\" time=\"{:.3}\"",
        result.took.as_secs_f64()
    );
    let (element, text) = match &result.verdict {
        ScenarioVerdict::Passed => return format!("{head}/>\n"),
        ScenarioVerdict::Failed(failures) => ("failure", failures.join("\n")),
        ScenarioVerdict::Unusable(why) => ("error", why.clone()),
    };
    let first = escape(text.lines().next().unwrap_or_default());
    format!("{head}>\n      <{element} message=\"{first}\">{}</{element}>\n    </testcase>\n", escape(&text))
}

/// Escapes text for XML. Characters that XML does not have become `?`.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            c if c.is_control() => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{path::PathBuf, time::Duration};

    #[test]
    fn results_are_escaped_and_counted() {
        let result = |name: &str, verdict| ScenarioResult {
            name: name.to_owned(),
            path: PathBuf::from("a.test.yaml"),
            verdict,
            notes: Vec::new(),
            took: Duration::from_millis(1500),
        };
        let results = [
            result("one & \"two\"", ScenarioVerdict::Passed),
            result("two", ScenarioVerdict::Failed(vec!["a <b>".to_owned(), "c\u{7}".to_owned()])),
            result("three", ScenarioVerdict::Unusable("no file".to_owned())),
        ];
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="wharf" tests="3" failures="1" errors="1">
  <testsuite name="wharf test" tests="3" failures="1" errors="1">
    <testcase name="one &amp; &quot;two&quot;" classname="a.test.yaml" time="1.500"/>
    <testcase name="two" classname="a.test.yaml" time="1.500">
      <failure message="a &lt;b&gt;">a &lt;b&gt;
c?</failure>
    </testcase>
    <testcase name="three" classname="a.test.yaml" time="1.500">
      <error message="no file">no file</error>
    </testcase>
  </testsuite>
</testsuites>
"#;
        assert_eq!(to_junit(&results), expected);
    }
}
