//! Texts and images that a user adds to a message.

use crate::{
    estimate::{estimate_content, estimate_tokens},
    message::Content,
};

/// Size in bytes up to which a text is never stored: what the model gets instead is not shorter.
const MIN_STORED_BYTES: usize = 2048;

/// A text or an image that follows the message of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Title, such as `File notes.md`. The model sees it before a text.
    pub title: String,
    /// Server that it is from, if it is from one.
    pub source: Option<String>,
    /// The text, or the image.
    pub content: Content,
}

impl Attachment {
    /// Returns the content for the model: a text is in a block that has the title.
    pub(crate) fn shown(&self) -> Content {
        match &self.content {
            Content::Text(text) => Content::Text(fence(&self.title, text)),
            image @ Content::Image { .. } => image.clone(),
        }
    }

    /// Estimates the tokens of the content for the model.
    pub(crate) fn tokens(&self) -> u64 {
        estimate_tokens(&self.title) + estimate_content(&self.content)
    }

    /// Returns the text, if it is long enough for being stored.
    pub(crate) fn long_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) if text.len() > MIN_STORED_BYTES => Some(text),
            _ => None,
        }
    }
}

/// Puts a text into a fenced block with a title. The fence is longer than any in the text.
pub fn fence(title: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{title}:\n{fence}\n{text}\n{fence}")
}

/// Returns the positions of the attachments to store, so that the others take at most `room` tokens: the longest first.
pub(crate) fn too_long(attachments: &[Attachment], room: u64) -> Vec<usize> {
    let tokens: Vec<u64> = attachments.iter().map(Attachment::tokens).collect();
    let is_storable = |at: &usize| attachments[*at].long_text().is_some();
    let mut candidates: Vec<usize> = (0..attachments.len()).filter(is_storable).collect();
    candidates.sort_by_key(|at| std::cmp::Reverse(tokens[*at]));
    let mut total: u64 = tokens.iter().sum();
    let is_needed = |at: &usize| {
        let is_over = total > room;
        total -= if is_over { tokens[*at] } else { 0 };
        is_over
    };
    candidates.into_iter().take_while(is_needed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_leave_its_block() {
        assert_eq!(fence("File a", "x\n````\ny"), "File a:\n`````\nx\n````\ny\n`````");
    }

    #[test]
    fn the_longest_texts_are_stored_until_the_rest_fits() {
        let text = |size: usize| Attachment {
            title: "File".to_owned(),
            source: None,
            content: Content::Text("word ".repeat(size / 5)),
        };
        let all = [text(10_000), text(100), text(40_000), text(20_000)];
        let tokens: u64 = all.iter().map(Attachment::tokens).sum();
        assert_eq!(too_long(&all, tokens), Vec::<usize>::new());
        assert_eq!(too_long(&all, tokens - 1), [2]);
        assert_eq!(too_long(&all, tokens - all[2].tokens() - 1), [2, 3]);
        assert_eq!(too_long(&all, 0), [2, 3, 0], "a short text is not stored");
    }
}
