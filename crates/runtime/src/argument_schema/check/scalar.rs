//! Checks numbers and strings.

use super::{
    super::{
        equal,
        messages::{self, ValidationErrorKind, ValuePath},
        node::{Bound, Rule, Validity},
        number,
    },
    Validator,
};
use serde_json::{Number, Value};
use std::cmp::Ordering;

const CHARACTERS: [&str; 2] = ["character", "characters"];

impl<'s> Validator<'s> {
    pub(super) fn number(
        &mut self,
        rule: &'s Rule,
        number: &Number,
        value: &Value,
        at: &ValuePath<'_>,
    ) -> Validity {
        match rule {
            Rule::Bound(bound, limit) => {
                let fits = number::compare(number, limit).map(|order| bound.allows(order));
                self.fail_unless_certain(fits, at, || messages::out_of_bounds(value, *bound, limit))
            }
            Rule::MultipleOf(of) => self.fail_unless_certain(number::is_multiple(number, of), at, || {
                format!("is {number}, but a multiple of {of} is expected")
            }),
            _ => Validity::Valid,
        }
    }

    pub(super) fn string(&mut self, rule: &'s Rule, text: &str, at: &ValuePath<'_>) -> Validity {
        match rule {
            Rule::MinLength(min) => self.length(text, at, |count| {
                (count < *min).then(|| messages::too_few(text.chars().count(), CHARACTERS, *min))
            }),
            Rule::MaxLength(max) => self.length(text, at, |count| {
                (count > *max).then(|| messages::too_many(text.chars().count(), CHARACTERS, *max))
            }),
            Rule::Pattern(pattern) => {
                let found = if self.spend(pattern.cost(text)) { pattern.find_match(text) } else { None };
                self.fail_unless_certain(found, at, || {
                    let pattern = messages::shorten(&pattern.text);
                    format!("is {}, which does not match the pattern `{pattern}`", messages::quoted(text))
                })
            }
            _ => Validity::Valid,
        }
    }

    /// Checks the length of a string in characters. Counting them makes a long text more expensive.
    fn length(
        &mut self,
        text: &str,
        at: &ValuePath<'_>,
        error: impl FnOnce(u64) -> Option<String>,
    ) -> Validity {
        if !self.spend(equal::text_cost(text.len()) - 1) {
            return Validity::Unknown;
        }
        match error(text.chars().count() as u64) {
            None => Validity::Valid,
            Some(message) => self.fail(at, ValidationErrorKind::Other, || message),
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
