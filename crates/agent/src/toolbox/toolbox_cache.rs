//! Keeps the toolboxes of a model, so that a run does not hash, estimate, index and write every tool of the catalog anew.

use super::{ToolDefinition, Toolbox};
use crate::policy::RunRules;
use serde_json::Value;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use wharf_config::Glob;
use wharf_runtime::Catalog;

/// Maximum number of toolboxes that are kept.
const MAX_KEPT: usize = 4;
/// Maximum number of refused tools that are remembered.
const MAX_REFUSED: usize = 1_000;

/// Settings that a toolbox depends on, beside the catalog and the rules.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolboxSettings {
    /// Name of the model.
    pub(crate) model: String,
    pub(crate) response_format: Option<Value>,
    /// Whether stored results can be read, and if so, whether the user was shown one.
    pub(crate) result_tools: Option<bool>,
    /// Tokens that the offered tools may take.
    pub(crate) budget: u64,
    pub(crate) pins: Vec<Glob>,
}

/// Toolboxes of one model, most recently made first.
#[derive(Debug, Default)]
pub(crate) struct ToolboxCache(Mutex<CachedToolboxes>);

#[derive(Debug, Default)]
struct CachedToolboxes {
    kept: Vec<KeptToolbox>,
    /// Tools that the provider has refused, with the name of the model.
    refused: HashSet<(String, ToolDefinition)>,
}

#[derive(Debug)]
struct KeptToolbox {
    catalog: Weak<Catalog>,
    /// Rules that hide tools.
    denied: Vec<Glob>,
    settings: ToolboxSettings,
    toolbox: Toolbox,
}

impl ToolboxCache {
    /// Returns the toolbox for a new run.
    pub(crate) fn toolbox(
        &self,
        catalog: &Arc<Catalog>,
        rules: &RunRules,
        settings: ToolboxSettings,
    ) -> Result<Toolbox, String> {
        let (at, denied) = (Arc::downgrade(catalog), denied_globs(rules));
        let is_same = |it: &&KeptToolbox| {
            Weak::ptr_eq(&it.catalog, &at) && it.denied == denied && it.settings == settings
        };
        if let Some(found) = self.lock().kept.iter().find(is_same) {
            return Ok(found.toolbox.clone());
        }
        let toolbox = self.build(catalog, rules, &settings, None)?;
        let mut cached = self.lock();
        cached.kept.retain(|it| it.catalog.strong_count() > 0);
        cached.kept.truncate(MAX_KEPT - 1);
        cached.kept.insert(0, KeptToolbox { catalog: at, denied, settings, toolbox: toolbox.clone() });
        Ok(toolbox)
    }

    /// Builds the toolbox of a run. One that continues keeps the tools that it began with.
    pub(crate) fn build(
        &self,
        catalog: &Catalog,
        rules: &RunRules,
        settings: &ToolboxSettings,
        began_with: Option<&[ToolDefinition]>,
    ) -> Result<Toolbox, String> {
        let mut toolbox = Toolbox::new(catalog, rules, settings.response_format.as_ref())?;
        if let Some(is_one_attached) = settings.result_tools {
            toolbox.add_result_tools(is_one_attached);
        }
        if let Some(began_with) = began_with {
            toolbox.keep_definitions(began_with);
        }
        toolbox.leave_out_all(&self.refused_by(&settings.model));
        toolbox.fit(settings.budget, &settings.pins);
        Ok(toolbox)
    }

    /// Remembers that the provider refuses tools, so that later runs do not offer them. A changed definition is offered
    /// again.
    pub(crate) fn refuse(&self, model: &str, tools: Vec<ToolDefinition>) {
        if tools.is_empty() {
            return;
        }
        let mut cached = self.lock();
        cached.kept.clear();
        if cached.refused.len() + tools.len() > MAX_REFUSED {
            cached.refused.clear();
        }
        cached.refused.extend(tools.into_iter().map(|it| (model.to_owned(), it)));
    }

    fn refused_by(&self, model: &str) -> HashSet<ToolDefinition> {
        let cached = self.lock();
        let refused = cached.refused.iter().filter(|(by, _)| by == model);
        refused.map(|(_, tool)| tool.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, CachedToolboxes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the rules that hide tools.
fn denied_globs(rules: &RunRules) -> Vec<Glob> {
    rules.deny.iter().chain(&rules.configured.deny).chain(&rules.operator.deny).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(model: &str) -> ToolboxSettings {
        ToolboxSettings {
            model: model.to_owned(),
            response_format: None,
            result_tools: Some(true),
            budget: 10_000,
            pins: Vec::new(),
        }
    }

    #[test]
    fn runs_with_the_same_catalog_and_settings_share_a_toolbox() -> Result<(), String> {
        let (cache, catalog) = (ToolboxCache::default(), Arc::<Catalog>::default());
        let first = cache.toolbox(&catalog, &RunRules::default(), settings("m"))?;
        let is_shared = |rules: RunRules, catalog: &Arc<Catalog>, settings: ToolboxSettings| {
            let toolbox = cache.toolbox(catalog, &rules, settings)?;
            Ok::<_, String>(Arc::ptr_eq(&toolbox.offered, &first.offered))
        };
        let denying = RunRules { deny: vec![Glob::new("files:*")], ..RunRules::default() };
        assert!(is_shared(RunRules::default(), &catalog, settings("m"))?);
        assert!(!is_shared(denying, &catalog, settings("m"))?);
        assert!(!is_shared(RunRules::default(), &Arc::default(), settings("m"))?, "another catalog");
        let smaller = ToolboxSettings { budget: 1, ..settings("m") };
        assert!(!is_shared(RunRules::default(), &catalog, smaller)?);
        assert!(is_shared(RunRules::default(), &catalog, settings("m"))?, "it is still kept");
        assert!(cache.lock().kept.len() <= MAX_KEPT);
        Ok(())
    }

    #[test]
    fn refused_tool_is_not_offered_to_the_same_model_again() -> Result<(), String> {
        let (cache, catalog) = (ToolboxCache::default(), Arc::<Catalog>::default());
        let toolbox = |model: &str| cache.toolbox(&catalog, &RunRules::default(), settings(model));
        let mut first = toolbox("m")?;
        let (offered, refused) = (first.specs().len(), first.leave_out(0).ok_or("a tool")?);
        assert_eq!(toolbox("m")?.specs().len(), offered, "only that run leaves it out");
        cache.refuse("m", vec![refused.clone()]);
        let later = toolbox("m")?;
        assert_eq!(later.specs().len(), offered - 1);
        assert!(later.specs().iter().all(|it| it.name != refused.name()));
        assert!(later.find(refused.name()).is_some(), "it can still be called");
        assert_eq!(toolbox("other")?.specs().len(), offered);
        Ok(())
    }
}
