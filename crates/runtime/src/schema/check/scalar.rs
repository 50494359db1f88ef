//! Checks numbers and strings.

use super::{
    super::{
        node::{Bound, Rule, Verdict},
        number, same,
        say::{self, Kind, Path},
    },
    Run,
};
use serde_json::{Number, Value};
use std::cmp::Ordering;

const CHARACTERS: [&str; 2] = ["character", "characters"];

impl<'s> Run<'s> {
    pub(super) fn number(
        &mut self,
        rule: &'s Rule,
        number: &Number,
        value: &Value,
        at: &Path<'_>,
    ) -> Verdict {
        match rule {
            Rule::Bound(bound, limit) => {
                let fits = number::compare(number, limit).map(|order| bound.allows(order));
                self.decided(fits, at, || say::out_of_bounds(value, *bound, limit))
            }
            Rule::MultipleOf(of) => self.decided(number::is_multiple(number, of), at, || {
                format!("is {number}, but a multiple of {of} is expected")
            }),
            _ => Verdict::Valid,
        }
    }

    pub(super) fn string(&mut self, rule: &'s Rule, text: &str, at: &Path<'_>) -> Verdict {
        match rule {
            Rule::MinLength(min) => self.length(text, at, |count| {
                (count < *min).then(|| say::too_few(text.chars().count(), CHARACTERS, *min))
            }),
            Rule::MaxLength(max) => self.length(text, at, |count| {
                (count > *max).then(|| say::too_many(text.chars().count(), CHARACTERS, *max))
            }),
            Rule::Pattern(pattern) => {
                let found = if self.spend(pattern.cost(text)) { pattern.is_found(text) } else { None };
                self.decided(found, at, || {
                    let pattern = say::cut(&pattern.text);
                    format!("is {}, which does not match the pattern `{pattern}`", say::quoted(text))
                })
            }
            _ => Verdict::Valid,
        }
    }

    /// Checks the length of a string in characters. Counting them makes a long text more expensive.
    fn length(&mut self, text: &str, at: &Path<'_>, flaw: impl FnOnce(u64) -> Option<String>) -> Verdict {
        if !self.spend(same::text_cost(text.len()) - 1) {
            return Verdict::Unknown;
        }
        match flaw(text.chars().count() as u64) {
            None => Verdict::Valid,
            Some(message) => self.wrong(at, Kind::Other, || message),
        }
    }
}

impl Bound {
    /// Returns whether a number that compares to the limit like this is allowed.
    fn allows(self, order: Ordering) -> bool {
        match self {
            Bound::AtLeast => order.is_ge(),
            Bound::AtMost => order.is_le(),
            Bound::MoreThan => order.is_gt(),
            Bound::LessThan => order.is_lt(),
        }
    }
}
