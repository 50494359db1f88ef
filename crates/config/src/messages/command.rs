//! Diagnostics about the program that an entry starts. Each tells how an operator can allow it.

use crate::{
    diagnostic::Diagnostics, echo::echo, env::Env, grants::MissingGrant, launch, masked_string::MaskedString,
    place::Place, plan::Launcher,
};
use std::path::{Path, PathBuf};

impl Diagnostics {
    pub(crate) fn invalid_command(&mut self, at: Place, found: &MaskedString, env: &Env) {
        let message = format!(
            "MCPConfigError: Invalid command '{}'. Supported commands: npx, uvx, docker",
            echo(found.shown())
        );
        let written = found.expose();
        let guess = self.closest(written, Launcher::KEYWORDS.iter().copied());
        let basename = written.rsplit(['/', '\\']).next().unwrap_or_default();
        let has_arguments = written
            .split_once(char::is_whitespace)
            .is_some_and(|(program, rest)| Launcher::parse(program).is_some() && !rest.trim().is_empty());
        // The value of a variable must not be shown, so the message does not name the program.
        let program = program_of(written, env).filter(|_| !found.is_secret());
        let file = env.settings_file();
        let grant = program.as_ref().map(|it| {
            let line = env.grants.toml_line_with(&MissingGrant::Command(it.clone()));
            format!("an operator can allow it in {file}: {line}")
        });
        let hint = match (guess, Launcher::parse(basename), grant) {
            _ if has_arguments => "move the arguments to `args`".to_owned(),
            (Some(guess), None, Some(grant)) if !written.contains('/') => {
                format!("did you mean '{guess}'? Otherwise {grant}")
            }
            (Some(guess), _, _) => format!("did you mean '{guess}'?"),
            (None, Some(launcher), _) => format!("write `{}`; it is looked up on PATH", launcher.as_str()),
            (None, None, Some(grant)) if is_relative_path(written) => {
                format!("write the absolute path of the program; {grant}")
            }
            (None, None, Some(grant)) => grant,
            (None, None, None) => {
                format!("an operator can allow a program in {file}: [grants] commands = [\"/absolute/path\"]")
            }
        };
        self.error("V-05", at, message).hint(hint).missing_grant =
            program.filter(|_| !is_relative_path(written)).map(MissingGrant::Command);
    }

    pub(crate) fn ambiguous_command(&mut self, at: Place, found: &MaskedString, granted: &[&Path]) {
        let shown: Vec<String> = granted.iter().map(|it| it.display().to_string()).collect();
        let message = format!(
            "MCPConfigError: '{}' matches several granted programs: {}",
            echo(found.shown()),
            shown.join(", ")
        );
        self.error("C-06", at, message).hint("write the absolute path of the program");
    }
}

/// Returns the absolute path of the program that a command names, if it can be determined. A bare name is looked up
/// on PATH.
fn program_of(written: &str, env: &Env) -> Option<PathBuf> {
    let is_plain = !written.is_empty() && !written.contains(|c: char| c.is_control());
    match () {
        () if !is_plain || written.contains('\\') => None,
        () if Path::new(written).is_absolute() => Some(PathBuf::from(written)),
        () if is_relative_path(written) => Some(launch::absolute(written, &env.folder)),
        () => env.files.find_on_path(written, env.variables.get("PATH")?),
    }
}

fn is_relative_path(written: &str) -> bool {
    written.contains('/') && !written.starts_with('/')
}
