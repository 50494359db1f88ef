//! Writes the text of the imported agent file: an introduction, the next steps, and every server in order.

use super::{
    EnvFile,
    checker::Reason,
    document::ClientDocument,
    draft::ServerDraft,
    note::{list_names, printable},
};

/// Writes the whole agent file.
pub(super) fn write(document: &ClientDocument, drafts: &[ServerDraft], env_files: &[EnvFile]) -> String {
    let header = header(document, drafts, env_files);
    format!("{header}tools:\n{}", entries(drafts.iter()))
}

/// Writes the entries and comments for these servers.
pub(super) fn entries<'a>(drafts: impl Iterator<Item = &'a ServerDraft>) -> String {
    drafts.map(entry).collect::<Vec<_>>().join("\n")
}

fn header(document: &ClientDocument, drafts: &[ServerDraft], env_files: &[EnvFile]) -> String {
    let mut lines = vec![
        format!("Imported from {} of {}. Next steps:", printable(&document.file), document.title),
        String::new(),
        "  wharf check       validate this file".to_owned(),
        "  wharf explain     show what each server would run, and why".to_owned(),
    ];
    if !env_files.is_empty() {
        let files = match env_files.len() {
            few @ 1..=4 => list_names(env_files[..few].iter().map(|it| &it.name)),
            many => format!("{many} files, one for each `envFile`"),
        };
        lines.push(String::new());
        lines.push(format!("The values of variables and headers are beside this file, in {files}."));
        lines.push("Keep those out of version control.".to_owned());
    }
    if drafts.iter().any(|it| !it.reasons.is_empty()) {
        lines.push(String::new());
        lines.push(
            "Servers that cannot be used as they are follow as comments, each with the reason.".to_owned(),
        );
    }
    comment("", lines.iter().map(String::as_str)) + "\n"
}

/// Writes an entry, or a comment that becomes an entry when the user removes its `# `.
fn entry(draft: &ServerDraft) -> String {
    let entry = draft.entry.render();
    if draft.reasons.is_empty() {
        return entry;
    }
    let title = format!("`{}` is not in use:", printable(&draft.name));
    let reasons: Vec<String> = draft.reasons.iter().flat_map(reason).collect();
    let lines = entry.lines().map(|it| it.strip_prefix("  ").unwrap_or(it));
    let all = [title.as_str()].into_iter().chain(reasons.iter().map(String::as_str)).chain(lines);
    comment("  ", all)
}

fn reason(reason: &Reason) -> Vec<String> {
    let hint = reason.hint.as_ref().map(|it| format!("    help: {it}"));
    [format!("  {}", reason.message)].into_iter().chain(hint).map(|it| printable(&it)).collect()
}

fn comment<'a>(indent: &str, lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(|it| format!("{indent}{}\n", format!("# {it}").trim_end())).collect()
}
