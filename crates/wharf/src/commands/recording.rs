//! `--record FILE` records the calls and model turns of a command; `--replay FILE` answers from a recording; `--faults
//! FILE` injects faults.

use crate::{
    app::{App, Connections},
    cassette_file::read_cassette,
    cli::{CassetteArgs, LivePart},
    command_error::CommandError,
    exit::Exit,
    fault_file::read_fault_file,
    import::looks_like_key,
    output::Output,
    replayed_servers::ReplayedServers,
};
use std::{future, path::Path, sync::Arc};
use wharf_agent::ModelTape;
use wharf_config::Plan;
use wharf_runtime::{
    Handle,
    cassette::{CassettePlayer, ConversationNaming, Exhausted, Placeholders, Recorder, RecorderOptions},
    upstream::FaultInjection,
};

/// The recordings of a command, if it has any.
pub(super) struct Recording {
    recorder: Option<Arc<Recorder>>,
    player: Option<Arc<CassettePlayer>>,
    faults: Option<Arc<FaultInjection>>,
    /// Whether real servers are used.
    has_live_tools: bool,
    /// Whether a real model is used.
    has_live_model: bool,
}

impl Recording {
    /// Begins a recording or a replay, before the servers start. Without options it does nothing.
    pub(super) fn begin(
        app: &mut App,
        args: &CassetteArgs,
        naming: ConversationNaming,
    ) -> Result<Recording, CommandError> {
        if let Some(file) = &args.faults {
            let faults = FaultInjection::new(read_fault_file(file)?);
            app.upstream_context.faults = Some(Arc::new(faults));
        }
        let faults = app.upstream_context.faults.clone();
        let player = args.replay.as_deref().map(|file| open_player(file, &app.plan, naming)).transpose()?;
        let recorder = match &args.record {
            None => None,
            Some(file) => {
                let (placeholders, ignore) = (placeholders(&app.plan), app.plan.record.ignore.clone());
                let options = RecorderOptions {
                    placeholders,
                    ignore,
                    naming,
                    faults: faults.clone(),
                    replayed: player.clone().filter(|_| !args.is_live(LivePart::Tools)),
                    has_timings: args.timings,
                };
                let recorder = Recorder::create(file, options);
                Some(Arc::new(recorder.map_err(|error| cannot_write(file, &error))?))
            }
        };
        let has_live_tools = args.is_live(LivePart::Tools);
        if let Some(player) = player.as_ref().filter(|_| !has_live_tools) {
            app.upstream_context.recorded = Some(Arc::new(ReplayedServers::new(player.clone())));
            // A recorded failure says nothing about the recorded server, which is always there. An injected one does.
            if faults.is_none() {
                app.options.breaker.failure_threshold = u32::MAX;
            }
        }
        app.options.recorder.clone_from(&recorder);
        let has_live_model = args.is_live(LivePart::Model);
        Ok(Recording { recorder, player, faults, has_live_tools, has_live_model })
    }

    /// Returns the recording that answers, if there is one.
    pub(super) fn player(&self) -> Option<&Arc<CassettePlayer>> {
        self.player.as_ref()
    }

    /// Returns the tape of the model.
    pub(super) fn tape(&self) -> ModelTape {
        let player = self.player.clone().filter(|_| !self.has_live_model);
        ModelTape::with_faults(self.recorder.clone(), player, self.faults.clone())
    }

    /// Records what the connected servers offer.
    pub(super) fn add_servers(&self, connections: &Connections) {
        self.add_servers_of(&connections.handle);
    }

    /// Records what the servers of a runtime offer. A later record of the same server replaces the earlier one.
    pub(super) fn add_servers_of(&self, handle: &Handle) {
        let Some(recorder) = &self.recorder else { return };
        let states = handle.sources();
        match self.player.as_ref().filter(|_| !self.has_live_tools) {
            Some(player) => {
                let known = |name: &str| player.cassette().servers.get(name);
                let servers = states.iter().filter_map(|it| known(it.source.name.expose()));
                servers.for_each(|it| recorder.add_server(it.clone()));
            }
            None => {
                let sources = states.iter().map(|it| (&*it.source, &it.status));
                recorder.add_servers(sources, &handle.catalog());
            }
        }
    }

    /// Records what the servers of a runtime offer whenever it changes, so that the recording of a killed command has its
    /// servers. Never returns.
    pub(super) async fn follow_servers(&self, handle: &Handle) {
        let mut catalogs = handle.catalogs();
        while self.recorder.is_some() {
            catalogs.borrow_and_update();
            self.add_servers_of(handle);
            if catalogs.changed().await.is_err() {
                break;
            }
        }
        future::pending().await
    }

    /// Ends the recording. Returns the exit code of the command, or that of a recording that cannot be written.
    pub(super) fn end(self, exit: Exit, output: Output) -> Exit {
        match self.recorder.map(|it| it.close()) {
            None | Some(Ok(0)) => exit,
            Some(Ok(count)) => {
                let plural = if count == 1 { "" } else { "s" };
                output.print_info(&format!(
                    "warning: {count} string{plural} that look like keys are «secret-like» in the recording; review it before you commit it"
                ));
                exit
            }
            Some(Err(error)) => {
                output.print_error(&format!("error: the recording cannot be written: {error}\n"));
                Exit::OutputError
            }
        }
    }
}

fn open_player(
    file: &Path,
    plan: &Plan,
    naming: ConversationNaming,
) -> Result<Arc<CassettePlayer>, CommandError> {
    let mut cassette = read_cassette(file)?;
    cassette.ignore.extend(plan.record.ignore.clone());
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let player = CassettePlayer::new(cassette, Exhausted::Miss).named(name, naming);
    Ok(Arc::new(player.with_placeholders(placeholders(plan))))
}

/// Returns what replaces the secrets of a plan in its recordings.
fn placeholders(plan: &Plan) -> Placeholders {
    let patterns = plan.record.redact.iter().map(|(name, pattern)| (name.clone(), pattern.regex().clone()));
    Placeholders::of(plan).with_patterns(patterns).with_key_check(looks_like_key)
}

fn cannot_write(file: &Path, error: &std::io::Error) -> CommandError {
    let complaint = format!("cannot write the recording {}: {error}", file.display());
    CommandError::new("MCPError", &complaint, Exit::OutputError)
}
