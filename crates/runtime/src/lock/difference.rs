//! One difference between a locked definition and the current one.

use serde_json::{Value, json};

/// A difference between a locked definition and the current one.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Place in the definition: `description`, `destructiveHint`, `/path` for an argument, `result:/path` for a field of the
    /// result.
    pub path: String,
    /// Kind of the difference.
    pub kind: DifferenceKind,
    /// The locked value. `None` if there was none.
    pub before: Option<Value>,
    /// The current value. `None` if there is none.
    pub after: Option<Value>,
}

/// How much a difference matters. Worse ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceSeverity {
    /// Nothing that a caller can notice.
    Note,
    /// Every call that worked still works.
    Compatible,
    /// A person should read it.
    Risky,
    /// Calls that worked may fail.
    Breaking,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $severity:ident;)+) => {
        /// Kinds of differences.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DifferenceKind {
            $($(#[$doc])* $variant,)+
        }

        impl DifferenceKind {
            /// Returns the name of the kind.
            pub fn as_str(self) -> &'static str {
                match self { $(DifferenceKind::$variant => $name,)+ }
            }

            /// Returns how much differences of this kind matter.
            pub fn severity(self) -> DifferenceSeverity {
                match self { $(DifferenceKind::$variant => DifferenceSeverity::$severity,)+ }
            }
        }
    };
}

kinds! {
    /// An argument became required.
    RequiredArgumentAdded = "required_argument_added", Breaking;
    /// An argument is gone.
    ArgumentRemoved = "argument_removed", Breaking;
    /// Fewer types are accepted.
    TypeTightened = "type_tightened", Breaking;
    /// A value is no longer accepted.
    EnumValueRemoved = "enum_value_removed", Breaking;
    /// A limit is stricter.
    BoundTightened = "bound_tightened", Breaking;
    /// A field of the result is gone.
    OutputRemoved = "output_removed", Breaking;
    /// The tool, prompt or template is gone.
    ToolRemoved = "tool_removed", Breaking;
    /// The tool, prompt or template is new.
    ToolAdded = "tool_added", Risky;
    /// There is a new optional argument, which is a new channel for data.
    ArgumentAdded = "argument_added", Risky;
    /// A text that models read changed.
    TextChanged = "text_changed", Risky;
    /// A text now has characters that people do not see.
    HiddenCharacters = "hidden_characters", Risky;
    /// The server promises less about what the tool does.
    HintWorse = "hint_worse", Risky;
    /// A default changed.
    DefaultChanged = "default_changed", Risky;
    /// Something else changed.
    SchemaChanged = "schema_changed", Risky;
    /// The package has other content.
    IntegrityChanged = "integrity_changed", Risky;
    /// A new value is accepted.
    EnumValueAdded = "enum_value_added", Compatible;
    /// More types are accepted.
    TypeLoosened = "type_loosened", Compatible;
    /// A limit is less strict.
    BoundLoosened = "bound_loosened", Compatible;
    /// There is a new field in the result.
    OutputAdded = "output_added", Compatible;
    /// The server promises more about what the tool does.
    HintBetter = "hint_better", Compatible;
    /// The server describes itself differently.
    ServerChanged = "server_changed", Note;
    /// The package has a new version.
    VersionChanged = "version_changed", Note;
    /// Dependencies of the package changed.
    DependenciesChanged = "dependencies_changed", Note;
}

impl Difference {
    pub(crate) fn new(
        path: impl Into<String>,
        kind: DifferenceKind,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Difference {
        Difference { path: path.into(), kind, before: before.cloned(), after: after.cloned() }
    }

    /// Converts the difference to JSON, for one tool of a source.
    pub fn to_json(&self, source: &str, tool: Option<&str>) -> Value {
        json!({
            "source": source,
            "tool": tool,
            "path": self.path,
            "kind": self.kind.as_str(),
            "severity": self.kind.severity().as_str(),
            "before": self.before,
            "after": self.after,
        })
    }

    /// Describes the difference in a few words, for an error message.
    pub fn summary(&self) -> String {
        let path = self.path.trim_start_matches('/');
        match self.kind {
            DifferenceKind::ToolAdded => "it is new".to_owned(),
            DifferenceKind::ToolRemoved => "it is gone".to_owned(),
            DifferenceKind::ArgumentAdded => format!("new argument `{path}`"),
            DifferenceKind::RequiredArgumentAdded => format!("new required argument `{path}`"),
            DifferenceKind::ArgumentRemoved => format!("argument `{path}` removed"),
            DifferenceKind::HiddenCharacters => format!("hidden characters in {path}"),
            _ => format!("{path} changed"),
        }
    }
}

impl DifferenceSeverity {
    /// Returns the name of the severity.
    pub fn as_str(self) -> &'static str {
        match self {
            DifferenceSeverity::Note => "note",
            DifferenceSeverity::Compatible => "compatible",
            DifferenceSeverity::Risky => "risky",
            DifferenceSeverity::Breaking => "breaking",
        }
    }

    /// Returns the worst severity of some differences, or `None` without any.
    pub fn worst(differences: &[Difference]) -> Option<DifferenceSeverity> {
        differences.iter().map(|it| it.kind.severity()).max()
    }
}
