//! The builder of the messages that this service sends.

use std::sync::Arc;

use crate::engine::context::Settings;
use crate::env::Environment;

/// Builds the messages that sagas and hosted steps cause.
pub(crate) struct Messages {
    pub(super) env: Arc<dyn Environment>,
    pub(super) settings: Arc<Settings>,
}

impl Messages {
    pub(crate) fn new(env: &Arc<dyn Environment>, settings: &Arc<Settings>) -> Self {
        Self { env: Arc::clone(env), settings: Arc::clone(settings) }
    }
}
