//! Parses YAML text into a tree of nodes, within a budget.
//!
//! Uses the parser's events instead of serde, for two reasons: all duplicate keys, tags and broken merges of a file
//! are reported at once, and keys have places as well as values. The builder has its own stack, so nesting uses heap
//! and never the call stack. An alias is charged for its content before the content is copied.

mod tree_size;

use super::{
    diagnostic::Diagnostics,
    node::{Node, Pair, Value},
    place::Place,
    scalar,
};
use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};
use std::collections::{HashMap, HashSet};
use tree_size::TreeSize;

/// Maximum number of nodes in one file, including the copies that aliases make.
const MAX_NODES: usize = 200_000;
/// Maximum number of bytes in all scalars, including the copies that aliases make.
const MAX_SCALAR_BYTES: usize = 32 * 1024 * 1024;
/// Maximum nesting depth of sequences and mappings.
const MAX_DEPTH: usize = 64;
/// Maximum number of directives, such as `%YAML` and `%TAG`.
const MAX_DIRECTIVES: usize = 16;

/// Parses one document. `None` means that there is no tree. Diagnostics may be recorded in either case.
pub(crate) fn parse(source: &str, diagnostics: &mut Diagnostics) -> Option<Node> {
    if let Some(at) = source.find(is_forbidden_char) {
        let character = source[at..].chars().next().unwrap_or_default();
        diagnostics.control_character(Place::new(at, at + character.len_utf8()), character);
        return None;
    }
    let directives = source.lines().take_while(|it| it.starts_with(['%', '#']) || it.trim().is_empty());
    if directives.filter(|it| it.starts_with('%')).nth(MAX_DIRECTIVES).is_some() {
        diagnostics.too_many_directives(Place::new(0, 1));
        return None;
    }
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        flow_nesting_limit: MAX_DEPTH + 1,
        block_nesting_limit: MAX_DEPTH + 1,
    };
    let mut builder = Builder::new(source, diagnostics);
    for next in Parser::new_from_str_with_options(source, options) {
        match next
            .map_err(|error| builder.syntax(&error))
            .and_then(|(event, span)| builder.handle_event(event, &span))
        {
            Ok(()) => {}
            Err(ParseAborted) => return None,
        }
    }
    if builder.root.is_none() {
        builder.diagnostics.empty_file();
    }
    builder.root
}

/// Returns whether `c` must not occur in a text file. A byte order mark inside the text also makes the parser report
/// wrong places.
fn is_forbidden_char(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}') || c == '\u{feff}'
}

/// Signals that an error was recorded and parsing must stop.
struct ParseAborted;

struct Builder<'a> {
    diagnostics: &'a mut Diagnostics,
    source: &'a str,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Anchor>,
    root: Option<Node>,
    nodes: usize,
    bytes: usize,
}

/// A node that aliases may copy, with the cost of a copy.
struct Anchor {
    node: Node,
    tree_size: TreeSize,
}

struct Frame {
    at: Place,
    anchor: usize,
    kind: Collection,
    /// Whether the tag is unknown, so the meaning of the contents is too.
    broken: bool,
}

enum Collection {
    Seq(Vec<Node>),
    Map(Mapping),
}

#[derive(Default)]
struct Mapping {
    pairs: Vec<Pair>,
    merges: Vec<Node>,
    seen: HashMap<String, Place>,
    /// A key whose value has not been read yet.
    key: Option<Key>,
}

struct Key {
    text: String,
    at: Place,
    /// Whether the key is an unquoted `<<`.
    merges: bool,
    /// Whether the key was seen before. Its value is parsed to find errors in it, and then dropped.
    repeated: bool,
}

impl<'a> Builder<'a> {
    fn new(source: &'a str, diagnostics: &'a mut Diagnostics) -> Builder<'a> {
        Builder {
            diagnostics,
            source,
            stack: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            nodes: 0,
            bytes: 0,
        }
    }

    fn handle_event(&mut self, event: Event<'_>, span: &Span) -> Result<(), ParseAborted> {
        let at = self.place(span);
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                self.diagnostics.several_documents(at);
                Err(ParseAborted)
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(1, text.len(), at)?;
                let merges = style == ScalarStyle::Plain && tag.is_none() && text == "<<";
                let value = self.scalar(&text, style, tag.as_deref(), span);
                if self.expects_key() {
                    self.store_anchor(&Node { value, at }, anchor)?;
                    return self.key(text.into_owned(), at, merges);
                }
                self.add_node(Node { value, at }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.open(at, anchor, Collection::Seq(Vec::new()), "seq", tag.as_deref(), span)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.open(at, anchor, Collection::Map(Mapping::default()), "map", tag.as_deref(), span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at),
            Event::Alias(id) => self.alias(id, at),
            Event::UnresolvedAlias(name) => {
                self.diagnostics.unknown_alias(at, &name);
                self.add_node(Node { value: Value::Broken, at }, 0)
            }
            _ => Ok(()),
        }
    }

    fn expects_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { kind: Collection::Map(Mapping { key: None, .. }), .. }))
    }

    fn key(&mut self, text: String, at: Place, merges: bool) -> Result<(), ParseAborted> {
        let Some(Frame { kind: Collection::Map(map), .. }) = self.stack.last_mut() else {
            return Ok(());
        };
        let first = map.seen.get(&text).copied();
        match first {
            Some(first) => self.diagnostics.duplicate_key(at, &text, first),
            None => _ = map.seen.insert(text.clone(), at),
        }
        map.key = Some(Key { text, at, merges, repeated: first.is_some() });
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Span) -> Value {
        let Some(tag) = tag else {
            return match style {
                ScalarStyle::Plain => scalar::resolve(text),
                _ => Value::plain(text),
            };
        };
        let value = scalar::resolve(text);
        match (tag.core_suffix(), &value) {
            (Some("str"), _) => Value::plain(text),
            (Some("int"), Value::Int(_)) | (Some("bool"), Value::Bool(_)) | (Some("null"), Value::Null) => {
                value
            }
            (Some("float"), Value::Float(_)) => value,
            (Some("float"), Value::Int(whole)) => Value::Float(*whole as f64),
            _ if tag.original() == "!" => Value::plain(text),
            _ => {
                self.unknown_tag(tag, span);
                Value::Broken
            }
        }
    }

    fn open(
        &mut self,
        at: Place,
        anchor: usize,
        kind: Collection,
        own_tag: &str,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<(), ParseAborted> {
        self.charge(1, 0, at)?;
        if self.stack.len() >= MAX_DEPTH {
            self.diagnostics.too_deep(at, MAX_DEPTH);
            return Err(ParseAborted);
        }
        if self.expects_key() {
            self.diagnostics.key_not_a_string(at);
            return Err(ParseAborted);
        }
        let unknown = tag.filter(|it| it.core_suffix() != Some(own_tag) && it.original() != "!");
        if let Some(tag) = unknown {
            self.unknown_tag(tag, span);
        }
        self.stack.push(Frame { at, anchor, kind, broken: unknown.is_some() });
        Ok(())
    }

    fn close(&mut self, end: Place) -> Result<(), ParseAborted> {
        let Some(Frame { at, anchor, kind, broken }) = self.stack.pop() else { return Ok(()) };
        let node = match kind {
            _ if broken => Node { value: Value::Broken, at },
            Collection::Seq(items) => {
                // Only a closing bracket marks the end of a list. A block list ends with its last item.
                let last = items.last().map_or(at.end, |it| it.at.end);
                let end = if end.end > end.start { end.end } else { last };
                Node { value: Value::Seq(items), at: Place::new(at.start, end.max(at.end)) }
            }
            Collection::Map(map) => {
                // Point at the first key, which a reader looks for, not at the brace or white space before it.
                let at = map.pairs.first().map_or(at, |first| first.key_at);
                Node { value: Value::Map(self.merge_pairs(map)), at }
            }
        };
        self.add_node(node, anchor)
    }

    fn alias(&mut self, id: usize, at: Place) -> Result<(), ParseAborted> {
        let Some(TreeSize { nodes, bytes, depth }) = self.anchors.get(&id).map(|it| it.tree_size) else {
            self.diagnostics.recursive_alias(at);
            return Err(ParseAborted);
        };
        self.charge(nodes, bytes, at)?;
        if self.stack.len() + depth > MAX_DEPTH {
            self.diagnostics.too_deep(at, MAX_DEPTH);
            return Err(ParseAborted);
        }
        let node = self.anchors[&id].node.clone();
        match (self.expects_key(), &node.value) {
            (false, _) => self.add_node(node, 0),
            (true, Value::Str(it)) => self.key(it.text.expose().to_owned(), at, false),
            (true, _) => {
                self.diagnostics.key_not_a_string(at);
                Err(ParseAborted)
            }
        }
    }

    /// Keeps a copy of an anchored node. The copy costs as much as an alias.
    fn store_anchor(&mut self, node: &Node, anchor: usize) -> Result<(), ParseAborted> {
        if anchor > 0 {
            let tree_size = TreeSize::of(node);
            self.charge(tree_size.nodes, tree_size.bytes, node.at)?;
            self.anchors.insert(anchor, Anchor { node: node.clone(), tree_size });
        }
        Ok(())
    }

    /// Adds a finished node to the enclosing collection, or makes it the root.
    fn add_node(&mut self, node: Node, anchor: usize) -> Result<(), ParseAborted> {
        self.store_anchor(&node, anchor)?;
        match self.stack.last_mut().map(|frame| &mut frame.kind) {
            None => self.root = Some(node),
            Some(Collection::Seq(items)) => items.push(node),
            Some(Collection::Map(map)) => match map.key.take() {
                Some(Key { merges: true, .. }) => map.merges.push(node),
                Some(Key { text, at, repeated: false, .. }) => {
                    map.pairs.push(Pair { key: text, key_at: at, node });
                }
                Some(Key { .. }) | None => {}
            },
        }
        Ok(())
    }

    /// Returns the pairs of a mapping, including the ones that `<<` merges. Written pairs override merged ones, and
    /// the first merge wins.
    fn merge_pairs(&mut self, map: Mapping) -> Vec<Pair> {
        let Mapping { mut pairs, merges, .. } = map;
        if merges.is_empty() {
            return pairs;
        }
        let mut seen: HashSet<String> = pairs.iter().map(|it| it.key.clone()).collect();
        for merge in merges {
            let sources = match merge.value {
                Value::Seq(sources) => sources,
                value => vec![Node { value, at: merge.at }],
            };
            for source in sources {
                match source.value {
                    Value::Map(more) => {
                        pairs.extend(more.into_iter().filter(|it| seen.insert(it.key.clone())));
                    }
                    Value::Broken => {}
                    _ => self.diagnostics.merge_needs_mapping(source.at),
                }
            }
        }
        pairs
    }

    fn charge(&mut self, nodes: usize, bytes: usize, at: Place) -> Result<(), ParseAborted> {
        self.nodes += nodes;
        self.bytes += bytes;
        if self.nodes > MAX_NODES || self.bytes > MAX_SCALAR_BYTES {
            self.diagnostics.expansion_too_large(at);
            return Err(ParseAborted);
        }
        Ok(())
    }

    fn unknown_tag(&mut self, tag: &Tag, span: &Span) {
        let at = span.tag_span().map_or_else(|| self.place(span), |it| self.place(&it));
        self.diagnostics.unknown_tag(at, &tag.original());
    }

    fn syntax(&mut self, error: &ScanError) -> ParseAborted {
        let start = error.marker().byte_offset().unwrap_or(self.source.len());
        let start = self.source.floor_char_boundary(start);
        let length = self.source[start..].chars().next().map_or(0, char::len_utf8);
        if error.info().contains("recursion limit") {
            self.diagnostics.too_deep(Place::new(start, start + length), MAX_DEPTH);
            return ParseAborted;
        }
        self.diagnostics.syntax(Place::new(start, start + length), &error.info());
        ParseAborted
    }

    fn place(&self, span: &Span) -> Place {
        let range = span.byte_range().unwrap_or_default();
        let start = self.source.floor_char_boundary(range.start);
        let text = self.source.get(start..self.source.ceil_char_boundary(range.end)).unwrap_or_default();
        Place::new(start, start + text.trim_end().len())
    }
}
