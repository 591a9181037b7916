//! The statements of a store, each made once for its schema.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::options::PostgresOptions;

/// The statements of a store, each made once for its schema.
pub(crate) struct StatementCache {
    options: PostgresOptions,
    by_template: RwLock<HashMap<String, Arc<str>>>,
}

impl StatementCache {
    pub(crate) fn new(options: &PostgresOptions) -> Self {
        Self { options: options.clone(), by_template: RwLock::default() }
    }

    pub(crate) fn of(&self, template: &str) -> Arc<str> {
        if let Some(statement) = self.by_template.read().unwrap_or_else(PoisonError::into_inner).get(template) {
            return Arc::clone(statement);
        }
        let statement = self.options.broken_rule.rewrite(template.to_owned());
        let statement: Arc<str> = self.options.render(statement).into();
        self.by_template
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(template.to_owned(), Arc::clone(&statement));
        statement
    }
}
