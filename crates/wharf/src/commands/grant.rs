//! Asks the user to add missing grants to wharf.toml. Grants nothing without a confirmation typed at a terminal.

use super::files;
use crate::{
    import::{Imported, Target, printable},
    output::Output,
    state_folder::make_private_folder,
    terminal,
};
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};
use wharf_config::{MissingGrant, settings_with_grant};

/// Runs an import, and repeats it after every grant that the user confirms. Returns the last import and the new
/// grants, which are not written yet.
pub(super) fn import_with_grants(
    mut target: Target,
    output: Output,
    import: impl Fn(Target) -> Result<Imported, String>,
) -> Result<(Imported, Vec<MissingGrant>), String> {
    let can_ask = !output.json && !output.quiet && terminal::is_available();
    let mut asked = BTreeSet::new();
    let mut granted = Vec::new();
    loop {
        let imported = import(target.clone())?;
        let next =
            next_question(&imported, &mut asked).filter(|_| can_ask && target.env.grants.file.is_some());
        let Some((server, grant)) = next else { return Ok((imported, granted)) };
        if ask(&server, &grant, target.env.grants.file.as_deref())? {
            target.env.grants.add(grant.clone());
            granted.push(grant);
        }
    }
}

/// Writes the grants into the operator's wharf.toml, creating the file if necessary.
pub(super) fn write(file: Option<&Path>, grants: &[MissingGrant]) -> Result<Option<PathBuf>, String> {
    let (Some(file), [_, ..]) = (file, grants) else { return Ok(None) };
    let shown = file.display();
    let before = match fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("error: {shown} cannot be read: {error}\n")),
    };
    let mut text = before.clone().unwrap_or_default();
    for grant in grants {
        text = settings_with_grant(&text, grant).ok_or_else(|| {
            format!(
                "error: {shown} cannot be edited automatically\nhelp: add this line to it under [grants]: {} = [{}]\n",
                grant.key(),
                grant.toml_string()
            )
        })?;
    }
    let made = file.parent().map_or(Ok(()), make_private_folder);
    made.and_then(|()| files::replace(file, &text, before.is_none(), 0o600))
        .map_err(|error| format!("error: {shown} cannot be written: {error}\n"))?;
    Ok(Some(file.to_owned()))
}

/// Returns the next grant to ask about. Skips programs that do not exist, and questions already asked for this
/// server.
fn next_question(
    imported: &Imported,
    asked: &mut BTreeSet<(String, MissingGrant)>,
) -> Option<(String, MissingGrant)> {
    let is_available = |grant: &MissingGrant| match grant {
        MissingGrant::Command(path) => path.is_file(),
        MissingGrant::Package(_) => true,
    };
    let wanted = imported.servers.iter().flat_map(|server| {
        let missing = server.missing_grants.iter().filter(|it| is_available(it));
        missing.map(|it| (server.name.clone(), it.clone()))
    });
    wanted.into_iter().find(|it| asked.insert(it.clone()))
}

fn ask(server: &str, grant: &MissingGrant, file: Option<&Path>) -> Result<bool, String> {
    let free = match grant {
        MissingGrant::Command(_) => ", with any arguments",
        MissingGrant::Package(_) => "",
    };
    let (server, grant) = (printable(server), printable(&grant.to_string()));
    let file = file.map_or_else(|| "wharf.toml".to_owned(), |it| it.display().to_string());
    let question = format!(
        "`{server}` needs a grant. It will be written to {file} and applies to every agent file{free}.\n\
         allow {grant} for this server? [y/N] "
    );
    terminal::confirm(&question).map_err(|error| format!("error: the terminal cannot be read: {error}\n"))
}
