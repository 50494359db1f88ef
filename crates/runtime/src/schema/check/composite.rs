//! Checks objects and arrays.

use super::{
    super::{
        node::{Id, Members, Rule, Verdict},
        same,
        say::{self, Flaw, Kind, Path},
    },
    Run,
};
use serde_json::{Map, Value};
use std::mem;
use wharf_config::closest;

const ITEMS: [&str; 2] = ["item", "items"];
const PROPERTIES: [&str; 2] = ["property", "properties"];
/// Maximum number of properties to compare for a did-you-mean suggestion.
const CANDIDATES: usize = 100;
/// Cost of such a suggestion, in steps.
const GUESS: u32 = 2000;

impl<'s> Run<'s> {
    pub(super) fn object(&mut self, rule: &'s Rule, object: &Map<String, Value>, at: &Path<'_>) -> Verdict {
        let count = object.len();
        match rule {
            Rule::Members(members) => self.members(members, object, at),
            Rule::Names(id) => self.names(*id, object, at),
            Rule::MinProperties(min) => {
                self.unless(count as u64 >= *min, at, || say::too_few(count, PROPERTIES, *min))
            }
            Rule::MaxProperties(max) => {
                self.unless(count as u64 <= *max, at, || say::too_many(count, PROPERTIES, *max))
            }
            Rule::DependentRequired(all) => self.together(all, |run, (name, others)| {
                let message = || format!("is missing; `{}` requires it", say::cut(name));
                match run.has(object, name) {
                    Some(true) => run.required(others, object, at, message),
                    Some(false) => Verdict::Valid,
                    None => Verdict::Unknown,
                }
            }),
            _ => Verdict::Valid,
        }
    }

    fn members(&mut self, members: &'s Members, object: &Map<String, Value>, at: &Path<'_>) -> Verdict {
        let missing = self.required(&members.required, object, at, || "is missing".to_owned());
        if missing == Verdict::Invalid && self.has_heard_enough() {
            return missing;
        }
        let others = self.together(object, |run, (name, value)| run.member(members, name, value, at));
        missing.max(others)
    }

    fn required(
        &mut self,
        names: &'s [String],
        object: &Map<String, Value>,
        at: &Path<'_>,
        message: impl Fn() -> String,
    ) -> Verdict {
        self.together(names, |run, name| match run.has(object, name) {
            Some(true) => Verdict::Valid,
            Some(false) => run.wrong(&at.member(name), Kind::Other, &message),
            None => Verdict::Unknown,
        })
    }

    fn member(&mut self, members: &'s Members, name: &str, value: &Value, at: &Path<'_>) -> Verdict {
        if !self.spend(same::text_cost(name.len()) - 1) {
            return Verdict::Unknown;
        }
        let at = at.member(name);
        let (mut verdict, mut is_known) = (Verdict::Valid, Some(false));
        if let Some(id) = members.named(name) {
            (verdict, is_known) = (self.node(id, value, &at), Some(true));
        }
        for (pattern, id) in &members.patterns {
            let found = if self.spend(pattern.cost(name)) { pattern.is_found(name) } else { None };
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

    fn additional(&mut self, id: Id, members: &Members, name: &str, value: &Value, at: &Path<'_>) -> Verdict {
        let is_forbidden =
            matches!(self.nodes.get(id.0 as usize).map(|it| it.rules.as_slice()), Some([Rule::Never]));
        if !is_forbidden {
            return self.node(id, value, at);
        }
        let may_guess = self.flaws.is_some() && self.left > GUESS && self.spend(GUESS);
        self.wrong(at, Kind::Value, || {
            let known = members.named.iter().map(|(name, _)| name.as_str()).take(CANDIDATES);
            let whose = if at.depth == 1 { "of this tool" } else { "here" };
            match closest(name, known.filter(|_| may_guess)) {
                Some(meant) => format!("is not a property {whose}; did you mean `{}`?", say::cut(meant)),
                None => format!("is not a property {whose}"),
            }
        })
    }

    /// Returns whether an object has a member. `None` if there are not enough steps for a long name.
    pub(super) fn has(&mut self, object: &Map<String, Value>, name: &str) -> Option<bool> {
        self.spend(same::text_cost(name.len()) - 1).then(|| object.contains_key(name))
    }

    fn names(&mut self, id: Id, object: &Map<String, Value>, at: &Path<'_>) -> Verdict {
        self.together(object, |run, (name, _)| {
            if !run.spend(same::text_cost(name.len())) {
                return Verdict::Unknown;
            }
            let before = run.flaws.as_mut().map(mem::take);
            let verdict = run.node(id, &Value::from(name.as_str()), &at.member(name));
            let found = mem::replace(&mut run.flaws, before).into_iter().flatten();
            if let Some(flaws) = &mut run.flaws {
                flaws.extend(found.map(Flaw::about_name));
            }
            verdict
        })
    }

    pub(super) fn array(&mut self, rule: &'s Rule, items: &[Value], at: &Path<'_>) -> Verdict {
        let count = items.len();
        match rule {
            Rule::Items { first, rest } => self.items(first, *rest, items, at),
            Rule::Contains { item, min, max } => self.contains(*item, *min, *max, items, at),
            Rule::MinItems(min) => self.unless(count as u64 >= *min, at, || say::too_few(count, ITEMS, *min)),
            Rule::MaxItems(max) => {
                self.unless(count as u64 <= *max, at, || say::too_many(count, ITEMS, *max))
            }
            Rule::Unique => match same::twins(items, &mut self.left) {
                Some(None) => Verdict::Valid,
                Some(Some((a, b))) => {
                    self.wrong(at, Kind::Other, || format!("has the same item twice, at {a} and at {b}"))
                }
                None => self.uncertain(),
            },
            _ => Verdict::Valid,
        }
    }

    fn items(&mut self, first: &'s [Id], rest: Option<Id>, items: &[Value], at: &Path<'_>) -> Verdict {
        let ids = first.iter().copied().map(Some).chain(std::iter::repeat(rest)).map_while(|id| id);
        self.together(items.iter().zip(ids).enumerate(), |run, (place, (item, id))| {
            run.node(id, item, &at.item(place))
        })
    }

    fn contains(&mut self, id: Id, min: u64, max: Option<u64>, items: &[Value], at: &Path<'_>) -> Verdict {
        let (mut sure, mut open) = (0u64, 0u64);
        let before = self.flaws.take();
        for (place, item) in items.iter().enumerate() {
            if self.left == 0 {
                open += (items.len() - place) as u64;
                break;
            }
            match self.node(id, item, &at.item(place)) {
                Verdict::Valid => sure += 1,
                Verdict::Noted | Verdict::Unknown => open += 1,
                Verdict::Invalid => {}
            }
        }
        self.flaws = before;
        let what = ["item of the required form", "items of the required form"];
        let count = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
        match max {
            _ if sure + open < min => {
                self.wrong(at, Kind::Other, || say::too_few(count(sure + open), what, min))
            }
            Some(max) if sure > max => self.wrong(at, Kind::Other, || say::too_many(count(sure), what, max)),
            _ if sure < min || max.is_some_and(|max| sure + open > max) => self.uncertain(),
            _ => Verdict::Valid,
        }
    }

    /// Checks all elements, at one step each. The result is the worst one.
    pub(super) fn together<T>(
        &mut self,
        all: impl IntoIterator<Item = T>,
        mut check: impl FnMut(&mut Self, T) -> Verdict,
    ) -> Verdict {
        let mut verdict = Verdict::Valid;
        for one in all {
            if !self.spend(1) {
                return verdict.max(Verdict::Unknown);
            }
            verdict = verdict.max(check(self, one));
            if verdict == Verdict::Invalid && self.has_heard_enough() {
                break;
            }
        }
        verdict
    }
}
