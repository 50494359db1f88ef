//! Splits text into the words that an index compares.

/// Words that say nothing about what a tool does.
const STOP_WORDS: &[&str] = &[
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from",
    "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "need", "of", "on", "or", "our",
    "please", "so", "that", "the", "their", "them", "then", "there", "this", "to", "us", "want", "was", "we",
    "what", "when", "where", "which", "who", "will", "with", "would", "you", "your",
];

/// Returns the words of a text in lower case, split at case, punctuation and digits. The ending of a plural or a form of a
/// verb is dropped, so that `listed issues` and `list issue` are the same words.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = CharClass::Other;
    for c in text.chars() {
        let class = CharClass::of(c);
        let is_border = class != before && !(before == CharClass::Upper && class == CharClass::Lower);
        if is_border {
            take(&mut word, &mut words);
        }
        if class != CharClass::Other {
            word.extend(c.to_lowercase());
        }
        before = class;
    }
    take(&mut word, &mut words);
    words
}

/// Class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Upper,
    Lower,
    Digit,
    Other,
}

impl CharClass {
    fn of(c: char) -> CharClass {
        match c {
            c if c.is_uppercase() => CharClass::Upper,
            c if c.is_alphabetic() => CharClass::Lower,
            c if c.is_numeric() => CharClass::Digit,
            _ => CharClass::Other,
        }
    }
}

fn take(word: &mut String, words: &mut Vec<String>) {
    let word = std::mem::take(word);
    if !word.is_empty() && !STOP_WORDS.contains(&word.as_str()) {
        words.push(stem(&word).to_owned());
    }
}

/// Drops the ending of a plural or of a form of a verb.
fn stem(word: &str) -> &str {
    let word = match word {
        it if it.len() > 4 && it.ends_with("ies") => &it[..it.len() - 2],
        it if it.len() > 4 && (it.ends_with("sses") || it.ends_with("xes") || it.ends_with("ches")) => {
            &it[..it.len() - 2]
        }
        it if it.len() > 3 && it.ends_with('s') && !it.ends_with("ss") && !it.ends_with("us") => {
            &it[..it.len() - 1]
        }
        it => it,
    };
    let word = match word {
        it if it.len() > 5 && it.ends_with("ing") => &it[..it.len() - 3],
        it if it.len() > 4 && it.ends_with("ed") => &it[..it.len() - 2],
        it => it,
    };
    match word {
        it if it.len() > 3 && (it.ends_with('e') || it.ends_with('y') || it.ends_with('i')) => {
            &it[..it.len() - 1]
        }
        it => it,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_and_stemmed() {
        for (text, expected) in [
            ("list_open-issues", "list open issu"),
            ("getUserByID2", "get user id 2"),
            ("Creating, created and creates", "creat creat creat"),
            ("queries of the query", "quer quer"),
            ("boxes, classes, status", "box class status"),
            ("  ", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }
}
