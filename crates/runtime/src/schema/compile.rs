//! Compiles a schema into nodes.
//!
//! Subschemas are processed from a work list instead of recursively, and a subschema that is referred to many times
//! is compiled once. A malformed keyword whose meaning is unclear is skipped. Only a clear mistake, such as a `type`
//! that is a number, is an error.

mod keywords;

use super::{
    locate::{Dialect, Places, Spot},
    node::{Id, Node, Rule, Types},
    pattern::Pattern,
    say,
};
use serde_json::{Map, Value};
use std::collections::HashMap;
use wharf_mcp::Raw;

/// Maximum size of a schema, in bytes.
const LONGEST: usize = 1024 * 1024;
/// Maximum number of subschemas.
const NODES: usize = 20_000;
/// Maximum number of patterns that are compiled. Compiling them is the expensive part.
const PATTERNS: usize = 100;

pub(super) const ODD_KEYWORD: &str = "the schema has a keyword whose value is not understood";
const FOREIGN: &str = "the schema is written in a dialect that is not known here";
const DANGLING: &str = "the schema refers to a part that it does not have";
const DYNAMIC: &str = "the schema has dynamic references, which are not followed";
const UNEVALUATED: &str = "the schema speaks of unevaluated parts, which are not checked";

/// Compiles a schema. The error tells why it cannot be used.
pub(super) fn schema(raw: &Raw) -> Result<Vec<Node>, String> {
    let length = raw.as_bytes().len();
    if !raw.is_object() {
        return Err("the schema is no object".to_owned());
    }
    if length > LONGEST {
        return Err(format!("the schema is too large: {length} bytes, and at most {LONGEST} are read"));
    }
    let root: Value = raw.decode().map_err(|error| match error.to_string() {
        text if text.starts_with("recursion limit") => "the schema is nested too deeply".to_owned(),
        _ => "the schema has a number that is too large".to_owned(),
    })?;
    Compiler::new(Places::of(&root)?).run()
}

struct Compiler<'v> {
    places: Places<'v>,
    ids: HashMap<*const Value, Id>,
    to_do: Vec<(Id, Spot<'v>)>,
    nodes: Vec<Node>,
    patterns: usize,
}

/// The schema being compiled, with the rules found so far.
struct Draft<'c, 'v> {
    compiler: &'c mut Compiler<'v>,
    spot: Spot<'v>,
    schema: &'v Map<String, Value>,
    node: Node,
}

impl<'v> Compiler<'v> {
    fn new(places: Places<'v>) -> Compiler<'v> {
        Compiler { places, ids: HashMap::new(), to_do: Vec::new(), nodes: Vec::new(), patterns: 0 }
    }

    fn run(mut self) -> Result<Vec<Node>, String> {
        let root = self.places.root();
        self.id(root)?;
        while let Some((Id(at), spot)) = self.to_do.pop() {
            self.nodes[at as usize] = self.node(spot)?;
        }
        Ok(self.nodes)
    }

    /// Returns the index of a subschema, and adds it to the work list if it is new.
    fn id(&mut self, spot: Spot<'v>) -> Result<Id, String> {
        if let Some(id) = self.ids.get(&std::ptr::from_ref(spot.value)) {
            return Ok(*id);
        }
        if self.nodes.len() >= NODES {
            return Err(format!("the schema is too large: it has more than {NODES} parts"));
        }
        let id = u32::try_from(self.nodes.len()).map(Id).map_err(|error| error.to_string())?;
        self.ids.insert(spot.value, id);
        self.nodes.push(Node::default());
        self.to_do.push((id, spot));
        Ok(id)
    }

    fn node(&mut self, spot: Spot<'v>) -> Result<Node, String> {
        let schema = match spot.value {
            Value::Bool(true) => return Ok(Node::default()),
            Value::Bool(false) => return Ok(Node { rules: vec![Rule::Never], nullable: false }),
            Value::Object(schema) => schema,
            other => {
                return Err(format!("{} stands in the schema where a schema is expected", say::shown(other)));
            }
        };
        let mut draft = Draft { compiler: self, spot, schema, node: Node::default() };
        draft.read()?;
        Ok(draft.node)
    }

    fn pattern(&mut self, text: &str) -> Pattern {
        self.patterns += 1;
        if self.patterns > PATTERNS { Pattern::unread(text) } else { Pattern::new(text) }
    }
}

impl<'v> Draft<'_, 'v> {
    fn read(&mut self) -> Result<(), String> {
        let dialect = self.dialect();
        let is_other = self.keyword("$schema").is_some() && Dialect::of(self.spot.value) != dialect;
        if dialect == Dialect::Foreign || is_other {
            self.unread(Types::ANY, FOREIGN);
            return Ok(());
        }
        // Before 2019-09, `$ref` disables all keywords beside it.
        if dialect == Dialect::Seven && self.schema.contains_key("$ref") {
            return self.reference();
        }
        // Cheap rules come first, because they may save the expensive ones.
        self.node.nullable = self.schema.get("nullable") == Some(&Value::Bool(true));
        self.types()?;
        self.values();
        self.numbers();
        self.strings();
        self.objects()?;
        self.arrays()?;
        self.remarks();
        self.choices()?;
        self.reference()
    }

    fn dialect(&self) -> Dialect {
        self.compiler.places.dialect
    }

    /// Returns the value of a keyword. Null counts as absent, because some languages serialize an absent list that
    /// way.
    fn keyword(&self, name: &str) -> Option<&'v Value> {
        self.schema.get(name).filter(|value| !value.is_null())
    }

    fn add(&mut self, rule: Rule) {
        self.node.rules.push(rule);
    }

    fn unread(&mut self, types: Types, why: &'static str) {
        self.add(Rule::Unread(types, why));
    }

    fn id(&mut self, value: &'v Value) -> Result<Id, String> {
        let spot = self.compiler.places.within(self.spot, value);
        self.compiler.id(spot)
    }

    fn single(&mut self, name: &str) -> Result<Option<Id>, String> {
        self.keyword(name).map(|value| self.id(value)).transpose()
    }

    fn list(&mut self, name: &str) -> Result<Option<Vec<Id>>, String> {
        match self.keyword(name) {
            None => Ok(None),
            Some(Value::Array(items)) => {
                items.iter().map(|item| self.id(item)).collect::<Result<_, _>>().map(Some)
            }
            Some(_) => {
                self.unread(Types::ANY, ODD_KEYWORD);
                Ok(None)
            }
        }
    }

    /// Returns the members of an object keyword. An empty array counts as absent, because some languages serialize an
    /// empty map that way.
    fn map(&mut self, name: &str) -> Result<Option<&'v Map<String, Value>>, String> {
        match self.keyword(name) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(members)),
            Some(Value::Array(items)) if items.is_empty() => Ok(None),
            Some(other) => {
                Err(format!("`{name}` is {} in the schema, but an object is expected", say::shown(other)))
            }
        }
    }

    fn reference(&mut self) -> Result<(), String> {
        match self.keyword("$ref") {
            Some(Value::String(reference)) => match self.compiler.places.resolve(reference, self.spot)? {
                Some(spot) => {
                    let id = self.compiler.id(spot)?;
                    self.add(Rule::Ref(id));
                }
                None => self.unread(Types::ANY, DANGLING),
            },
            Some(_) => self.unread(Types::ANY, ODD_KEYWORD),
            None => {}
        }
        if ["$dynamicRef", "$recursiveRef"].iter().any(|name| self.keyword(name).is_some()) {
            self.unread(Types::ANY, DYNAMIC);
        }
        Ok(())
    }

    fn choices(&mut self) -> Result<(), String> {
        if let Some(all) = self.list("allOf")? {
            self.add(Rule::All(all));
        }
        if let Some(any) = self.list("anyOf")? {
            self.add(Rule::Any(any));
        }
        if let Some(one) = self.list("oneOf")? {
            self.add(Rule::One(one));
        }
        if let Some(not) = self.single("not")? {
            self.add(Rule::Not(not));
        }
        if let Some(condition) = self.single("if")? {
            let (then, otherwise) = (self.single("then")?, self.single("else")?);
            self.add(Rule::If { condition, then, otherwise });
        }
        Ok(())
    }

    fn remarks(&mut self) {
        if self.keyword("format").is_some() {
            self.add(Rule::Noted(Types::STRING.with(Types::NUMBER)));
        }
        if self.dialect() == Dialect::Seven {
            return;
        }
        for (name, types) in [("unevaluatedProperties", Types::OBJECT), ("unevaluatedItems", Types::ARRAY)] {
            if self.keyword(name).is_some_and(|value| *value != Value::Bool(true)) {
                self.unread(types, UNEVALUATED);
            }
        }
    }
}
