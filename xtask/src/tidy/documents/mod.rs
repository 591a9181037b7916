//! Rules about what is written: documentation, guarantees, links and words.

pub(super) mod cancel_safety;
pub(super) mod commands;
pub(super) mod document_size;
pub(super) mod glossary;
pub(super) mod guarantee;
pub(super) mod guarantee_list;
pub(super) mod guarantees;
pub(super) mod guide;
pub(super) mod links;
pub(super) mod log_events;
pub(super) mod module_doc;
pub(super) mod private_words;
