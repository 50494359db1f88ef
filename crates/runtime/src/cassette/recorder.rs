//! Records calls to a file: appends each to `FILE.part` before its caller gets the answer, and writes the sorted recording
//! at the end.

use super::{
    Cassette, CassetteFiles, CassetteLine, CassettePlayer, ConversationNaming, MESSAGES_KEY, Placeholders,
    RecordedCall, RecordedOutcome, RecordedServer, RecordedStep, StepKind, VERSION,
    conversation_names::ConversationNames,
};
use crate::{
    Catalog, Fault, FaultKind,
    catalog::Sourced,
    source_status::SourceStatus,
    upstream::{FaultInjection, recorded::fault_json},
};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use wharf_config::Source;
use wharf_mcp::{Raw, session::MetaKey};

/// Records the calls of a runtime.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    files: CassetteFiles,
    placeholders: Placeholders,
    faults: Option<Arc<FaultInjection>>,
    has_timings: bool,
    replayed: Option<Arc<CassettePlayer>>,
    state: Mutex<RecorderState>,
}

/// Options of a recording.
#[derive(Debug, Default)]
pub struct RecorderOptions {
    /// Replaces secrets.
    pub placeholders: Placeholders,
    /// JSON pointers into arguments that matching ignores, by glob over `source:tool`.
    pub ignore: BTreeMap<String, Vec<String>>,
    /// How conversations are named.
    pub naming: ConversationNaming,
    /// Faults that are injected into the calls, if any. The recording has no injected outcomes.
    pub faults: Option<Arc<FaultInjection>>,
    /// The recording that answers in place of the servers, if any. Its servers ask nothing, so what they asked is copied
    /// from it.
    pub replayed: Option<Arc<CassettePlayer>>,
    /// Whether calls have their duration. Otherwise the same calls give the same bytes.
    pub has_timings: bool,
}

#[derive(Debug)]
struct RecorderState {
    part: File,
    conversations: ConversationNames,
    /// Number of calls and steps that have started, by conversation.
    started: HashMap<String, u64>,
    /// The latest line of each server.
    servers: HashMap<String, String>,
    /// The first error while writing, which makes the recording incomplete.
    error: Option<String>,
}

/// A conversation and the number of a call or step in it.
#[derive(Clone, Debug)]
pub struct RecordedPosition {
    conversation: String,
    n: u64,
    started: Instant,
}

impl Recorder {
    /// Begins a recording. The file must be writable; an existing one is replaced at the end.
    pub fn create(path: &Path, options: RecorderOptions) -> io::Result<Recorder> {
        let RecorderOptions { placeholders, ignore, naming, faults, replayed, has_timings } = options;
        let mut open = OpenOptions::new();
        open.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut open, 0o600);
        let mut part = open.open(part_path(path))?;
        part.write_all(CassetteLine::Header { version: VERSION, ignore }.to_text().as_bytes())?;
        let conversations = ConversationNames::new(naming);
        let (started, servers) = (HashMap::new(), HashMap::new());
        let state = RecorderState { part, conversations, started, servers, error: None };
        let (path, files) = (path.to_owned(), CassetteFiles::of(path));
        Ok(Recorder { path, files, placeholders, faults, has_timings, replayed, state: Mutex::new(state) })
    }

    /// Records what the connected servers offer.
    pub fn add_servers<'a>(
        &self,
        sources: impl Iterator<Item = (&'a Source, &'a SourceStatus)>,
        catalog: &Catalog,
    ) {
        for (source, status) in sources.filter(|(_, status)| status.server.is_some()) {
            let name = source.name.expose();
            let described = |key: &str| {
                let text = status.server.as_ref().and_then(|it| it.member(key));
                text.and_then(|it| it.decode::<String>().ok())
            };
            let era = status.era.map(|it| format!("{it:?}").to_lowercase());
            let tools = catalog.tools.iter().filter(|it| it.source == name);
            let prompts = catalog.prompts.iter().filter(|it| it.source == name);
            let mut server = RecordedServer {
                name: name.to_owned(),
                server: json!({
                    "name": described("name"), "version": described("version"), "era": era, "protocol": status.version,
                }),
                tools: tools.map(|it| it.listed.decode_or_default::<Value>()).collect(),
                prompts: prompts.map(|it| it.prompt.raw.decode_or_default::<Value>()).collect(),
                resources: of_source(&catalog.resources, name, |it| &it.raw),
                templates: of_source(&catalog.templates, name, |it| &it.raw),
            };
            let by_name = |one: &Value, two: &Value| one["name"].as_str().cmp(&two["name"].as_str());
            server.tools.sort_by(by_name);
            server.prompts.sort_by(by_name);
            let by_uri = |one: &Value, two: &Value| one["uri"].as_str().cmp(&two["uri"].as_str());
            server.resources.sort_by(by_uri);
            server.templates.sort_by(by_name);
            self.add_server(server);
        }
    }

    /// Records a server and what it offers, unless its latest record is equal. A later record replaces an earlier one.
    pub fn add_server(&self, mut server: RecordedServer) {
        let RecordedServer { name: _, server: about, tools, prompts, resources, templates } = &mut server;
        let all = [about].into_iter().chain(tools).chain(prompts).chain(resources).chain(templates);
        all.for_each(|it| self.placeholders.mask_secrets_in(it));
        let name = server.name.clone();
        let text = CassetteLine::Server(server).to_text();
        let mut state = self.state();
        if state.servers.get(&name) != Some(&text) {
            state.append(&text);
            state.servers.insert(name, text);
        }
    }

    /// Returns the position of a call or step that starts now. `id` is that of the conversation or client.
    pub fn start(&self, id: &str) -> RecordedPosition {
        let mut state = self.state();
        let conversation = state.conversations.name(id);
        let started = state.started.entry(conversation.clone()).or_default();
        *started += 1;
        RecordedPosition { n: *started, conversation, started: Instant::now() }
    }

    /// Records a call that has ended. Returns when the line is in the file.
    pub(crate) fn finish(
        &self,
        position: RecordedPosition,
        (source, tool): (&str, &str),
        arguments: Option<&Raw>,
        outcome: &Result<Raw, Arc<Fault>>,
        mut asked: Vec<Value>,
    ) {
        if self.faults.as_ref().is_some_and(|it| it.take_injected((source, tool), arguments, outcome)) {
            return;
        }
        let outcome = match outcome {
            Ok(result) => {
                let mut result = result.decode_or_default::<Value>();
                remove_era_members(&mut result);
                self.hide(&mut result);
                RecordedOutcome::Result(result)
            }
            // The call did not fail; wharf stopped, or its caller left.
            Err(fault) if matches!(fault.kind, FaultKind::Closing | FaultKind::Abandoned) => return,
            Err(fault) => {
                let mut fault = fault_json(fault);
                self.placeholders.mask(&mut fault);
                RecordedOutcome::Fault(fault)
            }
        };
        let mut arguments = arguments.map_or_else(|| json!({}), |it| it.decode_or_default());
        if let Some(player) = self.replayed.as_ref().filter(|_| asked.is_empty()) {
            asked = player.take_asked(source, tool, &arguments);
        }
        asked.iter_mut().for_each(|it| self.hide(it));
        self.placeholders.mask(&mut arguments);
        let RecordedPosition { conversation, n, started } = position;
        let took_ms =
            self.has_timings.then(|| u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
        let (source, tool) = (source.to_owned(), tool.to_owned());
        let call =
            RecordedCall { conversation, n, source, tool, arguments, outcome, asked, took_ms, line: 0 };
        self.write(&CassetteLine::Call(call));
    }

    /// Records a step. Members whose names are in `ours` are written by wharf and hold no secrets. Returns when the line
    /// is in the file.
    pub fn finish_step(
        &self,
        position: RecordedPosition,
        kind: StepKind,
        mut body: Map<String, Value>,
        ours: &[&str],
    ) {
        for (key, value) in body.iter_mut().filter(|(key, _)| !ours.contains(&key.as_str())) {
            match (kind, key.as_str()) {
                (StepKind::Model, MESSAGES_KEY) => {
                    self.store(value);
                    self.placeholders.mask_messages(value);
                }
                _ => self.hide(value),
            }
        }
        let RecordedPosition { conversation, n, started: _ } = position;
        self.write(&CassetteLine::Step(RecordedStep { kind, conversation, n, body, line: 0 }));
    }

    /// Records a prompt or a resource. `request` has the members by which a replay finds it.
    pub(crate) fn finish_request(
        &self,
        position: RecordedPosition,
        kind: StepKind,
        mut request: Map<String, Value>,
        answer: &Result<Raw, Arc<Fault>>,
    ) {
        let (key, mut outcome) = match answer {
            Ok(result) => ("result", result.decode_or_default::<Value>()),
            Err(fault) if matches!(fault.kind, FaultKind::Closing | FaultKind::Abandoned) => return,
            Err(fault) => ("fault", fault_json(fault)),
        };
        remove_era_members(&mut outcome);
        request.insert(key.to_owned(), outcome);
        self.finish_step(position, kind, request, &[SOURCE_KEY]);
    }

    /// Replaces secrets in a value. Large binary values are moved into files after their secrets are replaced.
    fn hide(&self, value: &mut Value) {
        self.store(value);
        self.placeholders.mask(value);
    }

    fn store(&self, value: &mut Value) {
        if let Err(error) = self.files.store(value, &self.placeholders) {
            self.state().error.get_or_insert(error.to_string());
        }
    }

    fn write(&self, line: &CassetteLine) {
        let text = line.to_text();
        self.state().append(&text);
    }

    /// Ends the recording: writes the sorted lines to the file, atomically. Returns the number of strings that were
    /// replaced because they look like keys.
    pub fn close(&self) -> io::Result<usize> {
        let mut state = self.state();
        if let Some(error) = state.error.take() {
            return Err(io::Error::other(error));
        }
        state.part.flush()?;
        let part = part_path(&self.path);
        let text = fs::read_to_string(&part)?;
        let cassette = Cassette::parse(&text).map_err(io::Error::other)?;
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(cassette.to_text().as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        fs::remove_file(part)?;
        Ok(self.placeholders.secret_like())
    }

    fn state(&self) -> MutexGuard<'_, RecorderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecorderState {
    fn append(&mut self, line: &str) {
        if let Err(error) = self.part.write_all(line.as_bytes()) {
            self.error.get_or_insert(error.to_string());
        }
    }
}

/// Member of a prompt or resource with the name of its source.
pub(crate) const SOURCE_KEY: &str = "source";

/// Removes what servers of 2026-07-28 add to every result. A server of that era adds it again when it serves the recording,
/// so a recording does not depend on the era.
fn remove_era_members(result: &mut Value) {
    let Some(members) = result.as_object_mut() else { return };
    if members.get("resultType").is_some_and(|it| it == "complete") {
        members.shift_remove("resultType");
    }
    if let Some(Value::Object(meta)) = members.get_mut("_meta") {
        meta.shift_remove(MetaKey::SERVER);
        if meta.is_empty() {
            members.shift_remove("_meta");
        }
    }
}

/// Returns the listed items of one source.
fn of_source<T>(all: &[Sourced<T>], source: &str, raw: impl Fn(&T) -> &Raw) -> Vec<Value> {
    let own = all.iter().filter(|it| it.source == source);
    own.map(|it| raw(&it.item).decode_or_default::<Value>()).collect()
}

fn part_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}
