//! Did-you-mean suggestions: finds the known word closest to a misspelt one.

/// Returns the closest candidate, if one is similar enough. Differences in word style (`requestTimeout`,
/// `request-timeout`) are ignored.
pub fn closest<'a>(written: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A longer word is hardly a typo, and comparing it is expensive.
    if written.len() > 64 {
        return None;
    }
    let written = bare(written);
    let allowed = match written.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=9 => 2,
        _ => 3,
    };
    candidates
        .filter(|it| it.len() <= 2 * 64)
        .map(|it| (it, bare(it)))
        .filter(|(_, bare)| bare.len().abs_diff(written.len()) <= allowed)
        .map(|(it, bare)| (strsim::damerau_levenshtein(&written, &bare), it))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, it)| it)
}

fn bare(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_candidate_is_suggested() {
        let keys = ["name", "command", "request_timeout", "envFile", "http", "sse", "stdio"];
        for (written, expected) in [
            ("commnad", Some("command")),
            ("requestTimeout", Some("request_timeout")),
            ("request-timeout", Some("request_timeout")),
            ("envfile", Some("envFile")),
            ("NAME", Some("name")),
            ("htttp", Some("http")),
            ("colour", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(closest(written, keys.into_iter()), expected, "{written}");
        }
    }
}
