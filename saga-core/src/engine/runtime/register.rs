//! The store keeps each definition as it was first used, so that one that changed under its version is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::machine::differences;
use crate::saga::Definition;
use crate::store::{DefinitionId, NewDefinition, Store, StoreError, StoredDefinition};

/// Registers definitions with the store. Returns a sentence for each definition that differs from the one that is kept.
pub(crate) async fn register<S: Store>(
    store: &S,
    definitions: &BTreeMap<DefinitionId, Arc<Definition<S>>>,
) -> Result<Vec<String>, StoreError> {
    // How a hosted step is done may change at any time.
    let own = definitions.values().filter(|definition| !definition.is_hosted());
    let new: Vec<NewDefinition> = own.map(|definition| definition.to_keep()).collect();
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let kept = store.register(new.clone()).await?;
    let changed = new.iter().zip(kept).filter(|(new, kept)| new.digest != kept.digest);
    Ok(changed.map(|(new, kept)| sentence(new, &kept)).collect())
}

fn sentence(new: &NewDefinition, kept: &StoredDefinition) -> String {
    let id = &new.id;
    let differences = kept.shape.as_deref().map(|shape| differences(shape, &new.shape)).unwrap_or_default();
    let what = if differences.is_empty() {
        "its steps are others than when sagas of it were started".to_owned()
    } else {
        format!("since sagas of it were started, {}", differences.join(", and "))
    };
    format!(
        "{id} has changed: {what}; give the changed steps `.version({})`, and register {id} as it was beside them until \
         its sagas have ended or were moved with a `Migration`",
        id.version.saturating_add(1)
    )
}
