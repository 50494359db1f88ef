//! Result handles on the path of a call: replaces handles in arguments, stores large results, and runs the tools that
//! read them.

use super::{Executor, invalid_arguments, record_builder::CallRecordBuilder};
use crate::{
    Fault, FaultKind,
    active_source::ActiveSource,
    argument_schema::ArgumentError,
    call::{Call, Outcome},
    catalog::ToolEntry,
    events::EventKind,
    fault::Stage,
    result_handle::{
        Document, NewResult, NewText, PassedResult, ResultHandle, ResultHandles, ResultOwner,
        ResultReference, ResultTool, StoredResult, StoredText, SubstitutionError, Substitutions, describe,
        handle_result, may_contain_references, reader_of, referenced_ids,
    },
    truncate,
};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};
use wharf_config::{PassRule, ResultReader, ResultSettings};
use wharf_mcp::Raw;

impl Executor {
    /// Returns the handles if callers of this interface get them from at least one source.
    pub(crate) fn result_handles_for(&self, via: &str) -> Option<&Arc<ResultHandles>> {
        let handles = self.results.get()?;
        let reader = reader_of(via)?;
        let sources = self.sources.borrow();
        // An agent without sources has stored texts of its user.
        let is_alone = reader == ResultReader::Agent && sources.active_sources.is_empty();
        let is_reader = |it: &Arc<ActiveSource>| it.source().results.is_for(reader);
        (is_alone || sources.active_sources.iter().any(is_reader)).then_some(handles)
    }

    /// Returns whether the arguments of a call may contain handles that mean something to its source.
    pub(crate) fn passes_results(&self, tool: &ToolEntry, call: &Call) -> bool {
        let is_reader = |settings: &ResultSettings| reader_of(call.via).is_some_and(|it| settings.is_for(it));
        self.results.get().is_some()
            && is_reader(&tool.config().results)
            && call.arguments.as_ref().is_some_and(may_contain_references)
    }

    /// Replaces the handles in the arguments of a call by the results that they stand for.
    pub(crate) async fn pass_results(
        &self,
        tool: &ToolEntry,
        call: &mut Call,
    ) -> Result<Vec<PassedResult>, Arc<Fault>> {
        let (Some(handles), Some(arguments)) = (self.results.get(), &call.arguments) else {
            return Ok(Vec::new());
        };
        let rule = tool.config().results.pass;
        let refused = |error: SubstitutionError| invalid_arguments(tool, vec![argument_error(error)]);
        let mut documents = HashMap::new();
        if rule != PassRule::Off {
            let owner = owner(call);
            for id in referenced_ids(arguments).map_err(refused)? {
                documents.insert(id.clone(), find(handles, &owner, &id).await?);
            }
        }
        let schema = tool.tool.as_ref().map(|it| it.input_schema.decode_or_default::<Value>());
        let mut substitutions =
            Substitutions { source: &tool.source, rule, documents: &documents, passed: Vec::new() };
        let replaced = substitutions.apply(arguments, &schema.unwrap_or_default()).map_err(refused)?;
        let passed = substitutions.passed;
        if let Some(replaced) = replaced {
            call.arguments = Some(replaced);
        }
        Ok(passed)
    }

    /// Returns the settings by which the result of a call is stored, if it is.
    pub(super) fn storing(&self, builder: &CallRecordBuilder, outcome: &Outcome) -> Option<ResultSettings> {
        let handles = self.results.get();
        let Outcome::Answered(result) = outcome else { return None };
        let tool = builder.running().tool().filter(|_| handles.is_some())?;
        let settings = &tool.config().results;
        let is_large = result.as_bytes().len() > settings.inline_limit;
        (is_large && settings.is_for(reader_of(builder.running().via)?)).then(|| settings.clone())
    }

    /// Stores the result of a call. If that fails, the reader gets a truncated result.
    pub(super) async fn store_result(
        &self,
        builder: &CallRecordBuilder,
        result: &Raw,
        settings: &ResultSettings,
    ) -> Option<ResultHandle> {
        let (handles, record) = (self.results.get()?, builder.record()?);
        // A task or a question of the server is not a result yet.
        if result.member("resultType").is_some_and(|it| it.as_str() != "\"complete\"") {
            return None;
        }
        let document = record.document(result);
        // Many results say the same twice, as text and as structured content. What counts is what a reader wants.
        if document.text.len() <= settings.inline_limit {
            return None;
        }
        let new = NewResult {
            owner: ResultOwner::new(record.principal.as_ref(), record.thread_id.as_deref(), record.via),
            request_id: record.request_id.clone(),
            source: record.source.clone().unwrap_or_default(),
            tool: record.wire_name.clone().unwrap_or_default(),
            document: document.clone(),
            keep: settings.keep,
        };
        match handles.store.put(new).await {
            Ok(stored) => {
                tracing::debug!(target: "wharf::results", id = stored.id, bytes = stored.bytes, "result stored");
                let event = EventKind::ResultStored { id: stored.id.clone(), bytes: stored.bytes };
                self.bus.publish(&record.source.clone().unwrap_or_default(), event);
                let shown = handle_result(&stored, &document, &record.tool, result);
                Some(ResultHandle { stored: Some(stored), shown })
            }
            Err(error) => {
                tracing::warn!(target: "wharf::results", "a result is truncated, because storing it failed: {error}");
                let shown = truncate::result(result, settings.inline_limit);
                shown.map(|shown| ResultHandle { stored: None, shown })
            }
        }
    }

    /// Runs one of our own tools, which read stored results.
    pub(super) async fn read_stored(
        &self,
        tool: ResultTool,
        owner: ResultOwner,
        arguments: Option<&Raw>,
        handles: &ResultHandles,
    ) -> Result<Raw, Arc<Fault>> {
        let arguments = arguments.map(|it| it.decode_or_default::<Value>()).unwrap_or_default();
        let Some(id) = arguments["id"].as_str() else {
            return Ok(answer("`id` is missing", true));
        };
        // A model may write the whole URI.
        let id = ResultReference::parse(id).map_or_else(|| id.to_owned(), |it| it.id);
        let (stored, document) = find(handles, &owner, &id).await?;
        let limit = self.inline_limit(&stored.source);
        let read = tool.run(&document, &arguments, handles.query.as_ref(), limit).await;
        Ok(match read {
            Ok(text) => answer(&text, false),
            Err(text) => answer(&text, true),
        })
    }

    /// Returns the size up to which results of a source are shown whole.
    fn inline_limit(&self, source: &str) -> usize {
        let sources = self.sources.borrow();
        let found = sources.active_sources.iter().find(|it| it.source().name.expose() == source);
        found.map_or_else(|| ResultSettings::default().inline_limit, |it| it.source().results.inline_limit)
    }
}

impl ResultOwner {
    /// Creates the owner of results of a call. Only the agent's calls belong to a conversation: other clients name
    /// theirs as they like, so their results have ids that nobody can guess.
    pub(crate) fn new(principal: Option<&Arc<str>>, thread_id: Option<&str>, via: &str) -> ResultOwner {
        let is_agent = reader_of(via) == Some(ResultReader::Agent);
        ResultOwner {
            principal: principal.cloned().unwrap_or_default(),
            conversation: thread_id.filter(|_| is_agent).map(Arc::from),
        }
    }
}

impl ResultHandles {
    /// Finds a result and its document. A result of another principal does not exist.
    pub async fn read(
        &self,
        owner: &ResultOwner,
        id: &str,
    ) -> Result<Option<(StoredResult, Document)>, String> {
        let found = self.store.get(owner, id).await?;
        Ok(found.map(|(stored, text)| {
            let document = Document { kind: stored.kind, text };
            (stored, document)
        }))
    }

    /// Stores a text that is not the result of a call. Returns what its reader gets instead: a preview and a handle.
    pub async fn store_text(&self, text: NewText) -> Result<StoredText, String> {
        let NewText { owner, request_id, source, name, text } = text;
        let document = Document::of_text(&text);
        let keep = ResultSettings::default().keep;
        let new =
            NewResult { owner, request_id, source, tool: name.clone(), document: document.clone(), keep };
        let stored = self.store.put(new).await?;
        let id = stored.short_id().to_owned();
        let preview = format!("{name}, stored as result {id}: {}", describe(&stored, &document));
        Ok(StoredText { id, preview })
    }

    /// Runs a query over a result of the owner. The outer error is that of the store, the inner one is for the caller.
    pub async fn query(&self, document: &Document, query: &str, limit: usize) -> Result<String, String> {
        ResultTool::Query.run(document, &json!({ "query": query }), self.query.as_ref(), limit).await
    }
}

pub(super) fn owner(call: &Call) -> ResultOwner {
    ResultOwner::new(call.principal.as_ref(), call.thread_id.as_deref(), call.via)
}

async fn find(
    handles: &ResultHandles,
    owner: &ResultOwner,
    id: &str,
) -> Result<(StoredResult, Document), Arc<Fault>> {
    match handles.read(owner, id).await {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(Arc::new(Fault::result_not_found(id))),
        Err(error) => {
            let cause = format!("the stored results cannot be read: {error}");
            Err(Arc::new(Fault::local(FaultKind::ResultNotFound, Stage::Resolve, cause, None)))
        }
    }
}

fn argument_error(error: SubstitutionError) -> ArgumentError {
    let SubstitutionError { pointer, message } = error;
    let path =
        pointer.split('/').skip(1).fold("arguments".to_owned(), |path, token| match token.parse::<usize>() {
            Ok(index) => format!("{path}[{index}]"),
            Err(_) => format!("{path}.{}", token.replace("~1", "/").replace("~0", "~")),
        });
    ArgumentError { path, pointer, message }
}

fn answer(text: &str, is_error: bool) -> Raw {
    let content = json!([{ "type": "text", "text": text }]);
    match is_error {
        true => json!({ "content": content, "isError": true }).into(),
        false => json!({ "content": content }).into(),
    }
}
