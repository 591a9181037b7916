use std::sync::{Arc, OnceLock};

use crate::key::{Key, Namespace, StepId, Tenant, external_key};

/// The keys of a call.
pub(crate) struct CallKeys {
    /// The external key of this call.
    pub(crate) key: ExternalKey,
    /// In a compensation, the external key that the step it undoes was called with.
    pub(crate) do_key: Option<ExternalKey>,
    /// The caller's key of the saga.
    pub(crate) saga_key: Arc<str>,
    /// The name of the saga's definition.
    pub(crate) saga_name: Arc<str>,
}

/// The key of a call as other services see it. It is made when a step asks for it; most steps never do.
pub(crate) struct ExternalKey {
    text: OnceLock<String>,
    parts: Option<Parts>,
}

struct Parts {
    namespace: Option<Namespace>,
    tenant: Tenant,
    key: Key,
    step: StepId,
}

impl ExternalKey {
    pub(crate) fn of(namespace: Option<&Namespace>, tenant: &Tenant, key: &Key, step: StepId) -> Self {
        let parts = Parts { namespace: namespace.cloned(), tenant: tenant.clone(), key: key.clone(), step };
        Self { text: OnceLock::new(), parts: Some(parts) }
    }

    /// The key of a test.
    pub(crate) fn given(text: String) -> Self {
        Self { text: text.into(), parts: None }
    }

    /// The tenant of the saga.
    pub(crate) fn tenant(&self) -> &Tenant {
        match &self.parts {
            Some(parts) => &parts.tenant,
            None => Tenant::default_ref(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        self.text.get_or_init(|| {
            let Some(Parts { namespace, tenant, key, step }) = &self.parts else { return String::new() };
            external_key(namespace.as_ref(), tenant, key, step)
        })
    }
}
