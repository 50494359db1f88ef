//! Names of the conversations in a recording. They do not depend on random ids, so that the same conversations give the
//! same bytes.

use super::MAIN_CONVERSATION;
use std::collections::HashMap;

/// How conversations are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConversationNaming {
    /// The first is `main`. Those after it, which `/new` in a chat begins, are `c2`, `c3` and so on.
    #[default]
    Main,
    /// `c1`, `c2` and so on, in the order of their beginnings.
    Numbered,
}

/// The names given so far.
#[derive(Debug)]
pub(super) struct ConversationNames {
    naming: ConversationNaming,
    names: HashMap<String, String>,
}

impl ConversationNames {
    pub(super) fn new(naming: ConversationNaming) -> ConversationNames {
        ConversationNames { naming, names: HashMap::new() }
    }

    /// Returns the name of a conversation or client.
    pub(super) fn name(&mut self, id: &str) -> String {
        let next = match (self.naming, self.names.len()) {
            (ConversationNaming::Main, 0) => MAIN_CONVERSATION.to_owned(),
            (_, count) => format!("c{}", count + 1),
        };
        self.names.entry(id.to_owned()).or_insert(next).clone()
    }
}
