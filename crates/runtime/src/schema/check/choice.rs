//! Checks combinations of schemas: `allOf`, `anyOf`, `oneOf`, `not` and conditions.

use super::{
    super::{
        node::{Id, Rule, Types, Verdict},
        say::{self, Flaw, Kind, Path},
    },
    Run,
};
use serde_json::Value;
use std::mem;

impl<'s> Run<'s> {
    pub(super) fn choice(&mut self, rule: &'s Rule, value: &Value, at: &Path<'_>) -> Verdict {
        match rule {
            Rule::All(ids) => self.together(ids, |run, id| run.node(*id, value, at)),
            Rule::Any(ids) => self.any(ids, value, at),
            Rule::One(ids) => self.one(ids, value, at),
            Rule::Not(id) => match self.aside(*id, value, at).0 {
                Verdict::Valid => self.wrong(at, Kind::Other, || "has a form that is ruled out".to_owned()),
                Verdict::Noted | Verdict::Unknown => self.uncertain(),
                Verdict::Invalid => Verdict::Valid,
            },
            Rule::If { condition, then, otherwise } => {
                let branch =
                    |run: &mut Self, id: &Option<Id>| id.map_or(Verdict::Valid, |id| run.node(id, value, at));
                match self.aside(*condition, value, at).0 {
                    Verdict::Valid => branch(self, then),
                    Verdict::Invalid => branch(self, otherwise),
                    Verdict::Noted | Verdict::Unknown => self.uncertain(),
                }
            }
            _ => Verdict::Valid,
        }
    }

    /// Checks a value and returns its errors separately. The caller decides whether they count.
    fn aside(&mut self, id: Id, value: &Value, at: &Path<'_>) -> (Verdict, Vec<Flaw>) {
        let before = self.flaws.as_mut().map(mem::take);
        let verdict = self.node(id, value, at);
        let found = mem::replace(&mut self.flaws, before);
        (verdict, found.unwrap_or_default())
    }

    fn any(&mut self, ids: &'s [Id], value: &Value, at: &Path<'_>) -> Verdict {
        let (mut best, mut attempts) = (Verdict::Invalid, Vec::new());
        for id in ids {
            if !self.spend(1) {
                return best.min(Verdict::Unknown);
            }
            let (verdict, flaws) = self.aside(*id, value, at);
            best = best.min(verdict);
            if best == Verdict::Valid {
                return best;
            }
            if self.flaws.is_some() {
                attempts.push(flaws);
            }
        }
        if best == Verdict::Invalid {
            self.explain(attempts, value, at);
        }
        best
    }

    /// Checks `oneOf`. Rejects the value only if the result of every alternative is certain.
    fn one(&mut self, ids: &'s [Id], value: &Value, at: &Path<'_>) -> Verdict {
        let (mut fitting, mut open, mut attempts, mut worst) = (0, 0, Vec::new(), Verdict::Valid);
        for id in ids {
            if !self.spend(1) {
                return Verdict::Unknown;
            }
            let (verdict, flaws) = self.aside(*id, value, at);
            match verdict {
                Verdict::Valid => fitting += 1,
                Verdict::Noted | Verdict::Unknown => {
                    open += 1;
                    worst = worst.max(verdict);
                }
                Verdict::Invalid if self.flaws.is_some() => attempts.push(flaws),
                Verdict::Invalid => {}
            }
        }
        match (worst, fitting) {
            (Verdict::Valid, 1) => Verdict::Valid,
            (Verdict::Valid, 0) => {
                self.explain(attempts, value, at);
                Verdict::Invalid
            }
            (Verdict::Valid, _) => self.wrong(at, Kind::Other, || {
                format!("fits {fitting} of the forms of which exactly one is allowed")
            }),
            (Verdict::Noted, 0) if open == 1 => Verdict::Noted,
            _ => self.uncertain(),
        }
    }

    /// Records the errors of the closest alternative.
    fn explain(&mut self, attempts: Vec<Vec<Flaw>>, value: &Value, at: &Path<'_>) {
        let Some(flaws) = &mut self.flaws else { return };
        let expected = |flaws: &Vec<Flaw>| match flaws.as_slice() {
            [only] => only.expected(at.depth),
            _ => None,
        };
        let types: Option<Vec<Types>> = attempts.iter().map(expected).collect();
        if let Some(types) = types.filter(|types| !types.is_empty()) {
            let types = types.into_iter().fold(Types::NONE, Types::with);
            flaws.push(Flaw::new(at, Kind::Type(types), say::wrong_type(value, types)));
            return;
        }
        let weight = |flaws: &Vec<Flaw>| flaws.iter().map(|flaw| flaw.weight(at.depth)).sum::<usize>();
        let closest = attempts.into_iter().filter(|it| !it.is_empty()).min_by_key(weight);
        match closest {
            Some(closest) => flaws.extend(closest),
            None => {
                flaws.push(Flaw::new(at, Kind::Other, "fits none of the forms that are allowed".to_owned()))
            }
        }
    }
}
