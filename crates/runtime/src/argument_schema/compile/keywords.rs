//! Compiles the keywords for types, values, numbers, strings, objects and arrays.

use super::{
    super::node::{Bound, Members, Values},
    INVALID_KEYWORD, NodeBuilder, Rule, Types, messages,
};
use serde_json::Value;

const BOUNDS: [(&str, Bound); 4] = [
    ("minimum", Bound::AtLeast),
    ("maximum", Bound::AtMost),
    ("exclusiveMinimum", Bound::MoreThan),
    ("exclusiveMaximum", Bound::LessThan),
];

impl<'v> NodeBuilder<'_, 'v> {
    pub(super) fn types(&mut self) -> Result<(), String> {
        let Some(value) = self.keyword("type") else { return Ok(()) };
        let names = match value {
            Value::Array(names) => names.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut types = Types::NONE;
        for name in names {
            let name = name.as_str().ok_or_else(|| {
                format!("`type` is {} in the schema, which is not a type", messages::shown(name))
            })?;
            match Types::named(name) {
                Some(one) => types = types.with(one),
                // The meaning of names such as `any`, `int` and `float` would be a guess.
                None => {
                    self.unchecked(Types::ANY, INVALID_KEYWORD);
                    return Ok(());
                }
            }
        }
        if types == Types::NONE {
            self.unchecked(Types::ANY, INVALID_KEYWORD);
        } else {
            self.add(Rule::Type(types));
        }
        Ok(())
    }

    pub(super) fn values(&mut self) {
        match self.keyword("enum") {
            Some(Value::Array(all)) if !all.is_empty() => {
                self.add(Rule::Values(Box::new(Values::new(all.clone()))))
            }
            Some(_) => self.unchecked(Types::ANY, INVALID_KEYWORD),
            None => {}
        }
        // Only `const` accepts null as a regular value.
        if let Some(only) = self.schema.get("const") {
            self.add(Rule::Values(Box::new(Values::new(vec![only.clone()]))));
        }
    }

    pub(super) fn numbers(&mut self) {
        for (name, bound) in BOUNDS {
            match self.keyword(name) {
                Some(Value::Number(limit)) => self.add(Rule::Bound(bound, limit.clone())),
                None => {}
                Some(_) => self.unchecked(Types::NUMBER, INVALID_KEYWORD),
            }
        }
        match self.keyword("multipleOf") {
            Some(Value::Number(of)) if of.as_f64().is_some_and(|it| it > 0.0) => {
                self.add(Rule::MultipleOf(of.clone()))
            }
            Some(_) => self.unchecked(Types::NUMBER, INVALID_KEYWORD),
            None => {}
        }
    }

    pub(super) fn strings(&mut self) {
        self.count("minLength", Types::STRING, Rule::MinLength);
        self.count("maxLength", Types::STRING, Rule::MaxLength);
        match self.keyword("pattern") {
            Some(Value::String(text)) => {
                let pattern = self.compiler.pattern(text);
                self.add(Rule::Pattern(Box::new(pattern)));
            }
            Some(_) => self.unchecked(Types::STRING, INVALID_KEYWORD),
            None => {}
        }
    }

    pub(super) fn objects(&mut self) -> Result<(), String> {
        self.count("minProperties", Types::OBJECT, Rule::MinProperties);
        self.count("maxProperties", Types::OBJECT, Rule::MaxProperties);
        self.members()?;
        if let Some(names) = self.single("propertyNames")? {
            self.add(Rule::Names(names));
        }
        Ok(())
    }

    fn members(&mut self) -> Result<(), String> {
        let mut members = Members { required: self.required(), ..Members::default() };
        for (name, value) in self.map("properties")?.into_iter().flatten() {
            members.named.push((name.clone(), self.id(value)?));
        }
        members.named.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (text, value) in self.map("patternProperties")?.into_iter().flatten() {
            let pattern = self.compiler.pattern(text);
            members.patterns.push((pattern, self.id(value)?));
        }
        members.additional = match self.keyword("additionalProperties") {
            None | Some(Value::Bool(true)) => None,
            Some(value) => Some(self.id(value)?),
        };
        let Members { named, patterns, additional, required } = &members;
        if !named.is_empty() || !patterns.is_empty() || additional.is_some() || !required.is_empty() {
            self.add(Rule::Members(Box::new(members)));
        }
        Ok(())
    }

    fn required(&mut self) -> Vec<String> {
        match self.keyword("required") {
            None => Vec::new(),
            Some(value) => names(value).unwrap_or_else(|| {
                self.unchecked(Types::OBJECT, INVALID_KEYWORD);
                Vec::new()
            }),
        }
    }

    pub(super) fn arrays(&mut self) -> Result<(), String> {
        self.count("minItems", Types::ARRAY, Rule::MinItems);
        self.count("maxItems", Types::ARRAY, Rule::MaxItems);
        match self.keyword("uniqueItems") {
            Some(Value::Bool(true)) => self.add(Rule::Unique),
            Some(Value::Bool(false)) | None => {}
            Some(_) => self.unchecked(Types::ARRAY, INVALID_KEYWORD),
        }
        match self.keyword("items") {
            // Draft-07 described tuples with an array. Beside `prefixItems` only the other items are meant.
            Some(Value::Array(_)) => self.unchecked(Types::ARRAY, INVALID_KEYWORD),
            Some(value) if self.keyword("prefixItems").is_none() => {
                let id = self.id(value)?;
                self.add(Rule::Items(id));
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, name: &str, types: Types, rule: fn(u64) -> Rule) {
        match self.keyword(name).map(non_negative_integer) {
            Some(Some(count)) => self.add(rule(count)),
            Some(None) => self.unchecked(types, INVALID_KEYWORD),
            None => {}
        }
    }
}

/// Returns a list of strings, or `None` for anything else.
fn names(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Returns a non-negative integer. `2.0` counts as one.
fn non_negative_integer(value: &Value) -> Option<u64> {
    let Value::Number(number) = value else { return None };
    let from_float = || number.as_f64().filter(|it| it.fract() == 0.0 && (0.0..1e15).contains(it));
    number.as_u64().or_else(|| from_float().map(|it| it as u64))
}
