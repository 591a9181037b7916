//! Who answers for the functions of a saga that is played.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use saga_core::StepError;
use saga_core::env::BoxFuture;
use saga_core::memory::MemoryStore;
use saga_core::saga::Player;

use super::file::Stand;
use super::rows::stand;

/// Answers for the functions of a saga and of its sub-sagas, and notes where they stand in front of each.
pub(super) struct Answers {
    pub(super) returned: BTreeMap<String, String>,
    pub(super) rejects: Option<String>,
    pub(super) sub_sagas: Vec<&'static str>,
    pub(super) store: MemoryStore,
    pub(super) stands: Arc<Mutex<Vec<Stand>>>,
}

/// What is said of the step to return: under its own name, or, of a step of a sub-saga, that of the sub-saga and its own.
pub(super) fn answer<'a>(returned: &'a BTreeMap<String, String>, step: &str) -> Option<&'a String> {
    let name = step.split_once('>').map_or(step, |(_, name)| name);
    returned.get(step).or_else(|| returned.get(name))
}

/// What the step is called in sentences.
pub(super) fn shown(step: &str) -> String {
    match step.split_once('>') {
        None => format!("`{step}`"),
        Some((sub_saga, step)) => format!("`{step}` of `{sub_saga}`"),
    }
}

impl Answers {
    fn note(&self, before: String) -> BoxFuture<'static, ()> {
        let (store, stands, sub_sagas) = (self.store.clone(), Arc::clone(&self.stands), self.sub_sagas.clone());
        Box::pin(async move {
            if let Some(stand) = stand(&store, &sub_sagas, before).await {
                stands.lock().unwrap_or_else(PoisonError::into_inner).push(stand);
            }
        })
    }
}

impl Player for Answers {
    fn does(&self, step: &str) -> BoxFuture<'static, Result<Vec<u8>, StepError>> {
        let name = step.split('#').next().unwrap_or(step);
        let rejects = self.rejects.as_deref() == Some(name);
        let output =
            answer(&self.returned, name).map_or_else(|| b"null".to_vec(), |output| output.clone().into_bytes());
        let noted = self.note(format!("in front of {}", shown(step)));
        Box::pin(async move {
            noted.await;
            if rejects { Err(StepError::reject("the golden file lets it reject")) } else { Ok(output) }
        })
    }

    fn receives(&self, step: &str) -> Option<Vec<u8>> {
        self.returned.get(step).map(|signal| signal.clone().into_bytes())
    }

    fn undoes(&self, step: &str) -> BoxFuture<'static, Result<(), StepError>> {
        let noted = self.note(format!("in front of the undo of {}", shown(step)));
        Box::pin(async move {
            noted.await;
            Ok(())
        })
    }
}
