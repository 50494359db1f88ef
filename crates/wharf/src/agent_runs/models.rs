//! The clients of the models, and the circuit breakers of their hosts.

use crate::agent_model::model_client;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wharf_agent::{
    ModelTape,
    client::{ModelBreaker, ModelClient},
};
use wharf_config::{BreakerPolicy, Model};
use wharf_runtime::{BreakerCoordinator, BreakerSnapshot, BreakerState, Redactor};

/// Prefix of the keys of breakers of models. The name of a source has no colon.
const KEY_PREFIX: &str = "model:";

/// Creates a client when the configured model changes. A breaker belongs to a provider and host, so it stays.
pub(crate) struct Models {
    redactor: Arc<Redactor>,
    policy: BreakerPolicy,
    coordinator: Option<Arc<dyn BreakerCoordinator>>,
    tape: ModelTape,
    known: Mutex<KnownModels>,
}

#[derive(Default)]
struct KnownModels {
    current: Option<(Model, Arc<ModelClient>)>,
    breakers: Vec<ModelBreaker>,
}

impl Models {
    pub(crate) fn new(
        redactor: Arc<Redactor>,
        policy: BreakerPolicy,
        coordinator: Option<Arc<dyn BreakerCoordinator>>,
        tape: ModelTape,
    ) -> Models {
        Models { redactor, policy, coordinator, tape, known: Mutex::default() }
    }

    pub(super) fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Returns the client of this model. The error is a message of `ConfigError`.
    pub(super) fn client(&self, model: &Model) -> Result<Arc<ModelClient>, String> {
        let mut known = self.known();
        if let Some((_, client)) = known.current.as_ref().filter(|(current, _)| current == model) {
            return Ok(client.clone());
        }
        let client = model_client(model, &self.redactor, &self.tape)?;
        let breaker = known.breaker(client.breaker_key(), |key| self.new_breaker(key));
        let client = Arc::new(client.with_breaker(breaker));
        known.current = Some((model.clone(), client.clone()));
        Ok(client)
    }

    /// Returns the breakers by the name of their provider.
    pub(super) fn breakers(&self) -> Vec<(String, BreakerSnapshot)> {
        let shown = |it: &ModelBreaker| (provider(it.key()).to_owned(), it.circuit_breaker().snapshot());
        self.known().breakers.iter().map(shown).collect()
    }

    /// Closes the breakers of a provider. Returns whether there are any.
    pub(super) fn reset_breakers(&self, name: &str) -> bool {
        let breakers: Vec<ModelBreaker> =
            self.known().breakers.iter().filter(|it| provider(it.key()) == name).cloned().collect();
        breakers.iter().for_each(|it| it.circuit_breaker().reset());
        !breakers.is_empty()
    }

    /// Adopts the state that another replica has determined. Returns whether the key is that of a model.
    pub(super) fn follow_breaker(&self, key: &str, state: BreakerState) -> bool {
        if !key.starts_with(KEY_PREFIX) {
            return false;
        }
        let breaker = self.known().breaker(key, |key| self.new_breaker(key));
        breaker.circuit_breaker().adopt_state(state);
        true
    }

    fn new_breaker(&self, key: &str) -> ModelBreaker {
        ModelBreaker::new(key.into(), self.policy, self.coordinator.clone())
    }

    fn known(&self) -> MutexGuard<'_, KnownModels> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownModels {
    fn breaker(&mut self, key: &str, create: impl FnOnce(&str) -> ModelBreaker) -> ModelBreaker {
        if let Some(found) = self.breakers.iter().find(|it| it.key() == key) {
            return found.clone();
        }
        let breaker = create(key);
        self.breakers.push(breaker.clone());
        breaker
    }
}

/// Returns the provider in the key of a breaker.
fn provider(key: &str) -> &str {
    key.strip_prefix(KEY_PREFIX).and_then(|it| it.split(':').next()).unwrap_or(key)
}
