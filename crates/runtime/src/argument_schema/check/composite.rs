//! Checks objects and arrays.

use super::{
    super::{
        equal,
        messages::{self, ValidationError, ValidationErrorKind, ValuePath},
        node::{Id, Members, Rule, Validity},
    },
    Validator,
};
use serde_json::{Map, Value};
use std::mem;
use wharf_config::closest;

const ITEMS: [&str; 2] = ["item", "items"];
const PROPERTIES: [&str; 2] = ["property", "properties"];
/// Maximum number of properties to compare for a did-you-mean suggestion.
const MAX_SUGGESTION_CANDIDATES: usize = 100;
/// Cost of such a suggestion, in steps.
const SUGGESTION_COST: u32 = 2000;

impl<'s> Validator<'s> {
    pub(super) fn object(
        &mut self,
        rule: &'s Rule,
        object: &Map<String, Value>,
        at: &ValuePath<'_>,
    ) -> Validity {
        let count = object.len();
        match rule {
            Rule::Members(members) => self.members(members, object, at),
            Rule::Names(id) => self.names(*id, object, at),
            Rule::MinProperties(min) => {
                self.fail_unless(count as u64 >= *min, at, || messages::too_few(count, PROPERTIES, *min))
            }
            Rule::MaxProperties(max) => {
                self.fail_unless(count as u64 <= *max, at, || messages::too_many(count, PROPERTIES, *max))
            }
            _ => Validity::Valid,
        }
    }

    fn members(&mut self, members: &'s Members, object: &Map<String, Value>, at: &ValuePath<'_>) -> Validity {
        let missing = self.required(&members.required, object, at);
        if missing == Validity::Invalid && self.can_stop() {
            return missing;
        }
        let others =
            self.check_all(object, |validator, (name, value)| validator.member(members, name, value, at));
        missing.max(others)
    }

    fn required(&mut self, names: &'s [String], object: &Map<String, Value>, at: &ValuePath<'_>) -> Validity {
        self.check_all(names, |validator, name| {
            if !validator.spend(equal::text_cost(name.len()) - 1) {
                return Validity::Unknown;
            }
            let is_present = object.contains_key(name);
            validator.fail_unless(is_present, &at.member(name), || "is missing".to_owned())
        })
    }

    fn member(&mut self, members: &'s Members, name: &str, value: &Value, at: &ValuePath<'_>) -> Validity {
        if !self.spend(equal::text_cost(name.len()) - 1) {
            return Validity::Unknown;
        }
        let at = at.member(name);
        let (mut verdict, mut is_known) = (Validity::Valid, Some(false));
        if let Some(id) = members.named(name) {
            (verdict, is_known) = (self.node(id, value, &at), Some(true));
        }
        for (pattern, id) in &members.patterns {
            let found = if self.spend(pattern.cost(name)) { pattern.find_match(name) } else { None };
            match found {
                Some(true) => (verdict, is_known) = (verdict.max(self.node(*id, value, &at)), Some(true)),
                Some(false) => {}
                // The member may match the pattern, and then it is not an additional property.
                None => {
                    verdict = verdict.max(self.uncertain());
                    is_known = is_known.filter(|known| *known);
                }
            }
        }
        match (is_known, members.additional) {
            (Some(false), Some(id)) => verdict.max(self.additional(id, members, name, value, &at)),
            (None, Some(_)) => verdict.max(self.uncertain()),
            _ => verdict,
        }
    }

    fn additional(
        &mut self,
        id: Id,
        members: &Members,
        name: &str,
        value: &Value,
        at: &ValuePath<'_>,
    ) -> Validity {
        let is_forbidden =
            matches!(self.nodes.get(id.0 as usize).map(|it| it.rules.as_slice()), Some([Rule::Never]));
        if !is_forbidden {
            return self.node(id, value, at);
        }
        let can_suggest = self.errors.is_some() && self.left > SUGGESTION_COST && self.spend(SUGGESTION_COST);
        self.fail(at, ValidationErrorKind::Value, || {
            let known = members.named.iter().map(|(name, _)| name.as_str()).take(MAX_SUGGESTION_CANDIDATES);
            let whose = if at.depth == 1 { "of this tool" } else { "here" };
            match closest(name, known.filter(|_| can_suggest)) {
                Some(meant) => {
                    format!("is not a property {whose}; did you mean `{}`?", messages::shorten(meant))
                }
                None => format!("is not a property {whose}"),
            }
        })
    }

    fn names(&mut self, id: Id, object: &Map<String, Value>, at: &ValuePath<'_>) -> Validity {
        self.check_all(object, |validator, (name, _)| {
            if !validator.spend(equal::text_cost(name.len())) {
                return Validity::Unknown;
            }
            let before = validator.errors.as_mut().map(mem::take);
            let verdict = validator.node(id, &Value::from(name.as_str()), &at.member(name));
            let found = mem::replace(&mut validator.errors, before).into_iter().flatten();
            if let Some(errors) = &mut validator.errors {
                errors.extend(found.map(ValidationError::about_name));
            }
            verdict
        })
    }

    pub(super) fn array(&mut self, rule: &'s Rule, items: &[Value], at: &ValuePath<'_>) -> Validity {
        let count = items.len();
        match rule {
            Rule::Items(id) => self.check_all(items.iter().enumerate(), |validator, (place, item)| {
                validator.node(*id, item, &at.item(place))
            }),
            Rule::MinItems(min) => {
                self.fail_unless(count as u64 >= *min, at, || messages::too_few(count, ITEMS, *min))
            }
            Rule::MaxItems(max) => {
                self.fail_unless(count as u64 <= *max, at, || messages::too_many(count, ITEMS, *max))
            }
            Rule::Unique => match equal::first_duplicates(items, &mut self.left) {
                Some(None) => Validity::Valid,
                Some(Some((a, b))) => self.fail(at, ValidationErrorKind::Other, || {
                    format!("has the same item twice, at {a} and at {b}")
                }),
                None => self.uncertain(),
            },
            _ => Validity::Valid,
        }
    }

    /// Checks all elements, at one step each. The result is the worst one.
    pub(super) fn check_all<T>(
        &mut self,
        all: impl IntoIterator<Item = T>,
        mut check: impl FnMut(&mut Self, T) -> Validity,
    ) -> Validity {
        let mut verdict = Validity::Valid;
        for one in all {
            if !self.spend(1) {
                return verdict.max(Validity::Unknown);
            }
            verdict = verdict.max(check(self, one));
            if verdict == Validity::Invalid && self.can_stop() {
                break;
            }
        }
        verdict
    }
}
